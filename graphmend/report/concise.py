"""One line a finding."""

from __future__ import annotations

from graphmend.findings import Applicability, Report
from graphmend.report import Options, is_fixable, place, unsuppressed


def render(report: Report, options: Options) -> str:
    """Returns a line with place, rule and message for each finding; ``[*]`` marks those that ``--fix`` mends."""
    lines = []
    for finding in unsuppressed(report.findings):
        mark = "[*] " if is_fixable(finding, Applicability.SAFE) else ""
        lines.append(f"{place(finding)}: {finding.rule} {mark}{finding.message}\n")
    return "".join(lines)
