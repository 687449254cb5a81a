from __future__ import annotations

import functools
import linecache
import logging
import warnings

import pytest
import torch
from runtime_helpers import Compiled, graphs_after, see
from torch._subclasses import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import graphmend
from graphmend.runtime.operator import OPERATOR, TOKEN, UnknownSiteError

log = logging.getLogger("user.test")
X = torch.ones(2, 2)


class CustomError(Exception):
    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message, code)
        self.code = code


RAISED: list[BaseException] = []


@graphmend.effect
def say(*args, **kwargs):
    print("said", *args, *kwargs.items())


@graphmend.effect
def check(bad, mask):
    if bad:
        raise ValueError(f"mask must be 0 or 1, got {mask}", 'a "quoted"\nline')


@graphmend.effect
def fail(x, code):
    if x.sum() > 0:
        error = CustomError("failed", code=code)
        RAISED.append(error)
        raise error from KeyError("cause")


@graphmend.effect
def modes(x):
    print(torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), (x.float() @ x.float()).dtype)


@graphmend.effect
def inform(x):
    log.info("x is %s", x, stacklevel=3)


@graphmend.effect
def inform_at_own_line(x):
    log.warning("x is %s", x)


@graphmend.effect
def warn_caller(text):
    warnings.warn(text, stacklevel=3)


@graphmend.effect
def warn_here(text):
    warnings.warn(text, FutureWarning)  # noqa: B028


@graphmend.effect
def answer(x):
    print("answered")
    return 42


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.linear.register_forward_hook(lambda _module, _inputs, output: say("hook", output.shape))

    def forward(self, x):
        say("layer", x)
        return self.linear(x)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        say("forward", x.shape)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        say("backward", grad)
        return grad * 2


class Subclass(torch.Tensor):
    pass


def in_order(x):
    say("first", x, x.shape, step=1)
    y = x @ x
    check((x < 0).any(), x)
    say("second", y, dtype=y.dtype)
    return y @ x


def in_loop(x):
    for i in range(3):
        x = x @ X
        say(i, x)
    return x


def in_layers(x, layers):
    for layer in layers:
        x = layer(x)
    return x.shape


def around_mutation(x):
    x = x @ X
    say("before", x)
    x.add_(1)
    view = x.view(-1)
    view.mul_(2)
    say("after", x)
    return x


def around_mutated_input(x):
    say("before", x)
    x.add_(1)
    say("after", x)
    return x @ x


@pytest.mark.parametrize("function", [in_order, in_loop, around_mutation, around_mutated_input])
def test_same_text_in_order_in_one_graph(function, backend):
    compiled = Compiled(function, backend, fullgraph=True)
    for scale in (1.0, 2.0, -1.0):
        assert see(compiled, X * scale) == see(function, X * scale)
    assert compiled.graphs == 1


def test_text_of_submodules_and_hooks(backend):
    layers = [Layer(), Layer()]
    with torch.no_grad():
        expected = see(in_layers, X, layers)
        compiled = Compiled(functools.partial(in_layers, layers=layers), backend, fullgraph=True)
        assert see(compiled, X) == expected
        assert expected.text.count("layer") == expected.text.count("hook") == 2
    assert compiled.graphs == 1


def test_exception_is_the_very_one_that_the_body_raised(backend):
    def function(x):
        say("before")
        fail(x, 7)
        say("after")
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    assert see(compiled, -X) == see(function, -X)
    expected = see(function, X)
    got = see(compiled, X)
    assert got == expected
    assert got.error is RAISED[-1]
    assert got.error.code == 7
    assert expected.text == "said before\n"
    assert see(compiled, -X) == see(function, -X)
    assert compiled.graphs == 1


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes_around_the_call(context, backend):
    def function(x):
        with context():
            y = x @ X
            say(y.shape, y)
            return y @ X

    assert see(Compiled(function, backend, fullgraph=True), X) == see(function, X)


def test_whole_region_in_inference_mode(backend):
    compiled = Compiled(in_order, backend, fullgraph=True)
    with torch.inference_mode():
        assert see(compiled, X) == see(in_order, X)


def test_body_runs_without_gradients_and_outside_autocast(backend):
    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            modes(x)
            return x @ x

    assert see(Compiled(function, backend, fullgraph=True), X).text == "False False torch.float32\n"


