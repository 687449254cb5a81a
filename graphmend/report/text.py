"""Text for a person: the source line, the way into the compiled region, and the fix or why there is none."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from graphmend.findings import Applicability, BreakSite, Finding, Impact, Report, Seen, Severity
from graphmend.model.index import RUNTIME_COPY
from graphmend.report import Options, counted, is_fixable, place, unsuppressed

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_SEVERITY = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def render(report: Report, options: Options) -> str:
    """Returns the findings and the breaks that none explains, each in a paragraph of its own, and a summary."""
    writer = Writer(options)
    blocks = ["\n".join(writer.finding(finding)) + "\n" for finding in unsuppressed(report.findings)]
    blocks += ["\n".join(writer.site(site, ())) + "\n" for site in report.unexplained]
    if not options.quiet:
        blocks.append("\n".join(writer.summary(report)) + "\n")
    return "\n".join(blocks)


class Writer:
    """Writes the parts of a report, line by line.

    Arguments:
        options: how to print.
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    def paint(self, text: str, *styles: str) -> str:
        """Returns text in some styles, if colour is wanted."""
        if not self.options.colour:
            return text
        codes = ";".join(_COLOURS[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def finding(self, finding: Finding) -> Iterator[str]:
        """Yields the paragraph of a finding."""
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

    def site(self, site: BreakSite, causes: Sequence[str]) -> Iterator[str]:
        """Yields the paragraph of a place where a run broke the graph.

        Arguments:
            site: the place.
            causes: the findings that say why it broke, each in a few words.
        """
        head = " ".join((self.paint(", ".join(site.gb), "bold"), site.reason)).strip() or "the graph broke"
        yield f"{self.paint(f'{site.path}:{site.line}', 'bold')}: {head}"
        number = str(site.line)
        margin = " " * len(number)
        bar = self.paint("|", "dim")
        if site.source_line.strip():
            yield f"{margin} {bar}"
            yield f"{self.paint(number, 'dim')} {bar} {site.source_line}"
            yield f"{margin} {bar}"
        mark = self.paint("=", "dim")
        for label, text, style in self.told(site, causes):
            yield f"{margin} {mark} {self.paint(label + ':', style)} {text}"

    def told(self, site: BreakSite, causes: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Yields what Dynamo told of a break, each with its label and the label's style."""
        if site.function:
            yield "in", site.function, "cyan"
        if site.inside:
            yield "broke at", f"{site.inside.function} ({site.inside.path}:{site.inside.line})", "cyan"
        if site.skips_frame:
            yield "impact", "the whole function is left to Python", "yellow"
        for cause in causes:
            yield "found", cause, "cyan"
        if not causes and _keeps_branch(site):
            yield "found", "mended, but the branch stays where a gradient is needed or an arm is not traced", "yellow"
        elif not causes:
            yield "found", "nothing; no rule explains it", "yellow"
            if site.explanation:
                yield "dynamo", site.explanation, "cyan"

    def notes(self, finding: Finding) -> Iterator[tuple[str, str, str]]:
        """Yields what is known of a finding, each with its label and the label's style."""
        if finding.region:
            yield "compiled", _chain(finding), "cyan"
        details = [finding.impact.value, f"confidence {finding.confidence.value}", *finding.gb]
        skipped = ""
        if finding.impact is Impact.SKIPS_FRAME and finding.region:
            skipped = f"; the frame is skipped: nothing of `{finding.region[-1].function}`, or of its rest, is compiled"
        yield "impact", ", ".join(details) + skipped, "cyan"
        if finding.seen:
            yield "trace", finding.seen.value, "cyan"
        for part in finding.behind:
            yield "behind", f"{part.rule} at line {part.range.line}: {part.message}", "cyan"
        if finding.note:
            yield "note", finding.note, "cyan"
        yield from self.fix(finding)
        if refusal := finding.refusal:
            place = "" if refusal.line is None else f", line {refusal.line}"
            yield "not fixed", f"{refusal.reason} ({refusal.transform}: {refusal.obligation}{place})", "yellow"

    def fix(self, finding: Finding) -> Iterator[tuple[str, str, str]]:
        """Yields what is told of a fix, likewise."""
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
        """Yields the last lines of a report."""
        shown = unsuppressed(report.findings)
        if report.fixed:
            count = sum(file.count for file in report.fixed)
            yield f"Fixed {counted(count, 'finding')} in {counted(len(report.fixed), 'file')}."
            for limit, times in Counter(limit for file in report.fixed for limit in file.limits).items():
                yield f"At {times} of them the graph still breaks {limit}."
        silenced = len(report.findings) - len(shown)
        tail = f" ({silenced} silenced)" if silenced else ""
        yield from self.traced(report)
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

    def traced(self, report: Report) -> Iterator[str]:
        """Yields what a run says of the findings, if one was watched."""
        marks = [finding.seen for finding in unsuppressed(report.findings)]
        if not any(marks) and not report.unexplained:
            return
        text = f"The run confirmed {marks.count(Seen.CONFIRMED)} of {counted(len(marks), 'finding')}"
        if report.unexplained:
            text += f", and broke at {counted(len(report.unexplained), 'statement')} that no rule explains"
        yield f"{text}."

    def advice(self, shown: list[Finding]) -> Iterator[str]:
        """Yields what to do about what was found."""
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


def _keeps_branch(site: BreakSite) -> bool:
    """Whether a run broke in the runtime's ``select``, which branches where the choice cannot be part of the graph."""
    path = site.inside.path.replace("\\", "/") if site.inside else ""
    return path.endswith(("graphmend/runtime/select.py", f"/{RUNTIME_COPY}.py"))


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
