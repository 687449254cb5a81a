"""Recall and precision on packages: where Dynamo broke small models of them, and what the linter says of that code."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.conjuncts import branches, has_static_conjunct, is_static
from benchmarks.accuracy.interval import Share
from benchmarks.accuracy.linting import Finding
from benchmarks.accuracy.statements import Lines, Source, meets

DATA = Path(__file__).with_name("data") / "packages"

RECALL = 0.95
"""Share of the break statements that must have a finding."""

PRECISION = 0.90
"""Share of the findings on executed statements that Dynamo must confirm."""


class PackageError(RuntimeError):
    """A package is missing, or another version."""


@dataclass(frozen=True)
class Site:
    """A statement at which Dynamo broke the graph, with Dynamo's ids of the reasons."""

    path: str
    statement: Lines
    function: str
    gb: tuple[str, ...]


@dataclass(frozen=True)
class Truth:
    """What was measured of one version of a package.

    Attributes:
        package: its name.
        version: its version.
        sites: where the graph broke.
        executed: the lines that the same runs executed, by file.
    """

    package: str
    version: str
    sites: tuple[Site, ...]
    executed: Mapping[str, tuple[Lines, ...]]

    @property
    def name(self) -> str:
        """Name and version, as the options of the program are called."""
        return f"{self.package}-{self.version}"

    def ran(self, path: str, lines: Lines) -> bool:
        """Whether one of these lines was executed."""
        return any(meets(lines, stretch) for stretch in self.executed.get(path, ()))


@dataclass(frozen=True)
class Place:
    """A line to print, with the rule that speaks of it or Dynamo's reasons."""

    path: str
    line: int
    text: str
    label: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.text}  [{self.label}]"


@dataclass(frozen=True)
class PackageResult:
    """What was found in one package.

    Attributes:
        name: its name and version.
        recall: share of the break statements that have a finding.
        open: the same, without findings that are only listed behind another one.
        precision: share of the findings on executed statements that Dynamo confirms, without those set apart.
        strict: the same, where what Dynamo confirms is set apart, too, if it has the form.
        raw: the same, with nothing set apart.
        findings: how many findings there are in all.
        misses: break statements without a finding.
        alarms: findings on executed statements that Dynamo does not confirm.
        apart: findings set apart: under a condition with a static conjunct, and a body that no run executed.
    """

    name: str
    recall: Share
    open: Share
    precision: Share
    strict: Share
    raw: Share
    findings: int
    misses: tuple[Place, ...]
    alarms: tuple[Place, ...]
    apart: tuple[Place, ...]

    @property
    def failures(self) -> list[str]:
        """The targets that are missed, in words."""
        missed = []
        if self.recall.value < RECALL:
            missed.append(f"{self.name}: recall is below {RECALL:.0%}")
        if self.precision.value < PRECISION:
            missed.append(f"{self.name}: precision is below {PRECISION:.0%}")
        return missed


def parse_truth(document: Mapping[str, Any]) -> Truth:
    """Reads the measurements of one package."""
    sites = tuple(
        Site(entry["file"], (entry["statement"][0], entry["statement"][1]), entry["func"], tuple(entry["gb"]))
        for entry in document["sites"]
    )
    executed = {
        path: tuple((first, last) for first, last in stretches) for path, stretches in document["executed"].items()
    }
    return Truth(document["package"], document["version"], sites, executed)


