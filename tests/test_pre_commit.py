"""The hooks, run by pre-commit itself on a scratch repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PARTS = ("graphmend", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
HELPER = """\
import torch


def report(x):
    print("mean", x.mean())
"""
MODEL = """\
import torch
from torch import nn

from helper import report


class Layer(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        print("max", y.max())
        report(y)
        return y
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout


def commit_all(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A", "--force")
    git(folder, "commit", "-q", "-m", "all")


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that holds the hooks as they are in the working tree."""
    pytest.importorskip("pre_commit")
    folder = tmp_path_factory.mktemp("hooks")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder)
    commit_all(folder)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it installs, shared by the tests of this module."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("print()\n", encoding="utf-8")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "graphmend.toml").write_text('extend-exclude = ["old"]\n', encoding="utf-8")
    commit_all(tmp_path)
    return tmp_path


def run_hook(name: str, hooks: Path, home: Path, scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    revision = git(hooks, "rev-parse", "HEAD").strip()
    (scratch / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: {name}\n", encoding="utf-8"
    )
    git(scratch, "add", ".pre-commit-config.yaml")
    command = [sys.executable, "-m", "pre_commit", "run", "--color", "never", *arguments]
    environment = {**os.environ, "PRE_COMMIT_HOME": str(home)}
    return subprocess.run(command, cwd=scratch, env=environment, capture_output=True, encoding="utf-8")


def test_the_lint_hook_fails_on_findings_and_changes_nothing(hooks: Path, home: Path, scratch: Path) -> None:
    result = run_hook("graphmend", hooks, home, scratch, "--all-files")
    assert result.returncode == 1
    assert "model.py:10:9: " in result.stdout
    assert "helper.py:5:5: " in result.stdout
    assert "old/model.py" not in result.stdout
    assert git(scratch, "diff", "--name-only") == ""


def test_the_fix_hook_mends_and_then_passes(hooks: Path, home: Path, scratch: Path) -> None:
    result = run_hook("graphmend-fix", hooks, home, scratch, "--all-files")
    assert result.returncode == 1
    assert sorted(git(scratch, "diff", "--name-only").split()) == ["helper.py", "model.py"]
    git(scratch, "add", "-u")
    assert run_hook("graphmend-fix", hooks, home, scratch, "--all-files").returncode == 0
    assert run_hook("graphmend", hooks, home, scratch, "--all-files").returncode == 0


def test_a_part_of_the_files_is_enough_and_only_that_is_written(hooks: Path, home: Path, scratch: Path) -> None:
    run_hook("graphmend-fix", hooks, home, scratch, "--files", "model.py")
    assert git(scratch, "diff", "--name-only").split() == ["model.py"]
