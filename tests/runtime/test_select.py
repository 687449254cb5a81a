# ruff: noqa: PLW0108
from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from runtime_helpers import Compiled, graphs_after, see
from torch.utils.checkpoint import checkpoint

import graphmend
from graphmend import select
from graphmend.runtime.arms import _ShowsError, _Watch

ONES = torch.ones(2, 2)
WEIGHT = torch.nn.Parameter(torch.eye(2))
OTHER = torch.nn.Parameter(torch.full((2, 2), 0.5))
LINEAR = torch.nn.Linear(2, 2)
MEAN, VARIANCE = torch.zeros(2), torch.ones(2)
QUICK = ("eager", "aot_eager")


@graphmend.effect
def say(*args):
    print("said", *args)


def positive(x):
    return x.sum() > 0


def raises(x):
    raise ValueError("arm")


def breaks(x):
    print("arm", x.shape)
    return x * 2


def speaks(x):
    say("arm", x.shape)
    return x * 2


# One graph, and what eager does.


def in_loop(x):
    for i in range(3):
        x = select(positive(x), lambda: x * 2, lambda: x - i)  # noqa: B023
    return x


def nested(x):
    return select(positive(x), lambda: select(x[0, 0] > 0.5, lambda: x * 2, lambda: x * 3), lambda: x - 1)


def chained(x):
    y = select(positive(x), lambda: x * 2, lambda: x + 1)
    z = y + 1
    return select(z.sum() > 3, lambda: z, lambda: y)


def same_object(x):
    return select(positive(x), lambda: x, lambda: x)


def other_rank(x):
    return select(x.sum().reshape(1, 1, 1), lambda: x * 2, lambda: x + 1)


def nan_condition(x):
    return select(x.sum() * float("nan"), lambda: x * 2, lambda: x + 1)


def int_condition(x):
    return select(x.sum().int(), lambda: x * 2, lambda: x + 1)


def static_condition(x):
    return select(x.shape[0] > 1, lambda: x * 2, lambda: x + 1)


def static_none(x):
    return select(None, lambda: x.nope(), lambda: x + 1)


def containers(x):
    return select(
        positive(x),
        lambda: (x, [x * 2, {"k": x + 1, "n": 3}], None, "s", torch.float32, 2.5, True),
        lambda: (x, [x * 3, {"k": x - 1, "n": 3}], None, "s", torch.float32, 2.5, True),
    )


def checked(x):
    return select(positive(x), lambda: x * 2, lambda: x + 1, when=lambda: x.dtype == torch.float32 and x.dim() == 2)


def without_gradients(x):
    with torch.no_grad():
        return select(positive(x), lambda: x @ WEIGHT, lambda: LINEAR(x))


def in_inference_mode(x):
    with torch.inference_mode():
        return select(positive(x), lambda: x @ WEIGHT, lambda: LINEAR(x))


def in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        return select(positive(x), lambda: x @ WEIGHT, lambda: x @ OTHER)


def in_grad_transform(x):
    return torch.func.grad(lambda t: select(positive(t), lambda: t * 2, lambda: t.sin(), grad="where").sum())(x)


def arm_writes_its_own(x):
    return select(positive(x), lambda: x.clone().mul_(2), lambda: torch.zeros_like(x).view(-1).fill_(3).view(2, 2))


def arm_is_in_evaluation(x):
    with torch.no_grad():
        return select(
            positive(x),
            lambda: F.batch_norm(F.dropout(x, 0.5, training=False), MEAN, VARIANCE, training=False),
            lambda: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])[0, 0],
        )


def integers(x):
    n = x.long()
    return select(positive(x), lambda: n + 1, lambda: n * 2)


WHOLE = [
    in_loop,
    nested,
    chained,
    same_object,
    other_rank,
    nan_condition,
    int_condition,
    static_condition,
    static_none,
    containers,
    checked,
    without_gradients,
    in_inference_mode,
    in_autocast,
    in_grad_transform,
    arm_writes_its_own,
    arm_is_in_evaluation,
    integers,
]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_graph(function, name):
    compiled = Compiled(function, name, fullgraph=True)
    for scale in (1.0, -1.0, 0.3, -1.0):
        assert see(compiled, ONES * scale) == see(function, ONES * scale)
    assert compiled.graphs == 1


