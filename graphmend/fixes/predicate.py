"""*predicate*: a branch on a tensor's value becomes a selection between two values.

In eager the selection is the branch. While compiling, both sides are computed and one is chosen by the tensor, where
tracing sees that this is the same; otherwise the branch runs as before.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.findings import Applicability, Fix, Proof, Refusal
from graphmend.fixes.arms import Branch, Outcome, read_branch
from graphmend.fixes.condition import Condition, part_condition
from graphmend.fixes.differentiation import Gradient, find_gradient
from graphmend.fixes.dtypes import dtype_checks
from graphmend.fixes.emit import Style, runtime_name
from graphmend.fixes.identity import show_identity
from graphmend.fixes.lazy import Licence
from graphmend.fixes.movedtext import string_around
from graphmend.fixes.proofs import Prover
from graphmend.fixes.selection import Writer
from graphmend.fixes.site import Refused, Site
from graphmend.flow.frames import frames_of
from graphmend.obligations import Obligation

NAME = "predicate"
_MOST_TESTS = 8
"""All sides are evaluated; and Dynamo recurses too deeply with some twenty selections, one inside of the other."""


def plan(site: Site, arguments: Mapping[str, object]) -> Fix | Refusal:
    """The selection that replaces the branch at a site, or why there is none."""
    try:
        return _select(site)
    except Refused as refused:
        from graphmend.fixes import guard

        guarded = guard.plan(site, arguments)
        return guarded if isinstance(guarded, Fix) else refused.refusal(NAME)


def _select(site: Site) -> Fix:
    frame = frames_of(site.program).frame(site.function, site.facts)
    style = Style(site.source, site.module.tree)
    branch = read_branch(site, frame)
    if string_around(site, branch.first) is not None:
        raise Refused(
            Obligation.SUPPORTED_FORM, "the conditional expression is inside an f-string", site.statement.lineno
        )
    tests = list(branch.choice.tests())
    chain = len(tests) + _conditions_before(site)
    if chain > _MOST_TESTS:
        reason = f"{chain} conditions would become as many selections, one inside of the other"
        raise Refused(Obligation.SUPPORTED_FORM, reason, site.statement.lineno)
    conditions = {id(test): part_condition(site, style, test) for test in tests}
    prover = Prover(site, branch)
    proofs = [Proof(Obligation.SUPPORTED_FORM.value, "statically", _form(branch))]
    proofs += prover.movable() + prover.bound()
    licences, shown = prover.effects_of_arms()
    proofs += shown + prover.agreeing()
    gradient = find_gradient(site, branch)
    proofs += [*gradient.proofs, show_identity(site, branch)]
    proofs += _same_truth(conditions)
    writer = _writer(site, style, branch, conditions, gradient, licences)
    edits = (*runtime_name(site).edits, writer.edit())
    limits = "" if gradient.way else "where a gradient is needed"
    return Fix(NAME, Applicability.SAFE, tuple(proofs), edits, names=tuple(writer.names), limits=limits)


def _conditions_before(site: Site) -> int:
    """How many conditions of a chain of ``elif`` are asked before the site's."""
    count, child = 0, site.statement
    while isinstance(parent := site.parents.get(id(child)), ast.If) and parent.orelse == [child]:
        count, child = count + 1, parent
    return count


def _form(branch: Branch) -> str:
    return {
        Outcome.VALUE: "a conditional expression",
        Outcome.ASSIGN: f"a branch that assigns {', '.join(f'`{target.text}`' for target in branch.targets)}",
        Outcome.RETURN: "a branch whose sides both return",
        Outcome.CALL: "a branch whose sides end in the same call",
    }[branch.outcome]


def _same_truth(conditions: Mapping[int, Condition]) -> list[Proof]:
    if not any(condition.rewritten for condition in conditions.values()):
        return []
    detail = "the operands of the condition have one element each, are free of effects and cannot fail"
    return [Proof(Obligation.SAME_TRUTH.value, "statically", detail)]


def _writer(
    site: Site,
    style: Style,
    branch: Branch,
    conditions: dict[int, Condition],
    gradient: Gradient,
    licences: list[Licence],
) -> Writer:
    options = [f'grad="{gradient.way}"'] if gradient.way else []
    checks = list(
        dict.fromkeys([*(licence.check for licence in licences if licence.check), *dtype_checks(site, branch)])
    )
    if checks:
        options.append(f"when=lambda: {' and '.join(checks)}")
    top = conditions[id(branch.choice.test)]
    # Without another side the part that Python decides stays an `if`; with one, the selection decides it itself.
    guard = top.guard if top.static and top.conjunction and not branch.has_else else ""
    return Writer(
        site,
        frames_of(site.program).frame(site.function, site.facts),
        style,
        branch,
        conditions,
        runtime_name(site).name,
        options,
        guard,
    )
