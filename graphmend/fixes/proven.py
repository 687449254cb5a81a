"""Whether an expression is certainly a tensor, and not only where tracing would meet one.

In eager, mended code gets everything that the original was given, a Python flag or a NumPy array where a tensor was
guessed included. Where the rewritten text works with nothing but tensors, a guess does not do.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import Literal

from graphmend.fixes.site import Site
from graphmend.fixes.total import Totality
from graphmend.flow.cfg import Item
from graphmend.flow.frames import frames_of
from graphmend.flow.values import ExternalName, Kind, TensorMethod
from graphmend.signatures.behaviour import behaviour

_STEPS = 4
"""How many assignments are followed back."""


class _Certain(Totality):
    """Remembers only uses that NumPy arrays do not survive."""

    def _tells(self, method: str) -> bool:
        return super()._tells(method) and method not in behaviour().of_arrays


class Provenance:
    """What is certainly a tensor at a site.

    Args:
        site: the place.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.frame = frames_of(site.program).frame(site.function, site.facts)

    @cached_property
    def used(self) -> frozenset[str]:
        """Dumps of the expressions that certainly were used as only tensors are."""
        return _Certain(self.site).evidence

    def is_proven(self, node: ast.expr) -> bool:
        """Whether an expression of the site's statement is a tensor whenever it is evaluated."""
        return self._is_proven(node, self.site.statement, _STEPS)

    def _is_proven(self, node: ast.expr, statement: ast.stmt, steps: int) -> bool:
        value = self.site.facts.value(node)
        if not value.is_tensor:
            return False
        if not value.inferred or (statement is self.site.statement and ast.dump(node) in self.used):
            return True
        match node:
            case ast.Name(id=name):
                return steps > 0 and self._is_made_of_tensors(name, statement, steps - 1)
            case ast.Call(func=func):
                return self._gives_tensor(func, statement, steps)
            case ast.Attribute(value=owner) | ast.Subscript(value=owner) | ast.UnaryOp(operand=owner):
                return self._is_proven(owner, statement, steps)
            case ast.BinOp(left=left, right=right):
                return any(self._is_proven(each, statement, steps) for each in (left, right))
            case ast.Compare(left=left, comparators=comparators):
                return any(self._is_proven(each, statement, steps) for each in (left, *comparators))
            case ast.IfExp(body=body, orelse=orelse):
                return all(self._is_proven(each, statement, steps) for each in (body, orelse))
        return False

    def _gives_tensor(self, func: ast.expr, statement: ast.stmt, steps: int) -> bool:
        targets = self.site.facts.value(func).targets
        if targets and all(isinstance(each, ExternalName) for each in targets):
            return True
        if not targets or not all(isinstance(each, TensorMethod) for each in targets):
            return False
        owner = func.value if isinstance(func, ast.Attribute) else func
        return self._is_proven(owner, statement, steps) or self._is_input(owner, statement, steps)

    def _is_input(self, node: ast.expr, statement: ast.stmt, steps: int) -> bool:
        """Whether something with a tensor's method is made of the first argument: modules are given tensors there."""
        match node:
            case ast.Name(id=name):
                first = self.site.function.first_argument
                return steps > 0 and all(
                    name == first if made is None else made and self._is_input(made.value, made, steps - 1)
                    for made in self._assignments(name, statement)
                )
            case ast.Subscript(value=owner) | ast.UnaryOp(operand=owner):
                return self._is_input(owner, statement, steps)
            case ast.BinOp(left=left, right=right):
                return any(self._is_input(each, statement, steps) for each in (left, right))
            case ast.Compare(left=left, comparators=comparators):
                return any(self._is_input(each, statement, steps) for each in (left, *comparators))
        return False

    def _is_made_of_tensors(self, name: str, statement: ast.stmt, steps: int) -> bool:
        """Whether every assignment that a name may come from gives it a tensor; for a parameter, its annotation."""
        return all(
            self._is_declared(name) if made is None else made and self._is_proven(made.value, made, steps)
            for made in self._assignments(name, statement)
        )

    def _assignments(self, name: str, statement: ast.stmt) -> list[ast.Assign | Literal[False] | None]:
        """The assignments that a name may come from: ``None`` for a parameter, false for what is none of both."""
        definitions = self.frame.names.definitions(name, statement)
        return [_plain(made) for made in definitions] if definitions else [False]

    def _is_declared(self, name: str) -> bool:
        function = self.site.function
        parameter = next((each for each in function.parameters if each.arg == name), None)
        declared = self.site.program.annotations.declared(function, parameter) if parameter is not None else None
        return declared is not None and declared.without(Kind.NONE).is_tensor


def _plain(made: Item | None) -> ast.Assign | Literal[False] | None:
    plain = isinstance(made, ast.Assign) and all(isinstance(each, ast.Name) for each in made.targets)
    return made if made is None or (plain and isinstance(made, ast.Assign)) else False
