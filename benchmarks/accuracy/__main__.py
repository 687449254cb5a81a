"""`python -m benchmarks.accuracy`: lints code that was measured; prints how much was found and how much is true."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.accuracy import table
from benchmarks.accuracy.alone import AloneResult, judge_alone
from benchmarks.accuracy.linting import ROOT, Finding, LintError, lint
from benchmarks.accuracy.packages import (
    PackageError,
    PackageResult,
    Truth,
    copy_package,
    found_sites,
    installed,
    judge,
    read_sources,
    truths,
    version_of,
)
from benchmarks.accuracy.programs import DATA, CaseResult, VariantResult, judge_cases, judge_variants, load
from benchmarks.accuracy.table import Results

README = Path(__file__).with_name("README.md")

PARTS = ("cases", "variants", "packages")


def parse(arguments: Sequence[str] | None, known: Sequence[Truth]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)}; default: all")
    parser.add_argument("--alone", action="store_true", help="also lint each file of a package with a break by itself")
    parser.add_argument("--json", type=Path, help="write everything that was found to this file")
    parser.add_argument(
        "--write-readme",
        action="store_true",
        help="write the figures to this program's README and the project's",
    )
    for truth in known:
        parser.add_argument(
            f"--{truth.name}",
            dest=truth.name,
            type=Path,
            metavar="FOLDER",
            help=f"folder of {truth.package} {truth.version}; default: the installed one, if it is this version",
        )
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    options.parts = options.parts or list(PARTS)
    if options.write_readme and not (options.alone and set(options.parts) == set(PARTS)):
        parser.error("--write-readme needs --alone and all parts")
    return options


LAUNCH = "\n\ntorch.compile(target)\n"
"""What was done with the `target` of a case when it was measured."""


def lint_data(name: str, work: Path, end: str = "") -> tuple[Path, list[Finding]]:
    """Lints a copy of a folder of the data, with a text at the end of each file."""
    tree = work / name
    shutil.copytree(DATA / name, tree, ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    for path in tree.glob("*.py") if end else ():
        path.write_text(path.read_text(encoding="utf-8") + end, encoding="utf-8")
    return tree, lint(tree, ["."])


def run_cases(work: Path) -> CaseResult:
    """Lints and judges the cases."""
    cases = load("cases/index.json")["cases"]
    tree, findings = lint_data("cases", work, LAUNCH)
    return judge_cases(cases, findings, read_sources(tree, [case["file"] for case in cases]))


def run_variants(work: Path) -> VariantResult:
    """Lints and judges the variants."""
    tree, findings = lint_data("variants", work)
    index = load("variants.json")
    sources = read_sources(tree, [variant["file"] for variant in index["variants"]])
    return judge_variants(index, findings, sources, load("leftovers.json"))


def folder_of(truth: Truth, options: argparse.Namespace) -> Path | None:
    """The folder to measure a version in: the given one, or the installed one if it is that version.

    Raises:
        PackageError: the given one is no such package, or another version.
    """
    given: Path | None = getattr(options, truth.name)
    folder = given or installed(truth.package)
    if folder is None or (version_of(folder) != truth.version and not given):
        return None
    return folder


def run_package(truth: Truth, folder: Path, work: Path, *, alone: bool) -> tuple[PackageResult, AloneResult | None]:
    """Lints and judges one version of a package; on request also each file with a break by itself."""
    tree = copy_package(folder, truth, work)
    findings = lint(tree, [truth.package])
    paths = {site.path for site in truth.sites}
    result = judge(truth, findings, read_sources(tree, paths | {finding.path for finding in findings}))
    print(f"{truth.name}: linted", file=sys.stderr, flush=True)
    if not alone:
        return result, None
    sources = read_sources(tree, paths)
    found = {
        site
        for path in sorted(paths)
        for site in found_sites(truth, [item for item in lint(tree, [path]) if item.path == path], sources)
    }
    print(f"{truth.name}: each file linted by itself", file=sys.stderr, flush=True)
    return result, judge_alone(truth, found, found_sites(truth, findings, sources), sources)


def run_packages(options: argparse.Namespace, known: Sequence[Truth], work: Path) -> Results:
    """Measures the versions that are there.

    Raises:
        PackageError: a given folder cannot be used, or there is none at all.
    """
    folders = [(truth, folder_of(truth, options)) for truth in known]
    if not any(folder for _, folder in folders):
        raise PackageError(f"no package to measure: give a folder with {' or '.join(f'--{t.name}' for t in known)}")
    results = Results()
    for truth, folder in folders:
        if folder is None:
            results.unmeasured.append(truth.name)
            continue
        result, alone = run_package(truth, folder, work, alone=options.alone)
        results.packages.append(result)
        if alone:
            results.alone.append(alone)
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; the result is the exit status."""
    known = truths()
    options = parse(arguments, known)
    try:
        with tempfile.TemporaryDirectory(prefix="accuracy-") as temporary:
            work = Path(temporary).resolve()
            results = run_packages(options, known, work) if "packages" in options.parts else Results()
            if "cases" in options.parts:
                results.cases = run_cases(work)
            if "variants" in options.parts:
                results.variants = run_variants(work)
    except (LintError, PackageError) as error:
        print(error, file=sys.stderr)
        return 2
    print(table.details(results))
    print(table.markdown(results))
    if options.json:
        options.json.write_text(json.dumps(table.as_json(results), indent=1), encoding="utf-8")
    if options.write_readme:
        README.write_text(table.readme(results), encoding="utf-8")
        front = ROOT / "README.md"
        front.write_text(table.into_front_page(front.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
