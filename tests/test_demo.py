"""The demonstration shows what the README says it shows."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend.cli import main

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "fixtures" / "demo"
README = (ROOT / "README.md").read_text("utf-8")


def test_the_finding_in_the_readme_is_a_real_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(DEMO / "model.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["lint", "model.py", "--select", "GM201", "-q"]) == 1
    assert f"$ graphmend lint model.py\n{capsys.readouterr().out}" in README


@pytest.mark.slow
def test_the_demonstration_ends_with_one_graph_and_the_same_results() -> None:
    before = (DEMO / "model.py").read_bytes()
    result = subprocess.run([sys.executable, str(DEMO / "demo.py")], capture_output=True, encoding="utf-8")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "--- a/model.py\n+++ b/model.py\n" in result.stdout
    assert (DEMO / "model.py").read_bytes() == before
    if importlib.util.find_spec("torch") is None:
        assert "torch is not installed" in result.stdout
        return
    shown = re.search(r"<!-- demo result -->\n(.*?)\n\n", README, re.DOTALL)
    assert shown
    assert shown[1] in result.stdout
    assert "bit for bit, eager and compiled: yes" in result.stdout
    assert "in the same order: yes" in result.stdout
