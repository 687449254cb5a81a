"""The runs that a build is measured with: how the model is entered, and what is asked of it.

Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """One process: the same calls, entered in one way.

    Attributes:
        name: what the records call it.
        entry: `eager`, `torch` for `torch.compile`, `graphmend` for `graphmend.compile`.
        backend: `count` runs captured graphs as they are; `aot_eager` and `inductor` are torch's.
        fullgraph: compile with `fullgraph=True`.
        always: show every warning, not only the first from each place.
        gradients: with gradients on, and a backward pass after each call.
        double: in float64, as the reference for accuracy.
        failing: the build's call that raises, instead of its calls.
        cache: name of the Inductor cache folder. The runs of one side share it: compiling is most of the time spent,
            and with the boundary the graphs are the same.
        quick: whether the quick selection has it too.
    """

    name: str
    entry: str = "eager"
    backend: str = "count"
    fullgraph: bool = False
    always: bool = False
    gradients: bool = False
    double: bool = False
    failing: bool = False
    cache: str = ""
    quick: bool = False

    @property
    def kind(self) -> str:
        """What is asked of the model, whatever way it is entered: runs are compared with runs of their own kind."""
        if self.gradients:
            return ", gradients"
        if self.failing:
            return ", failing"
        return ", every warning" if self.always else ""

    @property
    def reference(self) -> str:
        """The eager run of the unmended model that this run is compared with."""
        return f"eager{self.kind}"

    @property
    def stock(self) -> str:
        """The stock compiled run of the unmended model with the same backend; empty in eager."""
        return "" if self.entry == "eager" else f"{self.backend}{self.kind}"


def _runs(*runs: Run) -> dict[str, Run]:
    return {run.name: run for run in runs}


RUNS = _runs(
    Run("eager", quick=True),
    Run("eager, every warning", always=True),
    Run("eager, gradients", gradients=True),
    Run("eager, float64", double=True),
    Run("eager, float64, gradients", double=True, gradients=True),
    Run("eager, failing", failing=True, quick=True),
    Run("count", entry="torch", quick=True),
    Run("count, every warning", entry="torch", always=True),
    Run("count, fullgraph", entry="torch", fullgraph=True, quick=True),
    Run("count, gradients", entry="torch", gradients=True),
    Run("count, failing", entry="torch", failing=True, quick=True),
    Run("count, boundary", entry="graphmend", quick=True),
    Run("count, boundary, failing", entry="graphmend", failing=True),
    Run("aot_eager", entry="torch", backend="aot_eager", quick=True),
    Run("aot_eager, gradients", entry="torch", backend="aot_eager", gradients=True),
    Run("aot_eager, boundary", entry="graphmend", backend="aot_eager"),
    Run("inductor", entry="torch", backend="inductor", cache="graphs"),
    Run("inductor, boundary", entry="graphmend", backend="inductor", cache="graphs"),
    Run("inductor, again", entry="torch", backend="inductor", cache="graphs"),
    Run("inductor, boundary, again", entry="graphmend", backend="inductor", cache="graphs"),
)

CACHED = ("inductor, again", "inductor, boundary, again")
"""Runs that a second worker makes, to find the first one's Inductor cache."""

RENAMED_RUNS = ("eager", "eager, every warning", "eager, failing", "count")
"""Runs that show whether a renamed copy still is the installed package."""


def after_runs(*, quick: bool) -> list[str]:
    """What is run on the mended model; the quick selection leaves out Inductor and gradients, among others."""
    chosen = [run for run in RUNS.values() if not run.double and run.name not in CACHED]
    return [run.name for run in chosen if run.quick or not quick]


def before_runs(*, quick: bool) -> list[str]:
    """What is run on the unmended model: everything that mended runs are compared with.

    The quick selection leaves out stock aot_eager: without it mended aot_eager has to equal eager in everything.
    """
    mended = [RUNS[name] for name in after_runs(quick=quick)]
    wanted = {run.reference for run in mended}
    wanted.update(run.stock for run in mended if run.backend == "count" or not quick)
    return [name for name, run in RUNS.items() if name in wanted or (run.double and not quick)]