def truths() -> list[Truth]:
    """All that was measured, by version."""
    return [parse_truth(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(DATA.glob("*.json"))]


def installed(package: str) -> Path | None:
    """The folder of a package of this environment; it is not imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def version_of(folder: Path) -> str:
    """The version that a package's folder states.

    Raises:
        PackageError: it states none.
    """
    try:
        text = (folder / "__init__.py").read_text(encoding="utf-8")
    except OSError as error:
        raise PackageError(f"{folder} is no package: {error.strerror}") from None
    match = re.search(r"^__version__ = [\"'](.+)[\"']$", text, re.MULTILINE)
    if not match:
        raise PackageError(f"{folder} does not state its version")
    return match[1]


def copy_package(folder: Path, truth: Truth, work: Path) -> Path:
    """Copies a package into a folder of its own, and returns that: nothing installed is linted by default.

    Raises:
        PackageError: it is another version.
    """
    if (version := version_of(folder)) != truth.version:
        raise PackageError(f"{truth.package} {truth.version} is needed, {folder} holds {version}")
    tree = work / truth.name
    shutil.copytree(folder, tree / truth.package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tree


def read_sources(tree: Path, paths: Iterable[str]) -> dict[str, Source]:
    """Parses files of a folder."""
    return {path: Source((tree / path).read_text(encoding="utf-8")) for path in sorted(set(paths))}


def found_sites(truth: Truth, findings: Iterable[Finding], sources: Mapping[str, Source]) -> set[Site]:
    """The break statements on which a finding lies, also a hidden one: that is printed, too."""
    sites: dict[str, list[Site]] = {}
    for site in truth.sites:
        sites.setdefault(site.path, []).append(site)
    found: set[Site] = set()
    for finding in findings:
        if finding.path in sites:
            statements = sources[finding.path].statements(finding.lines)
            found.update(
                site for site in sites[finding.path] if any(meets(site.statement, item) for item in statements)
            )
    return found


def is_apart(finding: Finding, truth: Truth, source: Source) -> bool:
    """Whether a finding is on, or in a part decided by, a condition with a static conjunct whose body no run executed.

    It is on a condition if it starts in the header of an `if` or `while`, or where the test of a conditional expression
    starts; it is decided by one if it lies on lines of the first operand of a conditional expression.
    """
    line = finding.lines[0]
    function = next(reversed(source.functions(line)), None)
    for branch in branches(source.tree):
        if truth.ran(finding.path, branch.body):
            continue
        test, first = branch.node.test, (branch.node.test.lineno, branch.node.test.col_offset + 1)
        if not isinstance(branch.node, ast.IfExp):
            is_on_it = branch.node.lineno <= line <= (test.end_lineno or test.lineno)
        elif branch.body[0] <= line <= branch.body[1]:
            return is_static(test, function)
        else:
            is_on_it = (line, finding.column) == first
        if is_on_it and has_static_conjunct(branch.condition, function):
            return True
    return False


def judge(truth: Truth, findings: list[Finding], sources: Mapping[str, Source]) -> PackageResult:
    """Compares findings with what was measured.

    Args:
        truth: the measurements.
        findings: all that the linter shows for the package.
        sources: the files with a site or a finding.
    """
    found = found_sites(truth, findings, sources)
    seen = found_sites(truth, [finding for finding in findings if not finding.hidden], sources)
    misses = [site for site in truth.sites if site not in found]
    sites: dict[str, list[Lines]] = {}
    for site in truth.sites:
        sites.setdefault(site.path, []).append(site.statement)
    confirmed, confirmed_apart = 0, 0
    alarms, apart = [], []
    for finding in findings:
        if finding.hidden:
            continue  # it says that Dynamo does not get there
        source = sources[finding.path]
        statements = source.statements(finding.lines)
        if any(meets(lines, site) for lines in statements for site in sites.get(finding.path, ())):
            confirmed += 1
            confirmed_apart += is_apart(finding, truth, source)
        elif not any(truth.ran(finding.path, lines) for lines in statements):
            continue
        elif is_apart(finding, truth, source):
            apart.append(_finding_place(finding, source))
        else:
            alarms.append(_finding_place(finding, source))
    return PackageResult(
        name=truth.name,
        recall=Share(len(truth.sites) - len(misses), len(truth.sites)),
        open=Share(len(seen), len(truth.sites)),
        precision=Share(confirmed, confirmed + len(alarms)),
        strict=Share(confirmed - confirmed_apart, confirmed - confirmed_apart + len(alarms)),
        raw=Share(confirmed, confirmed + len(alarms) + len(apart)),
        findings=len(findings),
        misses=tuple(site_place(site, sources[site.path]) for site in misses),
        alarms=tuple(alarms),
        apart=tuple(apart),
    )


def site_place(site: Site, source: Source) -> Place:
    """A break statement, to print."""
    line = site.statement[0]
    return Place(site.path, line, source.line(line), ", ".join(site.gb))


def _finding_place(finding: Finding, source: Source) -> Place:
    line = finding.lines[0]
    return Place(finding.path, line, source.line(line), finding.rule)
