"""From the records of one build to its line of the table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.table2.builds import Build
from benchmarks.table2.compare import Comparison, compare
from benchmarks.table2.records import BreakSite, Compilation, RunRecord, SkippedFrame
from benchmarks.table2.runs import CACHED, RUNS
from benchmarks.table2.timing import LIMIT, Timing

Records = dict[str, RunRecord]


@dataclass(frozen=True)
class Measured:
    """All records of one build.

    Attributes:
        before: of the unmended copy.
        after: of the mended one.
        stock: of the installed package, where the unmended copy was renamed first.
    """

    before: Records
    after: Records
    stock: Records | None = None


@dataclass(frozen=True)
class Result:
    """What was measured of one build.

    Attributes:
        build: name of the build.
        before: breaks of the unmended model, `graphs - 1` of the first call; `None` when it could not be measured.
        after: the same of the mended model.
        whole: whether every call of the mended model is whole.
        sites_before: distinct break statements of the first call, before.
        sites_after: the same after.
        skipped_before: frames given up on in the first call, before.
        skipped_after: the same after.
        comparisons: every comparison of a mended run.
        misses: targets that are missed, other than equality.
        timing: eager time; `None` when it was not measured.
        cache: whether a second process hits the Inductor cache; `None` when it was not measured.
    """

    build: str
    before: int | None
    after: int | None
    whole: bool
    sites_before: tuple[BreakSite, ...] = ()
    sites_after: tuple[BreakSite, ...] = ()
    skipped_before: tuple[SkippedFrame, ...] = ()
    skipped_after: tuple[SkippedFrame, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    misses: tuple[str, ...] = ()
    timing: Timing | None = None
    cache: bool | None = None
    cache_counts: dict[str, int] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether no comparison found a difference that counts."""
        return not any(comparison.differences for comparison in self.comparisons)

    @property
    def passed(self) -> bool:
        """Whether the build reaches everything it has to."""
        return self.equal and not self.misses


def compilations(record: RunRecord | None) -> list[Compilation]:
    """What Dynamo did in each call of a run; empty when the run could not be made."""
    return [call.compilation for call in record.calls if call.compilation] if record else []


def whole(record: RunRecord | None) -> bool:
    """Whether a compiled run is whole: one graph at most a call (one in the first), an empty log, nothing skipped."""
    calls = compilations(record)
    return (
        bool(calls)
        and calls[0].graphs == 1
        and all(call.graphs <= 1 and not call.breaks and not call.skipped for call in calls)
    )


def compare_all(before: Records, after: Records) -> tuple[Comparison, ...]:
    """Compares every mended run with its reference."""
    found = []
    for name, record in after.items():
        run = RUNS[name]
        if run.fullgraph and not whole(after.get("count")):
            continue  # with a break left it raises, as it should
        reference = before[run.reference]
        stock = before.get(run.stock) if run.stock else None
        accuracy = before.get("eager, float64") if run.backend == "inductor" else None
        exact = before.get("eager, float64, gradients") if run.gradients and run.backend == "aot_eager" else None
        found.append(
            compare(
                reference,
                record,
                stock,
                compiled=run.entry != "eager",
                accuracy=accuracy,
                gradient_accuracy=exact,
            )
        )
    return tuple(found)


def cache_counts(after: Records) -> dict[str, int]:
    """Cache counters of the second process, over all its calls."""
    total: Counter[str] = Counter()
    for name in CACHED:
        for call in compilations(after.get(name)):
            total.update(call.cache)
    return dict(total)


def hits(record: RunRecord | None) -> bool:
    """Whether everything that a run compiled came from Inductor's cache."""
    total: Counter[str] = Counter()
    for call in compilations(record):
        total.update(call.cache)
    wasted = total["inductor.fxgraph_cache_miss"] + total["inductor.fxgraph_cache_bypass"]
    return total["inductor.fxgraph_cache_hit"] > 0 and wasted == 0


def compare_renamed(stock: Records, before: Records) -> tuple[Comparison, ...]:
    """Compares the renamed copy with the installed package: the script that renames must change nothing."""
    found = []
    for name in stock:
        comparison = compare(stock[name], before[name])
        graphs = [[call.graphs for call in compilations(records[name])] for records in (stock, before)]
        different = () if graphs[0] == graphs[1] else (f"{graphs[1]} graphs instead of {graphs[0]}",)
        found.append(Comparison(f"renamed, {name}", (*comparison.differences, *different), comparison.notes))
    return tuple(found)


def judge(build: Build, measured: Measured, timed: Timing | str | None) -> Result:
    """Judges a build by its records and its times; a text in place of times says why there are none."""
    before, after = measured.before, measured.after
    timing = timed if isinstance(timed, Timing) else None
    stock, mended = compilations(before.get("count")), compilations(after.get("count"))
    misses = []
    cache = None
    if any(name in after for name in CACHED):
        cache = all(hits(after.get(name)) for name in CACHED)
        if not cache:
            misses.append(f"a second process does not hit the cache: {cache_counts(after)}")
    if isinstance(timed, str):
        misses.append(timed)
    if timing and timing.ratio > LIMIT:
        misses.append(f"eager time grows by {timing.ratio:.3f}, at most {LIMIT} allowed")
    comparisons = compare_all(before, after)
    if measured.stock:
        comparisons = (*compare_renamed(measured.stock, before), *comparisons)
    if not stock or not mended:
        return Result(build.name, None, None, False, comparisons=comparisons, misses=("not measured", *misses))
    is_whole = whole(after.get("count")) and whole(after.get("count, boundary")) and _fullgraph(after)
    misses.extend(_graph_misses(build, stock, mended, is_whole))
    return Result(
        build=build.name,
        before=stock[0].graphs - 1,
        after=mended[0].graphs - 1,
        whole=is_whole,
        sites_before=tuple(sorted(set(stock[0].breaks))),
        sites_after=tuple(sorted(set(mended[0].breaks))),
        skipped_before=stock[0].skipped,
        skipped_after=mended[0].skipped,
        comparisons=comparisons,
        misses=tuple(misses),
        timing=timing,
        cache=cache,
        cache_counts=cache_counts(after),
    )


def _fullgraph(after: Records) -> bool:
    record = after.get("count, fullgraph")
    return record is not None and bool(record.calls) and not any(call.raised for call in record.calls)


def _graph_misses(build: Build, stock: list[Compilation], mended: list[Compilation], is_whole: bool) -> list[str]:
    misses = []
    before, after = stock[0].graphs - 1, mended[0].graphs - 1
    if before != build.before:
        misses.append(f"{before} breaks before, {build.before} expected: not the model that the row is about")
    if mended[0].graphs == 0:
        misses.append("no graph at all after: the outermost frame was skipped")
    if after > build.target:
        misses.append(f"{after} breaks after, at most {build.target} allowed")
    if build.target == 0 and not is_whole:
        misses.append("not whole: a later call, the boundary or fullgraph=True breaks, or a frame was skipped")
    for number, (one, other) in enumerate(zip(stock, mended, strict=True), 1):
        if other.graphs > one.graphs:
            misses.append(f"call {number} compiles {other.graphs} graphs, {one.graphs} before")
        counts = Counter((frame.function, frame.file) for frame in other.skipped)
        counts.subtract(Counter((frame.function, frame.file) for frame in one.skipped))
        fresh = [f"{function} in {file}" for (function, file), count in counts.items() if count > 0]
        if fresh:
            misses.append(f"call {number} skips frames that were compiled before: {', '.join(fresh)}")
    return misses
