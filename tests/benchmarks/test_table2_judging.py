"""What the benchmark takes for a difference, a licence, a miss: on records made by hand, without torch."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from benchmarks.table2 import table
from benchmarks.table2.builds import BUILDS, QUICK, select
from benchmarks.table2.compare import compare
from benchmarks.table2.judge import Measured, Records, hits, judge, whole
from benchmarks.table2.mend import MendError, generated_files, mend
from benchmarks.table2.records import (
    BreakSite,
    CallRecord,
    Compilation,
    LogEntry,
    Messages,
    Raised,
    RunRecord,
    SkippedFrame,
    TensorRecord,
    WarningEntry,
)
from benchmarks.table2.runs import CACHED, RUNS, after_runs, before_runs
from benchmarks.table2.timing import Timing

LOG = LogEntry("a.b", "WARNING", "said", "[]", "", "a/b.py")
WARNING = WarningEntry("FutureWarning", "old", "a/b.py")
SITE = BreakSite("a/b.py", 3, "GB0291")
FRAME = SkippedFrame("forward", "a/b.py", "an error was suppressed during compilation")


def tensor(digest: str = "1", dtype: str = "torch.float32", stride: tuple[int, ...] = (1,)) -> TensorRecord:
    return TensorRecord(dtype, (2,), stride, requires_grad=False, digest=digest)


CALL = CallRecord(
    outputs={"<Output>": "1", ".logits": tensor()},
    aliases=((".a", ".b"),),
    arguments={".ids": tensor("2", "torch.int64")},
    state={"x.weight": tensor("3")},
    gradients={},
    random={"torch": "r"},
    messages=Messages((LOG,), (WARNING,), "out", "err"),
)


def run(*calls: CallRecord, name: str = "eager") -> RunRecord:
    return RunRecord(name, calls)


def changed(**fields: object) -> CallRecord:
    return dataclasses.replace(CALL, **fields)  # type: ignore[arg-type]


def test_equal_runs_have_no_difference() -> None:
    assert not compare(run(CALL), run(CALL)).differences


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"outputs": {"<Output>": "1", ".logits": tensor("9")}}, "other values"),
        ({"outputs": {"<Output>": "1", ".logits": tensor(stride=(2,))}}, "stride (2,) instead of (1,)"),
        ({"outputs": {"<Output>": "1"}}, ".logits is missing"),
        ({"outputs": {"<tuple>": "1", ".logits": tensor()}}, "<tuple> is new"),
        ({"aliases": ()}, "shared storage differs"),
        ({"arguments": {".ids": tensor("9", "torch.int64")}}, "argument .ids: other values"),
        ({"state": {"x.weight": tensor("3"), "x.extra": "1"}}, "state x.extra is new"),
        ({"gradients": {"x": "None"}}, "gradient of x is new"),
        ({"random": {"torch": "q"}}, "the torch random stream is elsewhere"),
        ({"messages": Messages((), (WARNING,), "out", "err")}, "logs: 0 []"),
        ({"messages": Messages((LOG, LOG), (WARNING,), "out", "err")}, "logs: 2 ["),
        ({"messages": Messages((LOG,), (), "out", "err")}, "warnings: 0 []"),
        ({"messages": Messages((LOG,), (WARNING,), "outout", "err")}, "stdout: 'outout'"),
        ({"raised": Raised("ValueError", "('x',)", "x")}, "raised Raised(kind='ValueError'"),
    ],
)
def test_everything_that_a_caller_sees_counts(fields: dict[str, object], says: str) -> None:
    differences = compare(run(CALL), run(changed(**fields))).differences
    assert any(says in difference for difference in differences), differences
    assert all(difference.startswith("call 1: ") for difference in differences)


def test_a_message_in_another_call_is_two_differences() -> None:
    quiet = changed(messages=Messages())
    assert len(compare(run(CALL, quiet), run(quiet, CALL)).differences) == 8


def test_storage_is_compared_in_eager_only() -> None:
    assert not compare(run(CALL), run(changed(aliases=())), compiled=True).differences


def test_what_stock_does_too_is_a_note() -> None:
    other = changed(outputs={"<Output>": "1", ".logits": tensor(stride=(2,))})
    result = compare(run(CALL), run(other), run(other), compiled=True)
    assert not result.differences
    assert result.notes == ("call 1: output .logits: stride (2,) instead of (1,) (so does stock)",)


def test_another_difference_than_stock_counts() -> None:
    stock = changed(outputs={"<Output>": "1", ".logits": tensor("8")})
    other = changed(outputs={"<Output>": "1", ".logits": tensor("9")})
    assert compare(run(CALL), run(other), run(stock), compiled=True).differences


@pytest.mark.parametrize(
    ("got", "stock", "large", "same"),
    [
        pytest.param(1.4e-5, 1e-5, 1.0, True, id="no larger than stock's"),
        pytest.param(4e-5, 1e-5, 1.0, False, id="larger"),
        pytest.param(4e-5, 1e-5, 1000.0, True, id="lost in the rounding of a larger gradient"),
    ],
)
def test_gradients_may_be_rounded_where_stock_rounds(got: float, stock: float, large: float, same: bool) -> None:
    torch = pytest.importorskip("torch")

    def gradients(error: float, digest: str) -> CallRecord:
        small = dataclasses.replace(tensor(digest), value=torch.tensor([error, 0.0]))
        return changed(gradients={"a": small, "b": dataclasses.replace(tensor("0"), value=torch.tensor([large, 0.0]))})

    result = compare(
        run(gradients(0.0, "1")),
        run(gradients(got, "2")),
        run(gradients(stock, "3")),
        compiled=True,
        gradient_accuracy=run(gradients(0.0, "4")),
    )
    assert (not result.differences) is same


def test_a_lazy_cache_may_be_early_when_compiled() -> None:
    later = changed(state={**CALL.state, "x.cache": tensor("5")})
    assert not compare(run(CALL, later), run(later, later), compiled=True).differences
    assert compare(run(CALL, later), run(later, later)).differences
    wrong = changed(state={**CALL.state, "x.cache": tensor("6")})
    assert compare(run(CALL, later), run(wrong, later), compiled=True).differences
    assert compare(run(CALL, CALL), run(later, later), compiled=True).differences


def test_a_run_that_failed_is_a_difference() -> None:
    failed = RunRecord("count", error="Traceback\n  …\nValueError: no")
    assert compare(run(CALL), failed).differences == ("count could not be run: ValueError: no",)


def compiled(*graphs: int, breaks: int = 0, skipped: int = 0, cache: dict[str, int] | None = None) -> RunRecord:
    return run(
        *(
            changed(compilation=Compilation(count, (SITE,) * breaks, (FRAME,) * skipped, cache or {}))
            for count in graphs
        )
    )


def test_whole_is_strict() -> None:
    assert whole(compiled(1, 1, 0))
    assert not whole(compiled(2, 0, 0))
    assert not whole(compiled(1, 2, 0))
    assert not whole(compiled(1, 1, 0, breaks=1))
    assert not whole(compiled(1, 1, 0, skipped=1))
    assert not whole(compiled(0, 0, 0))
    assert not whole(None)


def test_the_cache_must_give_everything() -> None:
    assert hits(compiled(1, cache={"inductor.fxgraph_cache_hit": 1}))
    assert not hits(compiled(1, cache={}))
    assert not hits(compiled(1, cache={"inductor.fxgraph_cache_hit": 1, "inductor.fxgraph_cache_miss": 1}))
    assert not hits(compiled(1, cache={"inductor.fxgraph_cache_hit": 1, "inductor.fxgraph_cache_bypass": 1}))


def records(build: str, graphs: int, breaks: int = 0, skipped: int = 0) -> Measured:
    stock = compiled(BUILDS[build].before + 1, 0, 0, breaks=1, skipped=1)
    mended = compiled(graphs, 0, 0, breaks=breaks, skipped=skipped)
    eager = run(CALL, CALL, CALL)
    before: Records = {name: stock if RUNS[name].entry == "torch" else eager for name in before_runs(quick=True)}
    after: Records = {name: eager if RUNS[name].entry == "eager" else mended for name in after_runs(quick=True)}
    return Measured(before, after)


def test_a_whole_row_passes() -> None:
    result = judge(BUILDS["t5"], records("t5", 1), Timing(1.0, (1.0,), 1.0, 1.0, 9))
    assert (result.before, result.after, result.whole, result.equal, result.passed) == (3, 0, True, True, True)
    assert "| 3 | 0 (whole) | 0 | yes | 1.000 | not measured |" in table.markdown([result])
    assert not table.details([result])


def test_one_graph_is_not_enough() -> None:
    assert not judge(BUILDS["t5"], records("t5", 1, breaks=1), None).passed


def test_a_partial_row_passes_at_its_target() -> None:
    assert judge(BUILDS["longformer"], records("longformer", 4, breaks=1), None).passed
    result = judge(BUILDS["longformer"], records("longformer", 5, breaks=1), None)
    assert result.misses == ("4 breaks after, at most 3 allowed",)


def test_a_frame_that_is_skipped_only_after_is_a_miss() -> None:
    assert judge(BUILDS["longformer"], records("longformer", 4, breaks=1, skipped=1), None).passed
    assert not judge(BUILDS["longformer"], records("longformer", 4, breaks=1, skipped=2), None).passed


def test_no_graph_at_all_is_a_miss() -> None:
    assert not judge(BUILDS["longformer"], records("longformer", 0), None).passed


def test_slower_eager_is_a_miss() -> None:
    result = judge(BUILDS["t5"], records("t5", 1), Timing(1.06, (1.06,), 1.0, 1.06, 9))
    assert result.misses == ("eager time grows by 1.060, at most 1.05 allowed",)


def test_an_untimed_row_is_a_miss() -> None:
    assert not judge(BUILDS["t5"], records("t5", 1), "the timed process failed").passed


def test_runs_refer_to_runs() -> None:
    for run_ in RUNS.values():
        assert run_.reference in RUNS
        assert not run_.stock or run_.stock in RUNS
    assert not set(CACHED) & set(after_runs(quick=False))
    assert set(after_runs(quick=True)) < set(after_runs(quick=False))


def test_rows_are_those_of_the_paper() -> None:
    rows = {row for build in BUILDS.values() for row in build.rows}
    assert len(rows) == 21
    assert len({build.modeling for build in BUILDS.values()}) == 12
    assert {build.name for build in select(["bart-base", "t5"])} == {"bart", "bart-half", "t5"}
    assert set(QUICK) <= set(BUILDS)
    with pytest.raises(KeyError, match="no build or row is called 'gpt9'"):
        select(["gpt9"])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "transformers"
    folder.mkdir()
    (folder / "plain.py").write_text("x = 1\n")
    (folder / "made.py").write_text("#  This file was automatically generated from somewhere.\nx = 1\n")
    return folder


def mender(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_generated_files_are_named(package: Path, tmp_path: Path) -> None:
    assert generated_files(package) == [package / "made.py"]
    result = mend(package, [package], mender("import sys; print(*sys.argv[1:])"), tmp_path / "log")
    assert (tmp_path / "log").read_text().split() == ["transformers", str(Path("transformers", "made.py"))]
    assert (result.status, result.paths, result.changed) == (0, 2, ())
    assert result.peak > 0


def test_changes_are_listed(package: Path, tmp_path: Path) -> None:
    code = "import pathlib; pathlib.Path('transformers/plain.py').write_text('x = 2'); raise SystemExit(1)"
    result = mend(package, [package / "plain.py"], mender(code), tmp_path / "log")
    assert (result.status, result.changed) == (1, ("plain.py",))


def test_a_mender_that_gives_up_is_an_error(package: Path, tmp_path: Path) -> None:
    with pytest.raises(MendError, match="ended with status 2"):
        mend(package, [package], mender("raise SystemExit(2)"), tmp_path / "log")
