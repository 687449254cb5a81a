"""The runs a build is measured with: how the model is entered, and what is asked of it.

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
        cache: name of the Inductor cache folder; runs that share a name share the folder.
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


def _runs(*runs: Run) -> dict[str, Run]:
    return {run.name: run for run in runs}


RUNS = _runs(
    Run("eager"),
    Run("eager, every warning", always=True),
    Run("eager, gradients", gradients=True),
    Run("eager, float64", double=True),
    Run("eager, failing", failing=True),
    Run("count", entry="torch"),
    Run("count, every warning", entry="torch", always=True),
    Run("count, fullgraph", entry="torch", fullgraph=True),
    Run("count, gradients", entry="torch", gradients=True),
    Run("count, failing", entry="torch", failing=True),
    Run("count, boundary", entry="graphmend"),
    Run("count, boundary, failing", entry="graphmend", failing=True),
    Run("aot_eager", entry="torch", backend="aot_eager"),
    Run("aot_eager, gradients", entry="torch", backend="aot_eager", gradients=True),
    Run("aot_eager, boundary", entry="graphmend", backend="aot_eager"),
    Run("inductor", entry="torch", backend="inductor", cache="plain"),
    Run("inductor, boundary", entry="graphmend", backend="inductor", cache="boundary"),
    Run("inductor, again", entry="torch", backend="inductor", cache="plain"),
    Run("inductor, boundary, again", entry="graphmend", backend="inductor", cache="boundary"),
)
