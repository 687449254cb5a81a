"""One line a finding."""

from __future__ import annotations

from graphmend.findings import Applicability, Report
from graphmend.report import Options, is_fixable, place, unsuppressed


def render(report: Report, options: Options) -> str:
    """Returns a line with place, rule and message for each finding; ``[*]`` marks those that ``--fix`` mends.

    What a run says of a finding, if one was watched, is at the end, and after them are the breaks that none explains.
    """
    lines = []
    for finding in unsuppressed(report.findings):
        mark = "[*] " if is_fixable(finding, Applicability.SAFE) else ""
        seen = f" ({finding.seen.value})" if finding.seen else ""
        lines.append(f"{place(finding)}: {finding.rule} {mark}{finding.message}{seen}\n")
    for site in report.unexplained:
        told = " ".join((*site.gb, site.reason)).strip()
        lines.append(f"{site.path}:{site.line}: no rule explains {told or 'this break'}\n")
    return "".join(lines)
