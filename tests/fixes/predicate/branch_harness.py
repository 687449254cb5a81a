"""Runs code before and after a fix on the same inputs and compares everything that a program could notice."""

from __future__ import annotations

import copy
import importlib.util
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounterWithBackend

from graphmend import engine
from graphmend.config import Config
from graphmend.findings import Report

RULES = ("GM101", "GM102", "GM103")


def mend(folder: Path, files: dict[str, str], *, unsafe: bool = False) -> Report:
    """Write files and apply the fixes of branches on tensors."""
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 110\n")
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("utf-8"))
    return engine.run(engine.Request((str(folder),), Config(root=str(folder), select=RULES), fix=True, unsafe=unsafe))


def mended(folder: Path, files: dict[str, str], *, unsafe: bool = False) -> tuple[dict[str, str], Report]:
    """The texts of some files after the fixes, and the report."""
    report = mend(folder, files, unsafe=unsafe)
    after = dict(files)
    for fixed in report.fixed:
        after[Path(fixed.path).name] = fixed.after
    return after, report


def load(folder: Path, name: str, files: dict[str, str]) -> ModuleType:
    """Import ``module.py`` of some files as a package of its own."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("")
    for file, text in files.items():
        (package / file).write_bytes(text.encode("utf-8"))
    for key in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[key]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(f"{name}.module")
    finally:
        sys.path.remove(str(folder))


@dataclass
class Seen:
    """What one run showed."""

    outputs: list[Any] = field(default_factory=list)
    gradients: list[Any] = field(default_factory=list)
    raw_gradients: list[list[torch.Tensor | None]] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    random: Any = None
    errors: list[Any] = field(default_factory=list)
    graphs: int = 0


def run(
    make: Callable[[], Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    grad: bool,
    backend: str | None,
    fullgraph: bool = False,
) -> Seen:
    """Call a fresh module several times and write down what happens."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make()
    counter = CompileCounterWithBackend(backend) if backend else None
    call = torch.compile(model, backend=counter, fullgraph=fullgraph) if counter else model
    seen = Seen()
    with torch.set_grad_enabled(grad), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in calls:
            given = [prepare(each, grad) for each in copy.deepcopy(arguments)]
            try:
                output = call(*given)
            except Exception as error:
                seen.outputs.append(None)
                seen.errors.append((type(error).__name__, str(error) if backend is None else ""))
            else:
                seen.outputs.append(frozen(output))
                seen.errors.append(None)
                if grad:
                    backward(output)
            leaves = [each for each in flatten(given) if isinstance(each, torch.Tensor)]
            found = [each.grad for each in [*leaves, *parameters(model)]]
            seen.gradients.append([frozen(each) for each in found])
            seen.raw_gradients.append([each if each is None else each.clone() for each in found])
            seen.arguments.append(frozen(given))
    seen.state = {
        name: frozen(value)
        for name, value in sorted(vars(model).items())
        if not name.startswith("_") or name == "_buffers"
    }
    seen.random = frozen(torch.get_rng_state())
    seen.graphs = counter.frame_count if counter else 0
    return seen


def parameters(model: Any) -> list[torch.Tensor]:
    return list(model.parameters()) if isinstance(model, torch.nn.Module) else []


def prepare(value: Any, grad: bool) -> Any:
    """An argument; tensors marked as leaves require a gradient where gradients are on."""
    if isinstance(value, torch.Tensor) and value.is_floating_point() and grad:
        return value.detach().clone().requires_grad_()
    return value


def backward(output: Any) -> None:
    parts = [each for each in flatten(output) if isinstance(each, torch.Tensor) and each.requires_grad]
    if parts:
        sum((each.double() * weights(each)).sum() for each in parts).backward()


def weights(value: torch.Tensor) -> torch.Tensor:
    return torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)


def flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from flatten(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from flatten(each)
    else:
        yield value


def frozen(value: Any) -> Any:
    """A value that can be compared bit for bit."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return (
            "tensor",
            str(value.dtype),
            tuple(value.shape),
            value.stride(),
            value.clone().contiguous().view(torch.uint8).tolist()
            if value.dim()
            else value.reshape(1).view(torch.uint8).tolist(),
        )
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(frozen, value)]
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    if isinstance(value, torch.nn.Module):
        return {name: frozen(each) for name, each in value.state_dict().items()}
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def assert_same(before: Seen, after: Seen, *, what: str, ignore: Sequence[str] = ()) -> None:
    for name in ("outputs", "errors", "gradients", "arguments", "state", "random"):
        if name not in ignore:
            assert positive_zeros(getattr(before, name), name) == positive_zeros(getattr(after, name), name), (
                f"{what}: {name} differ"
            )


def assert_like_eager_or_stock(eager: Seen, compiled: Seen, stock: Callable[[], Seen], what: str) -> None:
    """Compare with eager, and where that differs with the original as stock torch compiles it."""
    try:
        assert_same(eager, compiled, what=what, ignore=("errors", "gradients"))
        assert_close(eager.raw_gradients, compiled.raw_gradients, what=what)
    except AssertionError:
        original = stock()
        assert_same(original, compiled, what=f"{what}, stock", ignore=("errors", "gradients"))
        assert_close(original.raw_gradients, compiled.raw_gradients, what=f"{what}, stock")


def assert_close(
    before: Sequence[Sequence[torch.Tensor | None]], after: Sequence[Sequence[torch.Tensor | None]], *, what: str
) -> None:
    """Compare gradients: none where there was none, NaN where there was NaN, and close."""
    for first, second in zip(before, after, strict=True):
        for a, b in zip(first, second, strict=True):
            assert (a is None) == (b is None), f"{what}: a gradient is there on one side only"
            if a is not None and b is not None:
                assert torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), f"{what}: gradients differ: {a} {b}"


def positive_zeros(value: Any, name: str) -> Any:
    """Gradients without the sign of their zeros, which is no difference."""
    if name != "gradients":
        return value
    if (
        isinstance(value, tuple)
        and value
        and value[0] == "tensor"
        and value[1] in ("torch.float32", "torch.float64", "torch.float16")
    ):
        size = {"torch.float32": 4, "torch.float64": 8, "torch.float16": 2}[value[1]]
        data = flat_bytes(value[4])
        words = [data[start : start + size] for start in range(0, len(data), size)]
        return (*value[:4], [[0] * size if not any(word[:-1]) and word[-1] in (0, 128) else word for word in words])
    if isinstance(value, (list, tuple)):
        return [positive_zeros(each, name) for each in value]
    return value


def flat_bytes(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value]
    return [each for inner in value for each in flat_bytes(inner)]


@contextmanager
def quiet() -> Iterator[None]:
    import logging

    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


INF, NAN = math.inf, math.nan
SAMPLES: tuple[tuple[Any, ...], ...] = (
    (torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -4.0]]),),
    (torch.tensor([[0.5, INF, 2.0], [3.0, -INF, 4.0]]),),
    (torch.tensor([[-0.5, -1.5, -2.0], [-3.0, NAN, -4.0]]),),
    (torch.tensor([[0.5, 1.5, 2.0], [3.0, 5000.0, 4.0]]),),
    (torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),),
)
"""Inputs of a one-tensor ``forward`` that reach both sides of the usual conditions."""


def compare(
    before: Callable[[], Any],
    after: Callable[[], Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    with_gradients: bool = True,
    whole: bool = True,
    close: bool = False,
    counted: bool = False,
    backends: Sequence[tuple[str, bool]] = (("eager", False), ("aot_eager", True)),
) -> None:
    """Compare two modules on some calls: in eager and compiled exactly, and never more graphs than before.

    Args:
        before: makes the original module.
        after: makes the mended one.
        calls: the arguments of each call.
        with_gradients: whether the fix promises a selection where gradients are on.
        whole: whether the mended module is one graph.
        close: whether compiled code may do what stock compiled code does: sum gradients in another order, or give zero
            for none where a graph breaks.
        counted: whether it must not have more graphs than the original, if it is not one.
        backends: the backends, each with whether gradients are on.
    """
    expected = {}
    for grad in (False, True):
        expected[grad] = run(before, calls, grad=grad, backend=None)
        assert_same(expected[grad], run(after, calls, grad=grad, backend=None), what=f"eager, grad={grad}")
    with quiet():
        for backend, grad in backends:
            selected = whole and (with_gradients or not grad)
            compiled = run(after, calls, grad=grad, backend=backend, fullgraph=selected)
            what = f"{backend}, grad={grad}"
            if close:
                assert_like_eager_or_stock(
                    expected[grad], compiled, lambda b=backend, g=grad: run(before, calls, grad=g, backend=b), what
                )
            else:
                assert_same(expected[grad], compiled, what=what, ignore=("errors",))
            assert [bool(error) for error in expected[grad].errors] == [bool(error) for error in compiled.errors]
            # Where tracing makes no selection the runtime runs the plain `if` outside of the frame, and its arms may
            # then be graphs of their own: that costs graphs, so arms that are not likely to agree are refused.
            if not selected and counted:
                stock = run(before, calls, grad=grad, backend="eager")
                assert not stock.graphs or compiled.graphs <= stock.graphs, f"{backend}, grad={grad}"
