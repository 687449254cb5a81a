"""The table, the details under it, and the README around both."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import asdict
from typing import Any

from benchmarks.table2.builds import BUILDS
from benchmarks.table2.judge import Result
from benchmarks.table2.mend import Mending

HEADER = ("row", "breaks before", "after", "the paper", "equal", "eager time ratio", "cache hit")


def _row(result: Result) -> tuple[str, ...]:
    build = BUILDS[result.build]
    name = ", ".join(build.rows) + (f" ({build.note})" if build.note else "")
    after = "?" if result.after is None else f"{result.after}{' (whole)' if result.whole else ''}"
    cache = {None: "not measured", True: "yes", False: "**no**"}[result.cache]
    return (
        name,
        "?" if result.before is None else str(result.before),
        after if not result.misses else f"{after} !",
        str(build.paper),
        "yes" if result.equal else "**no**",
        f"{result.timing.ratio:.3f}" if result.timing else "not measured",
        cache,
    )


def markdown(results: list[Result]) -> str:
    """The table, one line a build."""
    lines = [HEADER, tuple("---" for _ in HEADER), *(_row(result) for result in results)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def details(results: list[Result], *, limit: int = 12) -> str:
    """What keeps rows from passing, and what was not counted, in words."""
    lines = []
    for result in results:
        lines.extend(f"{result.build}: {miss}" for miss in result.misses)
        for comparison in result.comparisons:
            shown = comparison.differences[:limit]
            lines.extend(f"{result.build}, {comparison.run}: {difference}" for difference in shown)
            if len(comparison.differences) > limit:
                lines.append(f"{result.build}, {comparison.run}: {len(comparison.differences) - limit} more")
    return "".join(f"- {line}\n" for line in lines)


def remaining(results: list[Result]) -> str:
    """Break statements that are left in the first call, and frames that Dynamo gave up on, before and after."""
    lines = []
    for result in results:
        sites = ", ".join(f"`{site.file}:{site.line}` ({site.gb})" for site in result.sites_after)
        skipped = (len(result.skipped_before), len(result.skipped_after))
        frames = f"frames skipped: {skipped[0]} before, {skipped[1]} after" if any(skipped) else ""
        if sites or frames:
            lines.append(f"- {result.build}: {'; '.join(text for text in (sites, frames) if text)}\n")
    return "".join(lines) or "None.\n"


def granted(results: list[Result]) -> str:
    """Differences that were seen and not counted, with how often."""
    kinds: dict[str, set[str]] = {}
    for result in results:
        for comparison in result.comparisons:
            for note in comparison.notes:
                what = "a lazy cache is created one call earlier" if note.startswith("lazy cache: ") else "as in stock"
                kinds.setdefault(f"{result.build}, {comparison.run}: {what}", set()).add(note)
    return "".join(f"- {kind} ({len(notes)})\n" for kind, notes in sorted(kinds.items())) or "None.\n"


def as_json(results: list[Result], mending: Mending | None) -> dict[str, Any]:
    """Everything that was measured, for programs."""
    return {
        "versions": versions(),
        "mending": {**asdict(mending), "log": None} if mending else None,
        "results": [{**asdict(result), "equal": result.equal, "passed": result.passed} for result in results],
    }


def versions() -> dict[str, str]:
    """What the numbers were measured with."""
    return {
        "python": platform.python_version(),
        "torch": importlib.metadata.version("torch"),
        "transformers": importlib.metadata.version("transformers"),
    }


_README = """\
# The paper's models, before and after

Table 2 of *GraphMend: Code Transformations for Fixing Graph Breaks in PyTorch 2* (arXiv 2509.16248) lists 27 models
whose graphs break. 21 of them can be built without a network, from {builds} classes of transformers. This program
builds them small, with random weights, mends a copy of the installed package with `graphmend lint --fix`, and
measures both copies. No edit is made by hand; only fixes that the tool calls safe are applied.

