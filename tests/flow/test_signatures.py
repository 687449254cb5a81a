"""What the tables say of torch operations, against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from benchmarks.signatures import __main__ as script
from benchmarks.signatures import behaviours, check, integers, missing
from benchmarks.signatures.calls import quiet
from graphmend.signatures import Signature
from graphmend.signatures import torch as tables
from graphmend.signatures.behaviour import behaviour

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


# -------------------------------------------------------------------- the script


@pytest.mark.slow
def test_all_facts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([]) == 0, capsys.readouterr().out


def test_facts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """Some of each kind; all of them take a while."""
    names = [
        "isnan",
        "add",
        "clamp",
        "expand",
        "max",
        "split",
        "div",
        "add_",
        "bernoulli_",
        "nonzero",
        "where",
        "size",
        "item",
    ]
    names += ["sort", "linear", "dropout", "as_tensor", "tanh", "fft", "erfcx", "inv", "combinations", "embedding_bag"]
    assert script.main(names) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "change", "facts"),
    [
        ("tanh", {"flags": frozenset({"total", "bounded"})}, "bounded"),
        ("elu", {"flags": frozenset({"total", "bounded"})}, "bounded"),
        ("mul", {"flags": frozenset({"total", "bounded"})}, "bounded"),
        ("square", {"flags": frozenset({"total", "affine"})}, "affine"),
        ("scatter", {"flags": frozenset({"total"})}, "total"),
        ("remainder", {"flags": frozenset({"total"})}, "total"),
        ("bernoulli", {"flags": frozenset({"random", "divides"})}, "divides"),
        ("as_tensor", {"flags": frozenset({"total", "bounded", "constant"})}, "constant"),
        ("rand_like", {"flags": frozenset({"constant"})}, "random"),
        ("clone", {"flags": frozenset({"total", "bounded", "random"})}, "random"),
        ("transpose", {"flags": frozenset({"total", "bounded"})}, "view"),
        ("clone", {"flags": frozenset({"total", "bounded", "view"})}, "view"),
        ("add_", {"flags": frozenset({"total"})}, "mutates view"),
        ("add", {"flags": frozenset({"total", "mutates"})}, "mutates"),
        ("nonzero", {"flags": frozenset()}, "dynamic"),
        ("nonzero_static", {"flags": frozenset({"dynamic"})}, "dynamic"),
        ("equal", {"flags": frozenset({"constant"})}, "reads"),
        ("add", {"dtype": "same"}, "dtype"),
        ("exp", {"dtype": "same"}, "dtype"),
        ("argmax", {"dtype": "bool"}, "dtype"),
        ("expand", {"single": "operands"}, "single"),
        ("neg", {"single": "whole"}, "single"),
        ("sum", {"single": "always"}, "single"),
        ("svd", {"returns": "tensor"}, "returns"),
        ("size", {"returns": "static"}, ""),  # a static value may be a number
        ("numel", {"returns": "scalar"}, "returns"),
        ("aminmax", {"pair": ""}, "returns"),
    ],
)
def test_wrong_facts_are_found(name: str, change: dict[str, Any], facts: str) -> None:
    wrong = replace(TABLES.operations[name], **change)
    with quiet():
        found = {each.fact for each in check.compare(name, wrong, TABLES, behaviour())}
    assert found == set(facts.split())


def test_wrong_behaviour_is_found() -> None:
    known = behaviour()
    wrong = replace(
        known,
        in_place={**known.in_place, "elu": 1},
        no_gradient={"where": frozenset({0})},
        bounded_modules=frozenset({"torch.nn.ELU"}),
        modules_like_argument=frozenset({"torch.nn.Linear", "torch.nn.MaxPool2d"}),
        modules_without_parameters=frozenset({"torch.nn.PReLU"}),
        pure_modules=frozenset({"torch.nn.Embedding", "torch.nn.Dropout"}),
        passing_modules=known.passing_modules - {"torch.nn.Dropout"},
    )
    with quiet():
        found = {(each.name, each.fact) for each in behaviours.mismatches(wrong)}
    assert found == {
        ("elu", "in_place"),
        ("where", "no_gradient"),
        ("ELU", "bounded"),
        ("MaxPool2d", "like_argument"),
        ("PReLU", "without_parameters"),
        ("Embedding", "pure"),
        ("Dropout", "pure"),
    }


def test_nothing_is_missing() -> None:
    assert list(missing.names(TABLES)) == []


def test_missing_operations_are_measured() -> None:
    gone = {"sigmoid", "masked_select", "unbind", "sort", "tril_", "bernoulli", "argmax"}
    lacking = replace(TABLES, operations={name: each for name, each in TABLES.operations.items() if name not in gone})
    with quiet():
        lines = list(missing.groups(lacking))
    assert lines == [
        "groups:",
        "  - {dtype: int, single: whole, flags: [total, constant], names: [argmax]}",
        "  - {dtype: same, single: operands, flags: [random], names: [bernoulli]}",
        "  - {dtype: same, flags: [dynamic], names: [masked_select]}",
        "  - {dtype: float, single: operands, flags: [total], names: [sigmoid]}",
        "  - {dtype: same, single: operands, flags: [total, bounded], names: [sort]}",
        "  - {returns: tensors, dtype: same, flags: [view], names: [unbind]}",
        "  - {dtype: same, flags: [mutates, total], names: [tril_]}",
        "functions:",
        "pairs:",
        "  always: [sort]",
    ]


def test_functions_that_share_a_name() -> None:
    assert TABLES.function("torch.adaptive_max_pool1d") == replace(
        TABLES.operations["adaptive_max_pool1d"], pair="always"
    )
    assert TABLES.function("torch.nn.functional.adaptive_max_pool1d") is TABLES.operations["adaptive_max_pool1d"]
    assert TABLES.function("torch.cond") is None
    assert TABLES.function("torch.linalg.cond") is not None
    assert TABLES.method("fft") is None
    assert TABLES.function("torch.fft.fft") is not None


def test_the_parameters_that_are_whole_numbers_are_those_of_the_installed_torch() -> None:
    text = (Path(integers.__file__).parents[2] / "graphmend" / "signatures" / "integers.yaml").read_text("utf-8")
    assert text == integers.as_yaml()
