"""Branches beside the selections that stand for them: one that cannot be made costs no graph and no compilation."""

# ruff: noqa: PLW0108, SIM105, SIM108
from __future__ import annotations

import pytest
import torch
from runtime_helpers import Compiled, see

from graphmend import select

ONES = torch.ones(2, 2)
SCALES = (1.0, -1.0, 0.3, -0.3)
LINEAR = torch.nn.Linear(2, 2)


def positive(x):
    return x.sum() > 0


class Shapes:
    """The sides do not agree in shape."""

    def branch(self, x):
        y = x * 2
        if positive(y):
            z = y + 1
        else:
            z = y.sum()
        return z * 3

    def selection(self, x):
        y = x * 2
        z = select(positive(y), lambda: y + 1, lambda: y.sum())
        return z * 3


class TwoNames:
    def branch(self, x):
        y = x * 2
        if positive(y):
            a, b = y + 1, y - 1
        else:
            a, b = LINEAR(y), y
        return a * b

    def selection(self, x):
        y = x * 2
        a, b = select(positive(y), lambda: (y + 1, y - 1), lambda: (LINEAR(y), y))
        return a * b


class EarlyReturn:
    def branch(self, x):
        y = x * 2
        if positive(y):
            return LINEAR(y)
        return y - 1

    def selection(self, x):
        y = x * 2
        return select(positive(y), lambda: LINEAR(y), lambda: y - 1)


class Expression:
    def branch(self, x):
        y = x * 2
        return (LINEAR(y) if positive(y) else y) * 3

    def selection(self, x):
        y = x * 2
        return select(positive(y), lambda: LINEAR(y), lambda: y) * 3


class Statements:
    def branch(self, x):
        y = x * 2
        if positive(y):
            z = LINEAR(y)
            y = z * z
        return y * 3

    def selection(self, x):
        y = x * 2

        def if_true():
            z = LINEAR(y)
            return z * z

        y = select(positive(y), if_true, lambda: y)
        return y * 3


class Nested:
    def branch(self, x):
        y = x * 2
        if positive(y):
            if y[0, 0] > 1:
                y = LINEAR(y)
            else:
                y = y + 1
        return y * 3

    def selection(self, x):
        y = x * 2
        y = select(positive(y), lambda: select(y[0, 0] > 1, lambda: LINEAR(y), lambda: y + 1), lambda: y)
        return y * 3


class Chain:
    def branch(self, x):
        y = x * 2
        if positive(y):
            y = LINEAR(y)
        elif y[0, 0] < -1:
            y = y * LINEAR.weight
        else:
            y = y - 4
        return y * 3

    def selection(self, x):
        y = x * 2
        y = select(
            positive(y),
            lambda: LINEAR(y),
            lambda: select(y[0, 0] < -1, lambda: y * LINEAR.weight, lambda: y - 4),
        )
        return y * 3


class Several:
    def branch(self, x):
        if positive(x):
            x = LINEAR(x)
        x = x * 2
        if x[0, 0] > 1:
            x = x * LINEAR.bias
        return x * 2

    def selection(self, x):
        x = select(positive(x), lambda: LINEAR(x), lambda: x)
        x = x * 2
        x = select(x[0, 0] > 1, lambda: x * LINEAR.bias, lambda: x)
        return x * 2


class InputWithoutGradients:
    """One side is an input that requires a gradient, the other one a new tensor that does not."""

    def branch(self, x):
        with torch.no_grad():
            y = x * 2
            if positive(y):
                y = y * 2
            else:
                y = x
        return x + y

    def selection(self, x):
        with torch.no_grad():
            y = x * 2
            y = select(positive(y), lambda: y * 2, lambda: x, grad="where")
        return x + y


class Random:
    def branch(self, x):
        y = x * 2
        if positive(y):
            y = y * torch.rand(2, 2)
        else:
            y = y + 1
        return y * 3

    def selection(self, x):
        y = x * 2
        y = select(positive(y), lambda: y * torch.rand(2, 2), lambda: y + 1)
        return y * 3


class Helper:
    """The branch is in a function that the compiled one calls."""

    def branch(self, x):
        return Statements().branch(x + 1) * 2

    def selection(self, x):
        return Statements().selection(x + 1) * 2


class Loop:
    """Dynamo gives up the frame of a branch in a loop; modules that it calls are compiled."""

    def branch(self, x):
        for _ in range(3):
            if positive(x):
                x = LINEAR(x)
            else:
                x = x + 1
        return x * 2

    def selection(self, x):
        for _ in range(3):
            x = select(positive(x), lambda: LINEAR(x), lambda: x + 1)  # noqa: B023
        return x * 2


class Try:
    def branch(self, x):
        try:
            x = LINEAR(x) if positive(x) else x
        except ValueError:
            pass
        return x * 2

    def selection(self, x):
        try:
            x = select(positive(x), lambda: LINEAR(x), lambda: x)
        except ValueError:
            pass
        return x * 2


def compiled_over_calls(function, grad):
    """What calls of a compiled function show, and after each the graphs compiled so far."""
    compiled = Compiled(function)
    seen, counts = [], []
    for scale in SCALES:
        x = (ONES * scale).requires_grad_(grad)
        LINEAR.zero_grad()
        torch.manual_seed(0)
        with torch.set_grad_enabled(grad):
            seen.append(see(compiled, x))
            if grad:
                seen[-1].value.sum().backward()
        seen.append([see(lambda tensor=tensor: tensor.grad) for tensor in (x, *LINEAR.parameters())])
        counts.append(compiled.graphs)
    return seen, counts


PAIRS = [
    *(Shapes, TwoNames, EarlyReturn, Expression, Statements, Nested, Chain, Several),
    *(InputWithoutGradients, Random, Helper, Loop, Try),
]


@pytest.mark.parametrize("grad", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("pair", PAIRS)
def test_no_more_graphs_than_the_branch(pair, grad):
    expected, before = compiled_over_calls(pair().branch, grad)
    seen, after = compiled_over_calls(pair().selection, grad)
    assert seen == expected
    assert all(graphs <= most for graphs, most in zip(after, before))


def test_a_side_that_breaks_goes_on_in_the_graph():
    def before(x):
        y = x * 2
        if positive(y):
            z = y + 1
        else:
            z = y.view(7, 7)
        return z * 3

    def after(x):
        y = x * 2
        return select(positive(y), lambda: y + 1, lambda: y.view(7, 7)) * 3

    compiled = Compiled(before), Compiled(after)
    for each in compiled:
        assert see(each, ONES) == see(before, ONES)
    assert compiled[0].graphs == compiled[1].graphs == 2