{table}
*Breaks* are `graphs - 1` in the first call, as the paper counts. *Whole* is stricter: in every call exactly one
graph, nothing in the graph-break log, no frame skipped, and `fullgraph=True` works. A line stands for all checkpoints
of its class: they differ in size only, and share one small build. Measured with Python {python}, torch {torch},
transformers {transformers}, on CPU.

Mending: {mending}.

Break statements that are left, as lines of the mended files, and frames that Dynamo gave up on:

{remaining}
## What *equal* means

The unmended model in eager is the reference. Every run below makes the same three calls with different inputs (other
lengths, other values; Phi goes short, long, short; in half precision the second call overflows), in a process of its
own, with the same weights:

- mended, in eager;
- mended, under `torch.compile` and under `graphmend.compile`, each with a backend that runs the graphs as they are,
  with aot_eager and with inductor; and once more from a filled Inductor cache, in a second process;
- mended, with gradients and a backward pass, in eager and compiled;
- a call that raises; and calls with every warning shown instead of only the first.

Compared are all tensors of the returned object with its caches (bits, dtype, shape, stride), parameters, buffers and
plain attributes of all modules, the arguments afterwards, gradients, shared storage (in eager), the random streams,
log records (logger, level, message, arguments, file), warnings, printed text, and exceptions (type, arguments, text).
With inductor, floating outputs are compared with a float64 run instead: the error may be at most {slack} times
that of stock compiled code. So are gradients with aot_eager, where stock compiled
code rounds them differently than eager too: it adds up their parts in another order. There the error may be {slack}
times that of stock or of eager, or as large as the rounding of the largest gradient.

Not counted, because stock `torch.compile` of the unmended model shows the very same difference, or because a lazy
cache was filled one call earlier under compile:

{granted}
*Eager time ratio* is the CPU time of a call after mending divided by that before: two processes take turns, the fastest
calls of neighbouring turns are compared, and the median counts, of turns and of five pairs of processes. Two copies of
the same code differ by a few percent this way.
*Cache hit*: in a second process everything that was compiled came out of Inductor's cache.

## How to run it

    pip install -e '.[bench]'
    python -m benchmarks.table2                  # everything; about an hour on one core
    python -m benchmarks.table2 --quick          # four builds, without inductor and gradients
    python -m benchmarks.table2 --renamed        # on a copy with other names and another layout
    python -m benchmarks.table2 --rows t5 phi --json result.json

The exit status is 1 when a row misses its target or a difference counts. `--mender CMD` runs another command on the
copy, for instance `--mender true`, which compares the unmended model with itself: the noise of everything above.

`--renamed` first rewrites the modeling files that these rows run through: other names for local variables, loggers,
imports and private helpers, and another layout of the statements. Nothing may hang on a name; the renamed copy is
checked against the installed one.

## What was not measured

- Nothing was measured on a GPU: no CUDA graphs, no speed-ups. The paper's latency columns have no counterpart here.
- Real sizes and trained weights. The paper's counts are reached with small builds, except clap (2 here, 4 there) and
  grounding-dino (16 here, 17 there).
- The six rows whose code comes from the Hub: chronos-bolt, Florence-2, Qwen-Audio, MoLFormer, stella, moe-minicpm.
- Training mode: layer drop and dropout draw random numbers. Gradients are compared in evaluation mode.
"""


def readme(results: list[Result], mending: Mending | None, slack: float) -> str:
    """The text of the README."""
    cost = "not run"
    if mending:
        cost = (
            f"{mending.cpu:.0f} s of CPU time and {mending.peak / 1e9:.2f} GB at most; {len(mending.changed)} files "
            "changed"
        )
    problems = details(results)
    return _README.format(
        builds=len({build.modeling for build in BUILDS.values()}),
        table=markdown(results) + (f"\nRows marked `!` or **no** miss something:\n\n{problems}" if problems else ""),
        mending=cost,
        remaining=remaining(results),
        granted=granted(results),
        slack=slack,
        **versions(),
    )
