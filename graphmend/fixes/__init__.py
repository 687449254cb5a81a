"""The transforms: what a rule's ``fix`` may name, and the plan of one fix.

A transform is loaded when it is first asked for, since most runs need few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from graphmend.findings import Fix, Refusal
from graphmend.fixes.site import Refused, RuntimeImport, Site
from graphmend.fixes.verify import verify_edits
from graphmend.model.module import Code
from graphmend.obligations import Obligation

if TYPE_CHECKING:
    import ast

    from graphmend.rules.model import FixSpec

Plan = Callable[[Site, Mapping[str, object]], "Fix | Refusal"]


@dataclass(frozen=True)
class Transform:
    """A named rewrite.

    Args:
        name: the name that rules use.
        module: the module of this package whose ``plan`` computes the edits.
        obligations: everything that a fix of this transform has to show.
    """

    name: str
    module: str
    obligations: frozenset[Obligation]

    def plan(self, site: Site, arguments: Mapping[str, object]) -> Fix | Refusal:
        """The fix of one site, or why there is none."""
        run = cast("Plan", import_module(f"graphmend.fixes.{self.module}").plan)
        try:
            return run(site, arguments)
        except Refused as refused:
            return refused.refusal(self.name)


def _transform(name: str, *obligations: Obligation) -> Transform:
    return Transform(name, name, frozenset(obligations))


_SHARED = (Obligation.SUPPORTED_FORM, Obligation.MOVABLE_TEXT, Obligation.NOT_SCRIPTED, Obligation.BOUND_NAMES)

TRANSFORMS: dict[str, Transform] = {
    transform.name: transform
    for transform in (
        _transform(
            "outline",
            *_SHARED,
            Obligation.VALUE_UNUSED,
            Obligation.ONLY_OBSERVES,
            Obligation.TOTAL_ARGUMENTS,
            Obligation.CARRIABLE_ARGUMENTS,
            Obligation.FRESH_STATE,
            Obligation.NO_CATCHING_HANDLER,
            Obligation.NO_EARLIER_MUTATION,
            Obligation.NOT_IN_ARM,
            Obligation.CALLER_LOCATION,
        ),
        _transform(
            "predicate",
            *_SHARED,
            Obligation.ONE_ELEMENT,
            Obligation.PURE_ARMS,
            Obligation.TOTAL_ARMS,
            Obligation.AGREEING_ARMS,
            Obligation.SAME_LEAVES,
            Obligation.BOUNDED_DERIVATIVE,
            Obligation.IDENTITY,
            Obligation.LAZY_CACHE,
            Obligation.NO_CATCHING_HANDLER,
            Obligation.NO_EARLIER_MUTATION,
            Obligation.NOT_IN_ARM,
        ),
        _transform("guard", *_SHARED, Obligation.IMPLIED_GUARD, Obligation.TOTAL_ARGUMENTS),
        _transform("normalize", *_SHARED, Obligation.SAME_TRUTH, Obligation.ONE_ELEMENT),
    )
}
"""The transforms by name."""


def plan_fix(site: Site, spec: FixSpec, captures: Mapping[str, ast.expr | tuple[ast.expr, ...]]) -> Fix | Refusal:
    """The fix that a rule asks for at one site: of a named transform, or of a template over its metavariables."""
    if spec.transform is not None:
        if isinstance(site.function, Code):
            reason = "this runs when the module is imported, and is not compiled"
            return Refusal(spec.transform, Obligation.SUPPORTED_FORM.value, reason)
        return TRANSFORMS[spec.transform].plan(site, spec.argument_map())
    from graphmend.fixes.template import plan_template

    assert spec.replace is not None
    try:
        return plan_template(site, spec.replace, captures)
    except Refused as refused:
        return refused.refusal("replace")


__all__ = ["TRANSFORMS", "Refused", "RuntimeImport", "Site", "Transform", "plan_fix", "verify_edits"]