def test_gradients_are_those_of_eager(backend):
    def function(x):
        y = x @ X
        check((y < 0).any(), y)
        say(y.shape)
        return y @ x

    grads = []
    for f in (function, Compiled(function, backend, fullgraph=True)):
        x = X.clone().requires_grad_()
        f(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant, backend):
    def block(x):
        check((x < 0).any(), x)
        say("block", x.shape)
        return x @ x

    def function(x):
        return checkpoint(block, x, use_reentrant=reentrant).sum()

    def train(f):
        x = X.clone().requires_grad_()
        loss = f(x)
        print("backward")
        loss.backward()
        return x.grad

    expected = see(train, function)
    got = see(train, Compiled(function, backend, fullgraph=True))
    assert torch.equal(got.value, expected.value)
    # Recomputation may say it again, or not; the forward pass says it once.
    assert got.text.startswith("said block torch.Size([2, 2])\nbackward\n")
    failed = see(Compiled(function, backend, fullgraph=True), -X.clone().requires_grad_())
    assert isinstance(failed.error, ValueError)


@pytest.mark.parametrize("compiler", [torch.compile, graphmend.compile])
def test_checkpoint_with_the_eager_back_end_leaves_exceptions_as_they_are(compiler):
    """It interprets a checkpoint's graph, which adds words to exceptions."""

    def block(x):
        say("block", x.shape)
        check((x < 0).any(), x)
        return torch.sin(x) * 2

    def function(x):
        return checkpoint(block, x, use_reentrant=False).sum()

    def train(f, x):
        loss = f(x)
        loss.backward()

    compiled = compiler(function, backend="eager")
    for x in (X, -X):
        expected = see(train, function, x.clone().requires_grad_())
        got = see(train, compiled, x.clone().requires_grad_())
        assert (got.text, got.error and got.error.args) == (expected.text, expected.error and expected.error.args)


def test_autograd_function(backend):
    def train(f):
        x = X.clone().requires_grad_()
        f(x).backward()
        return x.grad

    def function(x):
        return Doubled.apply(x @ X).sum()

    compiled = Compiled(function, backend, fullgraph=True)
    assert see(train, compiled) == see(train, function)
    assert compiled.graphs == 1


@pytest.mark.parametrize(
    "transform",
    [
        torch.vmap,
        lambda f: torch.func.grad(lambda x: f(x).sum()),
        lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
        lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    ],
    ids=["vmap", "grad", "jvp", "vmap of grad"],
)
def test_transforms_print_what_eager_prints(transform, backend):
    def inner(x):
        say("in", x)
        return x.sin()

    function = transform(inner)
    assert "Tensor(lvl=" in see(function, X).text
    if backend != "inductor":  # the same graphs, and slow to build
        assert see(Compiled(function, backend), X) == see(function, X)


def test_outside_of_a_transform_in_the_same_graph(backend):
    def function(x):
        g = torch.func.grad(lambda t: (t @ t).sum())(x)
        say("gradient", g)
        return g

    assert see(Compiled(function, backend, fullgraph=True), X) == see(function, X)


def test_branch_of_cond_is_refused_as_before():
    def branch(x):
        say("lost?")
        return x + 1

    def function(x):
        return torch.cond(x.sum() > 0, branch, lambda x: x - 1, (x,))

    for name in ("eager", "aot_eager"):
        error = see(Compiled(function, name), X).error
        assert type(error).__name__ == "UncapturedHigherOrderOpError"


def test_tensor_subclass_breaks_as_before():
    def function(x):
        y = x @ x
        say(x.as_subclass(Subclass))
        return y @ x

    compiled = Compiled(function)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 2


def test_eager_under_fake_tensor_mode():
    with FakeTensorMode():
        x = torch.ones(2, 2)
        assert see(say, x).text == f"said {x}\n"


def test_record_has_the_line_of_the_call(backend):
    def function(x):
        inform(x)
        return x @ x

    for f in (function, Compiled(function, backend, fullgraph=True)):
        (record,) = see(f, X).records
        assert record.pathname == __file__
        assert record.funcName == "function"
        assert linecache.getline(__file__, record.lineno).strip() == "inform(x)"
        assert record.levelno == logging.INFO
        assert record.msg == "x is %s"
        assert torch.equal(record.args[0], X)


