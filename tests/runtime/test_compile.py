from __future__ import annotations

import asyncio
import contextvars
import copy
import io
import logging
import pickle
import sys
import threading
import warnings

import pytest
import torch
from runtime_helpers import see
from torch._dynamo.testing import CompileCounterWithBackend

import graphmend
from graphmend.runtime import defer

log = logging.getLogger("user.compile")
X = torch.ones(2, 2)
EVENTS: list[str] = []


@graphmend.effect
def say(*args):
    print("said", *args)


@graphmend.effect
def check(bad, x):
    if bad:
        raise ValueError(f"bad {x}")


def helper(x):
    raise KeyError(float(x.sum()))


@graphmend.effect(validates=True)
def check_by_helper(bad, x):
    if bad:
        helper(x)


@graphmend.effect(validates=True)
def announce(x):
    print("checking", x.shape)


@graphmend.effect
def inform(x):
    log.info("x is %s", x, stacklevel=3)


@graphmend.effect
def warn(text):
    warnings.warn(text, stacklevel=3)


@graphmend.effect
def unprintable(x):
    print(f"{x:d}")


@torch.library.custom_op("user_test::shout", mutates_args=())
def shout(x: torch.Tensor) -> torch.Tensor:
    EVENTS.append("operator runs")
    print("operator runs")
    return x.clone()


@shout.register_fake
def _(x):
    return x.clone()


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        say("in", x)
        y = self.linear(x)
        say("out", y.shape)
        return y


def noisy(x):
    say("first", x)
    x = shout(x)
    say("second", x)
    return x @ x


def counter_of(name):
    return CompileCounterWithBackend(name)


def test_messages_come_at_the_end_of_the_graph(backend):
    compiled = graphmend.compile(noisy, backend=backend, fullgraph=True)
    assert see(noisy, X).text == f"said first {X}\noperator runs\nsaid second {X}\n"
    assert see(compiled, X).text == f"operator runs\nsaid first {X}\nsaid second {X}\n"
    # Without a region, they come where they come in eager.
    torch._dynamo.reset()
    assert see(torch.compile(noisy, backend=backend, fullgraph=True), X) == see(noisy, X)


def test_values_are_those_of_the_place(backend):
    def function(x):
        y = x @ x
        say("before", y)
        y.add_(1)
        say("after", y)
        return y @ x

    compiled = graphmend.compile(function, backend=backend, fullgraph=True)
    for scale in (1.0, 2.0):
        assert see(compiled, X * scale) == see(function, X * scale)


def test_check_runs_at_its_place(backend):
    def function(x):
        say("before")
        check((x < 0).any(), x)
        say("between")
        x = shout(x)
        check_by_helper((x > 1).any(), x)
        say("after")
        return x @ x

    compiled = graphmend.compile(function, backend=backend, fullgraph=True)
    for scale, ran in ((1.0, 1), (-1.0, 0), (2.0, 1)):
        EVENTS.clear()
        got = see(compiled, X * scale)
        assert len(EVENTS) == ran
        expected = see(function, X * scale)
        assert got.error is None or (type(got.error), got.error.args) == (type(expected.error), expected.error.args)
        assert sorted(got.text.splitlines()) == sorted(expected.text.splitlines())


def test_messages_before_a_check_come_before_it():
    def function(x):
        say("before")
        announce(x)
        say("after")
        return shout(x)

    text = see(graphmend.compile(function, backend="eager", fullgraph=True), X).text
    assert text == f"said before\nchecking {X.shape}\noperator runs\nsaid after\n"


@graphmend.effect
def leave(x):
    if x.sum() > 0:
        sys.exit(3)


@graphmend.effect
def compare(x):
    torch.testing.assert_close(x, x * 0)


@pytest.mark.parametrize("stop", [leave, compare])
def test_what_stops_the_program_does_not_wait(stop):
    def function(x):
        say("before")
        stop(x)
        return shout(x)

    compiled = graphmend.compile(function, backend="eager", fullgraph=True)
    see(compiled, -X * 0)
    EVENTS.clear()
    with pytest.raises((SystemExit, AssertionError)):
        compiled(X)
    assert EVENTS == []


