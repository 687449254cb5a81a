"""The comments of a branch that becomes a selection, and which part of it each is about."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from graphmend.fixes.arms import Arm, Branch, Choice, Side
from graphmend.fixes.comments import comments_in
from graphmend.source.text import SourceText

Part = ast.expr | Arm
"""A test, or an arm."""

Span = tuple[int, int]


@dataclass
class Remarks:
    """The comments that new text does not hold, by the part that they are about.

    Args:
        texts: the comments before a part, behind it, and after it at the end of its block; by the identity of the part.
    """

    texts: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def add(self, part: Part, place: str, comment: str) -> None:
        """Note a comment."""
        self.texts.setdefault((id(part), place), []).append(comment)

    def above(self, part: Part) -> list[str]:
        """The comments on lines before a part, and those that have no other place."""
        return self.texts.get((id(part), "above"), [])

    def behind(self, part: Part) -> str:
        """The comment behind a part; empty if there is none."""
        return "".join(self.texts.get((id(part), "behind"), []))

    def below(self, part: Part) -> list[str]:
        """The comments on lines after a part that belong to its block."""
        return self.texts.get((id(part), "below"), [])

    def all(self, *parts: Part) -> list[str]:
        """All comments about some parts, in the order of these."""
        return [
            text
            for part in parts
            for place in ("above", "behind", "below")
            for text in self.texts.get((id(part), place), [])
        ]


def remarks_of(source: SourceText, branch: Branch, span: Span, is_copied: Callable[[Part, int, str], bool]) -> Remarks:
    """The comments of a branch.

    Args:
        source: the text.
        branch: the branch.
        span: the replaced text.
        is_copied: whether the new text of a part holds a comment: its offset and text.
    """
    remarks = Remarks()
    start, end = span
    pieces = sorted(_pieces(source, branch.choice), key=lambda piece: piece[0])
    outer = source.indentation(branch.first.lineno) if isinstance(branch.first, ast.stmt) else None
    for place_in_text, text in comments_in(source.text[start:end]):
        offset = start + place_in_text
        if any(is_copied(part, offset, text) for _, part in pieces):
            continue
        part, place = _place(source, pieces, offset, outer)
        if place == "behind" and remarks.behind(part):
            place = "below"
        remarks.add(part, place, text)
    return remarks


def _place(source: SourceText, pieces: list[tuple[Span, Part]], offset: int, outer: str | None) -> tuple[Part, str]:
    """The part that a comment is about, and where it stands to it."""
    line, column = source.position(offset)
    before = [(span, part) for span, part in pieces if span[1] <= offset]
    inside = [part for span, part in pieces if span[0] <= offset < span[1]]
    after = [part for span, part in pieces if span[0] > offset]
    if inside:
        return inside[-1], "above"
    if before:
        span, part = max(before, key=lambda piece: piece[0][1])
        if source.line(line)[: column - 1].strip():
            if not isinstance(part, Arm) or source.position(span[1])[0] == line:
                return part, "behind"
        elif isinstance(part, Arm) and outer is not None and _is_in_block(source, span[1], line, outer):
            return part, "below"
        if not after:
            return part, "below"
    return after[0], "above"


def _is_in_block(source: SourceText, end: int, line: int, outer: str) -> bool:
    """Whether the comment in a line is at the end of the block whose last statement ends at ``end``."""
    between = range(source.position(end)[0] + 1, line + 1)
    follows = all(source.line(number).lstrip()[:1] in ("", "#") for number in between)
    return follows and len(source.indentation(line)) > len(outer)


def _pieces(source: SourceText, side: Side) -> Iterator[tuple[Span, Part]]:
    """The parts of a branch that are in the source, with their ranges."""
    if isinstance(side, Choice):
        yield source.span(side.test), side.test
        yield from _pieces(source, side.true)
        yield from _pieces(source, side.false)
        return
    nodes = side.statements or [result for result in side.results if result is not None]
    if nodes:
        yield (source.span(nodes[0])[0], source.span(nodes[-1])[1]), side
