"""What an exception out of a graph must not pass by, and what an effect must not come before."""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from runtime_helpers import Compiled, graphs_after, plain, see

import graphmend

log = logging.getLogger("user.around")
X = torch.ones(3)
SEEN: list[int] = []


@graphmend.effect
def check(bad):
    if bad:
        raise ValueError("negative")


@graphmend.effect
def say(*args):
    print("said", *args)


@graphmend.effect
def inform():
    log.warning("counted")


class Counter:
    """An object that counts what Python asks of it."""

    def __init__(self) -> None:
        self.n = 0
        self.buffer = torch.ones(3)

    def count(self, value: Any = None, _other: Any = None) -> Any:
        self.n += 1
        return value

    def __add__(self, other: object) -> Counter:
        return self.count(self)

    def __iter__(self) -> Iterator[int]:
        self.count()
        return iter((1,))

    def __bool__(self) -> bool:
        self.count()
        return True

    @functools.cached_property
    def once(self) -> int:
        return 1


class Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        SEEN.append(1)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


def add(counter, x):
    counter + 1
    return x


def iterate(counter, x):
    for each in counter:
        x = x + each
    return x


def ask(counter, x):
    return x * 2 if counter else x


def reduce(counter, x):
    return functools.reduce(counter.count, [1, 2], x)


def by_computed_name(counter, x):
    return getattr(counter, "co" + "unt")(x)


def cached(counter, x):
    return x * counter.once


def in_function(counter, x):
    return Recorded.apply(x)


def of_argument(counter, x, *, seen=SEEN):
    seen.append(1)
    return x


def write_buffer(counter, x):
    counter.buffer.mul_(2)
    return x * counter.buffer


def write_view(counter, x):
    counter.buffer.view(-1)[1:].add_(1)
    return x


CHANGES = [add, iterate, ask, reduce, by_computed_name, cached, in_function, of_argument, write_buffer, write_view]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_changes_before_an_exception_are_kept(change, backend):
    def program(counter, x):
        y = change(counter, torch.sin(x))
        check((y < 0).any())
        return y

    def state_after(function):
        SEEN.clear()
        counter = Counter()
        seen = [see(function, counter, x) for x in (-X, X, -X)]
        return seen, plain(vars(counter)), list(SEEN)

    assert state_after(Compiled(program, backend)) == state_after(program)


def test_changes_of_what_the_frame_has_made_do_not_matter():
    def program(x, **options):
        scale = options.pop("scale")
        counter, parts = Counter(), []
        parts.append(counter.count(x * scale))
        counter.buffer.mul_(2)
        check((x < 0).any())
        return parts[0] + counter.n

    compiled = Compiled(program, fullgraph=True)
    assert see(compiled, X, scale=2.0) == see(program, X, scale=2.0)
    assert see(compiled, -X, scale=2.0) == see(program, -X, scale=2.0)


def in_try(run, x):
    try:
        return run(x)
    except ValueError:
        return x * 0


def in_finally(run, x):
    try:
        return run(x)
    finally:
        SEEN.append(2)


def in_handler(run, x):
    try:
        raise KeyError("first")
    except KeyError:
        return run(x)


def in_outer_try(run, x):
    def inner(x):
        return run(x) + 1

    return in_try(inner, x)


def in_suppress(run, x):
    with contextlib.suppress(ValueError):
        return run(x)
    return x * 0


def in_no_grad(run, x):
    with torch.no_grad():
        return run(x)


def in_comprehension(run, x):
    return [run(each) for each in (x, x + 1)][-1]


@pytest.mark.parametrize(
    "around",
    [in_try, in_finally, in_handler, in_outer_try, in_suppress, in_no_grad, in_comprehension],
    ids=lambda f: f.__name__,
)
def test_handlers_see_exceptions(around, backend):
    def run(x):
        y = torch.sin(x)
        check((y < 0).any())
        return y * 2

    def program(x):
        return around(run, x)

    def state_after(function):
        SEEN.clear()
        seen = [see(function, x) for x in (X, -X, X)]
        contexts = [repr(each.error and each.error.__context__) for each in seen]
        return seen, contexts, list(SEEN), torch.is_grad_enabled()

    assert state_after(Compiled(program, backend)) == state_after(program)


