"""The look of new code: indentation, line length, and the text of a statement at another place."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from graphmend.model.module import Module
from graphmend.source.text import SourceText

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_DEFAULT_LENGTH = 88
_LONGEST_LENGTH = 120


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
        for node in ast.walk(self.tree):
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
        if configured is not None:
            return configured
        lengths = (len(line.rstrip()) for line in self.source.text.splitlines())
        return max(
            (length for length in lengths if _DEFAULT_LENGTH < length <= _LONGEST_LENGTH), default=_DEFAULT_LENGTH
        )

    def call(self, callee: str, arguments: Sequence[str], indentation: str) -> str:
        """A call at the end of ``indentation``, on as many lines as it needs."""
        return self._list(f"{callee}(", arguments, ")", indentation)

    def function(self, decorator: str, name: str, parameters: Sequence[str], body: str) -> str:
        """A module-level function whose body is indented text without a last newline."""
        newline = self.source.newline
        head = self._list(f"def {name}(", parameters, "):", "")
        return f"@{decorator}{newline}{head}{newline}{body}{newline}"

    def _list(self, opening: str, items: Sequence[str], closing: str, indentation: str) -> str:
        newline, inner = self.source.newline, indentation + self.unit
        line = f"{opening}{', '.join(items)}{closing}"
        several = any("\n" in item or "\r" in item for item in items)
        if not items or not several and len(indentation + line) <= self.length:
            return line
        line = ", ".join(items)
        if not several and len(inner + line) <= self.length:
            return f"{opening}{newline}{inner}{line}{newline}{indentation}{closing}"
        lines = "".join(f"{inner}{item},{newline}" for item in items)
        return f"{opening}{newline}{lines}{indentation}{closing}"


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
    path = os.path.join(folder, "pyproject.toml")
    if os.path.isfile(path):
        return _read_length(path)
    parent = os.path.dirname(folder)
    return _configured_length(parent) if parent != folder else None


def _read_length(path: str) -> int | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            tools = tomllib.load(file).get("tool", {})
    except (OSError, ValueError):
        return None
    for tool in ("ruff", "black"):
        length = tools.get(tool, {}).get("line-length")
        if isinstance(length, int):
            return length
    return None


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
