"""What the reports look like. The values are made by hand; how they come about is tested elsewhere."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from graphmend.config import OutputFormat
from graphmend.findings import (
    Applicability,
    Confidence,
    Edit,
    FileError,
    Finding,
    Fix,
    FixedFile,
    Frame,
    Impact,
    Proof,
    Range,
    Refusal,
    Report,
    RuntimeCopy,
    Severity,
)
from graphmend.report import Options, render, statistics
from graphmend.report.diff import render_diff
from graphmend.rules.loader import load_rules

LINE = '        print("mean", x.mean())'
PRINT = Finding(
    rule="GM301",
    name="print-in-graph",
    path="pkg/model.py",
    range=Range(7, 9, 7, 32),
    severity=Severity.WARNING,
    confidence=Confidence.HIGH,
    impact=Impact.SPLITS_GRAPH,
    message="`print` breaks the graph",
    region=(Frame("pkg/net.py", 3, "Net.forward"), Frame("pkg/model.py", 5, "Layer.forward")),
    gb=("GB0059",),
    fix=Fix(
        "outline",
        Applicability.SAFE,
        (Proof("value-unused", "statically", "the call is a statement"),),
        (Edit("pkg/model.py", 100, 123, "_print(x)", Range(7, 9, 7, 32)),),
    ),
    source_line=LINE,
)
BRANCH = Finding(
    rule="GM101",
    name="branch-on-tensor",
    path="pkg/model.py",
    range=Range(9, 9, 10, 20),
    severity=Severity.ERROR,
    confidence=Confidence.MEDIUM,
    impact=Impact.SKIPS_FRAME,
    message="`if` on the value of a tensor (`x.any()`) breaks the graph",
    region=(),
    gb=("GB0170",),
    refusal=Refusal("predicate", "pure-arms", "an arm appends to `self.seen`", 11),
    source_line="        if x.any() and (",
)
UNSAFE = replace(
    PRINT,
    range=Range(20, 1, 20, 10),
    fix=Fix("guard", Applicability.UNSAFE, (), PRINT.fix.edits if PRINT.fix else (), changes="the order of the sum"),
    severity=Severity.NOTE,
    source_line="print(ab)",
)
SILENCED = replace(PRINT, range=Range(30, 9, 30, 32), suppressed=True)
REPORT = Report(
    (PRINT, BRANCH, UNSAFE, SILENCED), (FileError("pkg/bad.py", "invalid syntax", 3, 7, "fix it"),), (), files=4
)
OPTIONS = Options(rules=load_rules())


class TestText:
    def test_a_remark_is_shown(self) -> None:
        text = render(Report((replace(PRINT, note="this file is generated"),)), OutputFormat.TEXT, OPTIONS)
        assert "\n  = note: this file is generated\n" in text

    def test_a_report_tells_everything_a_person_needs(self) -> None:
        assert (
            render(REPORT, OutputFormat.TEXT, OPTIONS)
            == """\
pkg/model.py:7:9: warning: GM301 `print` breaks the graph
  |
7 |         print("mean", x.mean())
  |         ^^^^^^^^^^^^^^^^^^^^^^^
  = compiled: Net.forward (pkg/net.py:3) -> Layer.forward (pkg/model.py:5)
  = impact: splits-graph, confidence high, GB0059
  = fix: outline, with `--fix`

pkg/model.py:9:9: error: GM101 `if` on the value of a tensor (`x.any()`) breaks the graph
  |