@pytest.mark.parametrize("function", [in_loop, containers], ids=lambda f: f.__name__)
def test_one_graph_of_inductor(function):
    compiled = Compiled(function, "inductor", fullgraph=True)
    for scale in (1.0, -1.0):
        assert see(compiled, ONES * scale) == see(function, ONES * scale)
    assert compiled.graphs == 1


def test_eager_is_the_expression():
    calls = []
    assert select(1, lambda: calls.append("true"), lambda: calls.append("false")) is None
    assert calls == ["true"]
    assert select(torch.zeros(()), lambda: 1, lambda: "other", grad="cond", when=raises) == "other"
    with pytest.raises(RuntimeError, match="ambiguous"):
        select(torch.ones(2), lambda: 1, lambda: 2)


# As before: the graph breaks, and the program is right.


def several_elements(x):
    return select(x > 0, lambda: x, lambda: x + 1)


def floats(x):
    return x * select(positive(x), lambda: 2.0, lambda: 0.5)


def signed_zeros(x):
    return x * select(positive(x), lambda: 0.0, lambda: -0.0)


def shapes_differ(x):
    return select(positive(x), lambda: x.sum(), lambda: x) + 1


def dtypes_differ(x):
    return select(positive(x), lambda: x.double(), lambda: x)


def strides_differ(x):
    return select(positive(x), lambda: x.t(), lambda: x * 2)


def strided_views(x):
    return select(positive(x), lambda: x[:, :1], lambda: (x + 1)[:, :1])


def expanded(x):
    return select(positive(x), lambda: x[:1].expand(2, 2), lambda: x[1:].expand(2, 2))


def keys_differ(x):
    return select(positive(x), lambda: {"a": x, "b": x * 2}, lambda: {"b": x, "a": x * 2})


def lengths_differ(x):
    return select(positive(x), lambda: (x,), lambda: (x, x))


def none_or_tensor(x):
    return select(positive(x), lambda: None, lambda: x)


def classes_differ(x):
    return select(positive(x), lambda: WEIGHT, lambda: WEIGHT * 2, grad="where")


def conjugate(x):
    return select(positive(x), lambda: torch.view_as_complex(x), lambda: torch.view_as_complex(x * 2).conj())


def when_false(x):
    return select(positive(x), lambda: x * 2, lambda: x + 1, when=lambda: x.dim() == 3)


def when_raises(x):
    return select(positive(x), lambda: x * 2, lambda: x + 1, when=lambda: x.nope == 3)


def when_not_static(x):
    return select(positive(x), lambda: x * 2, lambda: x + 1, when=lambda: positive(x))


def parameters_without_gradients(x):
    with torch.no_grad():
        return select(positive(x), lambda: WEIGHT, lambda: OTHER)


def history_without_gradients(x):
    y, z = x @ WEIGHT, x @ OTHER
    with torch.no_grad():
        return select(positive(x), lambda: y, lambda: z)


def unbounded_in_transform(x):
    return torch.func.grad(lambda t: select(positive(t), lambda: t * 2, lambda: t.log()).sum())(x)


def batched_condition(x):
    return torch.vmap(lambda t: select(t.sum() > 0, lambda: t * 2, lambda: t, grad="where"))(x)


def arm_breaks(x):
    return select(positive(x), lambda: breaks(x), lambda: x + 1)


def arm_speaks(x):
    return select(positive(x), lambda: x + 1, lambda: speaks(x))


def arm_raises(x):
    return select(positive(x), lambda: x * 2, lambda: raises(x))


def arm_raises_and_is_caught(x):
    try:
        return select(positive(x), lambda: x * 2, lambda: raises(x))
    except ValueError:
        return x + 100


def arm_random(x):
    return select(positive(x), lambda: x * 2, lambda: x + torch.rand_like(x))


def arm_drops(x):
    return select(positive(x), lambda: x * 2, lambda: F.dropout(x, 0.5, training=True))


def arm_normalizes(x):
    return select(positive(x), lambda: x * 2, lambda: F.batch_norm(x, MEAN, VARIANCE, training=True))


def arm_writes(x):
    y = x.clone()
    z = select(positive(x), lambda: y + 1, lambda: y.view(-1).mul_(2).view(2, 2))
    return y, z


def arm_writes_a_buffer(x):
    return select(positive(x), lambda: x + 1, lambda: MEAN.add_(1) + x), MEAN.clone()


