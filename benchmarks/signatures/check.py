"""Compares the tables with what torch does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.signatures.calls import tensors
from benchmarks.signatures.measure import Measured, data
from benchmarks.signatures.operands import PLAIN, make
from graphmend.signatures import Signature, Torch
from graphmend.signatures.behaviour import Behaviour


@dataclass(frozen=True)
class Mismatch:
    """A fact that does not hold.

    Args:
        name: the operation.
        fact: which fact: ``returns``, ``dtype``, ``single``, a flag, or ``works`` if no call was found that does.
        says: what the tables say.
        does: what torch did.
    """

    name: str
    fact: str
    says: str
    does: str

    def __str__(self) -> str:
        return f"{self.name}: the table says {self.says}; {self.does}"


def mismatches(tables: Torch, behaviour: Behaviour, names: Iterable[str] = ()) -> Iterator[Mismatch]:
    """The facts of the tables that do not hold.

    Args:
        tables: the tables.
        behaviour: what else is said of operations.
        names: operations to look at; all of them if there are none.
    """
    excused = {(name, each["fact"]) for each in data()["excused"] for name in each["names"]}
    asked = frozenset(names)
    for key, signature in [*tables.operations.items(), *tables.functions.items()]:
        if not asked or signature.name in asked:
            for found in compare(key, signature, tables, behaviour):
                if (key, found.fact) not in excused:
                    yield found
    for name, kind in tables.attributes.items():
        if not asked or name in asked:
            yield from _attribute(name, kind)


def compare(key: str, signature: Signature, tables: Torch, behaviour: Behaviour) -> Iterator[Mismatch]:
    """The facts of one operation that do not hold, excused ones among them."""
    measured = Measured(key, tables.functions)
    if not measured.trials:
        yield Mismatch(key, "works", "there is such an operation", "no arguments were found with which it works")
        return
    yield from _returned(key, signature, measured)
    if signature.returns in ("tensor", "tensors"):
        yield from _computed(key, signature, measured)
        yield from _promised(key, signature, measured)
    yield from _warned(key, signature, measured, behaviour)


def _returned(key: str, signature: Signature, measured: Measured) -> Iterator[Mismatch]:
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
            says = f"it returns {' or '.join(sorted(allowed))}"
            yield Mismatch(key, "returns", says, f"{trial} returns {found}")


def _computed(key: str, signature: Signature, measured: Measured) -> Iterator[Mismatch]:
    for kinds, shown in measured.dtypes().items():
        first, _, result = kinds.partition(" ")
        holds = {
            "any": True,
            "same": first in ("", "complex", result),
            "promoted": first != "float" or result in ("float", "complex"),
        }.get(signature.dtype, signature.dtype == result or first == "complex")
        if not holds:
            does = f"{shown} turns {first or 'nothing'} into {result}"
            yield Mismatch(key, "dtype", f"dtype: {signature.dtype}", does)
    single = {
        "whole": measured.not_whole,
        "always": measured.not_one,
        "operands": measured.not_like_operands,
    }.get(signature.single)
    if single is not None and (shown := single()):
        yield Mismatch(key, "single", f"single: {signature.single}", f"{shown} gives other than one element")


def _promised(key: str, signature: Signature, measured: Measured) -> Iterator[Mismatch]:
    """Flags that let a fix be made: they must hold for every call."""
    if signature.has("total") and (shown := measured.failing()):
        yield Mismatch(key, "total", "total", shown)
    if signature.has("divides") and (shown := measured.failing(integers=False)):
        yield Mismatch(key, "divides", "divides", shown)
    if signature.has("bounded") and (shown := measured.unbounded()):
        yield Mismatch(key, "bounded", "bounded", f"the derivative of {shown} is not finite")
    if signature.has("affine") and (shown := measured.unbounded(alone=True)):
        yield Mismatch(key, "affine", "affine", f"the derivative of {shown} is not finite")
    if signature.has("constant") and (shown := measured.differentiable()):
        yield Mismatch(key, "constant", "constant", f"{shown} has a gradient")


def _warned(key: str, signature: Signature, measured: Measured, behaviour: Behaviour) -> Iterator[Mismatch]:
    """Flags that forbid something: one call in which they show is enough, and there must be one."""
    name = signature.name
    shown = {
        "mutates": measured.mutating(),
        "random": measured.drawing(),
        "dynamic": measured.of_data.get("dynamic", ""),
        "reads": measured.of_data.get("reads", ""),
    }
    known = {"random": name in behaviour.draw_if}
    if signature.returns in ("tensor", "tensors") and not signature.has("mutates"):
        shown["view"] = measured.sharing()
        known["view"] = name in behaviour.may_return_operand
    for flag, call in shown.items():
        if call and not signature.has(flag) and not known.get(flag):
            yield Mismatch(key, flag, f"not {flag}", f"{call} is")
        elif not call and signature.has(flag):
            yield Mismatch(key, flag, flag, "no call that was tried is")


def _attribute(name: str, kind: str) -> Iterator[Mismatch]:
    operand = make("z", PLAIN)
    if not hasattr(operand, name):  # one of another version
        return
    value = getattr(operand, name)
    whole = isinstance(value, int) and not isinstance(value, bool)
    whole |= isinstance(value, tuple) and all(isinstance(each, int) for each in value)
    found = "tensor" if next(tensors(value), None) is not None or value is None else "size" if whole else "static"
    if found != kind and not (value is None and kind == "static"):
        yield Mismatch(name, "returns", f"the attribute is a {kind}", f"it is a {found}")
