"""Eager time after mending against before: pairs of processes that take turns.

What is measured is CPU time of one thread: on a shared machine wall time also counts what other programs do. Three
things remain, and each is met in its own way: caches that other programs fill (of each turn only the fastest call
counts), a machine that gets slower or faster meanwhile (turns are compared with their neighbours, and go before, after,
after, before), and the luck of one process with its memory layout (there are several pairs, and the median counts).
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

CALLS = 5
"""Calls of one turn."""

MOST_PAIRS = 7
"""Pairs of processes that are tried at most, before a ratio above the limit is believed."""


@dataclass(frozen=True)
class Timing:
    """The result for one build.

    Attributes:
        ratio: time after divided by time before: the median of the pairs.
        pairs: the ratio of each pair of processes.
        before: median CPU seconds of one call before.
        after: the same after.
        calls: calls that each side made.
    """

    ratio: float
    pairs: tuple[float, ...]
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


def measure(build: str, store: Path, before: Path, after: Path, *, turns: int, pairs: int) -> Timing:
    """Times a build on two trees. The weights must have been saved before; raises TimingError if a process fails.

    Args:
        build: name of the build.
        store: folder with its weights.
        before: folder of the unmended copy.
        after: folder of the mended one.
        turns: turns of each process.
        pairs: pairs of processes; more are tried while the ratio is above the limit.
    """
    jobs = []
    for side, tree in (("before", before), ("after", after)):
        path = store / f"timing-{side}.json"
        Job(str(tree), build, str(store), side, ()).write(path)
        jobs.append(path)
    ratios: list[float] = []
    fastest: tuple[list[float], list[float]] = ([], [])
    while len(ratios) < pairs or (statistics.median(ratios) > LIMIT and len(ratios) < MOST_PAIRS):
        one, other = _pair(jobs, store, turns)
        ratios.append(statistics.median(late / early for early, late in zip(one, other, strict=True)))
        fastest[0].extend(one)
        fastest[1].extend(other)
    medians = [statistics.median(values) for values in fastest]
    return Timing(statistics.median(ratios), tuple(ratios), medians[0], medians[1], CALLS * len(fastest[0]))


def _pair(jobs: list[Path], store: Path, turns: int) -> tuple[list[float], list[float]]:
    """The fastest call of each turn, before and after."""
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(job, store)) for job in jobs]
        fastest: tuple[list[float], list[float]] = ([], [])
        for turn in range(turns):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                fastest[which].append(min(sides[which].calls(CALLS)))
    return fastest


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
        # What the imports left would cost every collection a fifth of a second; collecting is done between turns.
        gc.collect()
        gc.freeze()
        gc.disable()
        for line in sys.stdin:
            gc.collect()
            times = []
            for _ in range(int(line)):
                start = time.thread_time_ns()
                model(**arguments)
                times.append((time.thread_time_ns() - start) / 1e9)
            print(json.dumps(times), file=answers, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    serve(Job.read(Path(sys.argv[1])))
