"""Comments in a piece of code, and behind a statement."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from graphmend.source.text import SourceText

_NEWLINE = re.compile(r"\r\n|\r|\n")


def comments_in(text: str) -> Iterator[tuple[int, str]]:
    """The comments in a piece of code whose brackets are balanced, with their offsets, without space behind them."""
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    # Inside brackets the tokeniser does not mind how lines are indented.
    tokens = tokenize.generate_tokens(io.StringIO(f"({text}\n)", newline="").readline)
    try:
        for token in tokens:
            if token.type == tokenize.COMMENT:
                line, column = token.start
                yield starts[line - 1] + column - (line == 1), token.string.rstrip()
    except (tokenize.TokenError, IndentationError):
        return


def end_with_comment(source: SourceText, end: int) -> int:
    """The end of a statement with the comment behind it."""
    line, column = source.position(end)
    behind = source.line(line)[column - 1 :].rstrip()
    return end + len(behind) if behind.lstrip().startswith("#") else end


def end_with_comments(source: SourceText, end: int, indentation: str) -> int:
    """The end of a statement with the comment behind it, and the comments below that are indented deeper."""
    line, column = source.position(end)
    behind = source.line(line)[column - 1 :].strip()
    if behind and not behind.startswith("#"):
        return end
    end = end_with_comment(source, end)
    while line < len(source.line_starts):
        line += 1
        own = source.indentation(line)
        if not source.line(line).strip().startswith("#") or not own.startswith(indentation) or own == indentation:
            break
        end = source.line_starts[line - 1] + len(source.line(line).rstrip())
    return end
