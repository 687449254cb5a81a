"""New calls as trees of text, and texts without their line breaks: what :class:`Style` lays out on lines."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphmend.fixes.parentheses import with_grouping
from graphmend.source.text import SourceText

_NEWLINE = re.compile(r"\r\n|\r|\n")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_LITERALS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.JoinedStr, *_LITERALS)


@dataclass(frozen=True)
class Argument:
    """One argument of a new call.

    Args:
        value: its text, or the call that it is.
        prefix: what stands in front of the value.
        lines: the text on several lines, to be taken where the value is too long; empty if there is none.
        indentation: the indentation of the line that ``lines`` comes from.
        above: comments on lines of their own before it.
        behind: a comment behind it; empty for none.
        below: comments on lines of their own after it.
    """

    value: str | Call
    prefix: str = ""
    lines: str = ""
    indentation: str = ""
    above: Sequence[str] = ()
    behind: str = ""
    below: Sequence[str] = ()

    @property
    def flat(self) -> str | None:
        """The argument on one line; ``None`` if it cannot be."""
        value = self.value.flat if isinstance(self.value, Call) else self.value
        if value is None or breaks(value) or self.above or self.behind or self.below:
            return None
        return self.prefix + value


@dataclass(frozen=True)
class Call:
    """A new call.

    Args:
        callee: what is called.
        arguments: its arguments.
    """

    callee: str
    arguments: Sequence[Argument]

    @property
    def flat(self) -> str | None:
        """The call on one line; ``None`` if it cannot be."""
        inside = flat_list(self.arguments)
        return None if inside is None else f"{self.callee}({inside})"


def flat_list(arguments: Sequence[Argument]) -> str | None:
    """Arguments on one line; ``None`` if they cannot be."""
    texts = [argument.flat for argument in arguments]
    return ", ".join(text for text in texts if text is not None) if None not in texts else None


def call_of(text: str) -> Call | None:
    """The call that a text on one line is, so that it can be laid out; ``None`` if it is none or has no arguments."""
    node = _parsed(text)
    if not isinstance(node, ast.Call) or not text.isascii() or breaks(text):
        return None
    given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    arguments = sorted(given, key=lambda each: each.col_offset)
    if not arguments or not text.endswith(")"):
        return None
    start = text.index("(", node.func.end_col_offset or 0)
    commas = [text.index(",", each.end_col_offset or 0) for each in arguments[:-1]]
    parts = [text[first + 1 : last].strip() for first, last in pairwise((start, *commas, len(text) - 1))]
    return Call(text[:start], [Argument(part.removesuffix(",")) for part in parts])


def parts_of(text: str, fits: Callable[[str], bool]) -> list[str]:
    """An expression in parts that stand on lines of their own, at its outermost operators."""
    node = ast.parse(text, mode="eval").body
    operands: list[tuple[str, ast.expr]] = []
    if isinstance(node, ast.IfExp):
        operands = [("", node.body), ("if ", node.test), ("else ", node.orelse)]
    elif isinstance(node, ast.BoolOp):
        word = "and " if isinstance(node.op, ast.And) else "or "
        operands = [(word if position else "", value) for position, value in enumerate(node.values)]
    if not operands:
        return [text]
    parts: list[str] = []
    source = SourceText("", text)
    for word, operand in operands:
        part = source.text[slice(*with_grouping(source, *source.span(operand)))]
        whole = fits(word + part) or in_brackets(part)
        first, *rest = [part] if whole else parts_of(part, fits)
        parts += [word + first, *rest]
    return parts


def breaks(text: str) -> bool:
    """Whether a text has several lines."""
    return "\n" in text or "\r" in text


def one_line(text: str) -> str | None:
    """An expression or simple statement without its line breaks.

    Returns:
        ``None`` if they have to stay, or were made on purpose: by a comment, a string of several lines, strings side by
        side, or a comma before the closing bracket.
    """
    if not breaks(text):
        return text
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    parts: list[str] = []
    position = 0
    last: tokenize.TokenInfo | None = None
    for token in _tokens(f"({text})"):
        if token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER):
            continue
        if token.type == tokenize.COMMENT or token.start[0] != token.end[0]:
            return None
        if last is not None and last.end[0] != token.start[0]:
            gap = _gap(last, token)
            if gap is None:
                return None
            parts += text[position : _offset(starts, last.end)], gap
            position = _offset(starts, token.start)
        last = token
    return "".join([*parts, text[position:]]).strip()


def _offset(starts: Sequence[int], place: tuple[int, int]) -> int:
    """The offset of a token's place in the text that was tokenised inside parentheses."""
    line, column = place
    return starts[line - 1] + column - (line == 1)


def _gap(last: tokenize.TokenInfo, token: tokenize.TokenInfo) -> str | None:
    """What stands between two tokens in place of a line break; ``None`` if that was made on purpose."""
    closes = token.string in _CLOSING
    if (closes and last.string == ",") or (_ends_string(last) and _begins_string(token)):
        return None
    return "" if closes or last.string in _OPENING or token.string == "." else " "


def _ends_string(token: tokenize.TokenInfo) -> bool:
    return tokenize.tok_name[token.type] in ("STRING", "FSTRING_END", "TSTRING_END")


def _begins_string(token: tokenize.TokenInfo) -> bool:
    return tokenize.tok_name[token.type] in ("STRING", "FSTRING_START", "TSTRING_START")


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(text, newline="").readline)


def closed(text: str) -> str:
    """The text of an expression, in parentheses if it has line breaks outside brackets."""
    return text if not breaks(text) or _parsed(text) is not None else f"({text})"


def primary(text: str) -> str:
    """The text of an expression where its method is called, in parentheses if it needs them."""
    node = _parsed(text)
    simple = isinstance(node, _PRIMARY) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))
    return text if simple or in_brackets(text) else f"({text})"


def in_brackets(text: str) -> bool:
    """Whether parentheses are around the whole text of an expression."""
    node = _parsed(text)
    return node is not None and (node.lineno, node.col_offset) != (1, 0)


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
