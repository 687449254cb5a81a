"""Driving the measured processes and reading what they recorded."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table2.records import RunRecord
from benchmarks.table2.worker import Job

ROOT = Path(__file__).resolve().parents[2]
"""Where `benchmarks` and `graphmend` are imported from."""


def environment() -> dict[str, str]:
    """The environment of every measured process: one thread, no network, none of the caller's torch settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


@dataclass(frozen=True)
class Bench:
    """Where one build is measured: the folder for its weights, records and caches."""

    build: str
    store: Path

    def perform(self, side: str, tree: Path, runs: list[str], *, prepare: bool = False) -> dict[str, RunRecord]:
        """Makes the runs in one worker and returns their records by name.

        Args:
            side: what the records are filed under.
            tree: folder that holds the `transformers` package to measure.
            runs: names of runs.
            prepare: build the model and save its weights first.
        """
        self.store.mkdir(parents=True, exist_ok=True)
        job = Job(str(tree), self.build, str(self.store), side, tuple(runs), prepare)
        path = self.store / f"{side}.json"
        job.write(path)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.table2.worker", str(path)],
            cwd=self.store,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        records = {}
        for run in runs:
            try:
                with job.record(run).open("rb") as file:
                    records[run] = pickle.load(file)
            except FileNotFoundError:
                records[run] = RunRecord(run, error=f"the worker left no record\n{done.stdout}{done.stderr}")
        return records
