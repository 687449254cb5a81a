"""The arguments of an effect: what an operator in a graph can carry, and back.

An operator takes tensors, integers and constant strings. A call's arguments become three things: the *tensors* among
them, the *integers*, and a *layout*, a string that says how both are put together again and holds every constant. The
layout is part of the graph, so a value that may change from call to call must not enter it: integers are passed as
symbolic ones, floating-point numbers that tracing does not know as float64 tensors.

Encoding runs while Dynamo traces, so it is written in the Python that Dynamo follows.
"""

from __future__ import annotations

import enum
import functools
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from graphmend.runtime.tracing import at_trace_time, is_static, known_true

ONE = torch.tensor([1.0], dtype=torch.float64, device="cpu")
"""What a symbolic float is multiplied by to become a tensor: the one way that does not compile again for each value.

It has a dimension since Dynamo makes symbols of 0-d tensors, too, and traces again to be rid of the one of this.
"""

Rebuild = Callable[[Iterator[torch.Tensor], Iterator[int]], Any]


def encode_call(
    args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor], ints: list[Any]
) -> str | None:
    """Take a call's arguments apart.

    Args:
        args: Positional arguments.
        kwargs: Keyword arguments.
        tensors: Receives the tensors, detached.
        ints: Receives the integers.

    Returns:
        The layout, or None when an argument is of a kind that an operator cannot carry.
    """
    positional = encode(args, tensors, ints)
    if positional is None:
        return None
    named = encode(kwargs, tensors, ints)
    return None if named is None else positional + named


def encode(value: Any, tensors: list[torch.Tensor], ints: list[Any]) -> str | None:
    """Take one argument apart; arguments and result are those of :func:`encode_call`."""
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, tensors)
    if isinstance(value, enum.Enum):
        return _encode_enum(value)
    if isinstance(value, (bool, int, float)):
        return _encode_number(value, tensors, ints)
    kind: type[Any] = type(value)
    if kind in _CONTAINERS:
        return _encode_sequence(_CONTAINERS[kind], value, tensors, ints)
    if kind is dict:
        return _encode_dict(value, tensors, ints)
    return _encode_constant(value)


def _encode_tensor(value: torch.Tensor, tensors: list[torch.Tensor]) -> str | None:
    kind: type[Any] = type(value)
    if kind not in _TENSORS:
        return None
    tensors.append(value.detach())
    return _TENSORS[kind][1 if value.requires_grad else 0]


def _encode_number(value: Any, tensors: list[torch.Tensor], ints: list[Any]) -> str | None:
    if type(value) is bool:
        if is_static(value):
            return "T" if value else "F"
        ints.append(torch.sym_ite(value, 1, 0))  # type: ignore[no-untyped-call]
        return "b"
    if type(value) is int:
        if _is_beyond(value):
            return None
        ints.append(value)
        return "i"
    if type(value) is not float:
        return None
    if is_static(value):
        return _text("f", repr(value))
    tensors.append(ONE * value)
    return "d"


def _is_beyond(value: int) -> bool:
    """Whether an integer does not fit into the 64 bits that an operator takes.

    For a symbolic one that is a guard. What is known not to be negative is a size, and what comes from a tensor has no
    value to guard: both fit.
    """
    if is_static(value):
        return not _FIRST_INT <= value <= _LAST_INT
    holds = getattr(torch.fx.experimental.symbolic_shapes, "guard_or_false", None)
    if holds is None or known_true(value >= 0):
        return False
    return bool(holds(value > _LAST_INT) or holds(value < _FIRST_INT))


def _encode_enum(value: enum.Enum) -> str | None:
    kind = type(value)
    if "<locals>" in kind.__qualname__:
        return None
    return _text("e", f"{kind.__module__}:{kind.__qualname__}:{value.name}")


def _encode_sequence(tag: str, value: Sequence[Any], tensors: list[torch.Tensor], ints: list[Any]) -> str | None:
    layout = f"{tag}{len(value)};"
    for item in value:
        part = encode(item, tensors, ints)
        if part is None:
            return None
        layout += part
    return layout


def _encode_dict(value: dict[Any, Any], tensors: list[torch.Tensor], ints: list[Any]) -> str | None:
    layout = f"{{{len(value)};"
    for key, item in value.items():
        if type(key) is not str or not _is_encodable(key):
            return None
        part = encode(item, tensors, ints)
        if part is None:
            return None
        layout += _text("s", key) + part
    return layout


