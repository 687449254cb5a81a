"""What the tables say of torch operations, against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from graphmend.signatures import Signature
from graphmend.signatures import torch as tables

TABLES = tables()
VALUES = (math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 1e30, -1e30, 3e-39)
ZERO_INTEGERS = torch.zeros(2, dtype=torch.int64)


def function(name: str) -> Callable[..., Any] | None:
    return getattr(torch, name, None) or getattr(functional, name, None)


def is_finite(name: str, value: float) -> bool:
    """Whether the gradient of an operation on one tensor is finite at a value, alone and among others."""
    for others in ([], [1.0, -2.0]):
        x = torch.tensor([value, *others], requires_grad=True)
        called = function(name)
        assert called is not None
        result = called(x)
        (result[0] if isinstance(result, tuple) else result).sum().backward()
        if x.grad is not None and not bool(torch.isfinite(x.grad).all()):
            return False
    return True


def of_one_tensor() -> list[Signature]:
    """The differentiable operations that take nothing but a tensor."""
    found: list[Signature] = []
    for signature in TABLES.operations.values():
        if signature.returns != "tensor" or signature.flags & {"view", "mutates", "random", "constant", "dynamic"}:
            continue
        try:
            is_finite(signature.name, 1.0)
        except Exception:  # it wants more than one tensor
            continue
        found.append(signature)
    return found


@pytest.mark.filterwarnings("ignore")
def test_bounded_derivatives() -> None:
    signatures = [signature for signature in of_one_tensor() if signature.has("bounded")]
    assert len(signatures) > 25
    assert [
        (signature.name, value) for signature in signatures for value in VALUES if not is_finite(signature.name, value)
    ] == []


@pytest.mark.parametrize(
    "name",
    [
        "tanh",
        "sigmoid",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "sin",
        "cos",
        "logsigmoid",
        "softsign",
        "amax",
        "amin",
        "nanmean",
    ],
)
def test_unbounded_derivatives(name: str) -> None:
    assert not TABLES.operations[name].has("bounded")
    assert not all(is_finite(name, value) for value in VALUES)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division(name: str) -> None:
    assert TABLES.operations[name].flags == {"divides"}
    called = function(name)
    assert called is not None
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        called(torch.ones(2, dtype=torch.int64), ZERO_INTEGERS)
    called(torch.ones(2), torch.zeros(2))


def test_division_with_a_rounding_mode() -> None:
    assert TABLES.operations["div"].has("divides")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(torch.ones(2, dtype=torch.int64), ZERO_INTEGERS, rounding_mode="floor")


def test_scatter_fails_for_an_index() -> None:
    assert not TABLES.operations["scatter"].has("total")
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.zeros(3).scatter(0, torch.tensor([7]), 1.0)
