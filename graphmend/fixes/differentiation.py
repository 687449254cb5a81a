"""The obligations *same leaves* and *bounded derivative*: how a selection may be differentiated."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from graphmend.findings import Proof
from graphmend.fixes.arms import Arm, Branch
from graphmend.fixes.site import Site
from graphmend.flow.aliasing import aliasing_of
from graphmend.flow.frames import frames_of
from graphmend.flow.gradients import Gradients, Unknown
from graphmend.flow.text import brief
from graphmend.flow.values import Kind
from graphmend.model.scopes import bound_names
from graphmend.model.tree import children, walk
from graphmend.obligations import Obligation
from graphmend.rules.callees import callee_names
from graphmend.signatures.behaviour import behaviour

_STEPS = 4
"""How far back from the arms leaves are followed."""


@dataclass(frozen=True)
class Gradient:
    """How a selection may be differentiated.

    Args:
        way: ``where``, ``cond`` or empty: only without gradients.
        proofs: why.
    """

    way: str
    proofs: tuple[Proof, ...]


def find_gradient(site: Site, branch: Branch) -> Gradient:
    """How a selection may be differentiated."""
    return _Differentiation(site, branch).gradient()


class _Differentiation:
    def __init__(self, site: Site, branch: Branch) -> None:
        self.site = site
        self.branch = branch
        self.frame = frames_of(site.program).frame(site.function, site.facts)
        self.arms = list(branch.choice.arms())

    def gradient(self) -> Gradient:
        """How the result may be differentiated."""
        try:
            problem = self.leaf_difference()
        except Unknown as unknown:
            problem = f"{unknown.reason} (line {unknown.line})"
        if problem is not None:
            detail = f"not shown ({problem}), so the selection is made only where no gradient is needed"
            return Gradient("", (Proof(Obligation.SAME_LEAVES.value, "checked at trace time", detail),))
        same = Proof(Obligation.SAME_LEAVES.value, "statically", f"all sides read {self.leaf_words()}")
        unbounded = self.unbounded()
        if unbounded is None:
            bounded = Proof(
                Obligation.BOUNDED_DERIVATIVE.value, "statically", "each side's derivative is finite for every input"
            )
            return Gradient("where", (same, bounded))
        obstacle = self.obstacle_to_cond()
        if obstacle:
            detail = f"not shown (`{brief(unbounded)}`), and `torch.cond` {obstacle}"
            return Gradient("", (Proof(Obligation.BOUNDED_DERIVATIVE.value, "checked at trace time", detail),))
        detail = f"not shown (`{brief(unbounded)}`): `torch.cond` differentiates the taken side only"
        return Gradient("cond", (same, Proof(Obligation.BOUNDED_DERIVATIVE.value, "checked at trace time", detail)))

    def used_twice(self) -> str:
        """A tensor or module from outside that one side uses several times; empty if there is none.

        Its gradient is the sum of several; ``torch.cond`` adds those of the side first, and then those from elsewhere.
        """
        for arm in self.arms:
            own = {name for root in arm.kept for name in bound_names([root])}
            seen: set[str] = set()
            stack: list[ast.AST] = list(arm.nodes)
            while stack:
                node = stack.pop()
                value = self.site.facts.value(node)
                used = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
                if used and value.may(Kind.TENSOR | Kind.OBJECT | Kind.UNKNOWN) and not value.targets:
                    text = ast.unparse(node)
                    if text in seen and text not in own:
                        return text
                    seen.add(text)
                    if isinstance(node, ast.Attribute) and not self.site.facts.value(node.value).may(Kind.TENSOR):
                        continue  # `self` is no operand of its own
                stack += children(node)
        return ""

    def obstacle_to_cond(self) -> str:
        """What ``torch.cond`` does wrong with the sides; empty if nothing says so (measured with torch 2.13).

        It does not compile where two results get one and the same gradient, where the gradients that the sides give a
        tensor have other strides, as that of a scaled sum has, and where they read two tensors that share memory. The
        runtime asks for the last two again while tracing, where strides and storages are known: what can be told from
        the source is told here, so that no fix is offered in vain.
        """
        if self.several():
            return "cannot differentiate several results"
        twice = self.used_twice()
        return f"would add up the gradients of `{twice}` in another order" if twice else self.unjoinable()

    def unjoinable(self) -> str:
        """Why the gradients of the sides cannot be joined; empty if nothing says so."""
        nodes = [node for arm in self.arms for root in arm.nodes for node in walk(root)]
        for node in nodes:
            if isinstance(node, ast.Call) and self.called(node) & behaviour().spreading:
                return f"cannot join the gradients of `{brief(node)}` with those of the other side"
        names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        read = sorted(name for name in names & self.site.function.locals)
        aliasing = aliasing_of(self.site.program)
        sources = [aliasing.name_sources(name, self.frame, self.site.statement) for name in read]
        for index, (name, found) in enumerate(zip(read, sources)):
            for other, others in zip(read[index + 1 :], sources[index + 1 :]):
                if found & others:
                    return f"cannot read `{name}` and `{other}`, which may share memory"
        return ""

    def called(self, node: ast.Call) -> set[str]:
        """The last names of what a call may call."""
        return {name.rpartition(".")[2] for name in callee_names(self.site.facts.value(node.func))}

    def gradients(self, arm: Arm) -> Gradients:
        return Gradients(self.site.program, self.frame, arm.nodes)

    def leaves(self, arm: Arm, position: int) -> frozenset[str]:
        value = self.branch.value(arm, position)
        if value is None:
            return frozenset((self.branch.targets[position].name,))
        return self.gradients(arm).leaves(value)

    def leaf_difference(self) -> str | None:
        """What keeps the arms from having the same leaves; ``None`` if they have."""
        first, *others = self.arms
        for position in range(len(first.results)):
            for other in others:
                sets = (self.leaves(first, position), self.leaves(other, position))
                difference = self.difference(*sets, _STEPS)
                if difference is not None:
                    return f"only one side reads `{difference}`"
        return None

    def difference(self, a: frozenset[str], b: frozenset[str], steps: int) -> str | None:
        """A leaf of one set that is not in the other, even when what it was made of is looked at."""
        if a == b:
            return None
        behind = {leaf: self.behind(leaf) for leaf in a ^ b} if steps else {}
        known = {leaf: leaves for leaf, leaves in behind.items() if leaves is not None}
        if not known:
            return min(a ^ b)
        more = [frozenset(each for leaf in leaves for each in known.get(leaf, (leaf,))) for leaves in (a, b)]
        return self.difference(more[0], more[1], steps - 1)

    def behind(self, leaf: str) -> frozenset[str] | None:
        """The leaves of what a name was made of before the branch."""
        known = leaf in self.site.function.locals
        return self.gradients(self.arms[0]).behind(leaf, self.site.statement) if known else None

    def several(self) -> bool:
        """Whether the arms may give more than one tensor."""
        values = [self.branch.value(arm, position) for arm in self.arms for position in range(len(arm.results))]
        containers = [value is not None and self.site.facts.value(value).may(Kind.CONTAINER) for value in values]
        return len(self.arms[0].results) > 1 or any(containers)

    def leaf_words(self) -> str:
        names = sorted(
            {name for position in range(len(self.arms[0].results)) for name in self.leaves(self.arms[0], position)}
        )
        return ", ".join(f"`{name}`" for name in names) or "no tensor that may require a gradient"

    def unbounded(self) -> ast.expr | None:
        for arm in self.arms:
            for position in range(len(arm.results)):
                value = self.branch.value(arm, position)
                found = self.gradients(arm).unbounded(value) if value is not None else None
                if found is not None:
                    return found
        return None
