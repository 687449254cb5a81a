"""What is read of a log, the real ones and those that other versions, shells and settings make of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphmend.errors import UserError
from graphmend.trace.log import Log, SkippedFrame, StackFrame, parse_log, read_log

DATA = Path(__file__).parent / "data"
REAL = (DATA / "model-2.13.log").read_text("utf-8")
MODEL = "/project/model.py"
PREFIX = "V1130 21:33:58.000000 1234 torch/_dynamo/symbolic_convert.py:556] [0/0] [__graph_breaks] "


def lines(log: Log) -> list[tuple[int, tuple[str, ...], bool]]:
    return [(each.line, each.gb, each.skips) for each in log.breaks]


def prefixed(text: str, prefix: str = PREFIX) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


class TestRealLog:
    def test_each_record_is_a_break(self) -> None:
        assert lines(parse_log(REAL)) == [
            (18, ("GB0170",), False),
            (18, ("GB0170",), False),
            (21, ("GB0059",), False),
            (8, ("GB0059",), False),
            (8, ("GB0059",), False),
            (42, ("GB0124",), False),
            (43, ("GB0170",), False),
            (30, ("GB0059",), False),
            (30, ("GB0059", "GB7000"), True),
        ]

    def test_what_is_known_of_a_break(self) -> None:
        item = next(each for each in parse_log(REAL).breaks if each.line == 42)
        assert item.path == MODEL
        assert item.reason == "Unsupported Tensor.item() call with capture_scalar_outputs=False"
        assert item.explanation == (
            "Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False."
        )
        assert item.stack[-1] == StackFrame(MODEL, 42, "forward", "x = x * x.sum().item()")

    def test_the_way_to_it_leads_through_callers(self) -> None:
        deep = next(each for each in parse_log(REAL).breaks if each.line == 8)
        own = [(frame.line, frame.function) for frame in deep.stack if frame.path == MODEL]
        assert own == [(50, "<module>"), (41, "forward"), (23, "forward"), (8, "report")]

    def test_what_is_told_again_has_the_first_ones_way(self) -> None:
        breaks = parse_log(REAL).breaks
        assert breaks[1].stack == breaks[0].stack

    def test_frames_left_to_python(self) -> None:
        (frame,) = parse_log(REAL).skipped
        assert (frame.path, frame.function, frame.line, frame.is_rest) == (MODEL, "forward", 27, False)

    @pytest.mark.parametrize(
        "change",
        [
            lambda text: re.sub(r"^V.*\[__graph_breaks\] ?", "", text, flags=re.MULTILINE),
            lambda text: text.replace("\n", "\r\n"),
            lambda text: re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE),
            lambda text: re.sub(r"^", "2026-11-30T21:33:58.123Z trainer-0 | [rank0]:", text, flags=re.MULTILINE),
            lambda text: re.sub(r"^(V.*\n)", r"step 1 loss 0.5\n\1", text, flags=re.MULTILINE),
        ],
        ids=["without beginnings", "Windows", "stripped", "of a launcher", "mixed with output"],
    )
    def test_the_same_is_read_however_it_was_kept(self, change: object) -> None:
        assert callable(change)
        changed = parse_log(change(REAL))
        assert lines(changed) == lines(parse_log(REAL))
        assert [each.stack[-1] for each in changed.breaks] == [each.stack[-1] for each in parse_log(REAL).breaks]

    def test_two_processes_at_once(self) -> None:
        other = REAL.replace(" 4711 ", " 4712 ")
        mixed = "\n".join(line for pair in zip(REAL.splitlines(), other.splitlines(), strict=True) for line in pair)
        assert sorted(lines(parse_log(mixed))) == sorted(lines(parse_log(REAL)) * 2)

    def test_other_artifacts_are_passed_over(self) -> None:
        noise = (
            "V1130 21:33:58.000000 4711 torch/_dynamo/symbolic_convert.py:1] [0/0] [__trace_bytecode] TRACE POP_TOP\n"
            "I1130 21:33:58.000000 4711 torch/_dynamo/convert_frame.py:9] [0/0] Graph break in user words\n"
            "V1130 21:33:58.000000 4711 torch/_dynamo/guards.py:9] [0/0] [__recompiles] Recompiling function f\n"
        )
        noisy = re.sub(r"^(V.*\] Graph break)", lambda found: noise + found[1], REAL, flags=re.MULTILINE)
        assert noisy.count("Recompiling") == 9
        assert lines(parse_log(noisy)) == lines(parse_log(REAL))


class TestOtherForms:
    """Written after the format strings of these versions."""

    def test_torch_2_6_knows_no_ids(self) -> None:
        log = parse_log(
            prefixed(
                "Graph break in user code at /project/model.py:9\n"
                "Reason: Unsupported: builtin: print [<class 'TensorVariable'>] False\n"
                "User code traceback:\n"
                '  File "/project/model.py", line 9, in torch_dynamo_resume_in_forward_at_8\n'
                "    print(x)\n"
            )
            + prefixed("Graph break (details suppressed) in user code at /project/model.py:9\nReason: generic_jump\n")
        )
        first, second = log.breaks
        assert (first.gb, first.reason) == ((), "Unsupported: builtin: print [<class 'TensorVariable'>] False")
        assert first.stack == second.stack == (StackFrame(MODEL, 9, "forward", "print(x)"),)
        assert second.reason == "generic_jump"

    def test_a_skip_of_before_2_9(self) -> None:
        (only,) = parse_log(
            prefixed(
                "Graph break: skip: from user code at:\n"
                '  File "/project/model.py", line 9, in forward\n'
                "    assert x is None\n"
                "Traceback (most recent call last):\n"
                '  File "/venv/torch/_dynamo/symbolic_convert.py", line 1, in wrapper\n'
                "    return inner_fn(self, inst)\n"
                "torch._dynamo.exc.Unsupported: Data-dependent assertion failed\n"
                "  Explanation: It should not compile the partial graph.\n"
            )
        ).breaks
        assert (only.path, only.line, only.skips) == (MODEL, 9, True)
        assert [frame.path for frame in only.stack] == [MODEL]
        assert (only.reason, only.explanation) == (
            "Data-dependent assertion failed",
            "It should not compile the partial graph.",
        )

    def test_a_skip_of_since_then(self) -> None:
        log = parse_log(
            prefixed(
                "Graph break: torch.compile cannot properly resume from this graph break, which results in a skip.\n"
                "torch.compile will skip tracing the frame forward (/project/model.py line 7) and fall back to eager.\n"
                "The graph break occurred in the following user code:\n"
                '  File "/project/model.py", line 9, in forward\n'
                "    with Own():\n"
            )
        )
        assert [(each.line, each.skips) for each in log.breaks] == [(9, True)]
        assert [(each.function, each.line) for each in log.skipped] == [("forward", 7)]

    def test_a_loop_of_before_2_13(self) -> None:
        text = (
            "Skipping frame because there is a graph break in a for/while loop\n"
            "<FrameSummary file /project/model.py, line 9 in forward>"
        )
        prefix = "I1130 21:33:58.000000 1234 torch/_dynamo/symbolic_convert.py:700] [0/0] "
        (only,) = parse_log(prefixed(text, prefix)).breaks
        assert (only.path, only.line, only.skips) == (MODEL, 9, True)

    @pytest.mark.parametrize(
        ("reason", "count"), [("no content in function call", 0), ("a context manager of your own", 1)]
    )
    def test_a_decision_to_skip_counts_where_there_was_something(self, reason: str, count: int) -> None:
        text = (
            "torch.compile intentionally decided to skip the frame step (/project/model.py line 3) and fall back to "
            f"eager.\nReason: {reason}"
        )
        assert len(parse_log(text).skipped) == count

    def test_the_limit_of_recompilations(self) -> None:
        prefix = "W1130 21:33:58.000000 1234 torch/_dynamo/convert_frame.py:1994] [0/8] "
        text = "torch._dynamo hit config.recompile_limit (8)\n   function: 'torch_dynamo_resume_in_f_at_4' (/a/m.py:2)"
        log = parse_log(prefixed(text, prefix))
        assert log.skipped == (
            SkippedFrame("/a/m.py", "f", 2, "compiled as often as `recompile_limit` allows", is_rest=True),
        )
        assert log.breaks == ()

    def test_advice_is_no_break(self) -> None:
        text = (
            "Graph break from `Tensor.item()`, consider setting:\n"
            "    torch._dynamo.config.capture_scalar_outputs = True\n"
            'Graph break: from user code at:\n  File "/project/model.py", line 9, in forward\n    x.item()\n'
        )
        assert parse_log(text) == parse_log(prefixed(text)) == Log(())

    def test_windows(self) -> None:
        (only,) = parse_log(
            prefixed(
                "Graph break in user code at C:\\My Project\\model.py:9\n"
                "Graph Break Reason: x\n\nUser code traceback:\n"
                '  File "C:\\My Project\\model.py", line 9, in forward\n    print(x)\n'
            )
        ).breaks
        assert only.stack == (StackFrame("C:\\My Project\\model.py", 9, "forward", "print(x)"),)


class TestFiles:
    def test_an_empty_file_is_a_run_without_breaks(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(b"\n")
        assert read_log(str(tmp_path / "log")) == Log(())

    def test_what_a_windows_shell_redirects(self, tmp_path: Path) -> None:
        (tmp_path / "log").write_bytes(REAL.encode("utf-16"))
        assert lines(read_log(str(tmp_path / "log"))) == lines(parse_log(REAL))

    @pytest.mark.parametrize("data", [b"step 1 loss 0.5\n", b"\x00\xff\x80 PK\x03\x04"])
    def test_anything_else_is_an_error(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "log").write_bytes(data)
        with pytest.raises(UserError, match="holds no log of graph breaks"):
            read_log(str(tmp_path / "log"))

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="cannot read the log"):
            read_log(str(tmp_path / "log"))
