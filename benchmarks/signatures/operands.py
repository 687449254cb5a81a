"""Operands of calls: small tensors by letter, made with the values, kinds and sizes that a call is to be tried with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType
from typing import Any

import torch

SPECIAL = (math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 1e30, -1e30, 3e-39)
"""Values at which floating operations fail, or have a derivative that is not finite, if they do anywhere."""
SPECIAL_INTEGERS = (0, -1, 7, 2**62, -(2**63))

_DTYPES = {"bool": torch.bool, "int": torch.int64, "float": torch.float32}
_KINDS = {
    "x": ("float", (3, 3)),
    "y": ("float", (3, 3)),
    "w": ("float", (3, 3)),
    "v": ("float", (3,)),
    "r": ("float", (3,)),
    "s": ("float", ()),
    "i": ("int", (3, 3)),
    "j": ("int", (3,)),
    "k": ("int", ()),
    "b": ("bool", (3, 3)),
    "c": ("bool", (3, 3)),
    "p": ("float", (2, 2, 2)),
    "q": ("float", (2, 2, 2)),
    "t": ("float", (1, 4, 4)),
    "u": ("float", (1, 4, 4, 4)),
    "g": ("float", (1, 4, 4, 4, 4)),
    "m": ("float", (4,)),
    "n": ("float", (4,)),
}
_TYPED = {"h": torch.float16, "bf": torch.bfloat16, "d": torch.float64, "z": torch.complex64, "by": torch.uint8}
_TYPED |= {"sh": torch.int16, "it": torch.int32}


@dataclass(frozen=True)
class Variant:
    """How the operands of a call differ from the plain ones.

    Args:
        fills: the value of all elements, by letter.
        starts: the value of the first element alone, by letter.
        kinds: ``bool``, ``int`` or ``float`` instead of an operand's own kind, by letter.
        ones: whether all operands have one element; ``scalar`` also takes their dimensions.
        gradients: whether floating operands require gradients.
    """

    fills: dict[str, float] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    ones: str = ""
    gradients: bool = False

    def with_gradients(self) -> Variant:
        """The same with gradients."""
        return replace(self, gradients=True)


PLAIN = Variant()


class Recipe:
    """The arguments of a call as text, such as ``x, 0, dim=1``; letters are tensors.

    Args:
        text: the arguments.

    Attributes:
        letters: the tensors, in order.
        positional: how many arguments are given by position.
        keywords: the names of the other arguments.
        casts: whether a dtype is among the arguments.
        has_zero: whether a zero is.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.code: CodeType = compile(f"_({text})", text, "eval")
        self.letters = tuple(name for name in self.code.co_names if name in _KINDS or name in _TYPED)
        arguments, keywords = self.build(PLAIN)
        self.positional = len(arguments)
        self.keywords = frozenset(keywords)
        self.has_zero = any(type(each) in (int, float) and not each for each in arguments)
        self.casts = any(isinstance(each, torch.dtype) for each in (*arguments, *keywords.values()))

    def build(self, variant: Variant) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments."""
        found: tuple[tuple[Any, ...], dict[str, Any]] = eval(self.code, {"_": _take, "torch": torch}, Operands(variant))
        return found

    @property
    def is_typed(self) -> bool:
        """Whether a tensor has a dtype of its own, and keeps it."""
        return any(letter in _TYPED for letter in self.letters)

    @property
    def has_numbers(self) -> bool:
        """Whether a tensor beside the first one has no dimensions, so that torch may take it for a number."""
        return any(_KINDS.get(letter, ("", (3,)))[1] == () for letter in self.letters[1:])

    def kind(self, letter: str) -> str:
        """What a tensor of the recipe holds: ``bool``, ``int``, ``float``, or nothing of these."""
        return kind_of(_TYPED[letter]) if letter in _TYPED else _KINDS[letter][0]


class Operands(dict[str, torch.Tensor]):
    """The tensors of one call by letter, made when they are asked for."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.variant = variant

    def __missing__(self, letter: str) -> torch.Tensor:
        self[letter] = made = make(letter, self.variant)
        return made


def make(letter: str, variant: Variant) -> torch.Tensor:
    """A tensor.

    Raises:
        KeyError: there is no such letter.
    """
    made = _plain(letter, variant.kinds.get(letter, ""), variant.ones).clone()
    if letter in variant.fills:
        made.copy_(_number(variant.fills[letter]))  # which, other than `fill_`, takes what the dtype cannot hold
    elif letter in variant.starts:
        made.view(-1)[:1] = _number(variant.starts[letter])
    if variant.gradients and (made.is_floating_point() or made.is_complex()):
        made.requires_grad_()
    return made


@lru_cache(None)
def _plain(letter: str, kind: str, ones: str) -> torch.Tensor:
    if letter in _TYPED:
        shape: tuple[int, ...] = (3, 3)
        dtype = _TYPED[letter]
    else:
        own, shape = _KINDS[letter]
        dtype = _DTYPES[kind or own]
    if ones:
        shape = () if ones == "scalar" else (1,) * len(shape)
    count = math.prod(shape)
    if not (dtype.is_floating_point or dtype.is_complex):
        return (torch.arange(count) % (2 if dtype is torch.bool else 3)).reshape(shape).to(dtype)
    # Between 0 and 1, and different for each letter; matrices are symmetric, positive and well-conditioned.
    made = (torch.linspace(0.1, 0.6, count) + sum(map(ord, letter)) % 7 * 0.01).reshape(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        made = made * 0.5 + torch.eye(shape[-1]) * 0.4
        made = (made + made.transpose(-1, -2)) / 2
    return made.to(dtype)


@lru_cache(None)
def _number(value: float) -> torch.Tensor:
    return torch.tensor(value)


def kind_of(dtype: torch.dtype) -> str:
    """``bool``, ``int``, ``float`` or ``complex``."""
    if dtype is torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "complex" if dtype.is_complex else "int"


def _take(*arguments: Any, **keywords: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return arguments, keywords
