"""What a break costs: the impact that is reported, and what torch makes of the same program."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.config import default_config
from graphmend.engine import Request, run

HEAD = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x, cache=None):
"""
PROGRAMS = {
    "nothing computed yet": (
        """\
        flag = cache is not None
        if x.shape[0] > 1 and not flag:
            logger.warning("first")
        return x * 2
""",
        "fullgraph-only",
    ),
    "an operation in front": (
        """\
        y = x * 2
        logger.warning("second")
        return y + 1
""",
        "splits-graph",
    ),
    "an operation inside": (
        """\
        print(x.sum())
        return x * 2
""",
        "splits-graph",
    ),
    "an operation in a condition in front": (
        """\
        wide = torch.zeros(3).shape[0] > 2
        print("wide", wide)
        return x * 2
""",
        "splits-graph",
    ),
    "the last statement": (
        """\
        self.y = x * 2
        print("done")
""",
        "fullgraph-only",
    ),
    "a loop": (
        """\
        for _ in range(2):
            print("again")
            x = x * 2
        return x
""",
        "skips-frame",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_impact(name: str, tmp_path: Path) -> None:
    body, impact = PROGRAMS[name]
    path = tmp_path / "module.py"
    path.write_text(HEAD + body)
    report = run(Request((str(path),), default_config(str(tmp_path))))
    assert [finding.impact.value for finding in report.findings] == [impact]


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_agree(name: str, tmp_path: Path) -> None:
    """A break that only `fullgraph=True` minds leaves one graph, one that splits leaves two."""
    torch = pytest.importorskip("torch")
    body, impact = PROGRAMS[name]
    path = tmp_path / "module.py"
    path.write_text(HEAD + body)
    names: dict[str, object] = {"__name__": "module"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    torch._dynamo.reset()
    graphs: list[object] = []

    def count(graph: object, _: object) -> object:
        graphs.append(graph)
        return graph

    torch.compile(names["Model"](), backend=count)(torch.ones(3))  # type: ignore[operator]
    assert len(graphs) == {"fullgraph-only": 1, "splits-graph": 2, "skips-frame": 0}[impact]
