"""Conditions in their normal form: the transform on its own, which user packs can name."""

from __future__ import annotations

from pathlib import Path

import branch_harness as harness
import pytest
import torch

from graphmend import engine
from graphmend.config import Config

PACK = """
rules:
  - code: ABC101
    name: several-truth-values
    summary: "a condition asks several tensors for their truth"
    match:
      branch: {forms: [if], test: tensor}
    fix: {transform: normalize}
    explanation: "one is enough"
  - code: ABC102
    name: counted-rows
    summary: "`nonzero` is only counted"
    match:
      pattern: "len($X.nonzero()) == 0"
    fix: {transform: normalize}
    explanation: "ask `any`"
  - code: ABC103
    name: first-size
    summary: "`nonzero` is only counted"
    match:
      pattern: "$X.nonzero().shape[0] > 0"
    fix: {transform: normalize}
    explanation: "ask `any`"
  - code: ABC104
    name: all-elements
    summary: "`nonzero` is only counted"
    match:
      pattern: "$X.nonzero().numel() == 0"
    fix: {transform: normalize}
    explanation: "ask `any`"
"""
HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n        y = x + 1\n"


def normalized(tmp_path: Path, condition: str) -> str:
    text = HEAD + f"        if {condition}:\n            self.seen = 1\n        return y\n"
    (tmp_path / "module.py").write_text(text)
    (tmp_path / "pack.yaml").write_text(PACK)
    select = ("ABC101", "ABC102", "ABC103", "ABC104")
    config = Config(root=str(tmp_path), select=select, packs=(str(tmp_path / "pack.yaml"),))
    report = engine.run(engine.Request((str(tmp_path / "module.py"),), config, fix=True))
    assert report.errors == ()
    after = report.fixed[0].after if report.fixed else text
    return after.partition("        if ")[2].partition(":\n")[0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("y.any() and y.isnan().any()", "torch.logical_and(y.any(), y.isnan().any())"),
        ("not y.all()", "torch.logical_not(y.all())"),
        ("self.training and not y.all()", "self.training and torch.logical_not(y.all())"),
        ("not (y.any() or y.isnan().any())", "torch.logical_not(torch.logical_or(y.any(), y.isnan().any()))"),
        ("len(y.nonzero()) == 0", "torch.logical_not(torch.any(y))"),
        ("y.nonzero().shape[0] > 0", "torch.any(y)"),
        # A 0-d tensor's rows have no columns: there `numel()` is 0 whatever the tensor holds.
        ("y.nonzero().numel() == 0", "y.nonzero().numel() == 0"),
        ("y.any()", "y.any()"),
        ("y.any() and y", "y.any() and y"),
    ],
)
def test_conditions(tmp_path: Path, condition: str, expected: str) -> None:
    assert normalized(tmp_path, condition) == expected


@pytest.mark.parametrize(
    "value", [torch.tensor(0.0), torch.tensor(2.0), torch.zeros(3), torch.tensor([0.0, float("nan")])]
)
def test_counting_has_the_same_truth(value: torch.Tensor) -> None:
    assert (len(value.nonzero()) == 0) == bool(torch.logical_not(torch.any(value)))
    assert (value.nonzero().shape[0] > 0) == bool(torch.any(value))


def test_the_harness_sees_differences() -> None:
    """What compares runs must not find everything equal."""

    class First(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2.0

    class Second(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2.0 + x.detach() * 0.0

    class Third(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.rand(1)
            return x * 2.0

    harness.compare(First, First, harness.SAMPLES[:1])
    with pytest.raises(AssertionError, match="random"):
        harness.compare(First, Third, harness.SAMPLES[:1])
    with pytest.raises(AssertionError, match="outputs"):
        harness.compare(First, Second, harness.SAMPLES[:2])
