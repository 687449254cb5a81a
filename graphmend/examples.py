"""Runs the examples of a rule: the same engine on the same code that a person reads."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend import engine
from graphmend.config import Config, default_config
from graphmend.findings import Behind, Confidence, Finding
from graphmend.rules.model import Example, Rule


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that does not do what it says."""

    rule: Rule
    example: Example
    problem: str

    def __str__(self) -> str:
        return f"{self.rule.source[0]}:{self.example.line}: {self.rule.code}: {self.problem}"


def check_examples(rule: Rule, packs: tuple[str, ...] = ()) -> Iterator[Failure]:
    """Yields the examples of a rule that fail.

    Arguments:
        rule: the rule, built in or out of one of the packs.
        packs: rule packs of the user's own.
    """
    for example in rule.examples:
        with tempfile.TemporaryDirectory(prefix="graphmend-") as folder:
            problem = _check(rule, example, Path(folder) / "example.py", packs)
        if problem:
            yield Failure(rule, example, problem)


def _check(rule: Rule, example: Example, path: Path, packs: tuple[str, ...]) -> str:
    code = example.ok if example.bad is None else example.bad
    assert code is not None
    path.write_text(code, encoding="utf-8")
    config = replace(default_config(path.parent.as_posix()), select=(rule.code,), packs=packs)
    report = engine.run(engine.Request((str(path),), config, fix=False, unsafe=False, write=False, stdin=None))
    if report.errors:
        return f"cannot be linted: {report.errors[0].message}"
    problem = _compare_lines(rule.code, code, _shown(report.findings, config))
    if problem or example.fixed is None:
        return problem
    request = engine.Request((str(path),), config, fix=True, unsafe=rule_is_unsafe(rule), write=False, stdin=None)
    fixed = engine.run(request).fixed
    after = fixed[0].after if fixed else code
    return "" if after == example.fixed else f"the fix gives other code:\n{after}"


def rule_is_unsafe(rule: Rule) -> bool:
    """Whether the rule's fix is unsafe by its nature: a template that names no verified transform."""
    return rule.fix is not None and rule.fix.transform is None


def _shown(findings: tuple[Finding, ...], config: Config) -> list[Finding | Behind]:
    """What is reported by default; what is behind a finding is reported with it."""
    least: Confidence = config.min_confidence
    shown = [finding for finding in findings if not finding.suppressed and finding.confidence.rank <= least.rank]
    return [*shown, *(each for finding in shown for each in finding.behind)]


def _compare_lines(code: str, text: str, findings: list[Finding | Behind]) -> str:
    """Compares the findings with the lines that carry the code in a comment at their end."""
    marker = re.compile(rf"#\s*{re.escape(code)}\s*$")
    expected = [number for number, line in enumerate(text.split("\n"), 1) if marker.search(line)]
    missing = [line for line in expected if not any(f.range.line <= line <= f.range.end_line for f in findings)]
    extra = [f for f in findings if not any(f.range.line <= line <= f.range.end_line for line in expected)]
    if missing:
        return f"line {missing[0]} of the example is not reported"
    if extra:
        return f"line {extra[0].range.line} of the example is reported: {extra[0].message}"
    return "" if len(findings) == len(expected) else "a line of the example is reported more than once"
