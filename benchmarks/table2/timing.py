"""Eager time after mending against before: two processes that take turns.

Both are measured in CPU time of one thread. On a shared machine wall time also counts what other programs do, which is
many times the effect looked for.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from benchmarks.table2.builds import BUILDS
from benchmarks.table2.measure import ROOT, environment
from benchmarks.table2.worker import Job, make_model, use_tree

if TYPE_CHECKING:
    from typing_extensions import Self

LIMIT = 1.05
"""Most that eager time may grow by."""

BLOCK_SECONDS = 0.15
"""How long one turn lasts."""


@dataclass(frozen=True)
class Timing:
    """The result for one build.

    Attributes:
        ratio: median after divided by median before.
        before: median seconds of one call before.
        after: the same after.
        calls: calls that each side made.
    """

    ratio: float
    before: float
    after: float
    calls: int


class TimingError(RuntimeError):
    """A timed process ended before its time."""


class Side:
    """One of the two processes: loads the model, then makes calls when told to."""

    def __init__(self, job: Path, store: Path) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.table2.timing", str(job)],
            cwd=store,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=60)

    def calls(self, count: int) -> list[float]:
        """Makes so many calls, and returns the CPU seconds of each."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{count}\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            self._child.wait()
            self._log.seek(0)
            raise TimingError(f"the timed process failed: {self._log.read().strip().splitlines()[-1]}")
        return [float(value) for value in json.loads(answer)]


def measure(build: str, store: Path, before: Path, after: Path, rounds: int) -> Timing:
    """Times a build on two trees. The weights must have been saved before; raises TimingError if a process fails.

    Turns go before, after, after, before: a machine that gets slower or faster meanwhile favours neither. When the
    ratio is above the limit, another pair of processes is measured and everything counts: one disturbed stretch, or
    one unlucky layout of memory, decides nothing.
    """
    jobs = []
    for side, tree in (("before", before), ("after", after)):
        path = store / f"timing-{side}.json"
        Job(str(tree), build, str(store), side, ()).write(path)
        jobs.append(path)
    samples: tuple[list[float], list[float]] = ([], [])
    for _attempt in range(3):
        with ExitStack() as stack:
            sides = [stack.enter_context(Side(job, store)) for job in jobs]
            once = statistics.median([*sides[0].calls(5), *sides[1].calls(5)])
            count = max(1, min(200, round(BLOCK_SECONDS / once)))
            for index in range(rounds):
                for which in (0, 1) if index % 2 == 0 else (1, 0):
                    samples[which].extend(sides[which].calls(count))
        medians = [statistics.median(values) for values in samples]
        if medians[1] <= LIMIT * medians[0]:
            break
    return Timing(medians[1] / medians[0], medians[0], medians[1], len(samples[0]))


def serve(job: Job) -> None:
    """The timed process: answers each number on its input with the times of as many calls."""
    import torch

    answers = sys.stdout
    sys.stdout = sys.stderr
    use_tree(job.tree)
    model = make_model(BUILDS[job.build], job.weights)
    arguments = torch.load(job.weights)["calls"][0]
    with torch.no_grad():
        for _ in range(5):
            model(**arguments)
        for line in sys.stdin:
            gc.collect()
            gc.disable()
            times = []
            for _ in range(int(line)):
                start = time.thread_time_ns()
                model(**arguments)
                times.append((time.thread_time_ns() - start) / 1e9)
            gc.enable()
            print(json.dumps(times), file=answers, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    serve(Job.read(Path(sys.argv[1])))