def test_messages_before_an_error_are_not_lost(backend):
    def function(x, y):
        say("before", x)
        z = x @ y
        torch._assert_async(z.sum() > 0, "negative")
        return z

    compiled = graphmend.compile(function, backend=backend, fullgraph=True)
    assert see(compiled, X, X).text == see(function, X, X).text
    failed = see(compiled, X, -X)
    assert failed.error is not None
    assert failed.text == f"said before {X}\n"


def test_message_that_fails_is_the_error(backend):
    def function(x):
        say("before")
        unprintable(x)
        say("after")
        return x @ x

    compiled = graphmend.compile(function, backend=backend, fullgraph=True)
    assert see(compiled, X) == see(function, X)
    assert isinstance(see(compiled, X).error, TypeError)


def test_graph_breaks_keep_the_order(backend):
    def function(x):
        say("one", x)
        y = x @ x
        print("direct")
        say("two", y)
        return y @ x

    counter = counter_of(backend)
    compiled = graphmend.compile(function, backend=counter)
    for _ in range(3):
        assert see(compiled, X) == see(function, X)
    assert counter.frame_count == 2


def test_logs_and_warnings_have_the_line_of_the_call(backend):
    def function(x):
        inform(x)
        warn("careful")
        return x @ x

    got, expected = see(graphmend.compile(function, backend=backend), X), see(function, X)
    assert got == expected
    assert [(r.lineno, r.funcName) for r in got.records] == [(r.lineno, r.funcName) for r in expected.records]


def test_warning_as_error_stops_the_program_in_its_place():
    def function(x):
        warn("careful")
        return shout(x)

    compiled = graphmend.compile(function, backend="aot_eager", fullgraph=True)
    see(compiled, X)
    EVENTS.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            compiled(X)
    assert EVENTS == []


def test_other_operators_with_messages_are_not_overtaken():
    def function(x):
        say("first")
        torch._higher_order_ops.print("second")
        say("third")
        return x @ x

    compiled = graphmend.compile(function, backend="aot_eager", fullgraph=True)
    assert see(compiled, X).text == "said first\nsecond\nsaid third\n"


@pytest.mark.parametrize("limit", ["MAX_MESSAGES", "MAX_BYTES"])
def test_not_too_many_messages_are_kept(limit, monkeypatch):
    monkeypatch.setattr(defer, limit, 2 if limit == "MAX_MESSAGES" else 2 * X.nbytes)

    def function(x):
        for i in range(3):
            say(i, x)
        x = shout(x)
        for i in range(3):
            say(i, x)
        return x

    compiled = graphmend.compile(function, backend="eager", fullgraph=True)
    lines = [line.split()[1] for line in see(compiled, torch.ones(2, 2)).text.splitlines() if line[0] in "so"]
    assert lines == ["0", "1", "runs", "2", "0", "1", "2"]


def test_region_inside_a_region():
    inner = graphmend.compile(lambda x: (say("inner", x), x @ x)[1], backend="eager")

    @torch.library.custom_op("user_test::nested", mutates_args=())
    def nested(x: torch.Tensor) -> torch.Tensor:
        return inner(x)

    nested.register_fake(torch.empty_like)

    def function(x):
        say("outer 1")
        x = nested(x)
        say("outer 2")
        return x

    text = see(graphmend.compile(function, backend="eager"), X).text
    assert text == f"said outer 1\nsaid inner {X}\nsaid outer 2\n"


