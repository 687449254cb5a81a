"""The command line as a person or a script meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend.cli import main
from graphmend.version import __version__

MODEL = """\
import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        print("mean", y.mean())
        return y
"""
CLEAN = MODEL.replace('        print("mean", y.mean())\n', "")
PARTLY = """\
import torch
from torch import nn


class Norm(nn.Module):
    def forward(self, x):
        length = torch.norm(x, dim=1, keepdim=True)
        if (length == 0).all():
            return torch.zeros_like(x)
        return x / length
"""
UNFIXABLE = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Layer(nn.Module):
    def forward(self, x):
        if logger.isEnabledFor(10):
            x = x + 1
        return torch.relu(x)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


def write(project: Path, **files: str) -> None:
    for name, text in files.items():
        path = project / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, int, str]]:
    main(["lint", "--output-format", "json", *arguments])
    document = json.loads(capsys.readouterr().out)
    return [(item["path"], item["line"], item["rule"]) for item in document["findings"]]


class TestExitCodes:
    def test_nothing_found(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=CLEAN)
        assert main(["lint"]) == 0
        assert capsys.readouterr().out == "Nothing was found in 1 file.\n"

    def test_findings(self, project: Path) -> None:
        write(project, model=MODEL)
        assert main(["lint", "."]) == 1
        assert main(["lint", "model.py", "--exit-zero"]) == 0

    def test_an_empty_folder(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "src").mkdir()
        assert main(["lint", "src"]) == 0
        assert capsys.readouterr().err == "graphmend: no Python files in `src`\n"
        assert main(["lint", "src", "-q"]) == 0
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("name", ["empty", "blank"])
    def test_an_empty_file(self, project: Path, name: str) -> None:
        write(project, empty="", blank="\n\n")
        assert main(["lint", f"{name}.py"]) == 0

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("bad.py", b"import torch\ndef f(:\n", "bad.py:2:"),
            ("bad.py", b"import torch\nx = '\xff'\n", "bad.py"),
            ("bad.py", b"# coding: klingon\nimport torch\n", "bad.py"),
            ("bad.py", b"import torch\nx = '\0'\n", "bad.py"),
        ],
    )
    def test_a_file_that_cannot_be_read_is_told_and_the_others_are_linted(
        self, project: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, message: str
    ) -> None:
        (project / name).write_bytes(data)
        write(project, model=MODEL)
        assert main(["lint", "--exit-zero"]) == 2
        captured = capsys.readouterr()
        assert f"graphmend: {message}" in captured.err
        assert len(captured.err.strip().split("\n")) == 1
        assert "model.py:8:9: " in captured.out
        assert main(["lint", "--fix"]) == 2
        assert (project / name).read_bytes() == data
        assert (project / "model.py").read_text() != MODEL

    def test_a_missing_path_is_told_and_the_others_are_linted(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, model=MODEL)
        assert main(["lint", "nowhere", "model.py"]) == 2
        captured = capsys.readouterr()
        assert captured.err == "graphmend: nowhere: cannot read the path: No such file or directory\n"
        assert "model.py:8:9: " in captured.out

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--select", "GM999"], "graphmend: select: unknown rule code `GM999`"),
            (["--ignore", "GM30l"], "graphmend: ignore: unknown rule code `GM30l` (did you mean `GM30"),
            (["--config", "gone.toml"], "graphmend: gone.toml: cannot read the configuration"),
            (["--rules", "gone.yaml"], "gone.yaml: cannot read the rule pack"),
            (["--runtime", "copy"], "graphmend: --runtime: expected `package`, `vendor` or `vendor=PATH`"),
            (["--config", "x.toml", "--isolated"], "`--config` and `--isolated` exclude each other"),
            (["--unsafe-fixes"], "`--unsafe-fixes` needs `--fix` or `--diff`"),
            (["-", "a.py"], "`-` cannot be combined with other paths"),
            (["--stdin-filename", "a.py", "b.py"], "`--stdin-filename` cannot be combined with paths"),
            (["-o", "no/such/folder/out.txt"], "no/such/folder/out.txt: cannot write the output"),
        ],
    )
    def test_what_cannot_be_done(
        self, project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        write(project, model=MODEL)
        assert main(["lint", *arguments]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["lint", "--output-format", "jsn"],
                "`jsn` is not one of text, concise, json, sarif, github; did you mean",
            ),
            (["lint", "--fail-on", "loud"], "`loud` is not one of error, warning, note"),
            (["lint", "--target-torch", "new"], "expected a version like `2.13`"),
            (["lint", "--target-torch", "1.13"], "torch has `torch.compile` from version 2.0 on"),
            (["lint", "--fixx"], "unrecognized arguments: --fixx"),
            (["lint", "-q", "-v"], "not allowed with argument"),
            ([], "required"),
            (["nonsense"], "invalid choice"),
        ],
    )
    def test_options_that_make_no_sense(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert message in capsys.readouterr().err

    def test_broken_yaml_is_told_with_its_position(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "own.yaml").write_text("rules:\n  - code: [\n", encoding="utf-8")
        assert main(["lint", "--rules", "own.yaml"]) == 2
        assert capsys.readouterr().err.startswith("graphmend: own.yaml:3:1: broken YAML")

    def test_a_crash_is_told(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        from graphmend import engine

        def crash(_: object) -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr(engine, "run", crash)
        assert main(["lint"]) == 2
        error = capsys.readouterr().err
        assert "graphmend: internal error: ZeroDivisionError: by zero" in error
        assert "please report it" in error

    def test_severity_decides(self, project: Path) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--fail-on", "error"]) == 0
        assert main(["lint", "--fail-on", "note"]) == 1


class TestSettings:
    def test_rules_are_selected(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        assert found(capsys) == [("model.py", 8, "GM301")]
        assert found(capsys, "--select", "GM1,GM2") == []
        assert found(capsys, "--select", "GM1", "--extend-select", "GM301") == [("model.py", 8, "GM301")]
        assert found(capsys, "--ignore", "GM3") == []
        assert found(capsys, "--extend-ignore", "GM301") == []

    def test_the_configuration_holds_and_options_overrule_it(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, model=MODEL)
        (project / "pyproject.toml").write_text('[tool.graphmend]\nignore = ["GM301"]\n', encoding="utf-8")
        (project / "other.toml").write_text('select = ["GM1"]\n', encoding="utf-8")
        assert found(capsys) == []
        assert found(capsys, "--ignore", "GM1") == [("model.py", 8, "GM301")]
        assert found(capsys, "--isolated") == [("model.py", 8, "GM301")]
        assert found(capsys, "--config", "other.toml") == []

    def test_files_are_excluded(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "gen").mkdir()
        write(project, model=MODEL)
        write(project / "gen", model=MODEL)
        assert [path for path, _, _ in found(capsys)] == ["gen/model.py", "model.py"]
        assert [path for path, _, _ in found(capsys, "--exclude", "gen")] == ["model.py"]
        assert [path for path, _, _ in found(capsys, "--extend-exclude", "gen,model.py")] == []
        assert [path for path, _, _ in found(capsys, "--extend-exclude", "gen", "gen/model.py")] == ["gen/model.py"]
        assert found(capsys, "--extend-exclude", "gen", "--force-exclude", "gen/model.py") == []
        (project / "graphmend.toml").write_text('extend-exclude = ["gen"]\n')
        assert [path for path, _, _ in found(capsys, "--exclude", "other")] == ["model.py"]

    def test_rules_are_ignored_per_file(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "graphmend.toml").write_text('per-file-ignores = { "old_*.py" = ["GM3"] }\n', encoding="utf-8")
        write(project, model=MODEL, old_model=MODEL)
        assert found(capsys) == [("model.py", 8, "GM301")]

    def test_comments_silence(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL.replace("mean())", "mean())  # noqa: GM301"))
        assert main(["lint"]) == 0
        assert "(1 silenced)" in capsys.readouterr().out
        main(["lint", "--output-format", "json"])
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        assert finding["suppressed"] is True
        before = (project / "model.py").read_text()
        assert main(["lint", "--fix"]) == 0
        assert (project / "model.py").read_text() == before


class TestFixing:
    def test_fix_writes_and_a_second_run_is_clean(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--fix"]) == 0
        assert "Fixed 1 finding in 1 file." in capsys.readouterr().out
        assert "graphmend" in (project / "model.py").read_text()
        assert main(["lint"]) == 0
        assert os.listdir(project) == ["model.py"]

    def test_fix_says_where_the_graph_still_breaks(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=PARTLY)
        assert main(["lint", "--fix"]) == 0
        assert "At 1 of them the graph still breaks where a gradient is needed.\n" in capsys.readouterr().out
        write(project, model=PARTLY)
        main(["lint", "--fix", "--output-format", "json"])
        (fixed,) = json.loads(capsys.readouterr().out)["fixed"]
        assert fixed == {"path": "model.py", "count": 1, "limits": ["where a gradient is needed"]}

    def test_fix_can_fail_a_build(self, project: Path) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--fix", "--exit-non-zero-on-fix"]) == 1
        assert main(["lint", "--fix", "--exit-non-zero-on-fix"]) == 0

    def test_what_cannot_be_fixed_is_left_with_its_reason(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, model=UNFIXABLE)
        assert main(["lint", "--fix"]) == 1
        assert "= not fixed: " in capsys.readouterr().out
        assert (project / "model.py").read_text() == UNFIXABLE

    def test_diff_shows_and_writes_nothing(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--diff"]) == 1
        captured = capsys.readouterr()
        assert captured.out.startswith("--- a/model.py\n+++ b/model.py\n")
        assert '-        print("mean", y.mean())\n' in captured.out
        assert (project / "model.py").read_text() == MODEL
        subprocess.run(["git", "init", "-q"], check=True)
        subprocess.run(["git", "apply", "-"], input=captured.out, encoding="utf-8", check=True)
        assert main(["lint"]) == 0
        capsys.readouterr()
        assert main(["lint", "--diff"]) == 0
        assert capsys.readouterr().out == ""

    def test_diff_shows_the_copy_of_the_runtime(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--diff", "--runtime", "vendor=_mend.py"]) == 1
        out = capsys.readouterr().out
        assert "\n+import _mend as graphmend\n" in out
        assert "\n--- /dev/null\n+++ b/_mend.py\n@@ -0,0 +1," in out
        assert not (project / "_mend.py").exists()
        subprocess.run(["git", "init", "-q"], check=True)
        subprocess.run(["git", "apply", "-"], input=out, encoding="utf-8", check=True)
        assert main(["lint", "--diff", "--runtime", "vendor=_mend.py"]) == 0
        assert capsys.readouterr().out == ""


class TestOutput:
    @pytest.mark.parametrize("output_format", ["text", "concise", "json", "sarif", "github"])
    def test_every_format_names_the_finding(
        self, project: Path, capsys: pytest.CaptureFixture[str], output_format: str
    ) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--output-format", output_format]) == 1
        output = capsys.readouterr().out
        assert "GM301" in output
        assert "model.py" in output

    def test_it_goes_to_a_file(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        assert main(["lint", "--output-format", "json", "-o", "out.json"]) == 1
        assert capsys.readouterr().out == ""
        assert json.loads((project / "out.json").read_text())["findings"]
        assert sorted(os.listdir(project)) == ["model.py", "out.json"]

    @pytest.mark.parametrize("name", ["-", "/dev/stdout"])
    def test_it_can_be_sent_to_standard_output_by_name(self, project: Path, name: str) -> None:
        write(project, model=MODEL)
        with (project / "out.txt").open("w") as out:
            command = [sys.executable, "-m", "graphmend", "lint", "--output-format", "concise", "-o", name]
            subprocess.run(command, stdout=out)
        assert (project / "out.txt").read_text().startswith("model.py:8:9: GM301")

    def test_statistics(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL, other=MODEL)
        assert main(["lint", "--statistics"]) == 1
        assert capsys.readouterr().out == "2  GM301  print-in-graph  (2 fixable)\n"

    def test_quiet_and_verbose(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=CLEAN)
        assert main(["lint", "-q"]) == 0
        assert capsys.readouterr() == ("", "")
        assert main(["lint", "-v"]) == 0
        assert "1 file in " in capsys.readouterr().err

    def test_the_proof_is_shown(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(project, model=MODEL)
        main(["lint", "--show-proof"])
        assert "= proof: value-unused" in capsys.readouterr().out

    def test_a_reader_that_goes_away_is_no_error(self, project: Path) -> None:
        write(project, **{f"model{number}": MODEL for number in range(300)})
        command = f"{sys.executable} -m graphmend lint --output-format json; echo code $? >&2"
        result = subprocess.run(["bash", "-c", f"({command}) | head -1"], capture_output=True, encoding="utf-8")
        assert result.stderr == "code 1\n"


class TestStandardInput:
    def lint(self, text: str | bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        data = text.encode() if isinstance(text, str) else text
        command = [sys.executable, "-m", "graphmend", "lint", *arguments]
        return subprocess.run(command, input=data, capture_output=True)

    def test_it_is_linted_under_a_name(self) -> None:
        result = self.lint(MODEL, "--stdin-filename", "pkg/model.py", "--output-format", "concise")
        assert result.returncode == 1
        assert result.stdout.startswith(b"pkg/model.py:8:9: GM301")
        assert self.lint(MODEL, "-").returncode == 1

    def test_fix_prints_the_fixed_text(self) -> None:
        result = self.lint(MODEL, "-", "--fix")
        assert result.returncode == 0
        assert b"graphmend" in result.stdout
        assert b"Fixed 1 finding" in result.stderr
        assert self.lint(result.stdout, "-").returncode == 0

    def test_fix_prints_clean_text_as_it_is(self) -> None:
        text = CLEAN.replace("\n", "\r\n").encode()
        assert self.lint(text, "-", "--fix").stdout == text

    def test_an_excluded_name_is_left_alone(self) -> None:
        arguments = ("--stdin-filename", "build/model.py", "--force-exclude")
        result = self.lint(MODEL, *arguments, "--fix")
        assert (result.returncode, result.stdout.decode()) == (0, MODEL)
        result = self.lint(MODEL, *arguments)
        assert (result.returncode, result.stdout) == (0, b"")

    def test_bad_bytes_are_told(self) -> None:
        result = self.lint(b"x = '\xff'\n", "--stdin-filename", "pkg/model.py")
        assert result.returncode == 2
        assert result.stderr.startswith(b"graphmend: pkg/model.py: cannot decode standard input")


class TestOwnRules:
    PACK = """\