def test_log_level_is_asked_at_run_time(backend):
    def function(x):
        inform_at_own_line(x)
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    assert len(see(compiled, X).records) == 1
    log.setLevel(logging.ERROR)
    assert see(compiled, X).records == []
    log.setLevel(logging.NOTSET)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 1


def test_record_keeps_the_values_it_was_made_with(backend):
    def function(x):
        y = x @ x
        inform_at_own_line(y)
        z = y @ x
        w = z @ x
        return w @ w

    (record,) = see(Compiled(function, backend, fullgraph=True), X).records
    assert torch.equal(record.args[0], X @ X)


def test_record_is_not_changed_by_what_follows(backend):
    def function(x):
        inform_at_own_line(x)
        x.add_(1)
        return x @ x

    (record,) = see(Compiled(function, backend, fullgraph=True), X.clone()).records
    assert torch.equal(record.args[0], X)


def test_warning_has_the_line_of_the_call(backend):
    def function(x):
        warn_caller("careful")
        return x @ x

    (warned,) = see(function, X).warned
    assert linecache.getline(__file__, warned[3]).strip() == 'warn_caller("careful")'
    assert see(Compiled(function, backend, fullgraph=True), X).warned == [warned]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("warn", [warn_caller, warn_here], ids=["caller", "here"])
def test_warning_once_per_location_of_the_users_module(warn, backend):
    def function(x):
        for _ in range(2):
            warn("only once")
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    compiled(X)
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        compiled(X)
        compiled(X)
        function(X)
    assert [str(w.message) for w in caught] == ["only once"]
    assert any("only once" in key for key in __warningregistry__ if isinstance(key, tuple))


@pytest.mark.filterwarnings("ignore")
def test_warning_as_error(backend):
    def function(x):
        warn_here("now an error")
        return x @ x

    compiled = Compiled(function, backend, fullgraph=True)
    compiled(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning, match="now an error"):
            compiled(X)


def test_caller_that_is_not_compiled_gets_no_graph_for_it():
    def function(x):
        for i in range(2):
            torch._dynamo.graph_break()
            say(i, x.mean())
            check(x.sum() < 0, x)
        return x

    compiled = Compiled(function)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 0


def test_first_call_from_a_frame_that_is_not_compiled_gets_no_graph():
    def function(x):
        for _ in range(1):
            torch._dynamo.graph_break()
            check((x < 0).any(), x)
        return x

    compiled = Compiled(function)
    assert see(compiled, X) == see(function, X)
    assert compiled.graphs == 0


def test_nested_graph_breaks():
    def helper(x):
        y = x @ x
        say("helper", object, y)
        say("helper", y)
        return y @ x

    def function(x):
        return helper(x) @ x

    with torch._dynamo.config.patch(nested_graph_breaks=True):
        assert see(Compiled(function), X) == see(function, X)


def test_graph_of_an_effect_alone(backend):
    def function(x):
        say()
        say(x)

    assert see(Compiled(function, backend, fullgraph=True), X) == see(function, X)


def test_returns_none(backend):
    def function(x):
        return answer(x), x @ x

    assert answer(X) is None
    assert see(Compiled(function, backend, fullgraph=True), X) == see(function, X)


def test_static_method():
    class Model(torch.nn.Module):
        say = staticmethod(say)

        def forward(self, x):
            self.say("hello", x)
            return x @ x

    model = Model()
    assert see(Compiled(model, fullgraph=True), X) == see(model, X)


class Original(torch.nn.Module):
    def forward(self, x):
        print("said", x)
        log.info("x is %s", x)
        warnings.warn("careful")  # noqa: B028
        if x.shape[0] == 7:
            raise ValueError("seven")
        return x + 1


@graphmend.effect
def report(x):
    print("said", x)
    log.info("x is %s", x)
    warnings.warn("careful")  # noqa: B028
    if x.shape[0] == 7:
        raise ValueError("seven")


class Mended(torch.nn.Module):
    def forward(self, x):
        report(x)
        return x + 1


