"""Running code and writing down everything that section 5 of the design asks to stay the same."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_NUMBERS = itertools.count()


@dataclass
class Seen:
    """What one call did: its text, log records and warnings, what it raised, and what it returned."""

    printed: str
    logged: list[tuple[str, int, str, str]]
    warned: list[tuple[type[Warning], str]]
    raised: tuple[str, str] | None
    result: Any

    def same(self, other: Seen) -> str:
        """What differs, for a person; empty if nothing does."""
        for name in ("printed", "logged", "warned", "raised"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"{name}: {mine!r} is not {theirs!r}"
        mine, theirs = _leaves(self.result), _leaves(other.result)
        if len(mine) != len(theirs) or not all(map(_equal, mine, theirs)):
            return f"result: {self.result!r} is not {other.result!r}"
        return ""


def _leaves(result: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(result)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        same = a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()
        return bool(
            same
            and torch.equal(torch.nan_to_num(a, 7.25), torch.nan_to_num(b, 7.25))
            and torch.equal(a.isnan(), b.isnan())
        )
    return bool(a == b) and type(a) is type(b)


def load(source: str, folder: Path) -> ModuleType:
    """Import a text as a module of its own, always under the same name."""
    path = folder / f"run_{next(_NUMBERS)}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mended", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mended"] = module
    spec.loader.exec_module(module)
    return module


def watch(call: Callable[[], Any]) -> Seen:
    """Run something and write down what it does."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    printed, raised, result = io.StringIO(), None, None
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result = call()
            except Exception as error:  # whatever it is, it is what has to be the same
                raised = (f"{type(error).__module__}.{type(error).__qualname__}", repr(error.args))
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    logged = [
        (r.name, r.levelno, r.getMessage(), repr(r.args)) for r in records if r.name == "mended" or r.name == "root"
    ]
    return Seen(printed.getvalue(), logged, [(each.category, str(each.message)) for each in warned], raised, result)


@contextlib.contextmanager
def compiled(function: Callable[..., Any], backend: str) -> Iterator[Callable[..., Any]]:
    """A function compiled into one graph, or an error."""
    torch._dynamo.reset()
    try:
        yield torch.compile(function, backend=backend, fullgraph=True)
    finally:
        torch._dynamo.reset()
