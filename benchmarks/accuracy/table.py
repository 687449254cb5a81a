"""What was found, line by line; the figures; and the README around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.accuracy.alone import AloneResult
from benchmarks.accuracy.interval import Share
from benchmarks.accuracy.packages import PRECISION, RECALL, PackageResult
from benchmarks.accuracy.programs import LEFT, CaseResult, VariantResult

HEADER = ("what", "measured", "share", "95 % interval", "target")


@dataclass
class Results:
    """Everything that one run of the program measured; what it was not asked for is empty."""

    cases: CaseResult | None = None
    variants: VariantResult | None = None
    packages: list[PackageResult] = field(default_factory=list)
    alone: list[AloneResult] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[CaseResult | VariantResult | PackageResult | AloneResult]:
        """All parts that were measured."""
        single = [part for part in (self.cases, self.variants) if part is not None]
        return [*single, *self.packages, *self.alone]

    @property
    def failures(self) -> list[str]:
        """The targets that are missed, in words."""
        return [failure for part in self.parts for failure in part.failures]


def _row(what: str, share: Share, target: float | None) -> tuple[str, ...]:
    low, high = share.interval
    aim = "" if target is None else "all" if target == 1 else f"{target:.0%}"
    failed = target is not None and share.value < target
    return (
        what,
        f"{share.hits} of {share.total}",
        f"{share.value:.1%}{' !' if failed else ''}",
        f"{low:.1%} to {high:.1%}",
        aim,
    )


def rows(results: Results) -> list[tuple[str, ...]]:
    """The figures, one line each."""
    found = []
    if cases := results.cases:
        found.append(_row("cases with a break: found on the right line", cases.detected, 1))
        found.append(_row("cases without one: nothing found", cases.quiet, 1))
    if variants := results.variants:
        found.append(_row("variants that break: found", variants.flagged, 1 - LEFT))
        found.append(_row("variants that do not: nothing found", variants.quiet, 1 - LEFT))
    for package in results.packages:
        found.append(_row(f"{package.name}: recall", package.recall, RECALL))
        found.append(_row(f"{package.name}: precision", package.precision, PRECISION))
        found.append(_row(f"{package.name}: precision, with nothing set apart", package.raw, None))
    for alone in results.alone:
        one = f"{alone.name}, one file at a time: "
        found.append(_row(f"{one}recall", alone.total, None))
        found.append(_row(f"{one}recall where the file shows that it is traced", alone.shown, None))
        found.append(_row(f"{one}the same, of what is found in the package", alone.kept, 1))
    return found


def markdown(results: Results) -> str:
    """The figures as a Markdown table."""
    return as_table(rows(results))


def as_table(figures: Iterable[tuple[str, ...]]) -> str:
    """Some lines of figures as a Markdown table."""
    lines = [HEADER, tuple("---" for _ in HEADER), *figures]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _section(title: str, lines: Iterable[object]) -> str:
    lines = list(lines)
    return f"{title}: {len(lines)}\n" + "".join(f"  {line}\n" for line in lines)


def details(results: Results) -> str:
    """Misses, false alarms, what was set apart and what was not measured, line by line."""
    texts = []
    if cases := results.cases:
        texts.append(_section("cases that are not as expected", cases.wrong))
        texts.append(_section("findings on other statements of cases with a break", cases.elsewhere))
    if variants := results.variants:
        texts.append(_section("variants that break, without a finding", explained(variants, variants.missed)))
        texts.append(_section("variants that do not break, with a finding", explained(variants, variants.false)))
        texts.append(_section("variants that break, with a finding on another statement", variants.elsewhere))
        texts.append(_section("variants whose leftovers and reasons differ", variants.surprises))
        raising = (f"{name}: {'flagged' if shown else 'not flagged'}" for name, shown in variants.apart)
        texts.append(_section("variants that raise in eager, too, not counted", raising))
        texts.append(f"measurements under other configurations of Dynamo, not counted: {variants.configured}\n")
    for package in results.packages:
        texts.append(f"{package.name}: {package.findings} findings in the whole package\n")
        texts.append(f"{package.name}: recall {package.recall}\n")
        texts.append(f"{package.name}: recall without what is listed behind another finding {package.open}\n")
        texts.append(f"{package.name}: precision {package.precision}\n")
        texts.append(f"{package.name}: precision with nothing set apart {package.raw}\n")
        texts.append(f"{package.name}: precision, also with confirmed findings set apart, {package.strict}\n")
        texts.append(_section(f"{package.name}: misses", package.misses))
        texts.append(_section(f"{package.name}: false alarms", package.alarms))
        texts.append(_section(f"{package.name}: set apart", package.apart))
    for alone in results.alone:
        texts.append(_section(f"{alone.name}, one file at a time: found in the package only", alone.misses))
    texts.extend(f"{name}: not measured; give its folder with --{name}\n" for name in results.unmeasured)
    texts.append(_section("missed targets", results.failures))
    return "\n".join(texts)


def explained(variants: VariantResult, names: Iterable[str]) -> list[str]:
    """Variants that are left, with the reasons why they may be."""
    return [f"{name}: {variants.reasons.get(name, 'no reason is given')}" for name in names]


def as_json(results: Results) -> dict[str, Any]:
    """Everything, for programs."""
    return {**asdict(results), "failures": results.failures}


_README = """\
# Recall and precision

