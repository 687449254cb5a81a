from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphmend
from graphmend.version import __version__

ROOT = Path(graphmend.__file__).parent.parent


def python(code: str, tmp_path: Path) -> str:
    """Run a program in a process of its own, with a cache of its own."""
    script = tmp_path / "program.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_names():
    assert graphmend.__version__ == __version__
    assert {"compile", "effect", "select", "__version__"} <= set(graphmend.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        graphmend.nope  # noqa: B018
    from graphmend import compile, effect, select  # noqa: A004

    assert (compile, effect, select) == (graphmend.compile, graphmend.effect, graphmend.select)


LAZY = """
import sys
import graphmend
assert "torch" not in sys.modules
assert "graphmend.runtime" not in sys.modules
import torch

def function(x):
    return graphmend.select(x.sum() > 0, lambda: x * 2, lambda: x - 1)

compiled = torch.compile(function, backend="eager", fullgraph=True)
for scale in (1, -1):
    x = torch.ones(2) * scale
    assert torch.equal(compiled(x), function(x))
print("traced")
"""

QUICK_TO_IMPORT = """
import sys
import graphmend.runtime
print(sorted(name for name in sys.modules if name in ("torch._dynamo", "torch._inductor", "sympy", "libcst", "yaml")))
"""


def test_dynamo_follows_names_that_were_not_asked_for_before(tmp_path):
    assert python(LAZY, tmp_path) == "traced\n"


def test_runtime_imports_nothing_slow(tmp_path):
    assert python(QUICK_TO_IMPORT, tmp_path) == "[]\n"


CACHED = """
import json, sys, torch, graphmend
from torch._dynamo.utils import counters

@graphmend.effect
def say(*args):
    print("said", *args, file=sys.stderr)

@graphmend.effect
def check(bad, x):
    if bad[0, 0] > 1:
        raise ValueError(f"bad {x.shape}")

def function(x, n):
    say("first", x, n, 0.5, torch.float32)
    y = x @ x
    check(y, y)
    say("second", y.shape, {"n": n})
    return y @ x

x = torch.eye(2, requires_grad=True)
raised = []
for compile in (torch.compile, graphmend.compile):
    compiled = compile(function, fullgraph=True)
    for n in (2, 3, 4):
        compiled(x, n).sum().backward()
    try:
        compiled(x * 2, 5)
    except ValueError as error:
        raised.append(str(error))
    torch._dynamo.reset()
caches = {**counters["inductor"], **counters["aot_autograd"]}
print(json.dumps([raised, {k: v for k, v in caches.items() if k.endswith(("_hit", "_miss", "_bypass"))}]))
"""


def test_a_second_process_finds_the_compiled_graphs(tmp_path):
    raised, first = json.loads(python(CACHED, tmp_path))
    assert raised == ["bad torch.Size([2, 2])"] * 2
    again, second = json.loads(python(CACHED, tmp_path))
    assert again == raised
    assert first["fxgraph_cache_miss"] >= 2
    assert not [name for name in (*first, *second) if name.endswith("_bypass")]
    assert second["fxgraph_cache_hit"] >= 2
    assert "fxgraph_cache_miss" not in second
    assert "autograd_cache_miss" not in second


FIRST_USE = """
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import graphmend

counter = CompileCounterWithBackend("eager")


@torch.compile(backend=counter)
def function(x):
    for i in range(2):
        if x.sum() > i:
            continue
        x = x * 2
    return graphmend.select(x.sum() > 0.9, lambda: x * 2, lambda: x)


function(torch.ones(3))
print(counter.frame_count)
"""


def test_first_use_in_a_frame_that_is_left_to_python_compiles_nothing(tmp_path):
    assert python(FIRST_USE, tmp_path) == "0\n"
