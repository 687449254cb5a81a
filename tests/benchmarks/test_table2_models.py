"""A small part of the benchmark, run as a user runs it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.table2.mend import VERSION

ROOT = Path(__file__).parents[2]


def missing() -> str:
    """Why the models cannot be built here; empty when they can."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed (pip install 'graphmend[bench]')"
    try:
        found = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        return f"transformers {VERSION} is not installed (pip install 'graphmend[bench]')"
    return "" if found == VERSION else f"transformers {VERSION} is needed, {found} is installed"


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]


def benchmark(*arguments: str) -> subprocess.CompletedProcess[str]:
    jobs = str(min(2, os.cpu_count() or 1))
    command = [sys.executable, "-m", "benchmarks.table2", "--jobs", jobs, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_quick_models_reach_their_targets() -> None:
    done = benchmark("--quick")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_hangs_on_a_name() -> None:
    done = benchmark("--quick", "--renamed", "--rows", "t5", "phi", "--turns", "0")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_comparison_notices_nothing_where_nothing_changed() -> None:
    # A mender that does nothing: graphs miss their target, and every comparison must be empty.
    done = benchmark("--quick", "--rows", "phi", "--turns", "0", "--mender", f"{sys.executable} -c pass")
    assert done.returncode == 1, done.stdout + done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| Phi"))
    assert row.split(" | ")[1:5] == ["5", "5 !", "0", "yes"], done.stdout
