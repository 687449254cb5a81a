"""What a run says of the findings, matched by statement."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphmend.findings import Confidence, Finding, Impact, Range, Seen, Severity
from graphmend.source.text import SourceText
from graphmend.trace.explain import Explanation, explain
from graphmend.trace.log import Break, Log, SkippedFrame, StackFrame

MODEL = """\
import torch
from torch import nn

@torch.compile(
    backend="eager",
)
def run(x):
    if (
        x.sum()
        > 0
    ):
        print("positive")
        x = x + 1
    elif x.max() > 3:
        pass
    values = [
        part
        for part in x
        if part > 0
    ]
    helper(
        x,
        x.item(),
    )
    for step in range(x.item()):
        x = x * step
    with open(
        "file"
    ) as file:
        file.write("a")
    match x.item():
        case 1 if x.max():
            x = -x
    try:
        x = x.numpy()
    except ValueError(
        "a"
    ):
        x = x + 1
    return x
"""
PATH = "pkg/model.py"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def finding(line: int, end_line: int | None = None, *gb: str, rule: str = "GM101", holds: int = 0) -> Finding:
    return Finding(
        rule,
        "name",
        PATH,
        Range(line, 5, end_line or line, 9),
        Severity.WARNING,
        Confidence.HIGH,
        Impact.SPLITS_GRAPH,
        "message",
        (),
        gb,
        holds=(Range(holds, 9, holds, 20),) if holds else (),
    )


def broken(*lines: int, gb: str = "GB0170", path: str = f"/ci/{PATH}", text: str = "") -> list[Break]:
    return [Break(path, line, (StackFrame(path, line, "run", text),), (gb,), "reason") for line in lines]


def joined(breaks: list[Break], *findings: Finding, text: str = MODEL) -> Explanation:
    return explain(Log(tuple(breaks)), findings, {PATH: SourceText(PATH, text)})


class TestByStatement:
    @pytest.mark.parametrize(
        ("line", "end_line", "named"),
        [
            (8, 10, [8, 9, 10, 11]),
            (14, 14, [14]),
            (19, 19, [16, 17, 18, 19, 20]),
            (21, 24, [21, 22, 23, 24]),
            (25, 25, [25]),
            (27, 27, [27, 28, 29]),
            (32, 32, [32]),
            (36, 36, [36, 37, 38]),
        ],
        ids=["if", "elif", "comprehension", "call", "for", "with", "case", "except"],
    )
    def test_any_line_of_it_may_be_named(self, line: int, end_line: int, named: list[int]) -> None:
        for each in range(1, MODEL.count("\n") + 1):
            (mark,) = joined(broken(each), finding(line, end_line)).findings
            assert (mark.seen is Seen.CONFIRMED) == (each in named), each

    def test_several_lines_of_it_are_one_place(self) -> None:
        (only,) = joined(broken(22, 21, 23, 22), finding(21, 24)).sites
        assert (only.site.line, only.site.end_line, only.site.named, only.site.count) == (21, 24, (21, 22, 23), 4)
        assert only.site.function == "run"
        assert only.site.source_line == "    helper("
        assert [each.rule for each in only.findings] == ["GM101"]

    def test_the_message_in_a_branch_belongs_to_it(self) -> None:
        result = joined(broken(12, gb="GB0059"), finding(8, 10, holds=12))
        assert result.unexplained == ()
        assert [each.seen for each in result.findings] == [Seen.CONFIRMED]

    def test_of_several_findings_those_with_the_id_explain_it(self) -> None:
        findings = [finding(21, 24, "GB0059", rule="GM301"), finding(23, 23, "GB0124", rule="GM401")]
        result = joined(broken(22, gb="GB0124"), *findings)
        assert [each.seen for each in result.findings] == [Seen.NOT_SEEN, Seen.CONFIRMED]
        result = joined(broken(22, gb="GB9999"), *findings)
        assert [each.seen for each in result.findings] == [Seen.CONFIRMED, Seen.CONFIRMED]

    def test_a_file_that_is_no_python_is_matched_by_line(self) -> None:
        (mark,) = joined(broken(2), finding(2), text="def (\nx\n").findings
        assert mark.seen is Seen.CONFIRMED


class TestWhatIsLeft:
    def test_breaks_without_a_finding(self) -> None:
        result = joined(broken(25) + broken(8), finding(8))
        assert [(site.line, site.gb) for site in result.unexplained] == [(25, ("GB0170",))]

    def test_findings_without_a_break_and_whether_they_ran(self) -> None:
        source = {PATH: SourceText(PATH, MODEL)}
        ran = {PATH: {9, 24}}
        result = explain(Log(()), [finding(8), finding(14), finding(21, 24)], source, ran)
        assert [(each.finding.range.line, each.ran) for each in result.unconfirmed] == [
            (8, True),
            (14, False),
            (21, True),
        ]
        (unknown,) = explain(Log(()), [finding(8)], source).unconfirmed
        assert unknown.ran is None

    def test_code_that_was_not_linted(self) -> None:
        way = (StackFrame(f"/ci/{PATH}", 25, "run"), StackFrame("/venv/lib/site-packages/lib/a.py", 3, "deep"))
        outside = [Break(way[1].path, 3, way, ("GB0007",)), Break("/venv/b.py", 9, (way[1],), ())]
        result = joined(outside)
        (site,) = result.unexplained
        assert site.line == 25
        assert site.inside is not None
        assert (site.inside.path, site.inside.line, site.inside.function) == (way[1].path, 3, "deep")
        assert [(each.path, each.line) for each in result.elsewhere] == [(way[1].path, 3)]

    def test_two_reasons_deeper_down_are_two_places(self) -> None:
        def deep(line: int) -> Break:
            way = (StackFrame(f"/ci/{PATH}", 25, "run"), StackFrame("/venv/a.py", line, "deep"))
            return Break("/venv/a.py", line, way)

        assert len(joined([deep(3), deep(4), deep(3)]).sites) == 2

    def test_skipped_functions_are_named_in_full(self) -> None:
        frame = SkippedFrame(f"/ci/{PATH}", "f", 2, "a break")
        text = "class A:\n    def f(self):\n        pass\n"
        log = Log((), (frame, frame, SkippedFrame("/venv/a.py", "g", 1, "a break")))
        skipped = explain(log, (), {PATH: SourceText(PATH, text)}).skipped
        assert [(each.path, each.function) for each in skipped] == [(PATH, "A.f"), ("/venv/a.py", "g")]


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "is_it"),
        [
            (f"/builds/x/{PATH}", True),
            ("C:\\work\\pkg\\model.py", True),
            (PATH, True),
            (f"./{PATH}", True),
            ("/builds/other/model.py", False),
            ("/builds/mypkg/model.py", False),
            ("/venv/lib/python3.11/site-packages/pkg/model.py", False),
            ("<string>", False),
        ],
    )
    def test_of_other_machines(self, path: str, is_it: bool) -> None:
        assert (joined(broken(8, path=path), finding(8)).findings[0].seen is Seen.CONFIRMED) is is_it

    def test_a_file_of_here_is_itself_and_no_other(self, tmp_path: Path) -> None:
        for folder in ("pkg", "copy/pkg"):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "model.py").write_text(MODEL)
        for path, seen in (("pkg", Seen.CONFIRMED), ("copy/pkg", Seen.NOT_SEEN)):
            (mark,) = joined(broken(8, path=str(tmp_path / path / "model.py")), finding(8)).findings
            assert mark.seen is seen

    def test_links_lead_to_the_same_file(self, tmp_path: Path) -> None:
        (tmp_path / "pkg").mkdir()
        (tmp_path / PATH).write_text(MODEL)
        os.symlink(tmp_path / "pkg", tmp_path / "link")
        assert (
            joined(broken(8, path=str(tmp_path / "link" / "model.py")), finding(8)).findings[0].seen is Seen.CONFIRMED
        )


def test_a_log_of_another_text_is_left_out() -> None:
    result = joined(broken(25, text="while x.sum() > 0:") + broken(99), finding(25))
    assert [each.line for each in result.changed] == [25, 99]
    assert result.sites == ()
    result = joined(broken(25, text="for step in range(x.item()):"), finding(25))
    assert result.changed == ()
    assert len(result.sites) == 1