def broken_loop(x):
    for _ in range(2):
        torch._dynamo.graph_break()
        x = select(positive(x), lambda: x * 2, lambda: x - 1)  # noqa: B023
    return x


BROKEN = [
    several_elements,
    floats,
    shapes_differ,
    dtypes_differ,
    strides_differ,
    strided_views,
    expanded,
    keys_differ,
    lengths_differ,
    none_or_tensor,
    classes_differ,
    conjugate,
    when_false,
    when_raises,
    when_not_static,
    parameters_without_gradients,
    history_without_gradients,
    unbounded_in_transform,
    batched_condition,
    arm_breaks,
    arm_speaks,
    arm_raises,
    arm_raises_and_is_caught,
    arm_random,
    arm_drops,
    arm_normalizes,
    arm_writes,
    arm_writes_a_buffer,
    broken_loop,
]


@pytest.mark.parametrize("function", BROKEN, ids=lambda f: f.__name__)
def test_falls_back(function):
    check_fall_back(function, "eager")


def check_fall_back(function, name):
    compiled = Compiled(function, name)
    for scale in (1.0, -1.0, 1.0):
        outcomes = []
        for f in (compiled, function):
            torch.manual_seed(0)
            MEAN.zero_()
            VARIANCE.fill_(1)
            outcomes.append((see(f, ONES * scale), torch.rand(1), MEAN.tolist(), VARIANCE.tolist()))
        assert outcomes[0] == outcomes[1]
    with pytest.raises(Exception):  # noqa: B017, PT011
        Compiled(function, name, fullgraph=True)(ONES)


@pytest.mark.parametrize("function", [shapes_differ, arm_speaks, arm_normalizes, history_without_gradients])
def test_falls_back_with_aot_autograd(function):
    check_fall_back(function, "aot_eager")


def test_statistics_count_as_written_whatever_the_schema_says():
    assert not any(a.alias_info for a in torch.ops.aten.native_batch_norm.default._schema.arguments)
    with pytest.raises(_ShowsError, match="batch_norm"), _Watch():
        F.batch_norm(ONES, MEAN, VARIANCE, training=True)
    with _Watch():
        F.batch_norm(ONES, MEAN, VARIANCE, training=False)


def test_zeros_of_different_sign_are_not_the_same():
    with pytest.raises(Exception, match="Data-dependent"):
        Compiled(signed_zeros, fullgraph=True)(ONES)


@pytest.mark.parametrize("function", [arm_breaks, arm_speaks, arm_raises, arm_raises_and_is_caught])
def test_falls_back_with_nested_graph_breaks(function):
    with torch._dynamo.config.patch(nested_graph_breaks=True):
        compiled = Compiled(function)
        for scale in (1.0, -1.0, 1.0):
            assert see(compiled, ONES * scale) == see(function, ONES * scale)


def test_condition_that_is_undecided_raises_as_eager(backend):
    error = see(Compiled(several_elements, backend), ONES).error
    assert isinstance(error, RuntimeError)
    assert str(error) == str(see(several_elements, ONES).error)


def unpack(x):
    a, _b, _c = x
    return a


FAILING = {
    "linear": lambda x: F.linear(x, torch.ones(3, 5)),
    "cat": lambda x: torch.cat([x, torch.ones(3, 5)]),
    "view": lambda x: x.view(7, 7),
    "dim": lambda x: x.sum(7),
    "index": lambda x: x[5],
    "invert": lambda x: ~x,
    "embedding": lambda x: F.embedding(x, x),
    "broadcast": lambda x: x + torch.ones(3, 3),
    "attribute": lambda x: x.nope(),
    "unpack": unpack,
    "key": lambda x: {}["missing"],
    "assertion": lambda x: F.max_pool1d(x, 5),
}


@pytest.mark.parametrize("arm", FAILING.values(), ids=FAILING.keys())
def test_error_in_the_other_arm_never_shows(arm, caplog):
    def function(x):
        y = x * 3
        return select(positive(x), lambda: y + 1, lambda: arm(y)) * 2

    compiled = Compiled(function)
    with caplog.at_level(logging.WARNING):
        assert see(compiled, ONES) == see(function, ONES)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    # The taken arm fails, in the words of the compiler where that takes the error for the program's.
    assert see(function, -ONES).error is not None
    assert see(compiled, -ONES).error is not None


