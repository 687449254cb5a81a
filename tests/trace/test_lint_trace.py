"""``graphmend lint --trace LOG``, on the log of torch 2.13 beside the program that it comes from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from graphmend.cli import main

DATA = Path(__file__).parent / "data"
SCHEMA = json.loads((Path(__file__).parent.parent / "data" / "sarif-schema-2.1.0.json").read_text("utf-8"))
RULES = ("--select", "GM101,GM301")
"""Two that the log is about, so that others may be added."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("model.py", "model-2.13.log"):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


def output(capsys: pytest.CaptureFixture[str], output_format: str, *more: str, log: str = "model-2.13.log") -> str:
    assert main(["lint", "model.py", "--trace", log, "--output-format", output_format, *RULES, *more]) == 1
    return capsys.readouterr().out


def marks(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    document = json.loads(output(capsys, "json", *more))
    return {f"{each['rule']}:{each['line']}": each["trace"] for each in document["findings"]}


def test_each_finding_says_what_the_run_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert marks(capsys) == {
        "GM301:8": "confirmed",
        "GM101:17": "confirmed",
        "GM301:30": "confirmed",
        "GM301:45": "not seen",
    }


def test_breaks_that_no_rule_explains_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(output(capsys, "json"))
    first, second = document["unexplained"]
    assert first == {
        "path": "model.py",
        "line": 42,
        "end_line": 42,
        "function": "Net.forward",
        "gb": ["GB0124"],
        "reason": "Unsupported Tensor.item() call with capture_scalar_outputs=False",
        "explanation": "Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False.",
        "skips_frame": False,
        "inside": None,
        "lines": [42],
        "count": 1,
    }
    assert (second["line"], second["gb"]) == (43, ["GB0170"])


def test_the_message_in_a_branch_is_no_break_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert 21 not in [site["line"] for site in json.loads(output(capsys, "json"))["unexplained"]]


def test_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "text")
    assert text.count("   = trace: confirmed\n") + text.count("  = trace: confirmed\n") >= 3
    assert text.count("= trace: not seen\n") == 1
    assert (
        """\
model.py:42: GB0124 Unsupported Tensor.item() call with capture_scalar_outputs=False
   |
42 |         x = x * x.sum().item()
   |
   = in: Net.forward
   = found: nothing; no rule explains it
   = dynamo: Dynamo does not support tracing `Tensor.item()` with config.capture_scalar_outputs=False.
"""
        in text
    )
    assert "\nThe run confirmed 3 of 4 findings, and broke at 2 statements that no rule explains.\n" in text


def test_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        output(capsys, "concise")
        == """\
model.py:8:5: GM301 [*] `print` breaks the graph (confirmed)
model.py:17:9: GM101 [*] `if` on the value of a tensor (`x.sum() > 0`) breaks the graph (confirmed)
model.py:30:13: GM301 [*] `print` breaks the graph (confirmed)
model.py:45:13: GM301 [*] `print` breaks the graph (not seen)
model.py:42: no rule explains GB0124 Unsupported Tensor.item() call with capture_scalar_outputs=False
model.py:43: no rule explains GB0170 Data-dependent branching
"""
    )


def test_sarif_carries_it_and_stays_valid(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(output(capsys, "sarif"))
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    (run,) = document["runs"]
    assert [each["properties"]["trace"] for each in run["results"]] == ["confirmed"] * 3 + ["not seen"]
    (invocation,) = run["invocations"]
    notes = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is True
    assert [each["level"] for each in notes] == ["note", "note"]
    assert notes[0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 42, "endLine": 42}
    assert notes[0]["message"]["text"] == (
        "the graph broke here, and no rule explains it: "
        "Unsupported Tensor.item() call with capture_scalar_outputs=False (GB0124)"
    )


def test_without_a_log_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", "model.py", "--output-format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert {each["trace"] for each in document["findings"]} == {None}
    assert document["unexplained"] == []
    main(["lint", "model.py"])
    assert "trace" not in capsys.readouterr().out


def test_what_a_run_confirms_is_shown_however_uncertain_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert marks(capsys, "--min-confidence", "high")["GM101:17"] == "confirmed"


def test_a_silenced_finding_explains_its_break(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "model.py"
    path.write_text(path.read_text().replace('print("step", step)', 'print("step", step)  # noqa: GM301'))
    log = project / "model-2.13.log"
    log.write_text(log.read_text().replace('print("step", step)', 'print("step", step)  # noqa: GM301'))
    assert marks(capsys)["GM301:30"] == "confirmed"
    assert 30 not in [site["line"] for site in json.loads(output(capsys, "json"))["unexplained"]]


def test_a_run_without_breaks(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "empty").write_text("")
    text = output(capsys, "text", log="empty")
    assert text.count("= trace: not seen\n") == 4
    assert "The run confirmed 0 of 4 findings.\n" in text


def test_a_log_of_an_older_text_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "model.py"
    path.write_text(path.read_text().replace('print("step", step)', 'print("now", step)'))
    assert main(["lint", "model.py", "--trace", "model-2.13.log", *RULES]) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "graphmend: model.py:30: model-2.13.log is of another text than this; the break there is left out\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trace", "nowhere"], "nowhere: cannot read the log: No such file or directory"),
        (["--trace", "model.py"], "model.py: holds no log of graph breaks (run the program with"),
        (["--trace", "model-2.13.log", "--fix"], "`--trace` cannot be combined with `--fix` or `--diff`"),
    ],
)
def test_what_cannot_be_done_is_told(
    arguments: list[str], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (project / "model.py").read_text()
    assert main(["lint", "model.py", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"graphmend: {message}")
    assert (project / "model.py").read_text() == before
