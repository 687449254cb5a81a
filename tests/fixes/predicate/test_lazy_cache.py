"""Two buffers of which one is made when it is first needed: the shape of rotary embeddings for long sequences."""

from __future__ import annotations

from pathlib import Path

import branch_harness as harness
import pytest
import torch

SHARED = """
import math

import torch


def switching(forward):
    def choose(self, ids, where):
        count = torch.max(ids) + 1
        limit = self.settings.get("limit") or 16
        if count > limit:
            if not hasattr(self, "far"):
                self.far, _ = self.make(
                    self.settings, where, count=limit + 1
                )
            self.register_buffer("rates", self.far, persistent=False)
        else:
            # The buffer moves with the module,
            # the first copy of it does not.
            self.near = self.near.to(where)
            self.register_buffer("rates", self.near, persistent=False)

    def growing(self, ids, where):
        count = torch.max(ids) + 1
        if count > self.longest:
            rates, self.scale = self.make(self.settings, where, count=count)
            self.register_buffer("rates", rates, persistent=False)
            self.longest = count

    def wrapper(self, x, ids):
        if self.kind == "switching":
            choose(self, ids, where=x.device)
        else:
            growing(self, ids, where=x.device)
        return forward(self, x, ids)

    return wrapper


def plain(settings, where, count=None, **more):
    if settings is not None and len(more) > 0:
        raise ValueError(f"both {settings} and {more}")
    width = int(settings.get("width", 4))
    rates = 1.0 / (settings["base"] ** (torch.arange(0, width, 1).to(device=where, dtype=torch.float) / width))
    return rates, 1.0


def scaled(settings, where, count=None, **more):
    rates, scale = plain(settings, where, count, **more)
    factor = settings["long"] if count and count > settings["limit"] else settings["short"]
    if factor <= 1.0:
        scale = math.sqrt(1 + math.log(2.0))
    rates /= factor
    return rates, scale


MAKERS = {"plain": plain, "scaled": scaled}
"""

MODULE = """
import torch
from torch import nn

from .shared import MAKERS, switching


class Positions(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.kind = settings.get("kind", "switching")
        self.longest = 0
        self.settings = settings
        self.make = MAKERS[settings.get("maker", "scaled")]
        rates, self.scale = self.make(self.settings, None)
        self.register_buffer("rates", rates, persistent=False)
        self.near = self.rates

    @torch.no_grad()
    @switching
    def forward(self, x, ids):
        return x * self.rates * ids.max()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Positions({"width": 4, "base": 3.0, "limit": 16, "long": 2.0, "short": 0.5})

    def forward(self, x, ids):
        return x + self.positions(x, ids)
"""

EXPECTED = """
        def if_true():
            if not hasattr(self, "far"):
                self.far, _ = self.make(
                    self.settings, where, count=limit + 1
                )
            return self.far

        def if_false():
            # The buffer moves with the module,
            # the first copy of it does not.
            self.near = self.near.to(where)
            return self.near

        self.register_buffer(
            "rates",
            graphmend.select(count > limit, if_true, if_false, when=lambda: self.near.to(where) is self.near),
            persistent=False,
        )
"""

CALLS = [(torch.full((4,), 1.5), torch.arange(n)) for n in (8, 32, 8, 33, 9)]


def build(tmp_path: Path, shared: str = SHARED, module: str = MODULE) -> tuple[object, object, str]:
    files = {"shared.py": shared, "module.py": module, "__init__.py": ""}
    (tmp_path / "work").mkdir()
    after, report = harness.mended(tmp_path / "work", files)
    assert report.errors == ()
    before_module = harness.load(tmp_path, "before", files)
    after_module = harness.load(tmp_path, "after", after)
    return before_module, after_module, after["shared.py"]


def test_it_becomes_one_selection(tmp_path: Path) -> None:
    _, _, text = build(tmp_path)
    assert EXPECTED in text
    # The other update writes more than it could select.
    assert "if count > self.longest:" in text


def test_eager_is_as_before(tmp_path: Path) -> None:
    before, after, _ = build(tmp_path)
    models = [before.Model(), after.Model()]  # type: ignore[attr-defined]
    for call in CALLS:
        assert torch.equal(*[model(*call) for model in models])
        seen = [
            (sorted(vars(each)), each.near is each.rates, getattr(each, "far", None) is each.rates)
            for each in (model.positions for model in models)
        ]
        assert seen[0] == seen[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_gives_the_same_on_every_call(tmp_path: Path, backend: str) -> None:
    before, after, _ = build(tmp_path)
    expected = harness.run(before.Model, CALLS, grad=False, backend=None)  # type: ignore[attr-defined]
    seen = harness.run(after.Model, CALLS, grad=False, backend=backend, fullgraph=True)  # type: ignore[attr-defined]
    assert seen.outputs == expected.outputs
    assert seen.errors == [None] * len(CALLS)
    assert seen.graphs <= 2  # one more once the cache is there


def test_compiled_after_a_move_runs_the_branch(tmp_path: Path) -> None:
    """Where the conversion would change something, the untaken side must not run."""
    _, after, _ = build(tmp_path)
    torch._dynamo.reset()
    model = after.Model()  # type: ignore[attr-defined]
    model.positions.near = model.positions.near.to("meta")
    compiled = torch.compile(model, backend="eager")
    with harness.quiet():
        compiled(*CALLS[1])
    assert model.positions.near.device.type == "meta"


def test_a_tensor_that_is_changed_elsewhere_keeps_its_branch(tmp_path: Path) -> None:
    module = MODULE + "\n    def reset(self):\n        kept = self.positions.near\n        kept[0] = 1.0\n"
    (tmp_path / "work").mkdir()
    files = {"shared.py": SHARED, "module.py": module, "__init__.py": ""}
    after, report = harness.mended(tmp_path / "work", files)
    assert after == files
    assert {finding.refusal.obligation for finding in report.findings if finding.refusal} >= {"identity"}


def test_a_cache_that_is_looked_for_elsewhere_keeps_its_branch(tmp_path: Path) -> None:
    module = MODULE + "\n    def is_far(self):\n        return getattr(self.positions, 'far', None) is not None\n"
    (tmp_path / "work").mkdir()
    files = {"shared.py": SHARED, "module.py": module, "__init__.py": ""}
    after, report = harness.mended(tmp_path / "work", files)
    assert after == files
    assert {finding.refusal.obligation for finding in report.findings if finding.refusal} >= {"lazy-cache"}
