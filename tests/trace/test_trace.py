"""``graphmend trace``: programs that are run under Dynamo, and what is told of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli import main

pytest.importorskip("torch")

MODEL = """\
import torch
from torch import nn


def shout(x):
    print(
        "mean",
        x.shape,
    )
    return x


class Loop(nn.Module):
    def forward(self, x):
        for step in range(2):
            x = x * 2
            print("step", step)
        return x


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        if x.shape[0] > 100:
            print("large")
        return shout(x) * x.sum().item()


class Clean(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


class Late(nn.Module):
    def forward(self, x):
        x = torch.relu(x)
        print("last")
        return x


def loop():
    return Loop(), (torch.ones(3),)


def branch():
    return Branch(), [torch.ones(3)], {}


def clean():
    print("made")
    return Clean(), {"x": torch.ones(3)}


def late():
    return Late(), (torch.ones(3),)


def alone():
    return lambda: shout(torch.ones(3) + 1)


def fails():
    raise ValueError("no weights\\nhere")


def wrong():
    return Clean(), torch.ones(3)


def number():
    return 3


def unhappy():
    return Branch(), (torch.ones(3), torch.ones(3))


def dies():
    import os

    os._exit(3)


def waits():
    import time

    time.sleep(60)


NOTHING = None
"""
SCRIPT = """\
import sys

import torch

from net.model import Branch

model = torch.compile(Branch(), mode="reduce-overhead")
print("arguments", sys.argv[1:])
for size in (3, 4):
    model(torch.ones(size))
if "fail" in sys.argv:
    raise RuntimeError("at the end")
sys.exit(len(sys.argv) - 1)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").write_text("")
    (tmp_path / "net" / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def traced(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> tuple[dict[str, Any], str]:
    """The JSON of a trace, and what was written beside it."""
    capfd.readouterr()
    assert main(["trace", "--output-format", "json", *arguments]) == code
    captured = capfd.readouterr()
    assert captured.out, captured.err
    document: dict[str, Any] = json.loads(captured.out)
    return document, captured.err


def places(document: dict[str, Any]) -> list[tuple[int, list[str], list[str]]]:
    return [
        (each["line"], each["gb"], [finding["rule"] for finding in each["findings"]]) for each in document["breaks"]
    ]


class TestFactories:
    def test_a_break_in_a_loop_leaves_the_function_to_python(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, said = traced(capfd, "net.model:loop")
        (only,) = document["breaks"]
        assert (only["path"], only["line"], only["function"]) == ("net/model.py", 17, "Loop.forward")
        assert only["skips_frame"] is True
        assert [finding["rule"] for finding in only["findings"]] == ["GM301"]
        assert only["findings"][0]["trace"] == "confirmed"
        assert [(each["function"], each["line"]) for each in document["skipped"]] == [("Loop.forward", 14)]
        assert (document["graphs"], document["calls"], document["whole"]) == (0, [0, 0], False)
        assert said.count("step 1\n") == 2  # once a call; what is run besides is silent

    def test_breaks_are_matched_and_the_rest_is_told(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, _ = traced(capfd, "net.model:branch", "--select", "GM1,GM3")
        assert places(document) == [
            (6, ["GB0059"], ["GM301"]),
            (23, ["GB0170"], ["GM101"]),
            (27, ["GB0124"], []),
        ]
        assert document["calls"][0] > 1
        left = {each["line"]: each for each in document["unconfirmed"]}
        assert left[26]["ran"] is False
        assert left[26]["trace"] == "not seen"
        assert left[17]["ran"] is False

    def test_a_clean_model_is_whole(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, said = traced(capfd, "net.model:clean", code=0)
        assert (document["breaks"], document["skipped"]) == ([], [])
        assert (document["calls"], document["whole"], document["fullgraph"]) == ([1, 0], True, True)
        assert said == "made\n"
        assert main(["trace", "net.model:clean", "--select", "GM2"]) == 0
        assert capfd.readouterr().out.startswith("1 graph in the first call, 0 more in the next (torch 2.")

    @pytest.mark.slow
    def test_one_graph_is_not_whole_if_something_broke(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, _ = traced(capfd, "net.model:late", "--calls", "1")
        assert (document["calls"], document["whole"]) == ([1], False)
        assert places(document) == [(38, ["GB0059"], ["GM301"])]

    @pytest.mark.slow
    def test_a_function_without_arguments(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, _ = traced(capfd, "net/model.py:alone")
        assert places(document)[0][:2] == (6, ["GB0059"])

    @pytest.mark.slow
    def test_text_for_people(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert main(["trace", "net.model:branch", "--select", "GM1,GM3", "--backend", "aot_eager"]) == 1
        text = capfd.readouterr().out
        assert (
            """\
net/model.py:6: GB0059 Failed to trace builtin operator
  |
6 |     print(
  |
  = in: shout
  = found: GM301 net/model.py:6:5, outline (safe fix)
"""
            in text
        )
        assert "\n   = found: nothing; no rule explains it\n   = dynamo: Dynamo does not support tracing `Tens" in text
        assert "\nFound, and not confirmed by this run:\n  net/model.py:17:13: GM301 `print` breaks the graph" in text
        assert "`print` breaks the graph; the line did not run\n" in text
        assert text.endswith("The graph broke at 3 statements; no rule explains 1 of them.\n")


@pytest.mark.slow
class TestPrograms:
    def test_a_script_compiles_what_it_does(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, said = traced(capfd, "train.py", code=1)
        assert [line for line, _, _ in places(document)] == [6, 23, 27]
        assert (document["calls"], document["whole"], document["compilations"]) == (None, None, 1)
        assert document["graphs"] > 2
        assert "arguments []\n" in said

    def test_it_gets_its_arguments_and_its_end_is_told(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, said = traced(capfd, "-m", "train", "--output-format", "x", code=2)
        assert "arguments ['--output-format', 'x']\n" in said
        assert said.endswith("graphmend: `train` did not come to its end: it ended with exit code 2\n")
        assert [line for line, _, _ in places(document)] == [6, 23, 27]

    def test_an_exception_is_told_with_what_came_before(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, said = traced(capfd, "train.py", "fail", code=2)
        assert document["failure"] == "`train.py` did not come to its end: it raised RuntimeError: at the end"
        assert len(document["breaks"]) == 3
        assert 'train.py", line 12, in <module>\n    raise RuntimeError("at the end")\n' in said
        assert "observe.py" not in said
        assert "runpy" not in said

    def test_what_compiles_nothing_says_so(self, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (project / "idle.py").write_text("import torch\n")
        assert main(["trace", "idle.py"]) == 0
        assert capfd.readouterr().out.endswith("It compiled nothing: `torch.compile` was not called.\n")


class TestErrors:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("net.model:fails", "`net.model:fails` gives nothing to run: it raised ValueError: no weights\n"),
            (
                "net.model:wrong",
                "`net.model:wrong` gives nothing to run: what it returned besides what to call is",
            ),
            ("net.model:number", "`net.model:number` gives nothing to run: it returned an `int`; it should return"),
            ("net.model:absent", "cannot import `net.model:absent`: `net.model` has no `absent`\n"),
            ("net.model:NOTHING", "cannot import `net.model:NOTHING`: it is no function but a `NoneType`\n"),
            ("net.absent:loop", "cannot import `net.absent:loop`: ModuleNotFoundError: No module named 'net.absent'\n"),
            ("net.model:dies", "`net.model:dies` ended its process with exit code 3 before it could tell"),
        ],
    )
    def test_what_cannot_be_run(self, target: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
        assert main(["trace", target]) == 2
        captured = capfd.readouterr()
        assert captured.out == ""
        assert f"graphmend: {message}" in captured.err
        assert "observe.py" not in captured.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["absent.py"], "there is no `absent.py` to run ("),
            (["absent.py:make"], "there is no file `absent.py`\n"),
            (["net.model:loop", "more"], "a factory takes no arguments: `more`\n"),
            (["net.model:loop", "--output-format", "sarif"], "`graphmend trace` writes `text` or `json` ("),
            (["net.model:loop", "--rules", "absent.yaml"], ""),
        ],
    )
    def test_what_is_known_beforehand_runs_nothing(
        self, arguments: list[str], message: str, project: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (project / "net" / "__init__.py").write_text("open('it-ran', 'w')")
        assert main(["trace", *arguments]) == 2
        assert f"graphmend: {message}" in capfd.readouterr().err
        assert not (project / "it-ran").exists()

    @pytest.mark.slow
    def test_an_error_while_it_is_called(self, capfd: pytest.CaptureFixture[str]) -> None:
        document, _ = traced(capfd, "net.model:unhappy", code=2)
        assert document["failure"].startswith("`net.model:unhappy` did not come to its end: TypeError: ")
        assert document["whole"] is None

    @pytest.mark.slow
    def test_what_takes_too_long(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert main(["trace", "--timeout", "5", "net.model:waits"]) == 2
        assert capfd.readouterr().err.endswith("graphmend: `net.model:waits` was ended: it took longer than 5 s\n")


@pytest.mark.slow
class TestOwnFiles:
    def test_a_library_is_told_at_the_line_that_calls_it(
        self, project: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        document, _ = traced(capfd, "--path", "train.py", "train.py")
        assert {each["line"] for each in document["breaks"]} == {10}
        inside = [each["inside"]["line"] for each in document["breaks"]]
        assert sorted(inside) == [6, 23, 27]
        assert all(each["inside"]["path"].endswith("net/model.py") for each in document["breaks"])

    def test_installed_packages_are_not_ones_own_unless_they_are_run(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        installed = project / "env" / "site-packages"
        installed.mkdir(parents=True)
        (project / "net").rename(installed / "net")
        monkeypatch.setenv("PYTHONPATH", str(installed))
        document, _ = traced(capfd, "train.py")
        assert {each["path"] for each in document["breaks"]} == {"train.py"}
        document, _ = traced(capfd, "net.model:loop")
        assert [each["path"] for each in document["breaks"]] == ["env/site-packages/net/model.py"]


@pytest.mark.slow
def test_what_a_program_does_to_torch_logging_does_not_matter(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = "import torch, logging\nfrom net.model import Loop\ntorch._logging.set_logs(dynamo=logging.ERROR)\n"
    script += "torch.compile(Loop())(torch.ones(3))\ntorch._logging.set_logs()\ntorch.compile(Loop())(torch.ones(4))\n"
    (project / "quiet.py").write_text(script)
    document, said = traced(capfd, "quiet.py")
    assert [each["line"] for each in document["breaks"]] == [17]
    assert "Graph break" not in said


@pytest.mark.slow
def test_what_the_readme_shows_is_what_it_gives(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parent.parent.parent
    readme = (root / "README.md").read_text("utf-8")
    blocks = [
        re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", readme, re.DOTALL)
        for name in ("trace factory", "trace output")
    ]
    factory, shown = (block[1] for block in blocks if block)
    (project / "bench.py").write_text(factory)
    shutil.copy(root / "fixtures" / "demo" / "model.py", project / "model.py")
    command, _, text = shown.partition("\n")
    assert main(command.split()[2:]) == 1
    versions = r"\(torch .*, Python .*\)"
    assert re.sub(versions, "", capfd.readouterr().out) == re.sub(versions, "", text)


def test_the_linter_does_not_import_torch_for_a_log(project: Path) -> None:
    (project / "empty").write_text("")
    code = (
        "import sys\nfrom graphmend.cli import main\nmain(['lint', '--trace', 'empty', 'net'])\n"
        "sys.exit('torch' in sys.modules or 'libcst' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
