"""Compares the tables with what torch does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.signatures.measure import Measured
from graphmend.signatures import Signature, Torch
from graphmend.signatures.behaviour import Behaviour


@dataclass(frozen=True)
class Mismatch:
    """A fact that does not hold.

    Args:
        name: the operation.
        says: the word of the table, or its absence.
        does: what torch did.
    """

    name: str
    says: str
    does: str

    def __str__(self) -> str:
        return f"{self.name}: the table says {self.says}; {self.does}"


def compare(signature: Signature, tables: Torch, behaviour: Behaviour) -> Iterator[Mismatch]:
    """The mismatches of one operation."""
    name = signature.name
    measured = Measured(name)

    def wrong(says: str, does: str) -> Mismatch:
        return Mismatch(name, says, does)

    if not measured.trials:
        yield wrong("there is such an operation", "no arguments were found with which it works")
        return
    for says, does in _returned(signature, measured):
        yield wrong(says, does)
    if signature.returns in ("tensor", "tensors"):
        for says, does in _computed(signature, measured):
            yield wrong(says, does)
    for says, does in _done(signature, measured, behaviour):
        yield wrong(says, does)


def _returned(signature: Signature, measured: Measured) -> Iterator[tuple[str, str]]:
    allowed = {
        "tensor": {"tensor"},
        "tensors": {"tensors", "pair"},
        "size": {"size"},
        "static": {"static", "size"},
        "scalar": {"scalar"},
    }[signature.returns]
    if signature.pair:
        allowed = {"pair"} if signature.pair == "always" else {"pair", "tensor"}
    for found, trial in measured.returns().items():
        if found not in allowed:
            yield f"it returns {' or '.join(sorted(allowed))}", f"{trial} returns {found}"


def _computed(signature: Signature, measured: Measured) -> Iterator[tuple[str, str]]:
    for kinds, shown in measured.dtypes().items():
        first, _, result = kinds.partition(" ")
        says = signature.dtype
        holds = {
            "any": True,
            "same": first in ("", "complex", result),
            "promoted": first != "float" or result in ("float", "complex"),
        }.get(says, result == says or first == "complex")
        if not holds:
            yield f"dtype: {says}", f"{shown} turns {first or 'nothing'} into {result}"
    single = {
        "whole": measured.not_whole,
        "always": measured.not_one,
        "operands": measured.not_like_operands,
    }.get(signature.single)
    if single is not None and (shown := single()):
        yield f"single: {signature.single}", f"{shown} gives other than one element"


def _done(signature: Signature, measured: Measured, behaviour: Behaviour) -> Iterator[tuple[str, str]]:
    has, name = signature.has, signature.name
    if signature.returns in ("tensor", "tensors"):
        if has("total") and (shown := measured.failing()):
            yield "total", shown
        if has("divides") and (shown := measured.failing(integers=False)):
            yield "divides", shown
        if has("bounded") and (shown := measured.unbounded()):
            yield "bounded", f"the derivative of {shown} is not finite"
        if has("affine") and (shown := measured.unbounded(alone=True)):
            yield "affine", f"the derivative of {shown} is not finite"
        if has("constant") and (shown := measured.differentiable()):
            yield "constant", f"{shown} has a gradient"
    yield from _warned("mutates", has("mutates"), measured.mutating())
    yield from _warned("random", has("random") or name in behaviour.draw_if, measured.drawing())
    if signature.returns in ("tensor", "tensors") and not has("mutates"):
        may = has("view") or name in behaviour.may_return_operand
        yield from _warned("view", may, measured.sharing())
    yield from _warned("dynamic", has("dynamic"), measured.data.get("dynamic", ""))
    yield from _warned("reads", has("reads"), measured.data.get("reads", ""))


def _warned(flag: str, says: bool, shown: str) -> Iterator[tuple[str, str]]:
    """A flag that holds if there is a call in which it shows."""
    if shown and not says:
        yield f"not {flag}", f"{shown} is"
    elif says and not shown:
        yield flag, "no call that was tried is"
