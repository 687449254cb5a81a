"""Joins what broke in a run with what was found in the source. Nothing here runs, reads or prints anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from graphmend.findings import BreakSite, Finding, Frame, Seen
from graphmend.source.text import SourceText
from graphmend.trace.log import Break, Log, SkippedFrame, StackFrame
from graphmend.trace.places import Places
from graphmend.trace.statements import Statements


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a run broke the graph, and the findings that say why; none if no rule does."""

    site: BreakSite
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """A finding that a run did not confirm, and whether its statement ran at all; ``None`` if that is not known."""

    finding: Finding
    ran: bool | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A run against the findings.

    Attributes:
        sites: the statements in linted files that broke, in their order, each once.
        findings: all findings, each with what the run says of it.
        unconfirmed: those of them at whose statement nothing broke.
        skipped: the functions that were left to Python as a whole, those of linted files by their names there.
        elsewhere: what broke without a linted file on the way.
        changed: places at which the log shows other code than the file, which is newer; they are left out.
    """

    sites: tuple[Site, ...]
    findings: tuple[Finding, ...]
    unconfirmed: tuple[Unconfirmed, ...]
    skipped: tuple[SkippedFrame, ...]
    elsewhere: tuple[BreakSite, ...]
    changed: tuple[Frame, ...]

    @property
    def unexplained(self) -> tuple[BreakSite, ...]:
        """The breaks in linted files that no rule explains."""
        return tuple(each.site for each in self.sites if not each.findings)


def explain(
    log: Log,
    findings: Sequence[Finding],
    sources: Mapping[str, SourceText],
    executed: Mapping[str, AbstractSet[int]] | None = None,
) -> Explanation:
    """Matches the breaks of a log with findings, statement by statement.

    A break belongs to the innermost frame in a linted file; what broke deeper, in code that was not linted, is told
    with it. Of several findings at one statement, those explain a break that name its id, or all if none does.

    Arguments:
        log: what a run told.
        findings: what was found.
        sources: the linted files by the path that findings have.
        executed: the lines that ran, by the same paths, if that is known.
    """
    return _Join(log, findings, sources).result(executed)


@dataclass
class _Gathered:
    """The breaks at one place so far."""

    place: BreakSite
    breaks: list[Break] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def site(self) -> BreakSite:
        first = self.breaks[0]
        return replace(
            self.place,
            gb=tuple(dict.fromkeys(gb for each in self.breaks for gb in each.gb)),
            reason=next((each.reason for each in self.breaks if each.reason), ""),
            explanation=first.explanation,
            skips_frame=any(each.skips for each in self.breaks),
            named=tuple(sorted(set(self.lines))),
            count=len(self.breaks),
        )


class _Join:
    def __init__(self, log: Log, findings: Sequence[Finding], sources: Mapping[str, SourceText]) -> None:
        self.log = log
        self.findings = findings
        self.sources = sources
        self.places = Places(sources)
        self.statements: dict[str, Statements] = {}
        self.changed: dict[Frame, None] = {}

    def result(self, executed: Mapping[str, AbstractSet[int]] | None) -> Explanation:
        inside: dict[object, _Gathered] = {}
        elsewhere: dict[object, _Gathered] = {}
        for each in self.log.breaks:
            self.gather(each, inside, elsewhere)
        causes = self.causes()
        sites = sorted((each.site() for each in inside.values()), key=lambda site: (site.path, site.line))
        joined = tuple(Site(site, tuple(_best(site, causes.get((site.path, site.line), ())))) for site in sites)
        confirmed = {id(finding) for each in joined for finding in each.findings}
        marks = {
            id(finding): replace(finding, seen=Seen.CONFIRMED if id(finding) in confirmed else Seen.NOT_SEEN)
            for finding in self.findings
        }
        return Explanation(
            tuple(Site(each.site, tuple(marks[id(finding)] for finding in each.findings)) for each in joined),
            tuple(marks.values()),
            tuple(
                Unconfirmed(marks[id(finding)], self.ran(finding, executed))
                for finding in self.findings
                if id(finding) not in confirmed
            ),
            tuple(self.skipped()),
            tuple(each.site() for each in elsewhere.values()),
            tuple(self.changed),
        )

    def gather(self, found: Break, inside: dict[object, _Gathered], elsewhere: dict[object, _Gathered]) -> None:
        """Puts a break to its place."""
        stack = found.stack or (StackFrame(found.path, found.line, ""),)
        deeper: Frame | None = None
        for frame in reversed(stack):
            path = self.places.find(frame.path)
            if path is None:
                deeper = deeper or Frame(frame.path, frame.line, frame.function)
                continue
            if self.is_changed(path, frame):
                return
            start, end = self.around(path, frame.line)
            key: object = (path, start, deeper and (deeper.path, deeper.line))
            if key not in inside:
                text = self.sources[path].line(start)
                function = self.statements[path].function(frame.line)
                inside[key] = _Gathered(BreakSite(path, start, end, function, inside=deeper, source_line=text))
            inside[key].breaks.append(found)
            inside[key].lines.append(frame.line)
            return
        last = stack[-1]
        key = (last.path, last.line)
        place = BreakSite(last.path, last.line, last.line, last.function, source_line=last.text)
        gathered = elsewhere.setdefault(key, _Gathered(place))
        gathered.breaks.append(found)
        gathered.lines.append(last.line)

    def is_changed(self, path: str, frame: StackFrame) -> bool:
        """Whether the log is of another text than the file's; what has no text in the log is taken as it is."""
        source = self.sources[path]
        is_there = frame.line <= len(source.line_starts)
        if is_there and (not frame.text or source.line(frame.line).strip() == frame.text):
            return False
        self.changed[Frame(path, frame.line, frame.function)] = None
        return True

    def causes(self) -> dict[tuple[str, int], list[Finding]]:
        """The findings by path and first line of each statement that they are about."""
        causes: dict[tuple[str, int], list[Finding]] = {}
        for finding in self.findings:
            for place in (finding.range, *finding.holds):
                at = causes.setdefault((finding.path, self.around(finding.path, place.line)[0]), [])
                if finding not in at:
                    at.append(finding)
        return causes

    def around(self, path: str, line: int) -> tuple[int, int]:
        if path not in self.statements:
            source = self.sources.get(path)
            self.statements[path] = Statements(source.text if source else "")
        return self.statements[path].around(line)

    def ran(self, finding: Finding, executed: Mapping[str, AbstractSet[int]] | None) -> bool | None:
        """Whether any line of a finding's statement ran."""
        if executed is None:
            return None
        start, end = self.around(finding.path, finding.range.line)
        return any(line in executed.get(finding.path, ()) for line in range(start, end + 1))

    def skipped(self) -> Iterator[SkippedFrame]:
        """The skipped frames, each once."""
        known: set[tuple[str, int]] = set()
        for frame in self.log.skipped:
            path = self.places.find(frame.path)
            key = (path or frame.path, frame.line)
            if key in known:
                continue
            known.add(key)
            if path is None:
                yield frame
                continue
            self.around(path, frame.line)
            yield replace(frame, path=path, function=self.statements[path].function(frame.line) or frame.function)


def _best(site: BreakSite, findings: Iterable[Finding]) -> Sequence[Finding]:
    """The findings that explain a break: those that name one of its ids, if there are such."""
    found = list(findings)
    named = [finding for finding in found if not set(finding.gb).isdisjoint(site.gb)]
    return named or found
