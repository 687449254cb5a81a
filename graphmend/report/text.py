"""Text for a person: the source line, the way into the compiled region, and the fix or why there is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from graphmend.findings import Applicability, Finding, Impact, Report, Severity
from graphmend.report import Options, counted, is_fixable, place, unsuppressed

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SEVERITY = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def render(report: Report, options: Options) -> str:
    """Returns the findings, each in a paragraph of its own, and a summary."""
    writer = _Writer(options)
    blocks = ["\n".join(writer.finding(finding)) + "\n" for finding in unsuppressed(report.findings)]
    if not options.quiet:
        blocks.append("\n".join(writer.summary(report)) + "\n")
    return "\n".join(blocks)


class _Writer:
    def __init__(self, options: Options) -> None:
        self.options = options

    def paint(self, text: str, *styles: str) -> str:
        if not self.options.colour:
            return text
        codes = ";".join(_COLOURS[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def finding(self, finding: Finding) -> Iterator[str]:
        severity = self.paint(f"{finding.severity.value}:", "bold", _SEVERITY[finding.severity])
        rule = self.paint(finding.rule, "bold")
        yield f"{self.paint(place(finding), 'bold')}: {severity} {rule} {finding.message}"
        number = str(finding.range.line)
        margin = " " * len(number)
        bar = self.paint("|", "dim")
        if finding.source_line.strip():
            yield f"{margin} {bar}"
            yield f"{self.paint(number, 'dim')} {bar} {finding.source_line}"
            yield f"{margin} {bar} {self.paint(_underline(finding), 'bold', _SEVERITY[finding.severity])}"
        for label, text, style in self.notes(finding):
            yield f"{margin} {self.paint('=', 'dim')} {self.paint(label + ':', style)} {text}"

    def notes(self, finding: Finding) -> Iterator[tuple[str, str, str]]:
        if finding.region:
            yield "compiled", _chain(finding), "cyan"
        details = [finding.impact.value, f"confidence {finding.confidence.value}", *finding.gb]
        skipped = ""
        if finding.impact is Impact.SKIPS_FRAME and finding.region:
            skipped = f"; the frame is skipped: nothing of `{finding.region[-1].function}` is compiled"
        yield "impact", ", ".join(details) + skipped, "cyan"
        for part in finding.behind:
            yield "behind", f"{part.rule} at line {part.range.line}: {part.message}", "cyan"
        if finding.note:
            yield "note", finding.note, "cyan"
        yield from self.fix(finding)
        if refusal := finding.refusal:
            place = "" if refusal.line is None else f", line {refusal.line}"
            yield "not fixed", f"{refusal.reason} ({refusal.transform}: {refusal.obligation}{place})", "yellow"

    def fix(self, finding: Finding) -> Iterator[tuple[str, str, str]]:
        fix = finding.fix
        if fix is None:
            return
        options = "`--fix`"
        if finding.withheld:
            options = "`--fix --fix-generated`, or where the file itself is named"
        if fix.applicability is Applicability.SAFE:
            yield "fix", f"{fix.transform}, with {options}", "green"
        else:
            changes = f": {fix.changes}" if fix.changes else ""
            options = options.replace("--fix", "--fix --unsafe-fixes", 1)
            yield "fix", f"{fix.transform}, unsafe, with {options}{changes}", "yellow"
        if fix.limits:
            yield "but", f"the graph still breaks there {fix.limits}", "yellow"
        if self.options.proof:
            for proof in fix.proof:
                detail = f": {proof.detail}" if proof.detail else ""
                yield "proof", f"{proof.obligation} ({proof.how}){detail}", "dim"

    def summary(self, report: Report) -> Iterator[str]:
        shown = unsuppressed(report.findings)
        if report.fixed:
            count = sum(file.count for file in report.fixed)
            yield f"Fixed {counted(count, 'finding')} in {counted(len(report.fixed), 'file')}."
        silenced = len(report.findings) - len(shown)
        tail = f" ({silenced} silenced)" if silenced else ""
        if not shown:
            left = "Nothing else was found" if report.fixed else "Nothing was found"
            if report.errors:
                tail += f"; {counted(len(report.errors), 'error')}"
            left = self.paint(left, "yellow" if report.errors else "green")
            yield f"{left} in {counted(report.files, 'file')}{tail}."
            return
        found = f"{counted(len(shown), 'finding')}{' left' if report.fixed else ''}"
        yield f"{self.paint(found, 'bold')} in {counted(report.files, 'file')}{tail}."
        yield from self.advice(shown)

    def advice(self, shown: list[Finding]) -> Iterator[str]:
        safe = sum(is_fixable(finding, Applicability.SAFE) for finding in shown)
        unsafe = sum(is_fixable(finding, Applicability.UNSAFE) for finding in shown)
        if safe:
            yield f"{safe} can be fixed with `--fix`; `--diff` shows the changes first."
        if unsafe:
            yield f"{unsafe} can be fixed with `--fix --unsafe-fixes`, which may change what the program does."
        withheld = sum(finding.withheld and finding.fix is not None for finding in shown)
        if withheld:
            yield f"{withheld} in generated files can be fixed with `--fix --fix-generated`, or where they are named."
        rest = [finding for finding in shown if finding.fix is None]
        if rest:
            code = rest[0].rule
            yield f"To keep the rest out of the way: `# noqa: {code}` on a line, `--ignore {code}`, `--fail-on error`."


def _chain(finding: Finding) -> str:
    """Tells the way from where compilation begins to the function of the finding."""
    frames = (("torch.compile in " if frame.is_launch else "", frame) for frame in finding.region)
    return " -> ".join(f"{prefix}{frame.function} ({frame.path}:{frame.line})" for prefix, frame in frames)


def _underline(finding: Finding) -> str:
    """Marks the range below its line, to the end of the line if it goes on."""
    line, range_ = finding.source_line, finding.range
    start = range_.column - 1
    end = range_.end_column - 1 if range_.end_line == range_.line else len(line.rstrip())
    lead = "".join("\t" if char == "\t" else " " * _width(char) for char in line[:start])
    return lead + "^" * max(1, sum(map(_width, line[start:end])))


def _width(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
