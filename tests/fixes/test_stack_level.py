"""The place that a warning or log record reports, before and after *outline*."""

from __future__ import annotations

import linecache
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

import graphmend
from graphmend import engine
from graphmend.config import Config
from tests.fixes.running import load

SOURCE = """\
import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


def helper(x):
    x = torch.sin(x)
    {message}
    return torch.cos(x)


class Inner(nn.Module):
    def forward(self, x):
        return helper(x) + 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x) * 2
"""
COMPILERS: dict[str, Callable[[nn.Module], Callable[[torch.Tensor], object]]] = {
    "eager": lambda model: model,
    "eager back end": lambda model: torch.compile(model, backend="eager"),
    "aot_eager": lambda model: torch.compile(model, backend="aot_eager"),
    "deferred": lambda model: graphmend.compile(model, backend="aot_eager"),
}
MESSAGES = [
    'warnings.warn("m", stacklevel=1)',
    'warnings.warn("m", UserWarning, 1)',
    'warnings.warn(f"m {x.shape}", stacklevel=1)',
    'logger.warning("m", stacklevel=1)',
]


def mended(source: str, folder: Path) -> str:
    path = folder / "module.py"
    path.write_text(source)
    (fixed,) = engine.run(engine.Request((str(path),), Config(root=str(folder)), fix=True)).fixed
    return fixed.after


def reported(module: ModuleType, compiler: str) -> list[tuple[str, str]]:
    """The text of the line that each message names, if it is one of the module's, and how often it was said."""
    torch._dynamo.reset()
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    module.logger.addHandler(handler)
    run = COMPILERS[compiler](module.Model())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            run(torch.ones(3))
    module.logger.removeHandler(handler)
    places = [(each.filename, each.lineno, str(each.message)) for each in warned]
    places += [(record.pathname, record.lineno, record.getMessage()) for record in records]
    assert {file for file, _, _ in places} == {module.__file__}
    return [(linecache.getline(file, line).strip(), text) for file, line, text in places]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_line_of_the_message_is_that_of_the_call(message: str, compiler: str, tmp_path: Path) -> None:
    source = SOURCE.format(message=message)
    after = mended(source, tmp_path)
    texts = [text for _, text in reported(load(source, tmp_path), compiler)]
    before = reported(load(source, tmp_path), compiler)
    assert before == [(message, text) for text in texts]
    assert len(before) == 2
    call = "_warn_helper(x)" if "x.shape" in message else "_warn_helper()"
    assert reported(load(after, tmp_path), compiler) == [(call, text) for text in texts]


@pytest.mark.parametrize("level", [2, 3])
def test_the_line_of_a_caller_is_not_known_in_a_graph(level: int, tmp_path: Path) -> None:
    """In eager two frames more would do, but in a graph there is nothing behind the frame of the call."""
    path = tmp_path / "module.py"
    path.write_text(SOURCE.format(message=f'warnings.warn("m", stacklevel={level})'))
    (finding,) = engine.run(engine.Request((str(path),), Config(root=str(tmp_path)))).findings
    assert finding.refusal is not None
    assert finding.refusal.obligation == "caller-location"
