from __future__ import annotations

import collections
import enum
import math

import pytest
import torch
from runtime_helpers import Compiled, graphs_after, plain, see

import graphmend
from graphmend.runtime.codec import decode_call, encode_call

X = torch.ones(2, 2)


class Color(enum.Enum):
    RED = "r"


class Level(enum.IntEnum):
    HIGH = 3


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024
PARAMETER = torch.nn.Parameter(torch.eye(2))
FROZEN = torch.nn.Parameter(torch.eye(2), requires_grad=False)

CARRIED = [
    X,
    PARAMETER,
    FROZEN,
    3,
    -(2**40),
    2**63 - 1,
    -(2**63),
    True,
    False,
    None,
    0.1,
    -0.0,
    1e300,
    math.inf,
    math.nan,
    1 + 2j,
    "",
    "q'\"\n\\n{brace} %s \x00 ünï \u2028 😀",
    torch.float16,
    torch.strided,
    torch.channels_last,
    torch.device("cpu"),
    torch.device("cuda", 1),
    torch.Size([1, 2]),
    Color.RED,
    Level.HIGH,
    (),
    [],
    {},
    (1, [2.5, {"a": X, "b; c": (None,)}]),
]
REFUSED = [object(), {1, 2}, Point(1, 2), {1: 2}, range(3), slice(1), b"x", len, torch.nn.Linear]
# What an operator takes as an integer has 64 bits, and what it takes as a string is UTF-8.
BEYOND = [
    *(2**63, -(2**63) - 1, 10**30, [1, 2**64]),
    *("\ud800", "undecodable \udcff name", ("a", "\udfff"), {"\ud800": 1}, {"key": "\udc80"}),
]


@graphmend.effect
def say(*args, **kwargs):
    print("said", *args, *kwargs.items())


def ids(value):
    return type(value).__name__


@pytest.mark.parametrize("value", CARRIED, ids=ids)
def test_arguments_arrive_as_they_were(value):
    tensors: list[torch.Tensor] = []
    ints: list[int] = []
    layout = encode_call((value, 1), {"name": value}, tensors, ints)
    assert layout is not None
    args, kwargs = decode_call(layout, tensors, ints)
    assert plain(args) == plain((value, 1))
    assert plain(kwargs) == plain({"name": value})


@pytest.mark.parametrize("value", [*REFUSED, *BEYOND], ids=ids)
def test_other_arguments_are_refused(value):
    assert encode_call((value,), {}, [], []) is None
    assert encode_call((), {"name": [value]}, [], []) is None


def test_all_kinds_in_a_graph(backend):
    def function(x):
        for value in CARRIED:
            say(value, name=value)
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 1


@pytest.mark.parametrize("value", [*REFUSED, *BEYOND], ids=ids)
def test_refused_arguments_break_the_graph(value):
    def function(x):
        y = x @ x
        say(value, y)
        return y @ x

    compiled = Compiled(function)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 2


def test_symbolic_numbers(backend):
    def function(x):
        say(x.shape, x.shape[0], x.shape[0] * 2, x.shape[0] > 3, x.shape[0] / 3, [x.size(1)], n=x.numel())
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True, dynamic=True)
    for n in range(2, 6):
        assert see(compiled, torch.ones(n, n)) == see(function, torch.ones(n, n))


def test_numbers_read_from_tensors():
    def function(x):
        n = int(x.sum().item())
        say(n, n > 3, x.mean().item())
        return x @ x

    for name in ("eager", "aot_eager"):
        compiled = Compiled(function, name, fullgraph=True)
        for n in (1, 2):
            assert see(compiled, X * n) == see(function, X * n)


def before(x, value):
    y = x @ x
    print("said", value)
    return y @ x


def after(x, value):
    y = x @ x
    say(value)
    return y @ x


class Holder:
    def __init__(self, value) -> None:
        self.value = value


def before_attribute(x, holder):
    return before(x, holder.value)


def after_attribute(x, holder):
    return after(x, holder.value)


