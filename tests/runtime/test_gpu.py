from __future__ import annotations

import logging

import pytest
import torch
from runtime_helpers import see

import graphmend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

log = logging.getLogger("user.gpu")


@graphmend.effect
def say(*args):
    print("said", *args)


@graphmend.effect
def check(bad, x):
    if bad:
        raise ValueError(f"bad {x}")


@graphmend.effect
def inform(x):
    log.info("x is %s", x)


def function(x):
    y = x @ x
    say("first", y)
    check((y < 0).any(), y)
    z = graphmend.select(y.sum() > 10, lambda: y.sin() + 1, lambda: y * 2)
    say("second", z.shape, x.device)
    return z @ x


@pytest.fixture
def x():
    return torch.ones(2, 2, device="cuda")


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("how", [torch.compile, graphmend.compile], ids=["plain", "deferred"])
def test_five_replays_say_it_five_times(how, mode, x):
    compiled = how(function, mode=mode, fullgraph=True)
    with torch.no_grad():
        for i in range(1, 6):
            got, expected = see(compiled, x * i), see(function, x * i)
            assert got.text == expected.text
            torch.testing.assert_close(got.value, expected.value)
        failed = see(compiled, x * torch.tensor([[1.0, -2.0], [1.0, 1.0]], device="cuda"))
        assert isinstance(failed.error, ValueError)
        assert see(compiled, x).text == see(function, x).text


def test_kernels_around_a_message_stay_in_cuda_graphs(x):
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        for _ in range(3):
            see(compiled, x)
    assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 0


def test_record_keeps_its_values_over_replays(x):
    def logged(x):
        y = x @ x
        inform(y)
        return y @ x

    compiled = torch.compile(logged, mode="reduce-overhead", fullgraph=True)
    with torch.no_grad():
        records = [see(compiled, x * i).records[0] for i in range(1, 5)]
    for i, record in enumerate(records, 1):
        assert torch.equal(record.args[0].cpu(), torch.full((2, 2), 2.0 * i * i))


def test_training(x):
    weight = torch.eye(2, device="cuda", requires_grad=True)

    def loss(x):
        y = x @ weight
        check((y < 0).any(), y)
        say("loss", y.shape)
        return (y @ x).sum()

    gradients = []
    for f in (loss, torch.compile(loss, mode="reduce-overhead", fullgraph=True)):
        weight.grad = None
        f(x).backward()
        gradients.append(weight.grad.clone())
    torch.testing.assert_close(*gradients)