def test_error_in_the_other_arm_never_shows_in_any_backend(backend):
    def function(x):
        y = x @ x
        return select(positive(x), lambda: y, lambda: F.linear(y, torch.ones(3, 5))) @ x

    assert see(Compiled(function, backend), ONES) == see(function, ONES)


@pytest.mark.parametrize(
    "arm",
    [
        lambda y: y / y.max(),
        lambda y: y - y.amax(0),
        lambda y: y - y.min(1, keepdim=True).values,
        lambda y: y - y.argmax(0),
        lambda y: y * (y[:0].numel() + y[:0].max()),
    ],
)
def test_what_fails_without_elements_only_runs_if_taken(arm, backend):
    """Fake tensors have no values, so they do not know that a tensor without elements has no largest one."""

    def function(x):
        y = x * 3
        return select(y.sum() == 0, lambda: y, lambda: arm(y))

    compiled = Compiled(function, backend)
    for rows in (0, 3, 4, 0):
        x = torch.zeros(rows, 4)
        assert see(compiled, x) == see(function, x)


def test_errors_elsewhere_are_still_the_programs():
    select_first = Compiled(lambda x: select(positive(x), lambda: x * 2, lambda: x.view(7, 7)))
    select_first(ONES)
    error = see(Compiled(lambda x: x.view(7, 7)), ONES).error
    assert type(error).__name__ == "TorchRuntimeError"


# Gradients.


def train(function, x):
    WEIGHT.grad = None
    x = x.clone().requires_grad_()
    result = function(x)
    if result.requires_grad:
        result.sum().backward()
    return result.detach(), x.grad, WEIGHT.grad


def bounded(x):
    y = x @ WEIGHT
    return select(positive(x), lambda: y * 2, lambda: y.tanh(), grad="where")


def unbounded(x):
    y = x @ WEIGHT
    return select(positive(x), lambda: y.log(), lambda: y.sin(), grad="cond")


def unbounded_parts(x):
    y = x @ WEIGHT
    return select(positive(x), lambda: (x, y.log(), 3), lambda: (x, y.sin(), 3), grad="cond")[1]


def unproven(x):
    y = x @ WEIGHT
    return select(positive(x), lambda: y.log(), lambda: y.sin())


def nested_unbounded(x):
    y = x @ WEIGHT
    inner = y.sum() > 3
    return select(
        positive(x),
        lambda: select(inner, lambda: y.log(), lambda: y.sqrt(), grad="cond"),
        lambda: y.sin(),
        grad="cond",
    )


def one_detached(x):
    return select(positive(x), lambda: x * 2, lambda: (x * 2).detach(), grad="where")


def in_checkpoint(x):
    return checkpoint(bounded, x, use_reentrant=False)


def cond_in_checkpoint(x):
    return checkpoint(unbounded, x, use_reentrant=False)


def unbounded_then_transposed(x):
    """The gradient that reaches the selection is not contiguous: it must not decide the strides of the arms' own."""
    y = x @ WEIGHT
    selected = select(positive(x), lambda: y.log(), lambda: y.softmax(-1), grad="cond")
    return selected.t().contiguous().view(-1)[::2]


def unbounded_of_transposed(x):
    y = (x @ WEIGHT).t()
    return select(positive(x), lambda: y * 2, lambda: y.exp(), grad="cond").sum()


def unbounded_with_sum(x):
    y = x @ WEIGHT
    return select(positive(x), lambda: y.norm() / 3.0, lambda: y.sum() / 3.0, grad="cond")


def unbounded_with_view(x):
    y = x @ WEIGHT
    rows = y.view(-1)
    return select(positive(x), lambda: rows.tanh(), lambda: y.exp().view(-1), grad="cond")


def mutating_arm(x):
    y = x.clone()
    return select(positive(x), lambda: y.mul_(2) @ WEIGHT, lambda: y @ WEIGHT, grad="cond")


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        (bounded, 1),
        (unbounded, 1),
        (unbounded_parts, 1),
        (nested_unbounded, None),
        (unbounded_then_transposed, 1),
        (unbounded_of_transposed, None),
        (unbounded_with_sum, None),
        (unbounded_with_view, None),
        (unproven, None),
        (one_detached, None),
        (in_checkpoint, 1),
        (cond_in_checkpoint, None),
        (mutating_arm, None),
    ],
)
def test_gradients(function, graphs, name):
    compiled = Compiled(function, name)
    for scale in (1.0, -1.0, 0.0):
        assert see(train, compiled, ONES * scale) == see(train, function, ONES * scale)
    if graphs is not None:
        assert compiled.graphs == graphs