VARYING = {
    "int": list(range(20)),
    "float": [i * 0.5 for i in range(20)],
    "float that is not finite": [0.5, math.nan, math.inf, -math.inf] * 5,
    "bool": [True, False] * 10,
    "none": [None, 1] * 10,
    "tuple": [(i, i * 0.5) for i in range(20)],
}


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("values", VARYING.values(), ids=VARYING.keys())
def test_varying_arguments_are_compiled_no_more_often_than_before(values, name):
    calls = [(X, value) for value in values]
    assert graphs_after(after, calls, backend=name) <= graphs_after(before, calls, backend=name)
    calls = [(X, Holder(value)) for value in values]
    assert graphs_after(after_attribute, calls, backend=name) <= graphs_after(before_attribute, calls, backend=name)


def test_varying_arguments_say_the_same(backend):
    for values in VARYING.values():
        compiled = Compiled(after, backend)
        for value in values[:5]:
            assert see(compiled, X, value) == see(after, X, value)


def test_varying_sizes_are_compiled_no_more_often_than_before():
    calls = [(torch.ones(n, n), torch.ones(n, n).shape) for n in range(2, 22)]
    assert graphs_after(after, calls) <= graphs_after(before, calls)


def test_varying_text_breaks_the_graph_in_the_end():
    compiled = Compiled(after)
    seen = []
    for i in range(20):
        assert see(compiled, X, f"step {i}") == see(after, X, f"step {i}")
        seen.append(compiled.graphs)
    # One for each of the first texts; then two, for good, as before.
    assert seen[2] == 3
    assert seen[5:] == [seen[5]] * 15


def test_integers_of_more_than_64_bits_are_said_once_integers_are_symbolic(backend):
    compiled = Compiled(after, backend)
    for number in (1, 2, 3, 2**62, 2**63, 2**70, -(2**63), -(2**64), 5):
        assert see(compiled, X, number) == see(after, X, number)


class Counting(torch.nn.Module):
    """An integer in an attribute of a module is a constant to Dynamo."""

    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        y = x @ x
        say("step", self.step, y)
        return y @ x


def test_varying_integers_of_modules_break_the_graph_in_the_end():
    model, stock = Counting(), Counting()
    compiled = Compiled(model)
    seen = []
    for i in range(7):
        model.step = stock.step = i * 3
        assert see(compiled, X) == see(stock, X)
        seen.append(compiled.graphs)
    # Three that hold the message; then the part in front of it, for each value as before, and the part behind it, once.
    assert seen[:4] == [1, 2, 3, 5]
    assert seen[-1] <= 8


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "step", model.step + 1),
        lambda model: model.history.append(1),
        lambda model: model.history.__setitem__(0, model.history[0] + 1),
        lambda model: model.named.update({str(len(model.named)): 1}),
        lambda model: setattr(model, "step", f"{model.step}x"),
    ],
    ids=["int", "list that grows", "list of one", "dict that grows", "text"],
)
@pytest.mark.parametrize("traced", [True, False])
def test_state_that_changes_is_compiled_no_more_often_than_before(change, traced):
    class Before(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.history, self.named = 0, [0], {}

        def forward(self, x):
            y = x @ x
            if traced:
                change(self)
            print("said", self.step, *self.history, self.named)
            return y @ x

    class After(Before):
        def forward(self, x):
            y = x @ x
            if traced:
                change(self)
            say(self.step, *self.history, self.named)
            return y @ x

    graphs = []
    for model in (Before(), After()):
        compiled = Compiled(model)
        for _ in range(6):
            see(compiled, X)
            if not traced:
                change(model)
        graphs.append(compiled.graphs)
    # A text the original never looks at.
    assert graphs[1] <= graphs[0] + (3 if graphs[0] == 2 else 0)


def test_constant_text_in_many_frames_stays_in_the_graph():
    def function(x, flag):
        say("first" if flag else "second")
        return x @ x

    compiled = Compiled(function, fullgraph=True, dynamic=False)
    for n in range(2, 6):
        for flag in (True, False):
            assert see(compiled, torch.ones(n, n), flag) == see(function, torch.ones(n, n), flag)
