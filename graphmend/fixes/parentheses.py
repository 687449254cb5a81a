"""The parentheses around an expression of the source."""

from __future__ import annotations

import keyword
import re

from graphmend.source.text import SourceText

_BEFORE = re.compile(r"\(\s*\Z")
_AFTER = re.compile(r"\s*\)")
_BEFORE_WITH_COMMENTS = re.compile(r"\((?:\s|#[^\r\n]*[\r\n])*\Z")
_AFTER_WITH_COMMENTS = re.compile(r"(?:\s|#[^\r\n]*[\r\n])*\)")
_WORD = re.compile(r"\w+\Z")
_REACH = 2000


def with_grouping(source: SourceText, start: int, end: int, comments: bool = False) -> tuple[int, int]:
    """The range of an expression together with the parentheses that only group it.

    What replaces it needs none if it is a name, a call or the like.

    Args:
        source: the text.
        start: where the expression begins.
        end: where it ends.
        comments: whether there may be comments between it and the parentheses.
    """
    text = source.text
    opening, closing = (_BEFORE_WITH_COMMENTS, _AFTER_WITH_COMMENTS) if comments else (_BEFORE, _AFTER)
    while True:
        before = opening.search(text, max(0, start - _REACH), start)
        after = closing.match(text, end)
        if before is None or after is None or not _groups(text[max(0, before.start() - _REACH) : before.start()]):
            return start, end
        start, end = before.start(), after.end()


def _groups(before: str) -> bool:
    """Whether a parenthesis behind some text opens a group, and no call."""
    before = before.rstrip()
    word = _WORD.search(before)
    if word is not None:
        return keyword.iskeyword(word.group())
    return not before.endswith((")", "]", "}", '"', "'"))


def in_parentheses(source: SourceText, start: int, end: int) -> tuple[int, int] | None:
    """The range from the parenthesis before an expression to the one behind it, with the comments between."""
    before = _BEFORE_WITH_COMMENTS.search(source.text, max(0, start - _REACH), start)
    after = _AFTER_WITH_COMMENTS.match(source.text, end)
    return None if before is None or after is None else (before.start(), after.end())


def spaced(source: SourceText, start: int, end: int, replacement: str) -> str:
    """A replacement with the spaces that part it from words around it, where parentheses did before."""
    before, after = source.text[start - 1 : start], source.text[end : end + 1]
    lead = " " if before.isidentifier() and replacement[:1].isidentifier() else ""
    return f"{lead}{replacement}{' ' if after.isidentifier() else ''}"
