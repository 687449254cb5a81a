"""What surrounds the code says the truth: README, metadata, hooks, import contracts."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphmend.cli import main
from graphmend.version import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGE = ROOT / "graphmend"


def block(name: str) -> str:
    """Returns the code block that follows a comment in the README."""
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


class TestReadme:
    def test_the_table_of_rules_is_made_from_the_packs(self, capsys: pytest.CaptureFixture[str]) -> None:
        main(["rules", "list", "--output-format", "markdown"])
        rules = (ROOT / "docs" / "rules.md").read_text("utf-8")
        assert f"<!-- rules -->\n{capsys.readouterr().out}<!-- end of rules -->" in rules

    @pytest.mark.parametrize("name", ["demo command", "test command"])
    def test_commands_are_one_line_and_pin_torch(self, name: str) -> None:
        command = block(name).strip()
        assert "\n" not in command
        assert " torch==2.13.0 " in command

    def test_files_it_links_to_exist(self) -> None:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
            assert (ROOT / target).exists(), target

    def test_the_workflow_uploads_what_the_command_writes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = yaml.safe_load(block("workflow"))["jobs"]["lint"]
        assert job["permissions"]["security-events"] == "write"
        (command,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("graphmend ")]
        (upload,) = [step for step in job["steps"] if "upload-sarif" in step.get("uses", "")]
        monkeypatch.chdir(tmp_path)
        (tmp_path / "model.py").write_text((ROOT / "fixtures" / "demo" / "model.py").read_text("utf-8"), "utf-8")
        assert main(command.split()[1:]) == 0
        assert (tmp_path / upload["with"]["sarif_file"]).exists()

    def test_the_configuration_it_shows_is_valid(self, tmp_path: Path) -> None:
        from graphmend.configfile import load_config

        text = next(part for part in re.findall(r"```toml\n(.*?)```", README, re.DOTALL))
        path = tmp_path / "pyproject.toml"
        path.write_text(text, encoding="utf-8")
        assert load_config(path).select == ("GM", "ACME")

    def test_the_rule_it_shows_is_valid_and_works(self, tmp_path: Path) -> None:
        text = next(part for part in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "ACME" in part)
        path = tmp_path / "own.yaml"
        path.write_text(text, encoding="utf-8")
        assert main(["rules", "check", str(path)]) == 0
        assert main(["rules", "test", str(path)]) == 0


class TestMetadata:
    def test_run_time_dependencies_are_few(self) -> None:
        names = {re.split(r"[<>=; ]", line)[0] for line in PROJECT["project"]["dependencies"]}
        assert names == {"libcst", "pyyaml", "sarif-om", "tomli"}

    def test_the_version_has_one_place(self) -> None:
        assert PROJECT["tool"]["hatch"]["version"]["path"] == "graphmend/version.py"
        result = subprocess.run([sys.executable, "-m", "graphmend", "--version"], capture_output=True, encoding="utf-8")
        assert result.stdout == f"graphmend {__version__}\n"

    def test_the_hooks_lint_what_they_are_given(self) -> None:
        hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
        assert set(hooks) == {"graphmend", "graphmend-fix"}
        for hook in hooks.values():
            assert hook["require_serial"] is True
            assert hook["language"] == "python"
            assert "--force-exclude" in hook["entry"]
            assert hook["args"] == hook["additional_dependencies"] == []


class TestImports:
    def contracts(self) -> list[dict[str, Any]]:
        contracts: list[dict[str, Any]] = PROJECT["tool"]["importlinter"]["contracts"]
        return contracts

    def test_every_part_of_the_linter_is_kept_from_the_runtime(self) -> None:
        parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        linter = parts - {"__init__", "runtime", "vendor", "verify", "version"}
        assert {f"graphmend.{part}" for part in linter} == set(self.contracts()[1]["source_modules"])

    def test_the_runtime_imports_torch_and_the_standard_library_only(self) -> None:
        allowed = sys.stdlib_module_names | {"torch"}
        for path in (PACKAGE / "runtime").glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                for name in names:
                    assert name.split(".")[0] in allowed or name.startswith("graphmend.runtime"), (path, name)

    def test_the_watched_process_is_a_program_that_nothing_imports(self) -> None:
        observer = PACKAGE / "trace" / "observe.py"
        for path in PACKAGE.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                assert not any(name.startswith("graphmend.trace.observe") for name in names), path
                if path == observer:
                    allowed = sys.stdlib_module_names | {"torch", "__future__"}
                    assert {name.split(".")[0] for name in names} <= allowed


def test_transforms_are_the_same_everywhere() -> None:
    from graphmend.fixes import TRANSFORMS
    from graphmend.rules.loader import load_rules
    from graphmend.rules.schema import TRANSFORMS as NAMES

    assert set(NAMES) == set(TRANSFORMS)
    for rule in load_rules():
        if rule.fix and rule.fix.transform:
            assert set(rule.fix.requires) <= TRANSFORMS[rule.fix.transform].obligations, rule.code
