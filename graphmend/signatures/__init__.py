"""What library calls return and do: data files (``torch.yaml``, ``python.yaml``) and the look-ups on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_HERE = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Signature:
    """The facts of one torch operation; see the head of ``torch.yaml`` for their meaning."""

    name: str
    returns: str = "tensor"
    dtype: str = "any"
    single: str = ""
    flags: frozenset[str] = frozenset()
    pair: str = ""
    low: float | None = None
    high: float | None = None

    def has(self, flag: str) -> bool:
        """Whether the operation carries a flag."""
        return flag in self.flags


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that torch takes a whole number, or a list of such, for.

    Args:
        name: its keyword.
        position: its position, the receiver of a method being 0; -1 for one that is given by its keyword only.
        onwards: whether what is given behind it belongs to it.
    """

    name: str
    position: int
    onwards: bool


@dataclass(frozen=True)
class Torch:
    """The torch tables."""

    operations: dict[str, Signature]
    functions: dict[str, Signature]
    attributes: dict[str, str]
    telling: frozenset[str]
    namespaces: frozenset[str]
    compiling: frozenset[str]
    not_compiling: frozenset[str]
    selections: frozenset[str]
    module_names: frozenset[str]
    module_prefixes: tuple[str, ...]
    module_exceptions: frozenset[str]
    module_containers: frozenset[str]
    module_dicts: frozenset[str]
    recurrent: frozenset[str]
    stateful: frozenset[str]
    random_modules: frozenset[str]
    tensors: frozenset[str]
    integers: dict[str, tuple[Parameter, ...]]

    def function(self, dotted: str) -> Signature | None:
        """The signature of a function by its dotted name."""
        namespace, _, name = dotted.rpartition(".")
        if namespace not in self.namespaces:
            return None
        return self.functions.get(dotted) or self.functions.get(name) or self.operations.get(name)

    def method(self, name: str) -> Signature | None:
        """The signature of a tensor method."""
        return self.operations.get(name)

    def is_module_class(self, dotted: str) -> bool:
        """Whether an external class derives from ``torch.nn.Module``."""
        if dotted in self.module_names:
            return True
        last = dotted.rpartition(".")[2]
        return dotted not in self.module_exceptions and last[:1].isupper() and dotted.startswith(self.module_prefixes)


@dataclass(frozen=True)
class Python:
    """The tables of Python's own functions."""

    returns: dict[str, str]
    reads: frozenset[str]
    passes: frozenset[str]
    sequences: frozenset[str]
    pure: frozenset[str]
    instances: dict[str, str]
    readers: frozenset[str]
    writers: frozenset[str]
    draws: frozenset[str]
    numpy_plain: frozenset[str]
    numpy_elementwise: frozenset[str]
    numpy_draws_arrays: frozenset[str]

    def is_pure(self, dotted: str) -> bool:
        """Whether calling the function has no effect."""
        return dotted in self.pure or f"{dotted.rpartition('.')[0]}.*" in self.pure


def _load(name: str) -> dict[str, Any]:
    with open(_HERE / name, "rb") as file:
        data: dict[str, Any] = yaml.load(file, _LOADER)  # noqa: S506 - the safe loader, in C where there is one
    return data


def _signatures(groups: list[dict[str, Any]], pairs: dict[str, str]) -> dict[str, Signature]:
    return {
        name: Signature(
            name.rpartition(".")[2],
            group.get("returns", "tensor"),
            group.get("dtype", "any"),
            group.get("single", ""),
            frozenset(group.get("flags", ())),
            pairs.get(name, ""),
            group.get("low"),
            group.get("high"),
        )
        for group in groups
        for name in map(str, group["names"])
    }


@lru_cache(None)
def torch() -> Torch:
    """The torch tables, read once."""
    data = _load("torch.yaml")
    pairs = {name: when for when, names in data["pairs"].items() for name in names}
    operations, functions = (_signatures(data[key], pairs) for key in ("groups", "functions"))
    modules = data["modules"]
    return Torch(
        operations,
        functions,
        {name: kind for kind, names in data["attributes"].items() for name in names},
        frozenset(data["telling"]),
        frozenset(data["namespaces"]),
        frozenset(data["compiling"]["true"]),
        frozenset(data["compiling"]["false"]),
        frozenset(data["selections"]),
        frozenset(modules["names"]),
        tuple(modules["prefixes"]),
        frozenset(modules["except"]),
        frozenset(modules["containers"]),
        frozenset(modules["dicts"]),
        frozenset(modules["recurrent"]),
        frozenset(modules["stateful"]),
        frozenset(modules["random"]),
        frozenset(data["tensors"]),
        {name: _parameters(each) for name, each in (_load("integers.yaml") | data["integers"]).items()},
    )


def _parameters(table: dict[str, int | str]) -> tuple[Parameter, ...]:
    """The parameters of one operation, from positions like ``1`` and ``1+``."""
    return tuple(
        Parameter(name, int(str(place).rstrip("+")), str(place).endswith("+")) for name, place in table.items()
    )


@lru_cache(None)
def python() -> Python:
    """The tables of Python's own functions, read once."""
    data = _load("python.yaml")
    return Python(
        {name: kind for kind, names in data["functions"].items() for name in names},
        frozenset(data["reads"]),
        frozenset(data["passes"]),
        frozenset(data["sequences"]),
        frozenset(data["pure"]),
        data["instances"],
        frozenset(data["readers"]),
        frozenset(data["writers"]),
        frozenset(data["draws"]),
        frozenset(data["numpy"]["plain"]),
        frozenset(data["numpy"]["elementwise"]),
        frozenset(data["numpy"]["draws_arrays"]),
    )
