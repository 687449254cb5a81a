"""Prints the result of a run, one format a module. A format's module is imported only when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from graphmend.config import OutputFormat
from graphmend.findings import Applicability, Finding, Report
from graphmend.rules.model import Rule

_MODULES = {
    OutputFormat.TEXT: "text",
    OutputFormat.CONCISE: "concise",
    OutputFormat.JSON: "json_",
    OutputFormat.SARIF: "sarif",
    OutputFormat.GITHUB: "github",
}


@dataclass(frozen=True, slots=True)
class Options:
    """How to print.

    Attributes:
        colour: whether the text may hold colour.
        proof: whether each fix is followed by its proof.
        quiet: whether only findings are printed, without a summary.
        rules: the rules that were on.
    """

    colour: bool = False
    proof: bool = False
    quiet: bool = False
    rules: tuple[Rule, ...] = ()


def render(report: Report, output_format: OutputFormat, options: Options) -> str:
    """Returns the text of a report.

    Arguments:
        report: what to print.
        output_format: in which format.
        options: details of the formats for people.
    """
    module = import_module(f"graphmend.report.{_MODULES[output_format]}")
    text: str = module.render(report, options)
    return text


def statistics(report: Report) -> str:
    """Returns how often each rule was found and how many of its findings can be fixed, the most frequent first."""
    shown = unsuppressed(report.findings)
    counts = Counter((finding.rule, finding.name) for finding in shown)
    fixable = Counter(finding.rule for finding in shown if finding.fix)
    width = max((len(str(count)) for count in counts.values()), default=0)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{count:>{width}}  {rule}  {name}  ({fixable[rule]} fixable)\n" for (rule, name), count in ordered)


def unsuppressed(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings that no comment or setting silences."""
    return [finding for finding in findings if not finding.suppressed]


def is_fixable(finding: Finding, applicability: Applicability) -> bool:
    """Whether a finding has a fix of this kind, and it would be applied."""
    return finding.fix is not None and finding.fix.applicability is applicability and not finding.withheld


def counted(number: int, noun: str) -> str:
    """Returns a number of things in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def place(finding: Finding) -> str:
    """Returns a finding's path, line and column as editors read them."""
    return f"{finding.path}:{finding.range.line}:{finding.range.column}"