How much of what breaks the graph `graphmend lint` finds, and how much of what it prints is true: counted on code where
Dynamo (torch 2.13.0, Python 3.11, CPU) was seen to break, and seen not to. All figures are of what is printed by
default, without findings of low confidence.

{table}
A figure with `!` misses its target.
{missed}
## What was measured

- **Cases**: 54 small programs re-created from public reports of graph breaks, 13 of which have none. A case with a
  break must have a finding on a statement that breaks, one without may have none at all.
- **Variants**: {variants} small programs, one for each measured way to write something, in Dynamo's default
  configuration ({configured} measurements of the same programs under other configurations are not counted). One
  *breaks* if it gives no graph or several, leaves an entry in the log of breaks, or fails with `fullgraph=True`; one
  that raises in eager, too, is set apart ({raising}). At most 5 % of either kind may be left, each with a reason in
  `data/leftovers.json`; the program fails if that table is not exact.
- **Packages**: small random models of transformers 4.52.4 and 5.24.0, run under Dynamo in evaluation and training mode
  and in half precision. *Recall* is the share of the statements at which Dynamo broke the graph that have a finding.
  *Precision* is the share of the findings on statements which the same runs executed that Dynamo confirms.
- **One file at a time**: the same break statements, where only the file that contains them is linted. A file shows by
  itself that a function is traced if the function is the `forward` of a class, or compiled, or called by such a
  function through calls written in that file, judged by names alone.

Everything is matched by statement: a finding and a break belong together if they lie on the same statement, or on the
header of the same compound statement.

Set apart from precision are findings under a condition that is static in part, by its form (a comparison with `is`,
metadata such as `x.dtype`, attributes of `self` and of a configuration, `isinstance`, plain parameters), if no run
executed its body, as nothing is known of it. Such a condition is

- an `and` with a static part: `if x.dtype == torch.float16 and torch.isinf(x).any():` cannot break in single precision;
- the same written as two: an `if` that holds nothing but another `if`, as in `if self.training:` around
  `if not torch.isfinite(x).all():`;
- the static test of a conditional expression, for a finding in its first operand, if that stands on lines of its own:
  `lengths.tolist()` above `if lengths is not None`, where every run had None.

Confirmed findings are never set apart; the program also prints the precision where they are, and it prints the
precision with nothing set apart.

A finding that is listed behind another one, which makes Dynamo give up on the frame, counts as found, and never as a
false alarm: it says that Dynamo does not get there. The program also prints the recall without these.

The interval is Wilson's: what the share may be for other statements of the same kind.
{left}
## How to run it

    python -m benchmarks.accuracy                     # everything; transformers is the installed one
    python -m benchmarks.accuracy cases variants      # without packages: seconds
    python -m benchmarks.accuracy packages --alone \\
        --transformers-4.52.4 FOLDER --transformers-5.24.0 FOLDER --json result.json

`FOLDER` is the folder of the package, as in `site-packages/transformers`; nothing of it is imported. The program
prints every miss, every false alarm and everything set apart, line by line. The exit status is 1 when a target is
missed, and 2 when a folder does not hold the version that it is given for, or there is no package at all; a version
without a folder is left out, and said so. `--write-readme` writes this page.

`python -m benchmarks.accuracy.extract` makes the variants out of the program that measured them all; it runs each under
Dynamo, so it needs torch.

## What was not measured

- Nothing was measured on a GPU, or with other versions of torch.
- Real sizes and trained weights: a branch that only a trained model takes was not executed, so nothing is known of it.
- Packages other than transformers.
"""


def _missed(results: Results) -> str:
    lines = "".join(f"- {failure}\n" for failure in results.failures)
    return f"\nMissed targets:\n\n{lines}" if lines else ""


def _left(variants: VariantResult) -> str:
    kinds = (("breaks, and is not found", variants.missed), ("does not break, and is flagged", variants.false))
    lines = [
        f"- `{name}` {kind}: {variants.reasons[name]}\n"
        for kind, names in kinds
        for name in names
        if name in variants.reasons
    ]
    return f"\n## Variants that are left\n\n{''.join(lines)}" if lines else ""


def readme(results: Results) -> str:
    """The text of the README.

    Raises:
        ValueError: cases, variants, or a package was not measured.
    """
    variants = results.variants
    if results.cases is None or variants is None or not results.packages or results.unmeasured or not results.alone:
        raise ValueError("the README needs all parts, all packages, and --alone")
    return _README.format(
        table=markdown(results),
        missed=_missed(results),
        variants=variants.flagged.total + variants.quiet.total + len(variants.apart),
        configured=variants.configured,
        raising=len(variants.apart),
        left=_left(variants),
    )


def into_front_page(page: str, results: Results) -> str:
    """The README of the project with the figures between their marks."""
    start, end = "<!-- accuracy -->\n", "<!-- end of accuracy -->"
    before, _, rest = page.partition(start)
    figures = [row for row in rows(results) if "one file at a time" not in row[0]]
    return before + start + as_table(figures) + end + rest.partition(end)[2]