def test_second_derivatives_with_the_eager_back_end():
    """Only this back end has them, and there `torch.cond` gives wrong ones."""

    def penalty(f):
        x = ONES.clone().requires_grad_()
        WEIGHT.grad = None
        (gradient,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        gradient.norm().backward()
        return WEIGHT.grad

    torch._dynamo.reset()
    assert torch.equal(penalty(torch.compile(unbounded, backend="eager")), penalty(unbounded))


@pytest.mark.parametrize("function", [bounded, unbounded])
def test_gradients_of_inductor(function):
    compiled = Compiled(function, "inductor", fullgraph=True)
    for scale in (1.0, -1.0):
        got, expected = see(train, compiled, ONES * scale).value, see(train, function, ONES * scale).value
        for g, e in zip(got, expected):
            torch.testing.assert_close(g, e, equal_nan=True)


def test_where_would_have_given_nan():
    def function(x):
        return torch.where(positive(x), x.log(), x.sin())

    assert train(function, -ONES)[1].isnan().any() or train(function, ONES * 0)[1].isnan().any()
    assert not train(lambda x: select(positive(x), lambda: x.log(), lambda: x.sin()), ONES * 0)[1].isnan().any()


def test_no_gradient_stays_none():
    for name in QUICK:
        compiled = Compiled(
            lambda x: select(positive(x), lambda: x.detach() * 2, lambda: x.detach()), name, fullgraph=True
        )
        x = ONES.clone().requires_grad_()
        assert not compiled(x).requires_grad


# Compilations.


def if_before(x):
    y = x * 2
    if positive(x):  # noqa: SIM108
        z = y + 1
    else:
        z = y - 1
    return z * 2


def if_after(x):
    y = x * 2
    return select(positive(x), lambda: y + 1, lambda: y - 1) * 2


def test_sizes_are_compiled_no_more_often_than_before():
    calls = [(torch.ones(n, n + 1) * (-1) ** n,) for n in range(2, 22)]
    assert graphs_after(if_after, calls) <= graphs_after(if_before, calls)
    assert graphs_after(if_after, calls, dynamic=True) == 1


def test_no_guard_on_sizes_that_only_happen_to_agree():
    def function(x, y):
        return select(positive(x), lambda: x * 2, lambda: y)

    compiled = Compiled(function, dynamic=True)
    graphs = []
    for n, m in ((4, 5), (6, 4), (6, 6), (5, 4)):
        args = (torch.ones(n, n), torch.ones(m, m))
        assert see(compiled, *args) == see(function, *args)
        graphs.append(compiled.graphs)
    assert len(set(graphs)) == 1


def test_when_must_not_depend_on_the_size():
    def function(x):
        return select(positive(x), lambda: x * 2, lambda: x + 1, when=lambda: x.shape[0] > 3)

    compiled = Compiled(function, dynamic=True)
    graphs = []
    for n in (5, 4, 3, 2):
        assert see(compiled, torch.ones(n, n)) == see(function, torch.ones(n, n))
        graphs.append(compiled.graphs)
    assert len(set(graphs)) == 1


@pytest.mark.parametrize("strict", [True, False])
def test_export(strict):
    class Model(torch.nn.Module):
        def forward(self, x):
            return select(positive(x), lambda: x * 2, lambda: x + 1)

    if strict:
        exported = torch.export.export(Model(), (ONES,), strict=True).module()
        for scale in (1.0, -1.0):
            assert torch.equal(exported(ONES * scale), Model()(ONES * scale))
    else:
        # Without Dynamo it is the `if`, which cannot be exported.
        with pytest.raises(Exception, match="data-dependent"):
            torch.export.export(Model(), (ONES,), strict=False)


def test_messages_around_a_selection():
    def function(x):
        say("before", x)
        y = select(positive(x), lambda: x @ x, lambda: x)
        say("after", y)
        return y @ x

    compiled = Compiled(function, "aot_eager", fullgraph=True)
    for scale in (1.0, -1.0):
        assert see(compiled, ONES * scale) == see(function, ONES * scale)