class OriginalCheck(torch.nn.Module):
    def forward(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x + 1


@graphmend.effect
def check_sign(bad):
    if bad:
        raise ValueError("negative")


class MendedCheck(torch.nn.Module):
    def forward(self, x):
        check_sign((x < 0).any())
        return x + 1


@pytest.mark.parametrize("strict", [True, False])
def test_export_is_that_of_the_original(strict):
    exports = [
        see(lambda m: torch.export.export(m, (X,), strict=strict).graph_module.code, module)
        for module in (Original(), Mended())
    ]
    original, mended = exports
    assert original.error is None
    assert mended.value == original.value
    assert mended.text == original.text
    assert [r.getMessage() for r in mended.records] == [r.getMessage() for r in original.records]
    assert [w[0] for w in mended.warned] == [w[0] for w in original.warned]


@pytest.mark.parametrize("strict", [True, False])
def test_export_of_a_static_check(strict):
    error = see(lambda: torch.export.export(Mended(), (torch.ones(7),), strict=strict)).error
    assert "seven" in str(error)


@pytest.mark.parametrize("strict", [True, False])
def test_check_of_values_cannot_be_exported_as_before(strict):
    errors = [
        type(see(lambda m: torch.export.export(m, (X,), strict=strict), module).error)
        for module in (OriginalCheck(), MendedCheck())
    ]
    assert errors[0] is errors[1] is not type(None)


def test_unknown_site():
    with pytest.raises(UnknownSiteError, match=r"'some\.package:say#123'.*import the module 'some\.package'"):
        OPERATOR(TOKEN, "some.package:say#123\n\n(0;{0;", [], [])


def _not_at_module_level():
    def nested():
        print()

    return nested


def _generator():
    yield 1


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (_not_at_module_level(), ValueError),
        (lambda: None, ValueError),
        (Layer.forward, ValueError),
        (_generator, TypeError),
        (print, TypeError),
        (Layer, TypeError),
        (functools.partial(_generator), TypeError),
    ],
)
def test_refuses_what_another_process_could_not_find(function, error):
    with pytest.raises(error, match=r"effect expects"):
        graphmend.effect(function)


def test_site_changes_with_the_body_only():
    source = "def f(x):\n    if x in {1, 2, 'a', 'b'}:\n        raise ValueError(lambda: x)\n"
    sites = []
    for text in (source, "\n\n" + source, source.replace("1, 2", "1, 3")):
        namespace = {"__name__": "user"}
        exec(text, namespace)
        sites.append(graphmend.effect(namespace["f"]).__graphmend_site__)
    assert sites[0] == sites[1] != sites[2]
    assert sites[0].startswith("user:f#")


def test_compilations_do_not_grow(backend):
    def function(x):
        say(x)
        return x @ x

    assert graphs_after(function, [(torch.ones(n, n),) for n in range(2, 22)], backend=backend, dynamic=True) == 1


# Loggers that a message takes along.


@graphmend.effect
def tell(logger):
    logger.warning("told")


class Told(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log = logging.getLogger("user.told")

    def forward(self, x):
        y = x * 2
        tell(self.log)
        return y + 1


class _LoggerOfItsOwn(logging.Logger):
    """As a library may have ``logging.setLoggerClass`` make."""


def _made_by(kind: type[logging.Logger], name: str) -> logging.Logger:
    before = logging.getLoggerClass()
    logging.setLoggerClass(kind)
    try:
        return logging.getLogger(name)
    finally:
        logging.setLoggerClass(before)


def test_a_logger_travels_by_its_name(backend):
    module = Told()
    compiled = Compiled(module, backend)
    for logger in (
        module.log,
        logging.getLogger("user.told.else"),
        _made_by(_LoggerOfItsOwn, "user.own"),
    ):
        module.log = logger
        seen = see(compiled, X)
        assert seen == see(module, X)
        assert [record.name for record in seen.records] == [logger.name]
    assert graphs_after(Told(), [(X,), (X,)]) == 1


def test_the_root_logger_travels(caplog):
    module = Told()
    module.log = logging.getLogger()
    Compiled(module)(X)
    assert [record for record in caplog.record_tuples if record[0] == "root"] == [("root", logging.WARNING, "told")]


@pytest.mark.parametrize("kind", [logging.Logger, lambda name: logging.LoggerAdapter(logging.getLogger("user"), {})])
def test_what_get_logger_does_not_give_stays_itself(kind):
    """Of the same name, but not the same: the graph breaks, as it did before."""
    module = Told()
    told: list[str] = []
    stranger = kind("user.told")
    (stranger.logger if isinstance(stranger, logging.LoggerAdapter) else stranger).addFilter(
        lambda record: told.append(record.getMessage()) or False
    )
    module.log = stranger
    Compiled(module)(X)
    assert told == ["told"]