9 |         if x.any() and (
  |         ^^^^^^^^^^^^^^^^
  = impact: skips-frame, confidence medium, GB0170
  = not fixed: an arm appends to `self.seen` (predicate: pure-arms, line 11)

pkg/model.py:20:1: note: GM301 `print` breaks the graph
   |
20 | print(ab)
   | ^^^^^^^^^
   = compiled: Net.forward (pkg/net.py:3) -> Layer.forward (pkg/model.py:5)
   = impact: splits-graph, confidence high, GB0059
   = fix: guard, unsafe, with `--fix --unsafe-fixes`: the order of the sum

3 findings in 4 files (1 silenced).
1 can be fixed with `--fix`; `--diff` shows the changes first.
1 can be fixed with `--fix --unsafe-fixes`, which may change what the program does.
To keep the rest out of the way: `# noqa: GM101` on a line, `--ignore GM101`, `--fail-on error`.
"""
        )

    def test_a_proof_is_shown_on_request(self) -> None:
        text = render(REPORT, OutputFormat.TEXT, replace(OPTIONS, proof=True))
        assert "  = proof: value-unused (statically): the call is a statement\n" in text

    def test_a_clean_run_says_so(self) -> None:
        assert render(Report((), files=1), OutputFormat.TEXT, OPTIONS) == "Nothing was found in 1 file.\n"

    def test_a_fixing_run_says_what_it_did(self) -> None:
        fixed = (FixedFile("a.py", "", "x", 2), FixedFile("b.py", "", "x", 1))
        text = render(Report((), (), fixed, files=3), OutputFormat.TEXT, OPTIONS)
        assert text == "Fixed 3 findings in 2 files.\nNothing else was found in 3 files.\n"
        text = render(Report((BRANCH,), (), fixed, files=3), OutputFormat.TEXT, OPTIONS)
        assert "Fixed 3 findings in 2 files.\n1 finding left in 3 files.\n" in text

    def test_a_quiet_run_has_no_summary(self) -> None:
        assert render(Report((), files=1), OutputFormat.TEXT, replace(OPTIONS, quiet=True)) == ""

    def test_colour_only_on_request(self) -> None:
        assert "\x1b[" not in render(REPORT, OutputFormat.TEXT, OPTIONS)
        assert "\x1b[1;31merror:\x1b[0m" in render(REPORT, OutputFormat.TEXT, replace(OPTIONS, colour=True))

    def test_the_underline_fits_tabs_and_wide_characters(self) -> None:
        wide = replace(PRINT, range=Range(7, 9, 7, 14), source_line='\tf("日本"), print()')
        lines = render(Report((wide,), files=1), OutputFormat.TEXT, OPTIONS).split("\n")
        assert lines[2] == '7 | \tf("日本"), print()'
        assert lines[3] == "  | \t" + " " * 9 + "^" * 5


def test_concise_is_one_line_a_finding() -> None:
    assert (
        render(REPORT, OutputFormat.CONCISE, OPTIONS)
        == """\
pkg/model.py:7:9: GM301 [*] `print` breaks the graph
pkg/model.py:9:9: GM101 `if` on the value of a tensor (`x.any()`) breaks the graph
pkg/model.py:20:1: GM301 `print` breaks the graph
"""
    )


def test_statistics_count_by_rule() -> None:
    assert statistics(REPORT) == "2  GM301  print-in-graph  (2 fixable)\n1  GM101  branch-on-tensor  (0 fixable)\n"
    assert statistics(Report(())) == ""


def test_json_has_the_documented_keys() -> None:
    document = json.loads(render(REPORT, OutputFormat.JSON, OPTIONS))
    assert (document["version"], document["tool"]["name"], document["files"]) == (1, "graphmend", 4)
    assert document["errors"] == [
        {"path": "pkg/bad.py", "line": 3, "column": 7, "message": "invalid syntax", "hint": "fix it"}
    ]
    first, second, _, silenced = document["findings"]
    assert first == {
        "rule": "GM301",
        "name": "print-in-graph",
        "path": "pkg/model.py",
        "line": 7,
        "column": 9,
        "end_line": 7,
        "end_column": 32,
        "severity": "warning",
        "confidence": "high",
        "impact": "splits-graph",
        "message": "`print` breaks the graph",
        "region": [
            {"path": "pkg/net.py", "line": 3, "function": "Net.forward", "launch": False},
            {"path": "pkg/model.py", "line": 5, "function": "Layer.forward", "launch": False},
        ],
        "gb": ["GB0059"],
        "fix": {
            "transform": "outline",
            "applicability": "safe",
            "changes": "",
            "limits": "",
            "proof": [{"obligation": "value-unused", "how": "statically", "detail": "the call is a statement"}],
            "edits": [
                {
                    "path": "pkg/model.py",
                    "line": 7,
                    "column": 9,
                    "end_line": 7,
                    "end_column": 32,
                    "start": 100,
                    "end": 123,
                    "replacement": "_print(x)",
                }
            ],
        },
        "refusal": None,
        "behind": [],
        "suppressed": False,
        "note": "",
        "trace": None,
    }
    assert document["unexplained"] == []
    assert second["fix"] is None
    assert second["refusal"] == {
        "transform": "predicate",
        "obligation": "pure-arms",
        "reason": "an arm appends to `self.seen`",
        "line": 11,
    }
    assert silenced["suppressed"] is True


class TestSarif:
    @pytest.fixture(autouse=True)
    def repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / "sub dir").mkdir()
        monkeypatch.chdir(tmp_path / "sub dir")

    def run(self, report: Report = REPORT) -> dict:  # type: ignore[type-arg]
        log = json.loads(render(report, OutputFormat.SARIF, OPTIONS))
        schema = Path(__file__).parent / "data" / "sarif-schema-2.1.0.json"
        jsonschema.validate(
            log, json.loads(schema.read_text("utf-8")), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
        )
        assert log["version"] == "2.1.0"
        (run,) = log["runs"]
        return run  # type: ignore[no-any-return]

    def test_it_is_valid_with_and_without_findings(self) -> None:
        self.run()
        assert self.run(Report(()))["results"] == []

    def test_every_rule_is_described(self) -> None:
        driver = self.run()["tool"]["driver"]
        assert driver["name"] == "graphmend"
        assert driver["semanticVersion"]
        rules = {rule["id"]: rule for rule in driver["rules"]}
        assert set(rules) == {rule.code for rule in load_rules()}
        rule = rules["GM301"]
        assert rule["name"] == "print-in-graph"
        assert rule["shortDescription"]["text"] == "`print` breaks the graph"
        assert rule["fullDescription"]["text"].startswith("Reports a call of the built-in `print`")
        assert rule["help"]["markdown"].startswith("## What it does")
        assert rule["helpUri"].endswith("/gb/gb0059.html")
        assert rule["defaultConfiguration"]["level"] == "warning"
        assert rule["properties"]["problem.severity"] == "warning"
        assert "security-severity" not in rule["properties"]

    def test_a_result_points_into_the_repository(self) -> None:
        run = self.run()
        result = run["results"][0]
        assert run["columnKind"] == "unicodeCodePoints"
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "GM301"
        assert result["level"] == "warning"
        assert result["message"]["text"] == "`print` breaks the graph"
        assert result["locations"][0]["physicalLocation"] == {
            "artifactLocation": {"uri": "sub%20dir/pkg/model.py", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 7, "startColumn": 9, "endLine": 7, "endColumn": 32},
        }
        outside = self.run(Report((replace(PRINT, path="../../elsewhere.py"),)))["results"][0]
        location = outside["locations"][0]["physicalLocation"]["artifactLocation"]
        assert location["uri"].startswith("file:///")
        assert "uriBaseId" not in location

    def test_the_call_chain_is_a_code_flow_that_ends_at_the_finding(self) -> None:
        with_chain, without_chain, *_ = self.run()["results"]
        steps = with_chain["codeFlows"][0]["threadFlows"][0]["locations"]
        lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
        assert lines == [3, 5, 7]
        frames = (Frame("pkg/net.py", 3, "Net.forward"), Frame("pkg/model.py", 7, "Layer.forward"))
        (result,) = self.run(Report((replace(PRINT, region=frames),)))["results"]
        first, last = (step["location"] for step in result["codeFlows"][0]["threadFlows"][0]["locations"])
        assert first["message"]["text"] == "Net.forward"
        assert last["message"]["text"] == "Layer.forward: `print` breaks the graph"
        assert last["physicalLocation"]["region"]["startColumn"] == 9
        assert "codeFlows" not in without_chain

    def test_fixes_refusals_and_silence_are_told(self) -> None:
        fixed, refused, _, silenced = self.run()["results"]
        (change,) = fixed["fixes"][0]["artifactChanges"]
        assert change["replacements"][0]["insertedContent"] == {"text": "_print(x)"}
        assert fixed["properties"]["proof"] == ["value-unused: statically: the call is a statement"]
        assert "Not fixed: an arm appends to `self.seen` (predicate: pure-arms)" in refused["message"]["text"]
        assert silenced["suppressions"] == [{"kind": "inSource"}]
        assert "suppressions" not in fixed

    def test_fingerprints_stay_when_lines_move_and_differ_between_equal_lines(self) -> None:
        twin = replace(PRINT, range=Range(8, 9, 8, 32))
        moved = replace(PRINT, range=Range(70, 9, 70, 32), source_line=LINE.replace("    ", "\t"))
        before = [result["partialFingerprints"] for result in self.run(Report((PRINT, twin)))["results"]]
        after = [result["partialFingerprints"] for result in self.run(Report((moved,)))["results"]]
        assert after == before[:1]
        assert before[0] != before[1]
        assert "primaryLocationLineHash" not in before[0]

    def test_errors_are_notifications(self) -> None:
        (invocation,) = self.run()["invocations"]
        assert invocation["executionSuccessful"] is False
        (notification,) = invocation["toolExecutionNotifications"]
        assert notification["level"] == "error"
        assert notification["message"]["text"] == "invalid syntax"
        assert notification["locations"][0]["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 7}
        assert self.run(Report(()))["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_github_commands_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    odd = replace(BRANCH, path="a,b:c.py", message="100%\nsure")
    assert (
        render(Report((PRINT, odd, UNSAFE, SILENCED), REPORT.errors), OutputFormat.GITHUB, OPTIONS)
        == """\
::warning title=graphmend GM301 print-in-graph,file=sub/pkg/model.py,line=7,endLine=7,col=9,endColumn=32::`print` breaks the graph
::error title=graphmend GM101 branch-on-tensor,file=sub/a%2Cb%3Ac.py,line=9,endLine=10::100%25%0Asure
::notice title=graphmend GM301 print-in-graph,file=sub/pkg/model.py,line=20,endLine=20,col=1,endColumn=10::`print` breaks the graph
::error title=graphmend,file=sub/pkg/bad.py,line=3::invalid syntax
"""  # noqa: E501
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nB"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("a\x0cb\nc\x1cd\u2028e\nf\n", "a\x0cb\nC\x1cd\u2028e\nf\n"),
        ("", "a\n"),
        ("a\n", ""),
    ],
)
def test_a_diff_can_be_applied(tmp_path: Path, before: str, after: str) -> None:
    target = tmp_path / "pkg" / "a.py"
    target.parent.mkdir()
    target.write_text(before, encoding="utf-8", newline="")
    diff = render_diff([FixedFile("pkg/a.py", before, after, 1)])
    assert diff.startswith("--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ ")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert (target.read_bytes().decode() if target.exists() else "") == after


def test_the_diff_of_a_new_file(tmp_path: Path) -> None:
    diff = render_diff([RuntimeCopy("pkg/_mend.py", None, "a\nb\n")])
    assert diff == "--- /dev/null\n+++ b/pkg/_mend.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert (tmp_path / "pkg" / "_mend.py").read_text() == "a\nb\n"
    assert render_diff([RuntimeCopy("pkg/_mend.py", "a\nb\n", "a\nb\n")]) == ""
