"""Comments that silence findings: ``# noqa``, ``# noqa: GM101,GM2`` on a line, ``# graphmend: noqa`` for a file.

The grammar is flake8's, so one comment serves several tools. Comments are found by tokenizing: text that looks like one
inside a string is none.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

_CODES = r"(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)"
_LINE = re.compile(rf"#\s*noqa(?!\w)(?::\s*{_CODES})?", re.IGNORECASE)
_FILE = re.compile(rf"#\s*graphmend[:=]\s*noqa(?!\w)(?::\s*{_CODES})?", re.IGNORECASE)
_ALL = ("",)


@dataclass(frozen=True, slots=True)
class Suppressions:
    """What the comments of one file silence. Codes are upper case; each stands for all codes that begin with it."""

    whole_file: tuple[str, ...] = ()
    lines: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def silences(self, code: str, line: int, end_line: int) -> bool:
        """Whether a finding is silenced.

        Arguments:
            code: the finding's rule.
            line: the first line of its range.
            end_line: the last line of its range.
        """
        wanted = (*self.whole_file, *self.lines.get(line, ()), *self.lines.get(end_line, ()))
        return code.upper().startswith(wanted)


NONE = Suppressions()
"""Silences nothing."""


def find_suppressions(text: str) -> Suppressions:
    """Reads the comments of a file.

    A comment counts for its own line; at the end of a string or statement that backslashes or quotes spread over
    several lines, it counts for all of these.

    Arguments:
        text: Python source. Where it cannot be tokenized, what stands before that place counts.
    """
    if "noqa" not in text.lower():
        return NONE
    whole_file: tuple[str, ...] = ()
    lines: dict[int, tuple[str, ...]] = {}
    for first, last, comment, alone in _comments(text):
        if alone and (found := _FILE.search(comment)):
            whole_file += _codes(found)
        elif found := _FILE.search(comment) or _LINE.search(comment):
            for number in range(first, last + 1):
                lines[number] = lines.get(number, ()) + _codes(found)
    return Suppressions(whole_file, lines)


def _codes(found: re.Match[str]) -> tuple[str, ...]:
    return tuple(re.split(r"[,\s]+", found["codes"].upper())) if found["codes"] else _ALL


def _comments(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yields each comment with the first and the last line that it counts for, and whether it has a line of its own."""
    first = last = 0
    comments: list[tuple[str, bool]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            first = first or token.start[0]
            last = token.end[0]
            if token.type == tokenize.COMMENT:
                comments.append((token.string, not token.line[: token.start[1]].strip()))
            elif token.type in (tokenize.NL, tokenize.NEWLINE):
                last = token.start[0]
                for comment, alone in comments:
                    yield first, last, comment, alone
                first, comments = 0, []
    except (tokenize.TokenError, SyntaxError):
        return
