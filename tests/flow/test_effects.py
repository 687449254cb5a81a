"""What code does besides computing a value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from graphmend.flow.effects import IMPURE, PARTIAL, Effect, effects_of

BEFORE = """
import logging
import warnings

logger = logging.getLogger(__name__)
COUNT = [0]


def pure(value, factor=2.0):
    parts = [value * factor]
    parts.append(value)
    total = torch.zeros_like(value)
    for part in parts:
        total += part
    return total


def recursive(value, n=3):
    return value if n == 0 else recursive(value * 2.0, n - 1)


def draws(value):
    return pure(value) + torch.rand_like(value)


def counts(value):
    COUNT.append(1)
    return value


def writes(value):
    value.add_(1)
    return value


def even(value, n):
    return odd(value, n - 1) if n else value


def odd(value, n):
    print(value)
    return even(value, n - 1) if n else value


class Pair:
    def __init__(self, first):
        self.first = first
        self.seen = []


class Noisy:
    def __init__(self, first):
        self.first = first
        print(first)
"""

METHODS = """
def remember(self, value):
    self.last = value
    return value

@property
def scale(self):
    return 2.0

@property
def loud(self):
    print("loud")
    return 2.0
"""

CASES: list[tuple[str, set[Effect]]] = [
    ("x * 2.0 + y", set()),
    ("torch.where(x > 0, x, y).clamp(min=0).sum(-1)", set()),
    ("pure(x)", set()),
    ("recursive(x)", set()),
    ("pure(x, factor=len(x.shape))", set()),
    ("Pair(x)", set()),
    ("self.scale", set()),
    ("F.dropout(x, 0.5, training=False)", set()),
    ("F.scaled_dot_product_attention(x, x, x)", set()),
    ("x[0], x[:, None], x[..., -1:]", set()),
    ("torch.finfo(x.dtype).max", set()),
    ("max(x.shape[0], 2)", set()),
    ("x // 2", set()),
    ("x.float() / y", set()),
    ("torch.rand(3)", {Effect.RANDOM}),
    ("F.dropout(x, 0.5)", {Effect.RANDOM}),
    ("F.dropout(x, 0.5, self.training)", {Effect.RANDOM}),
    ("F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)", {Effect.RANDOM}),
    ("draws(x)", {Effect.RANDOM}),
    ("nn.Linear(2, 2)", {Effect.UNKNOWN}),
    ("print(x)", {Effect.MESSAGE}),
    ("warnings.warn('x')", {Effect.MESSAGE}),
    ("logger.warning('x')", {Effect.MESSAGE}),
    ("even(x, 3)", {Effect.MESSAGE}),
    ("odd(x, 3)", {Effect.MESSAGE}),
    ("Noisy(x)", {Effect.MESSAGE}),
    ("self.loud", {Effect.MESSAGE}),
    ("counts(x)", {Effect.MUTATES}),
    ("writes(x)", {Effect.MUTATES}),
    ("writes(x + 1)", set()),
    ("x.add_(1)", {Effect.MUTATES}),
    ("(x + 1).add_(1)", set()),
    ("torch.add(x, y, out=x)", {Effect.MUTATES}),
    ("F.relu(x, inplace=True)", {Effect.MUTATES}),
    ("F.relu(x, inplace=False)", set()),
    ("x.view(-1).relu_()", {Effect.MUTATES}),
    ("self.remember(x)", {Effect.WRITES}),
    ("self.register_buffer('b', x)", {Effect.WRITES}),
    ("setattr(self, 'b', x)", {Effect.WRITES}),
    ("unknown(x)", {Effect.UNKNOWN}),
    ("x.item()", {Effect.READS}),
    ("float(x)", {Effect.READS}),
    ("x if x.sum() > 0 else y", {Effect.READS}),
    ("not x.any()", {Effect.READS}),
    ("x.any() and y.any()", {Effect.READS}),
    ("0 < x.sum() < 1", {Effect.READS}),
    ("1 in x", {Effect.READS}),
    ("x.nonzero()", {Effect.READS}),
    ("x.repeat_interleave(y)", {Effect.READS}),
    ("x[y]", {Effect.FAILS}),
    ("x[y > 0]", {Effect.FAILS}),
    ("x.gather(0, y)", {Effect.FAILS}),
    ("torch.linalg.cholesky(x)", {Effect.FAILS}),
    ("y.long() // y.long()", {Effect.FAILS}),
    ("torch.div(y, y, rounding_mode='floor')", {Effect.FAILS}),
    ("torch.div(y, y)", set()),
    ("F.embedding(y, x)", {Effect.FAILS}),
    ("torch.zeros(int(x.sum()))", {Effect.READS, Effect.FAILS}),
    ("[part * 2 for part in x.unbind(0)]", set()),
    ("[part for part in x.unbind(0) if part.sum() > 0]", {Effect.READS}),
    ("list(map(draws, [x]))", {Effect.RANDOM}),
    ("(lambda: print(x))()", {Effect.MESSAGE}),
]


@pytest.mark.parametrize(("code", "expected"), CASES, ids=[code for code, _ in CASES])
def test_effects_of_an_expression(
    analyse: Callable[..., Any], forward: Callable[..., Any], code: str, expected: set[Effect]
) -> None:
    analysed = analyse(forward(f"z = {code}  # here\nreturn x", BEFORE, METHODS))
    statement = analysed.statement("here")
    assert isinstance(statement, ast.Assign)
    found = effects_of(analysed.program).doings([statement.value], analysed.frame())
    assert {doing.effect for doing in found} == expected, found
    assert {doing.line for doing in found} <= {analysed.line("here")}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("z = []\nz.append(x)\nz[0] = y\ndel z[0]", set()),
        ("self.a = x", {Effect.WRITES}),
        ("p = Pair(x)\np.first = y", set()),
        ("global COUNT\nCOUNT = 2", {Effect.WRITES}),
        ("import os", {Effect.UNKNOWN}),
        ("with torch.no_grad():\n    z = x * 2", set()),
        ("with open('f') as f:\n    pass", {Effect.UNKNOWN}),
        ("z = x + 1\nz += y\nz *= 2.0", set()),
        ("x += 1", {Effect.MUTATES}),
        ("z = x\nz += 1", {Effect.MUTATES}),
        ("z = x.view(-1)\nz[0] = 1", {Effect.MUTATES}),
        ("n = 2\nn += 1", set()),
        ("assert x.shape[0] > 1", set()),
        ("assert (x > 0).all()", {Effect.FAILS}),
        ("if x.shape[0] > 1:\n    raise ValueError('x')", set()),
        ("if x.sum() > 1:\n    raise ValueError('x')", {Effect.READS, Effect.FAILS}),
        ("while x.sum() > 1:\n    x = x / 2", {Effect.READS}),
        ("for i in range(int(x.sum())):\n    z = i", {Effect.READS}),
        ("yield x", {Effect.SUSPENDS}),
        ("if torch.jit.is_scripting():\n    print(x)", set()),
    ],
)
def test_effects_of_statements(
    analyse: Callable[..., Any], forward: Callable[..., Any], body: str, expected: set[Effect]
) -> None:
    analysed = analyse(forward(body, BEFORE, METHODS))
    found = effects_of(analysed.program).doings(analysed.function("forward").body, analysed.frame())
    assert {doing.effect for doing in found} == expected, found


def test_the_kinds_are_of_one_sort() -> None:
    assert not IMPURE & PARTIAL
    assert set(Effect) == IMPURE | PARTIAL


def test_a_call_is_looked_at_with_its_own_arguments(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    before = """
def scaled(value, count):
    return value * (1.0 / count)
"""
    body = "z = scaled(x, 3)  # number\nw = scaled(x, y.sum().item())  # read\nreturn z + w"
    analysed = analyse(forward(body, before))
    effects, frame = effects_of(analysed.program), analysed.frame()
    assert effects.doings([analysed.statement("number")], frame) == []
    assert {doing.effect for doing in effects.doings([analysed.statement("read")], frame)} == {
        Effect.READS,
        Effect.FAILS,
    }
