"""The operations of torch that the tables do not list, with their measured facts."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from textwrap import wrap

import torch

from benchmarks.signatures.calls import SPACES
from benchmarks.signatures.measure import Measured, data
from graphmend.signatures import Torch
from graphmend.signatures.behaviour import behaviour

_WIDTH = 150


@dataclass(frozen=True)
class Facts:
    """What the tables would say of an operation."""

    returns: str = "tensor"
    dtype: str = "any"
    single: str = ""
    flags: tuple[str, ...] = ()
    pair: bool = False
    method: bool = False

    def head(self) -> str:
        """The facts as the beginning of a group."""
        parts = [
            f"{key}: {value}"
            for key, value, usual in (
                ("returns", self.returns, "tensor"),
                ("dtype", self.dtype, "any"),
                ("single", self.single, ""),
            )
            if value != usual
        ]
        if self.flags:
            parts.append(f"flags: [{', '.join(self.flags)}]")
        return ", ".join(parts)


def names(tables: Torch) -> Iterator[str]:
    """Public functions, methods and attributes that the tables lack."""
    patterns = [pattern for group in data()["skipped"].values() for pattern in group]
    seen: set[str] = set()
    for space, holder in SPACES.items():
        for name in dir(holder):
            if name.startswith("_") or name in seen or f"{space}.{name}" in tables.functions:
                continue
            if name in tables.operations or name in tables.functions or name in tables.attributes:
                continue
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                continue
            if _is_operation(space, getattr(holder, name, None)):
                seen.add(name)
                yield name


def _is_operation(space: str, member: object) -> bool:
    if isinstance(member, (type, types.ModuleType)) or not callable(member):
        return False
    if space == "torch":
        return isinstance(member, types.BuiltinFunctionType) or getattr(member, "__module__", "") == "torch.functional"
    return not getattr(member, "__module__", "").startswith("typing")


def facts(measured: Measured) -> Facts | None:
    """The facts of an operation; None if no call of it works, or none gives tensors."""
    found = measured.returns()
    if not found or not set(found) <= {"tensor", "pair", "tensors"}:
        return None
    returns = "tensor" if set(found) <= {"tensor", "pair"} else "tensors"
    flags: list[str] = []
    single = _single(measured)
    if measured.mutating():
        flags.append("mutates")
    if measured.drawing():
        flags.append("random")
    if "dynamic" in measured.of_data:
        flags.append("dynamic")
    if "reads" in measured.of_data:
        flags.append("reads")
    # LAPACK is not tried with special values: at some of them it crashes.
    harmless = not set(flags) & {"random", "dynamic", "reads"} and not any(
        "linalg" in each for each in measured.functions
    )
    if harmless and single in ("operands", "whole") and not measured.failing():
        flags.append("total")
    differentiable = bool(measured.differentiable())
    if harmless and single == "operands" and differentiable and "mutates" not in flags and not measured.unbounded():
        flags.append("bounded")
    if "mutates" not in flags:
        if measured.sharing() and measured.name not in behaviour().may_return_operand:
            flags.append("view")
        if not differentiable and measured.computing:
            flags.append("constant")
    return Facts(
        returns,
        _dtype(measured),
        "" if "mutates" in flags else single,
        tuple(flags),
        pair=set(found) == {"pair"},
        method=hasattr(torch.Tensor, measured.name),
    )


def _single(measured: Measured) -> str:
    if not measured.computing:
        return ""
    if not measured.not_one():
        return "always"
    if any(trial.is_whole for trial in measured.computing) and not measured.not_whole():
        return "whole"
    return "" if measured.not_like_operands() or measured.not_elementwise() else "operands"


def _dtype(measured: Measured) -> str:
    kinds = (pair.partition(" ") for pair in measured.dtypes())
    pairs = [(first, result) for first, _, result in kinds if first != "complex"]
    results = {result for _, result in pairs}
    if len(results) == 1 and results <= {"bool", "int", "float"}:
        return next(iter(results))
    if pairs and all(first in ("", result) for first, result in pairs):
        return "same"
    if pairs and all(first != "float" or result == "float" for first, result in pairs):
        return "promoted"
    return "any"


def groups(tables: Torch) -> Iterator[str]:
    """The missing operations as groups of ``torch.yaml``."""
    together: dict[Facts, list[str]] = {}
    unknown: list[str] = []
    for name in names(tables):
        measured = Measured(name)
        known = facts(measured)
        if known is None:
            if not measured.trials:
                unknown.append(name)
            continue
        together.setdefault(known, []).append(name)
    for method in (True, False):
        yield "groups:" if method else "functions:"
        for known, found in together.items():
            if known.method == method:
                yield from group(known.head(), found)
    pairs = [name for known, found in together.items() if known.pair for name in found]
    yield "pairs:"
    yield f"  always: [{', '.join(pairs)}]"
    if unknown:
        yield f"# No arguments were found for: {', '.join(unknown)}"


def group(head: str, found: list[str]) -> Iterator[str]:
    """One group as lines."""
    line = f"  - {{{head}{', ' if head else ''}names: [{', '.join(found)}]}}"
    if len(line) <= _WIDTH:
        yield line
        return
    lines = wrap(", ".join(found), _WIDTH - 13)
    if head:
        yield f"  - {{{head},"
    for number, each in enumerate(lines):
        start = ("     names: [" if head else "  - {names: [") if not number else "             "
        yield f"{start}{each}{']}' if number == len(lines) - 1 else ''}"
