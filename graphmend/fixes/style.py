"""The look of new code: indentation, line length, and the text of a statement at another place."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from graphmend.fixes.layout import Argument, Call, breaks, call_of, flat_list, parts_of
from graphmend.model.module import Module
from graphmend.model.tree import walk
from graphmend.source.text import SourceText

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_NO_CODE = re.compile(r"""\s*(?:#|[bfruBFRU]{0,2}["'])""")
_SHORTEST_LENGTH = 79
_DEFAULT_LENGTH = 88
_LONGEST_LENGTH = 120
_MANY_LINES = 200
_STANDING_OUT = 500


@dataclass(frozen=True)
class Style:
    """How a file is written.

    Args:
        source: the file's text.
        tree: its syntax tree.
    """

    source: SourceText
    tree: ast.Module

    @cached_property
    def unit(self) -> str:
        """One step of indentation: that of the first indented block."""
        for node in walk(self.tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
                outer, inner = self.source.indentation(node.lineno), self.source.indentation(body[0].lineno)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    @cached_property
    def length(self) -> int:
        """The line length that is configured for the file, or else the one that the file keeps to."""
        configured = _configured_length(os.path.dirname(os.path.abspath(self.source.path)))
        return configured if configured is not None else self._kept_length()

    def _kept_length(self) -> int:
        """The length of the longest lines of code, a few that stand out aside; 88 for what tells nothing."""
        lengths = sorted(_code_lengths(self.source.text), reverse=True)
        longest = lengths[len(lengths) // _STANDING_OUT] if lengths else 0
        if longest > _DEFAULT_LENGTH:
            return longest
        return _SHORTEST_LENGTH if longest <= _SHORTEST_LENGTH and len(lengths) >= _MANY_LINES else _DEFAULT_LENGTH

    def call(self, callee: str, arguments: Sequence[Argument], indentation: str) -> str:
        """A call at the end of ``indentation``, on as many lines as it needs."""
        return self.lay_out(Call(callee, arguments), indentation)

    def function(self, decorator: str, name: str, parameters: Sequence[str], body: str) -> str:
        """A module-level function whose body is indented text without a last newline."""
        newline = self.source.newline
        head = self._list(f"def {name}(", [Argument(each) for each in parameters], "):", "", 0)
        return f"@{decorator}{newline}{head}{newline}{body}{newline}"

    def lay_out(self, call: Call, indentation: str, used: int = 0) -> str:
        """A call on as many lines as it needs.

        Args:
            call: the call.
            indentation: the indentation of its line.
            used: how many other characters are on the line.
        """
        return self._list(f"{call.callee}(", call.arguments, ")", indentation, used)

    def _list(self, opening: str, arguments: Sequence[Argument], closing: str, indentation: str, used: int) -> str:
        newline, inner = self.source.newline, indentation + self.unit
        flat = flat_list(arguments)
        if flat is not None and (not arguments or self.fits(f"{indentation}{opening}{flat}{closing}", used)):
            return f"{opening}{flat}{closing}"
        if flat is not None and self.fits(inner + flat):
            return f"{opening}{newline}{inner}{flat}{newline}{indentation}{closing}"
        lines = "".join(f"{self._argument(each, inner)}{newline}" for each in arguments)
        return f"{opening}{newline}{lines}{indentation}{closing}"

    def header(self, keyword: str, condition: str, indentation: str) -> str:
        """The header of a branch, behind its indentation, on as many lines as it needs."""
        line = f"{keyword} {condition}:"
        if breaks(condition) or self.fits(indentation + line):
            return line
        return f"{keyword} {self.in_parentheses(condition, indentation)}:"

    def in_parentheses(self, text: str, indentation: str) -> str:
        """An expression on lines of its own between parentheses."""
        newline, inner = self.source.newline, indentation + self.unit
        parts = [text] if self.fits(inner + text) else parts_of(text, lambda part: self.fits(inner + part))
        lines = "".join(f"{inner}{part}{newline}" for part in parts)
        return f"({newline}{lines}{indentation})"

    def fits(self, line: str, used: int = 0) -> bool:
        """Whether a line is no longer than lines of the file are."""
        return len(line) + used <= self.length

    def _argument(self, argument: Argument, indentation: str) -> str:
        """An argument on lines of its own, with its comma and comments."""
        behind = f"  {argument.behind}" if argument.behind else ""
        text = f"{indentation}{argument.prefix}{self._value(argument, indentation)},{behind}"
        above, below = ([f"{indentation}{each}" for each in comments] for comments in (argument.above, argument.below))
        return self.source.newline.join([*above, text, *below])

    def _value(self, argument: Argument, indentation: str) -> str:
        value, used = argument.value, len(argument.prefix) + len(",")
        if isinstance(value, str):
            if not breaks(value) and self.fits(indentation + value, used):
                return value
            if argument.lines:
                return reindent(argument.lines, argument.indentation, indentation)[len(indentation) :]
            call = call_of(value)
            if call is None:
                return value
            value = call
        return self.lay_out(value, indentation, used)


def _code_lengths(text: str) -> Iterator[int]:
    """The lengths of the lines of a file, but for comments, strings on their own, and what could not be broken."""
    for line in text.splitlines():
        code = line.split("  #")[0].rstrip()
        if code and len(code) <= _LONGEST_LENGTH and not _NO_CODE.match(code):
            yield len(code)


_STYLES: WeakKeyDictionary[Module, Style] = WeakKeyDictionary()


def style_of(module: Module) -> Style:
    """The style of a file, looked at once."""
    style = _STYLES.get(module)
    if style is None:
        style = _STYLES[module] = Style(module.source, module.tree)
    return style


@lru_cache(maxsize=1024)
def _configured_length(folder: str) -> int | None:
    """The ``line-length`` of ruff or black that applies to a folder."""
    for name in (".ruff.toml", "ruff.toml", "pyproject.toml"):
        length = _read_length(os.path.join(folder, name))
        if length is not None:
            return length
    parent = os.path.dirname(folder)
    return _configured_length(parent) if parent != folder else None


def _read_length(path: str) -> int | None:
    """The length that a file configures; the formatters' own if it only configures other things."""
    if not os.path.isfile(path):
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except (OSError, ValueError):
        return None
    tools = content.get("tool", {}) if path.endswith("pyproject.toml") else {"ruff": content}
    configured = [tools[tool].get("line-length") for tool in ("ruff", "black") if tool in tools]
    lengths = [length for length in configured if isinstance(length, int)]
    return lengths[0] if lengths else _DEFAULT_LENGTH if configured else None


def reindent(text: str, old: str, new: str) -> str:
    """A statement's text with another indentation, down to the characters inside its strings.

    Args:
        text: the statement, from its first character on.
        old: the indentation of the line that it begins in.
        new: the indentation that it gets.
    """
    lines = _LINE.findall(text)
    if lines and not lines[-1]:
        lines.pop()
    inside = _string_lines(text, old)
    parts = [new + lines[0]]
    for number, line in enumerate(lines[1:], start=1):
        if number in inside:
            parts.append(line)
        elif not line.strip():
            parts.append(line.lstrip(" \t"))
        else:
            parts.append(new + (line[len(old) :] if line.startswith(old) else line.lstrip(" \t")))
    return "".join(parts)


def _string_lines(text: str, indentation: str) -> set[int]:
    """The lines of a statement, from 0, that begin inside a string."""
    code, offset = (f"if 1:\n{indentation}{text}\n", 2) if indentation else (f"{text}\n", 1)
    inside: set[int] = set()
    openings: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif kind in ("FSTRING_START", "TSTRING_START"):
            openings.append(token.start[0])
        elif kind in ("FSTRING_END", "TSTRING_END"):
            inside.update(range(openings.pop() + 1, token.end[0] + 1))
    return {line - offset for line in inside}
