"""Prints what a watched run did: its graphs, where they broke and why, and what it did not confirm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.findings import BreakSite, FileError, Finding
from graphmend.report import Options, counted, place
from graphmend.report.json_ import error_of, finding_of, site_of, tool
from graphmend.report.text import Writer
from graphmend.trace.explain import Explanation, Unconfirmed
from graphmend.trace.launch import Observation


@dataclass(frozen=True, slots=True)
class Trace:
    """A watched run and what the source says of it.

    Attributes:
        target: what was run.
        observed: what it did.
        explanation: its breaks, and the findings.
        errors: what could not be done about single files.
        files: how many files were linted.
    """

    target: str
    observed: Observation
    explanation: Explanation
    errors: tuple[FileError, ...] = ()
    files: int = 0

    @property
    def is_broken(self) -> bool:
        """Whether anything broke, wherever it is."""
        return bool(self.observed.log.breaks or self.observed.log.skipped or self.observed.fullgraph is False)

    @property
    def is_whole(self) -> bool | None:
        """Whether a call is one graph and may be no more; ``None`` of a program, whose calls are not known."""
        if self.observed.failure or not self.observed.is_of_calls:
            return None
        return self.observed.fullgraph is True and not self.is_broken


def as_json(trace: Trace) -> str:
    """Returns one JSON object."""
    observed, explanation = trace.observed, trace.explanation
    document = {
        "version": 1,
        "tool": tool(),
        "target": trace.target,
        "torch": observed.torch,
        "python": observed.python,
        "graphs": sum(observed.graphs),
        "calls": list(observed.graphs) if observed.is_of_calls else None,
        "compilations": observed.compilations,
        "whole": trace.is_whole,
        "fullgraph": observed.fullgraph,
        "obstacle": observed.obstacle or None,
        "breaks": [
            {**site_of(each.site), "findings": [finding_of(finding) for finding in each.findings]}
            for each in explanation.sites
        ],
        "elsewhere": [site_of(site) for site in explanation.elsewhere],
        "skipped": [
            {
                "path": frame.path,
                "line": frame.line,
                "function": frame.function,
                "is_rest": frame.is_rest,
                "reason": frame.reason,
            }
            for frame in explanation.skipped
        ],
        "unconfirmed": [{**finding_of(each.finding), "ran": each.ran} for each in explanation.unconfirmed],
        "failure": observed.failure or None,
        "errors": [error_of(error) for error in trace.errors],
        "files": trace.files,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_text(trace: Trace, colour: bool = False) -> str:
    """Returns text for a person: the breaks, each in a paragraph of its own, the rest in lists, and a summary."""
    writer = Writer(Options(colour=colour))
    explanation = trace.explanation
    blocks = [
        "\n".join(writer.site(each.site, [_cause(finding) for finding in each.findings])) for each in explanation.sites
    ]
    blocks += _list(
        writer,
        "Left to Python as a whole:",
        [
            f"{frame.path}:{frame.line}: {'the rest of ' if frame.is_rest else ''}{frame.function}: {frame.reason}"
            for frame in explanation.skipped
        ],
    )
    blocks += _list(writer, "Broken outside of your files:", list(map(_elsewhere, explanation.elsewhere)))
    blocks += _list(writer, "Found, and not confirmed by this run:", list(map(_unconfirmed, explanation.unconfirmed)))
    blocks.append("\n".join(_summary(trace)))
    return "\n\n".join(blocks) + "\n"


def _list(writer: Writer, title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    return ["\n".join((writer.paint(title, "bold"), *(f"  {item}" for item in items)))]


def _cause(finding: Finding) -> str:
    if finding.fix:
        what = f"{finding.fix.transform} ({finding.fix.applicability.value} fix)"
    else:
        what = f"not fixed: {finding.refusal.reason}" if finding.refusal else "not fixed"
    silenced = ", silenced" if finding.suppressed else ""
    return f"{finding.rule} {place(finding)}{silenced}, {what}"


def _elsewhere(site: BreakSite) -> str:
    told = " ".join((*site.gb, site.reason)).strip()
    return f"{site.path}:{site.line}: {told or site.function}"


def _unconfirmed(each: Unconfirmed) -> str:
    ran = {None: "", True: "; the line ran", False: "; the line did not run"}[each.ran]
    return f"{place(each.finding)}: {each.finding.rule} {each.finding.message}{ran}"


def _summary(trace: Trace) -> Iterator[str]:
    observed, explanation = trace.observed, trace.explanation
    yield f"{_graphs(trace)} (torch {observed.torch}, Python {observed.python})."
    if not observed.compilations:
        yield "It compiled nothing: `torch.compile` was not called."
        return
    if observed.is_of_calls and observed.graphs[:1] == (0,):
        yield "Nothing of the call was compiled."
    if trace.is_whole:
        yield "The call is whole: one graph, and it works with `fullgraph=True`."
    elif observed.fullgraph is False:
        yield f"It is one graph, but does not work with `fullgraph=True`: {observed.obstacle}"
    if explanation.sites:
        sites, unexplained = len(explanation.sites), len(explanation.unexplained)
        what = f"{unexplained} of them" if 0 < unexplained < sites else "it" if sites == 1 else "them"
        how = f"no rule explains {what}" if unexplained else f"findings explain {what}"
        yield f"The graph broke at {counted(sites, 'statement')}; {how}."
    elif explanation.elsewhere:
        yield "All that broke is outside of your files; `--path FOLDER` makes a folder your own."
    elif not trace.is_broken and trace.is_whole is None:
        yield "Nothing broke."


def _graphs(trace: Trace) -> str:
    """How many graphs there were; a call that is left to Python has none, which is the worst and not the best."""
    observed = trace.observed
    if not observed.is_of_calls:
        return f"{counted(sum(observed.graphs), 'graph')} in all"
    first, *later = observed.graphs
    text = f"{counted(first, 'graph')} in the first call"
    if later:
        text += f", {', '.join(map(str, later))} more in the {'next' if len(later) == 1 else f'next {len(later)}'}"
    if first > 1:
        text += f"; {first - 1} more than one"
    return text
