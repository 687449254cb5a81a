"""What tracing leaves behind in the module of the compiled code."""

from __future__ import annotations

import re

import pytest
import torch

SOURCE = """\
import graphmend
import torch

answer = "the user's"


@graphmend.effect
def _print_value(x):
    print(x)


def forward(x):
    _print_value(x)
    return graphmend.select(x.sum() > 0, lambda: x * 2, lambda: -x)
"""
OF_DYNAMO = re.compile(r"__(builtins|compiled_fn|resume|import_torch)\w*|_\d+_c\d+")


def test_names_among_the_globals(capsys: pytest.CaptureFixture[str]) -> None:
    """Dynamo keeps answers given while tracing among the user's globals: their names say whose they are."""
    user: dict[str, object] = {"__name__": "user_module"}
    exec(SOURCE, user)
    before = dict(user)
    torch._dynamo.reset()
    compiled = torch.compile(user["forward"], backend="eager", fullgraph=True, dynamic=False)
    for size in (2, 3):
        assert compiled(torch.ones(size)).tolist() == [2.0] * size
    assert capsys.readouterr().out
    assert {name: user[name] for name in before} == before
    added = {name for name in set(user) - set(before) if not OF_DYNAMO.fullmatch(name)}
    assert added
    assert all(name.startswith(("graphmend_runtime_", "__import_graphmend_")) for name in added)
