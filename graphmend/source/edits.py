"""Applying edits: ranges with replacements, all computed against one text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmend.findings import Edit, Fix
from graphmend.source.text import SourceText


def make_edit(source: SourceText, start: int, end: int, replacement: str) -> Edit:
    """An edit of ``source`` with its range filled in."""
    return Edit(source.path, start, end, replacement, source.range(start, end))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap to the text they were computed against.

    Several insertions at one offset keep the order in which they are given.
    """
    parts: list[str] = []
    position = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        parts += text[position : edit.start], edit.replacement
        position = edit.end
    return "".join([*parts, text[position:]])


def choose_fixes(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes that can be applied together in one pass: the first of those that touch a common place wins.

    Identical edits (the same import added by two fixes) are one edit and no conflict.
    """
    chosen: list[Fix] = []
    taken: set[Edit] = set()
    for fix in fixes:
        if not any(_conflict(edit, other) for edit in fix.edits for other in taken):
            chosen.append(fix)
            taken.update(fix.edits)
    return chosen


def _conflict(edit: Edit, other: Edit) -> bool:
    # Strict comparisons: insertions at one place, or at the border of a replacement, go side by side.
    return edit.path == other.path and edit != other and edit.start < other.end and other.start < edit.end
