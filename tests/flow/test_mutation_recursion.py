"""What functions write into their parameters is found by one fixed point, however they call one another."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import default_config
from graphmend.flow.mutation import Mutations
from graphmend.model.module import Function

COUNT = 10


def program() -> str:
    """A model with functions that all call each other, the last of which writes into what it is given."""
    lines = ["import torch", "from torch import nn", "", "", "class Model(nn.Module):"]
    for number in range(COUNT):
        lines.append(f"    def f{number}(self, x, out):")
        if number == COUNT - 1:
            lines.append("        out[0] = 1")
        lines.append(f"        if x.dim() > {number}:")
        lines += [f"            self.f{other}(x, out)" for other in range(COUNT) if other != number]
        lines += ["        return x", ""]
    lines += ["    def forward(self, x):", "        y = x.sin()", "        self.f0(y, {})"]
    lines += ["        if (y > 10).any():", "            raise ValueError('big')", "        return y", ""]
    return "\n".join(lines)


def test_mutual_recursion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found: dict[str, frozenset[str]] = {}
    look, solve = Mutations._changed_parameters, Mutations._solve

    def counting(self: Mutations, function: Function) -> object:
        asked.append(function.name)
        return look(self, function)

    def keeping(self: Mutations, function: Function) -> None:
        solve(self, function)
        found.update({each.name: names for each, names in self._parameters.items()})

    monkeypatch.setattr(Mutations, "_changed_parameters", counting)
    monkeypatch.setattr(Mutations, "_solve", keeping)
    (tmp_path / "model.py").write_text(program(), "utf-8")
    report = engine.run(engine.Request((str(tmp_path),), default_config(str(tmp_path))))
    assert [finding.rule for finding in report.findings] == ["GM201"]
    assert {name: found[name] for name in ("f0", f"f{COUNT - 1}")} == dict.fromkeys(
        ("f0", f"f{COUNT - 1}"), frozenset({"out"})
    )
    assert len(asked) < COUNT * COUNT * 2
