"""What operations, modules and functions do beyond computing a value: the tables of ``behaviour.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

_TABLE = Path(__file__).with_name("behaviour.yaml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class DrawIf:
    """The argument that makes an operation draw random numbers.

    Args:
        name: its name.
        position: its position.
        missing: whether the operation draws where it is not given.
    """

    name: str
    position: int
    missing: bool


@dataclass(frozen=True)
class Behaviour:
    """The tables; ``behaviour.yaml`` says what each of them means."""

    take_numbers: frozenset[str]
    in_place: dict[str, int]
    keep_statistics: dict[str, tuple[str, int]]
    draw_if: dict[str, DrawIf]
    may_return_operand: frozenset[str]
    no_gradient: dict[str, frozenset[int]]
    elementwise: frozenset[str]
    like_first: frozenset[str]
    conversions: frozenset[str]
    spreading: frozenset[str]
    of_arrays: frozenset[str]
    pure_modules: frozenset[str]
    partial_modules: frozenset[str]
    passing_modules: frozenset[str]
    in_place_modules: dict[str, int]
    modules_without_parameters: frozenset[str]
    bounded_modules: frozenset[str]
    modules_like_argument: frozenset[str]
    module_readers: frozenset[str]
    registering: frozenset[str]
    contexts: frozenset[str]
    switches: frozenset[str]
    changing: frozenset[str]
    hooking: frozenset[str]
    pure: frozenset[str]
    advancing: frozenset[str]
    untouching: frozenset[str]
    messages: frozenset[str]
    reading: frozenset[str]
    frame_readers: frozenset[str]
    formatting: frozenset[str]
    emission: frozenset[str]


@lru_cache(None)
def behaviour() -> Behaviour:
    """The tables, read once."""
    with open(_TABLE, "rb") as file:
        data: dict[str, Any] = yaml.load(file, _LOADER)  # noqa: S506 - the safe loader, in C where there is one
    operations, modules, functions = data["operations"], data["modules"], data["functions"]

    def classes(key: str) -> frozenset[str]:
        return frozenset(f"torch.nn.{name}" for name in modules[key])

    return Behaviour(
        _names(operations, "take_numbers"),
        dict(operations["in_place"]),
        {name: (str(argument), int(position)) for name, (argument, position) in operations["keep_statistics"].items()},
        {name: DrawIf(*argument) for name, argument in operations["draw_if"].items()},
        _names(operations, "may_return_operand"),
        {name: frozenset(positions) for name, positions in operations["no_gradient"].items()},
        _names(operations, "elementwise"),
        _names(operations, "like_first"),
        _names(operations, "conversions"),
        _names(operations, "spreading"),
        _names(operations, "of_arrays"),
        classes("pure"),
        classes("partial"),
        classes("passing"),
        {f"torch.nn.{name}": position for name, position in modules["in_place"].items()},
        classes("without_parameters"),
        classes("bounded"),
        classes("like_argument"),
        _names(modules, "readers"),
        _names(modules, "registering"),
        _names(functions, "contexts"),
        _names(functions, "switches"),
        _names(functions, "changing"),
        _names(functions, "hooking"),
        _names(functions, "pure"),
        _names(functions, "advancing"),
        _names(functions, "untouching"),
        _names(functions, "messages"),
        _names(functions, "reading"),
        _names(functions, "frame_readers"),
        _names(data["messages"], "formatting"),
        _names(data["messages"], "emission"),
    )


def _names(table: dict[str, Any], key: str) -> frozenset[str]:
    return frozenset(map(str, table[key]))
