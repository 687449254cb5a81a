"""Small programs with a known answer: the cases re-created from public reports, and the measured variants."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.interval import Share
from benchmarks.accuracy.linting import Finding
from benchmarks.accuracy.statements import Lines, Source, meets

DATA = Path(__file__).with_name("data")

LEFT = 0.05
"""Share of the variants of either kind that may be left."""


@dataclass(frozen=True)
class CaseResult:
    """What was found in the cases.

    Attributes:
        detected: share of the cases with a break that have a finding on the right line.
        quiet: share of the cases without one that have no finding.
        wrong: cases that are not as expected, in words.
        elsewhere: findings on other statements of cases with a break, in words.
    """

    detected: Share
    quiet: Share
    wrong: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @property
    def failures(self) -> list[str]:
        """The targets that are missed, in words."""
        return ["cases: not all are as expected"] if self.wrong else []


@dataclass(frozen=True)
class VariantResult:
    """What was found in the variants.

    Attributes:
        flagged: share of the variants that break that have a finding.
        quiet: share of the variants that do not that have none.
        missed: those that break and have none.
        false: those that do not and have one.
        elsewhere: those that have one, but not on the statement that Dynamo names.
        reasons: why a variant may be left, by name.
        surprises: leftovers without a reason, and reasons without a leftover, in words.
        apart: variants that raise in eager, too, and show nothing; with whether they are flagged.
        configured: measurements under other configurations, which are not counted.
    """

    flagged: Share
    quiet: Share
    missed: tuple[str, ...]
    false: tuple[str, ...]
    elsewhere: tuple[str, ...]
    reasons: Mapping[str, str]
    surprises: tuple[str, ...]
    apart: tuple[tuple[str, bool], ...]
    configured: int

    @property
    def failures(self) -> list[str]:
        """The targets that are missed, in words."""
        missed = []
        if self.flagged.value < 1 - LEFT:
            missed.append(f"variants: more than {LEFT:.0%} of those that break are missed")
        if self.quiet.value < 1 - LEFT:
            missed.append(f"variants: more than {LEFT:.0%} of those that do not break are flagged")
        if self.surprises:
            missed.append("variants: leftovers and their reasons differ")
        return missed


def load(name: str) -> Any:
    """Reads one of the JSON files of the data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def on_statements(findings: Iterable[Finding], statements: Iterable[Lines], source: Source) -> list[Finding]:
    """The findings that share a statement with these lines."""
    wanted = [lines for statement in statements for lines in source.statements(statement)]
    return [
        finding
        for finding in findings
        if any(meets(lines, other) for lines in source.statements(finding.lines) for other in wanted)
    ]


def judge_cases(
    cases: Iterable[Mapping[str, Any]], findings: Iterable[Finding], sources: Mapping[str, Source]
) -> CaseResult:
    """Compares findings with what is expected of each case."""
    by_path = _by_path(findings)
    hits, breaking, silent, negatives = 0, 0, 0, 0
    wrong: list[str] = []
    elsewhere: list[str] = []
    for case in cases:
        file, source = case["file"], sources[case["file"]]
        shown = by_path.get(file, [])
        if case["expected"]["detect"]:
            breaking += 1
            right = on_statements(shown, [(line, line) for line in case["lines"]], source)
            hits += bool(right)
            if not right:
                lines = ", ".join(f"{line}: `{source.line(line)}`" for line in case["lines"])
                wrong.append(f"{file}: nothing on line {lines}")
            elsewhere.extend(_said(finding, source) for finding in shown if finding not in right)
        else:
            negatives += 1
            silent += not shown
            wrong.extend(_said(finding, source) for finding in shown)
    return CaseResult(Share(hits, breaking), Share(silent, negatives), tuple(wrong), tuple(elsewhere))


def judge_variants(
    index: Mapping[str, Any], findings: Iterable[Finding], sources: Mapping[str, Source], reasons: Mapping[str, str]
) -> VariantResult:
    """Compares findings with what was measured of each variant.

    One that breaks needs a finding in one of its functions; one that does not may have none in its whole file.
    """
    by_path = _by_path(findings)
    names: dict[tuple[str, bool], list[str]] = {}
    elsewhere = []
    for variant in index["variants"]:
        name, source = variant["name"], sources[variant["file"]]
        shown = by_path.get(variant["file"], [])
        if variant["verdict"] == "breaks":
            shown = on_statements(shown, [(first, last) for first, last in variant["statements"]], source)
            if shown and not on_statements(shown, [(line, line) for line in variant["lines"]], source):
                elsewhere.append(name)
        names.setdefault((variant["verdict"], bool(shown)), []).append(name)
    missed, false = names.get(("breaks", False), []), names.get(("quiet", True), [])
    hits, silent = len(names.get(("breaks", True), [])), len(names.get(("quiet", False), []))
    return VariantResult(
        flagged=Share(hits, hits + len(missed)),
        quiet=Share(silent, silent + len(false)),
        missed=tuple(missed),
        false=tuple(false),
        elsewhere=tuple(elsewhere),
        reasons=reasons,
        surprises=tuple(surprises([*missed, *false], reasons)),
        apart=tuple((name, shown) for shown in (True, False) for name in names.get(("raises", shown), [])),
        configured=index["configured"],
    )


def surprises(left: Iterable[str], reasons: Mapping[str, str]) -> list[str]:
    """Where the leftovers and the table of reasons differ, in words: the table is exact."""
    names = set(left)
    return [
        *(f"{name}: left, and no reason is given" for name in sorted(names - set(reasons))),
        *(f"{name}: a reason is given, and it is not left" for name in sorted(set(reasons) - names)),
    ]


def _by_path(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.path, []).append(finding)
    return found


def _said(finding: Finding, source: Source) -> str:
    line = finding.lines[0]
    return f"{finding.path}:{line}  {source.line(line)}  [{finding.rule}]"