def test_threads_and_contexts_do_not_share_messages():
    inside, go_on = threading.Event(), threading.Event()

    @torch.library.custom_op("user_test::wait", mutates_args=())
    def wait(x: torch.Tensor) -> torch.Tensor:
        inside.set()
        go_on.wait(10)
        return x.clone()

    wait.register_fake(torch.empty_like)
    waiting = graphmend.compile(lambda x: (say("slow"), wait(x))[1], backend="eager")
    quick = graphmend.compile(lambda x: (say("quick"), x + 1)[1], backend="eager")
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", output)
        quick(X)
        thread = threading.Thread(target=lambda: contextvars.copy_context().run(waiting, X))
        thread.start()
        assert inside.wait(60)
        quick(X)
        assert output.getvalue() == "said quick\n" * 2
        go_on.set()
        thread.join()
    assert output.getvalue() == "said quick\n" * 2 + "said slow\n"


def test_asynchronous_callers():
    compiled = graphmend.compile(noisy, backend="eager")

    async def call():
        return await asyncio.to_thread(compiled, X)

    async def calls():
        await asyncio.gather(call(), call())

    assert see(asyncio.run, calls()).text.count("said second") == 2


def test_module_is_what_torch_compile_makes_of_it(backend):
    model = Model()
    compiled = graphmend.compile(model, backend=backend)
    reference = torch.compile(model, backend=backend)
    assert type(compiled) is type(reference)
    assert list(compiled.state_dict()) == list(reference.state_dict())
    assert compiled.linear is model.linear
    assert compiled.eval().training is model.training is False
    with torch.no_grad():
        expected = see(model, X)
        for copied in (compiled, copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
            assert see(copied, X) == expected


def test_gradients(backend):
    model = Model()
    x = X.clone().requires_grad_()
    graphmend.compile(model, backend=backend)(x).sum().backward()
    y = X.clone().requires_grad_()
    model(y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_methods_and_decorators():
    class Owner:
        def __init__(self) -> None:
            self.run = graphmend.compile(self.method, backend="eager")

        def method(self, x):
            return noisy(x)

        @graphmend.compile(backend="eager")
        def decorated(self, x):
            return noisy(x)

    @graphmend.compile
    def inductor(x):
        say("default")
        return x @ x

    owner = Owner()
    assert see(owner.run, X).text.startswith("operator runs")
    assert see(owner.decorated, X).text.startswith("operator runs")
    assert see(inductor, X).text == "said default\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "max-autotune-no-cudagraphs"},
        {"options": {"max_autotune": False}, "dynamic": True},
        {"options": {"guard_filter_fn": lambda guards: [True] * len(guards)}},
        {"disable": True},
    ],
    ids=["mode", "options", "guard filter", "disabled"],
)
def test_arguments_of_torch_compile(arguments):
    def function(x):
        say("ran", x)
        return x @ x

    assert see(graphmend.compile(function, **arguments), X) == see(function, X)


def test_arguments_that_torch_compile_refuses():
    with pytest.raises(RuntimeError, match="Either mode or options"):
        graphmend.compile(noisy, mode="default", options={"max_autotune": True})
    with pytest.raises(RuntimeError, match="Unexpected optimization option"):
        graphmend.compile(noisy, options={"no_such_option": True})
    with pytest.raises(Exception, match="no_such_backend"):
        graphmend.compile(noisy, backend="no_such_backend")(X)


def test_backend_arguments_reach_the_backend():
    seen = []

    def backend(graph, inputs, **arguments):
        seen.append(arguments)
        return graph.forward

    assert see(graphmend.compile(noisy, backend=backend, options={"level": 3}), X).error is None
    assert seen == [{"options": {"level": 3}}]


def test_graph_without_messages_is_left_alone():
    made = []

    def backend(graph, inputs):
        made.append(graph.forward)
        return made[-1]

    assert graphmend.runtime.compile.__module__ == "graphmend.runtime.compile"
    deferring = graphmend.compile.__globals__["DeferringBackend"](backend)
    assert deferring(torch.fx.symbolic_trace(lambda x: x + 1), [X]) is made[-1]


def test_compiling_twice_shares_the_graphs():
    counter = counter_of("eager")
    for _ in range(2):
        graphmend.compile(noisy, backend=counter)(X)
    assert counter.frame_count == 1