rules:
  - code: ACME1
    name: acme-dump
    summary: "`acme.dump` breaks the graph"
    match:
      pattern: "acme.dump($X)"
      region: anywhere
    fix:
      replace: "acme.keep($X)"
    explanation: Why.
    examples:
      - bad: |
          import acme


          def debug(x):
              acme.dump(x)  # ACME1
        fixed: |
          import acme


          def debug(x):
              acme.keep(x)  # ACME1
      - ok: |
          def debug(x):
              dump(x)
"""

    @pytest.fixture(autouse=True)
    def pack(self, project: Path) -> None:
        (project / "own.yaml").write_text(self.PACK, encoding="utf-8")

    def test_they_are_found_by_qualified_name_and_fixed_as_unsafe(
        self, project: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(project, use="from acme import dump as d\n\ndef f():\n    d(1 + 2)\n")
        arguments = ("--rules", "own.yaml")
        assert found(capsys, *arguments) == [("use.py", 4, "ACME1")]
        main(["lint", *arguments, "--fix"])
        assert "d(1 + 2)" in (project / "use.py").read_text()
        main(["lint", *arguments, "--fix", "--unsafe-fixes"])
        assert "acme.keep(1 + 2)" in (project / "use.py").read_text()

    def test_they_come_from_the_configuration_too(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (project / "graphmend.toml").write_text('rules = ["own.yaml"]\nselect = ["ACME"]\n', encoding="utf-8")
        write(project, use="import acme\n\ndef f():\n    acme.dump(1)\n")
        assert found(capsys) == [("use.py", 4, "ACME1")]
        assert main(["rule", "ACME1"]) == 0
        assert capsys.readouterr().out.startswith("# ACME1: acme-dump\n")
        assert main(["rules", "list"]) == 0
        assert "\nACME1 " in f"\n{capsys.readouterr().out}"
        assert main(["rule", "ACME1", "--isolated"]) == 2

    def test_their_examples_are_run(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rules", "test", "own.yaml"]) == 0
        assert capsys.readouterr().out == "2 examples, 0 failures\n"
        wrong = self.PACK.replace("dump(x)  # ACME1", "dump(x)")
        (project / "own.yaml").write_text(wrong, encoding="utf-8")
        assert main(["rules", "test", "own.yaml"]) == 1
        assert "own.yaml:12: ACME1: line 5 of the example is reported" in capsys.readouterr().out

    def test_they_are_checked(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rules", "check", "own.yaml"]) == 0
        assert capsys.readouterr().out == "1 rule, no mistakes\n"
        (project / "bad.yaml").write_text("rules: []\n", encoding="utf-8")
        (project / "worse.yaml").write_text("rules: [\n", encoding="utf-8")
        capsys.readouterr()
        assert main(["rules", "check", "bad.yaml", "worse.yaml", "own.yaml"]) == 2
        assert capsys.readouterr().err.count("\n") == 2


class TestExplaining:
    @pytest.mark.parametrize("name", ["GM301", "gm301", "print-in-graph"])
    def test_a_rule_is_explained(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        assert main(["rule", name]) == 0
        text = capsys.readouterr().out
        assert text.startswith("# GM301: print-in-graph\n\n`print` breaks the graph.\n")
        assert "## Why is this bad" in text
        assert "- value-unused: nothing uses the value of the call\n" in text
        assert "## Reported\n\n```python\n" in text

    def test_an_unknown_rule_is_told(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rule", "GM31"]) == 2
        assert "unknown rule `GM31` (did you mean `GM3" in capsys.readouterr().err

    def test_rules_are_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rules", "list"]) == 0
        assert "GM301  print-in-graph " in capsys.readouterr().out
        assert main(["rules", "list", "--output-format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["code"] == "GM101"

    def test_the_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            main(["--version"])
        assert caught.value.code == 0
        assert capsys.readouterr().out == f"graphmend {__version__}\n"


@pytest.mark.parametrize("text", ["", CLEAN, MODEL])
def test_linting_loads_nothing_heavy(project: Path, text: str) -> None:
    write(project, model=text)
    heavy = ["libcst", "torch", "sarif_om", "attr", "jsonschema", "hypothesis", "importlib.metadata", "transformers"]
    program = (
        "import sys\nfrom graphmend.cli import main\n"
        f"main(['lint', '--isolated', 'model.py'])\nprint([name for name in {heavy} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert result.stdout.endswith("[]\n")
