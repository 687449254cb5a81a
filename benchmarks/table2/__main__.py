"""`python -m benchmarks.table2`: copies, mends, measures, and prints the table."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table2 import table, timing
from benchmarks.table2.builds import BUILDS, QUICK, Build, select
from benchmarks.table2.compare import SLACK
from benchmarks.table2.judge import Measured, Result, judge
from benchmarks.table2.measure import Bench
from benchmarks.table2.mend import MendError, Mending, copy_package, default_mender, installed, mend, parts
from benchmarks.table2.runs import CACHED, RENAMED_RUNS, after_runs, before_runs

README = Path(__file__).with_name("README.md")


@dataclass(frozen=True)
class Trees:
    """Folders that each hold one copy of the package."""

    before: Path
    after: Path
    stock: Path | None = None
    mending: Mending | None = None


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table2", description=__doc__)
    parser.add_argument("--rows", nargs="+", default=[], metavar="NAME", help="builds or rows of the paper to measure")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}, without inductor and gradients")
    parser.add_argument("--renamed", action="store_true", help="measure on a copy with other names and another layout")
    parser.add_argument(
        "--mender", type=shlex.split, default=default_mender(), metavar="CMD", help="command that mends"
    )
    parser.add_argument("--scope", choices=("tree", "parts"), help="mend the whole copy, or the files that matter")
    parser.add_argument("--turns", type=int, default=60, help="turns of each timed process; 0 measures no times")
    parser.add_argument("--jobs", type=int, default=1, help="builds to measure at once")
    parser.add_argument("--work", type=Path, help="keep copies and records in this folder, which must not exist")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    parser.add_argument("--write-readme", action="store_true", help="write the table to README.md beside this program")
    options = parser.parse_args(arguments)
    options.scope = options.scope or ("parts" if options.quick else "tree")
    return options


def make_trees(options: argparse.Namespace, builds: list[Build], work: Path) -> Trees:
    """Makes the copies, and mends one."""
    before, after = work / "before", work / "after"
    copy_package(installed(), before)
    stock = None
    if options.renamed:
        from benchmarks.table2.rename import rename_package

        stock = work / "stock"
        copy_package(installed(), stock)
        rename_package(before / "transformers")
    package = copy_package(before / "transformers", after)
    paths = [package] if options.scope == "tree" else parts(package, builds)
    return Trees(before, after, stock, mend(package, paths, options.mender, work / "mender.log"))


def measure(build: Build, trees: Trees, work: Path, *, quick: bool) -> Measured:
    """Measures one build on all copies."""
    bench = Bench(build.name, work / "builds" / build.name)
    stock = bench.perform("stock", trees.stock, list(RENAMED_RUNS), prepare=True) if trees.stock else None
    before = bench.perform("before", trees.before, before_runs(quick=quick), prepare=stock is None)
    after = bench.perform("after", trees.after, after_runs(quick=quick))
    if not quick:
        after.update(bench.perform("after", trees.after, list(CACHED)))
    print(f"{build.name}: measured", file=sys.stderr, flush=True)
    return Measured(before, after, stock)


def run_all(options: argparse.Namespace, builds: list[Build], trees: Trees, work: Path) -> list[Result]:
    """Measures and judges all builds; times are taken at the end, one build after the other."""
    with ThreadPoolExecutor(options.jobs) as pool:
        everything = list(pool.map(lambda build: measure(build, trees, work, quick=options.quick), builds))
    results = []
    for build, measured in zip(builds, everything, strict=True):
        timed: timing.Timing | str | None = None
        if options.turns:
            store = work / "builds" / build.name
            try:
                timed = timing.measure(
                    build.name,
                    store,
                    trees.before,
                    trees.after,
                    turns=options.turns,
                    pairs=1 if options.quick else 5,
                )
            except timing.TimingError as error:
                timed = str(error)
            print(f"{build.name}: timed", file=sys.stderr, flush=True)
        results.append(judge(build, measured, timed))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; the result is the exit status."""
    options = parse(arguments)
    try:
        builds = [BUILDS[name] for name in QUICK] if options.quick and not options.rows else select(options.rows)
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="table2-") as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        try:
            trees = make_trees(options, builds, work)
        except MendError as error:
            print(error, file=sys.stderr)
            return 2
        results = run_all(options, builds, trees, work)
    print(table.markdown(results))
    print(table.details(results))
    if options.json:
        options.json.write_text(json.dumps(table.as_json(results, trees.mending), indent=1), encoding="utf-8")
    if options.write_readme:
        README.write_text(table.readme(results, trees.mending, SLACK), encoding="utf-8")
    return 0 if all(result.passed for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
