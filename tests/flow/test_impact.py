"""What a break costs: the impact that is reported, and what torch makes of the same program."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.config import default_config
from graphmend.engine import Request, run

HEAD = """\
import logging
import random
import threading

import torch
from torch import nn

logger = logging.getLogger(__name__)
lock = threading.Lock()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3)

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
    "a comprehension": (
        """\
        y = torch.relu(x)
        counts = [row.sum().item() for row in y]
        return y.sin() + counts[0]
""",
        "splits-graph",
    ),
    "what a comprehension goes through": (
        """\
        y = torch.relu(x)
        halves = [each / 2 for each in y.sum(1).tolist()]
        return y.sin() + halves[0]
""",
        "splits-graph",
    ),
    "a comprehension of pairs": (
        """\
        y = torch.relu(x)
        counts = {place: row.sum().item() for place, row in enumerate(y)}
        return y.sin() + counts[0]
""",
        "skips-frame",
    ),
    "a generator expression": (
        """\
        y = torch.relu(x)
        largest = max(row.sum().item() for row in y)
        return y.sin() + largest
""",
        "skips-frame",
    ),
    "a while": (
        """\
        y = torch.relu(x)
        while y.sum() > 2:
            y = y / 10
        return y.sin()
""",
        "splits-graph",
    ),
    "the body of a while": (
        """\
        y = torch.relu(x)
        while True:
            y = y / 10
            if y.sum() < 1:
                break
        return y.sin()
""",
        "skips-frame",
    ),
    "a comprehension of two": (
        """\
        y = torch.relu(x)
        counts = [int(a.sum()) for a, _ in zip(y, x)]
        return y.sin() + counts[0]
""",
        "splits-graph",
    ),
    "a comprehension over a dict": (
        """\
        y = {'a': torch.relu(x)}
        counts = [int(each.sum()) for each in y.values()]
        return y['a'].sin() + counts[0]
""",
        "skips-frame",
    ),
    "a range up to a drawn number": (
        """\
        y = torch.relu(x)
        for _ in range(random.randint(1, 2)):
            y = y + 1
        return y.sin()
""",
        "skips-frame",
    ),
    "not, as a value": (
        """\
        y = torch.relu(x)
        empty = not y.any()
        return y.sin() if empty else y
""",
        "skips-frame",
    ),
    "not, as a condition": (
        """\
        y = torch.relu(x)
        if not y.any():
            y = y + 1
        return y.sin()
""",
        "splits-graph",
    ),
    "and, as a value": (
        """\
        y = torch.relu(x)
        both = y.any() and x.any()
        return y.sin(), both
""",
        "splits-graph",
    ),
    "in a tensor": (
        """\
        y = torch.relu(x)
        if 3 in y:
            y = y + 1
        return y.sin()
""",
        "skips-frame",
    ),
    "in a list": (
        """\
        y = torch.relu(x)
        if y.sum() in (3, 4):
            y = y + 1
        return y.sin()
""",
        "splits-graph",
    ),
    "a recurrent module": (
        """\
        y = torch.relu(x)
        self.lstm(y)
        return y.sin()
""",
        "skips-frame",
    ),
    "a slice": (
        """\
        y = torch.relu(x)
        return y[: x.argmax()].sin()
""",
        "skips-frame",
    ),
    "percent formatting": (
        """\
        y = torch.relu(x)
        self.text = '%s' % y.sum()
        return y.sin()
""",
        "skips-frame",
    ),
    "any of tensors": (
        """\
        y = torch.relu(x)
        found = any((each > 1).all() for each in y)
        return y.sin(), found
""",
        "skips-frame",
    ),
    "a lock": (
        """\
        y = torch.relu(x)
        with lock:
            y = y.sin()
        return y.cos()
""",
        "skips-frame",
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
    """What only `fullgraph=True` minds leaves one graph, what splits it leaves more, what skips the frame none."""
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

    torch.compile(names["Model"](), backend=count)(torch.ones(3, 3))  # type: ignore[operator]
    assert min(len(graphs), 2) == {"fullgraph-only": 1, "splits-graph": 2, "skips-frame": 0}[impact]