def _encode_constant(value: Any) -> str | None:
    if value is None:
        return "n"
    if type(value) is str:
        return _text("s", value) if _is_encodable(value) else None
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return _text("a", str(value))
    if isinstance(value, torch.device):
        return _text("v", str(value))
    if isinstance(value, logging.Logger):
        name = _logger_name(id(value))
        return _text("l", name) if name else None
    if type(value) is complex:
        return _text("c", repr(value))
    return None


@at_trace_time(otherwise="")
def _logger_name(identity: int) -> str:
    """The name by which ``logging.getLogger`` gives an object: Dynamo knows nothing of a logger but which one it is."""
    if identity == id(logging.root):
        return logging.root.name
    known = list(logging.root.manager.loggerDict.items())
    return next((name for name, logger in known if id(logger) == identity and _is_encodable(name)), "")


@at_trace_time(otherwise=False)
def _is_encodable(text: str) -> bool:
    """Whether an operator can take a string: not one with lone surrogates, as undecodable file names have."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


# What an operator takes as an integer.
_FIRST_INT, _LAST_INT = -(2**63), 2**63 - 1

# Without and with a gradient.
_TENSORS: dict[type[Any], str] = {torch.Tensor: "tg", torch.nn.Parameter: "pP"}
_CONTAINERS: dict[type[Any], str] = {tuple: "(", list: "[", torch.Size: "z"}


def _text(tag: str, text: str) -> str:
    return f"{tag}{len(text)};{text}"


def decode_call(
    layout: str, tensors: Sequence[torch.Tensor], ints: Sequence[int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put the arguments of a call together again.

    Args:
        layout: What :func:`encode_call` returned.
        tensors: The tensors, as they are at this moment of the run.
        ints: The integers.

    Returns:
        Positional and keyword arguments.
    """
    positional, named = _parse(layout)
    tensor_iterator, int_iterator = iter(tensors), iter(ints)
    return positional(tensor_iterator, int_iterator), named(tensor_iterator, int_iterator)


@functools.lru_cache(maxsize=4096)
def _parse(layout: str) -> tuple[Rebuild, Rebuild]:
    reader = _Reader(layout)
    return reader.value(), reader.value()


class _Reader:
    """Reads a layout into functions that take the next tensors and integers and return the value."""

    def __init__(self, layout: str) -> None:
        self._layout = layout
        self._at = 0

    def value(self) -> Rebuild:
        tag = self._take(1)
        if tag in _FROM_INPUTS:
            return _FROM_INPUTS[tag]
        if tag in "([z":
            return self._sequence(tag)
        if tag == "{":
            return self._dict()
        constant = _PLAIN[tag] if tag in _PLAIN else _FROM_TEXT[tag](self._take(self._number()))
        return lambda _tensors, _ints: constant

    def _sequence(self, tag: str) -> Rebuild:
        items = [self.value() for _ in range(self._number())]
        kind = {symbol: kind for kind, symbol in _CONTAINERS.items()}[tag]
        return lambda tensors, ints: kind([item(tensors, ints) for item in items])

    def _dict(self) -> Rebuild:
        items = []
        for _ in range(self._number()):
            self._take(1)
            key = self._take(self._number())
            items.append((key, self.value()))
        return lambda tensors, ints: {key: item(tensors, ints) for key, item in items}

    def _number(self) -> int:
        end = self._layout.index(";", self._at)
        number = int(self._layout[self._at : end])
        self._at = end + 1
        return number

    def _take(self, length: int) -> str:
        start, self._at = self._at, self._at + length
        return self._layout[start : self._at]


def _torch_attribute(text: str) -> Any:
    return getattr(torch, text.removeprefix("torch."))


def _enum_member(text: str) -> Any:
    module, qualname, name = text.split(":")
    kind: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in qualname.split("."):
        kind = getattr(kind, part)
    return kind[name]


_FROM_INPUTS: dict[str, Rebuild] = {
    "t": lambda tensors, _: next(tensors),
    "g": lambda tensors, _: next(tensors).requires_grad_(),
    "p": lambda tensors, _: torch.nn.Parameter(next(tensors), requires_grad=False),
    "P": lambda tensors, _: torch.nn.Parameter(next(tensors)),
    "d": lambda tensors, _: next(tensors).item(),
    "i": lambda _, ints: next(ints),
    "b": lambda _, ints: bool(next(ints)),
}

_PLAIN = {"n": None, "T": True, "F": False}

_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "s": str,
    "f": float,
    "c": complex,
    "v": torch.device,
    "a": _torch_attribute,
    "e": _enum_member,
    "l": logging.getLogger,
}
