"""Where places of a text are after edits: what was found and not touched need not be searched again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphmend.findings import Edit, Finding, Fix, Range, Refusal
from graphmend.source.text import SourceText


@dataclass(frozen=True)
class Shift:
    """Maps positions of one file's text to positions after some edits of it.

    Args:
        before: the text that the edits were computed against.
        after: the text with the edits applied.
        edits: the edits, none of which overlap.
    """

    before: SourceText
    after: SourceText
    edits: Sequence[Edit]

    def offset(self, offset: int) -> int:
        """The new offset of a character that no edit replaced."""
        moved = sum(len(edit.replacement) - (edit.end - edit.start) for edit in self.edits if edit.end <= offset)
        return offset + moved

    def line(self, line: int) -> int:
        """The new number of a 1-based line: where its first character that no edit touches is."""
        start = self.before.line_starts[min(line, len(self.before.line_starts)) - 1]
        text = self.before.line(line) if line <= len(self.before.line_starts) else ""
        return self.after.position(self.offset(start + len(text) - len(text.lstrip())))[0]

    def range(self, place: Range) -> Range:
        """The new range of a stretch that no edit touches."""
        starts = self.before.line_starts
        start = self.offset(starts[place.line - 1] + place.column - 1)
        return self.after.range(
            start, start + starts[place.end_line - 1] + place.end_column - starts[place.line - 1] - place.column
        )

    def finding(self, finding: Finding) -> Finding:
        """A finding with every place in this file moved along."""
        path = self.before.path
        if any(frame.path == path for frame in finding.region):
            frames = (
                replace(frame, line=self.line(frame.line)) if frame.path == path else frame for frame in finding.region
            )
            finding = replace(finding, region=tuple(frames))
        if finding.path != path:
            return finding
        return replace(
            finding,
            range=self.range(finding.range),
            holds=tuple(self.range(place) for place in finding.holds),
            fix=self.fix(finding.fix) if finding.fix else None,
            refusal=self.refusal(finding.refusal) if finding.refusal else None,
        )

    def refusal(self, refusal: Refusal) -> Refusal:
        """A refusal whose line moves along."""
        return replace(refusal, line=self.line(refusal.line)) if refusal.line is not None else refusal

    def fix(self, fix: Fix) -> Fix:
        """A fix that was not applied, against the new text."""
        edits = (
            replace(edit, start=self.offset(edit.start), end=self.offset(edit.start) + edit.end - edit.start)
            for edit in fix.edits
        )
        return replace(fix, edits=tuple(replace(edit, range=self.after.range(edit.start, edit.end)) for edit in edits))