@pytest.mark.parametrize("around", [None, in_comprehension], ids=["alone", "in a comprehension"])
def test_check_without_handlers_is_one_graph(around):
    def run(x):
        check((x < 0).any())
        return x * 2

    def program(x):
        return run(x) if around is None else around(run, x)

    assert graphs_after(program, [(X,), (-X,), (X,)], fullgraph=True) == 1


def test_a_print_that_is_replaced(backend):
    def program(x):
        old = builtins.print
        builtins.print = lambda *values: None
        try:
            y = x * 2
            say(y)
        finally:
            builtins.print = old
        return y

    assert see(Compiled(program, backend), X) == see(program, X)


class Counted(logging.Filter):
    """Puts into each record what the counter says when the record is made."""

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self.counter = counter

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg += f" at {self.counter.n}"
        return True


@pytest.mark.parametrize("of_handler", [False, True], ids=["of the logger", "of a handler"])
def test_filter_that_looks_at_what_is_changed(of_handler, backend):
    def program(counter, x):
        y = counter.count(x) * 2
        inform()
        return counter.count(y)

    def seen_by(function):
        counter = Counter()
        handler = logging.NullHandler()
        owner = handler if of_handler else log
        owner.addFilter(Counted(counter))
        log.addHandler(handler)
        try:
            return [see(function, counter, x) for x in (X, X + 1)]
        finally:
            log.removeHandler(handler)
            log.filters.clear()

    assert seen_by(Compiled(program, backend)) == seen_by(program)


@graphmend.effect
def warn(bad):
    if bad:
        warnings.warn("negative", RuntimeWarning, stacklevel=3)


def test_warning_that_is_an_error(backend):
    def program(counter, x):
        y = counter.count(torch.sin(x))
        warn((y < 0).any())
        return y

    def seen_by(function):
        counter = Counter()

        def strict(x):
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                return function(counter, x)

        seen = [see(strict, x) for x in (X, -X, X)]
        return [(plain(each.value), repr(each.error)) for each in seen], counter.n

    assert seen_by(Compiled(program, backend)) == seen_by(program)


def test_message_after_a_change_of_an_object_stays_in_the_graph():
    def program(counter, x):
        y = counter.count(x) * 2
        say(y)
        return y

    compiled = Compiled(program, fullgraph=True)
    assert see(compiled, Counter(), X) == see(program, Counter(), X)
    assert compiled.graphs == 1


def test_message_behind_a_break_makes_no_graph():
    def program(x):
        total = (x * 2).sum().item()
        say(total)
        return total

    calls = [(X * factor,) for factor in range(5)]
    assert [see(Compiled(program), *each) for each in calls] == [see(program, *each) for each in calls]
    assert graphs_after(program, calls) == 1


def test_messages_of_what_is_called_behind_a_break_are_in_its_graph():
    def layer(x):
        say("layer", x.shape)
        return x * 2

    def program(x):
        y = layer(x)
        torch._dynamo.graph_break()
        return layer(layer(y))

    assert graphs_after(program, [(X,), (X,)]) == 2


def test_arm_that_makes_a_lazy_cache_is_selected(backend):
    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", torch.ones(3))

        def longer(self):
            if not hasattr(self, "long_frequencies"):
                self.long_frequencies = torch.arange(3.0)
            return self.long_frequencies

        def forward(self, x):
            return x * graphmend.select(x.sum() > 3, self.longer, lambda: self.frequencies)

    compiled = Compiled(Rotary(), backend, fullgraph=True)
    for x in (X, X + 1, X):
        assert see(compiled, x) == see(Rotary(), x)


Reader = Callable[[Any, torch.Tensor], torch.Tensor]


def default(holder: Any, x: torch.Tensor) -> torch.Tensor:
    return x + holder.defaults["k"]


def cached_once(holder: Any, x: torch.Tensor) -> torch.Tensor:
    return x * holder.once


def counted(holder: Any, x: torch.Tensor) -> torch.Tensor:
    return holder.count(x)


@pytest.mark.parametrize("read", [default, cached_once, counted], ids=lambda f: f.__name__)
def test_arm_that_changes_an_object_is_run_only_if_taken(read: Reader, backend):
    def program(holder, x):
        return graphmend.select(x.sum() > 0, lambda: read(holder, x), lambda: x * 2)

    def state_after(function, x):
        holder = Counter()
        holder.defaults = collections.defaultdict(int, {"a": 1})
        return plain(function(holder, x)), repr(vars(holder))

    for x in (-X, X):
        assert state_after(Compiled(program, backend), x) == state_after(program, x)
