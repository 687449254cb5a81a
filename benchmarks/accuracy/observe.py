"""Runs a variant under Dynamo: whether its program does what was measured, and on which line it breaks."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

_LOGGING = ("convert_frame", "exc", "symbolic_convert")
"""Modules of Dynamo that write to the log of graph breaks."""


@dataclass(frozen=True)
class Observation:
    """What one program did.

    Attributes:
        graphs: graphs compiled.
        breaks: graph breaks counted.
        lines: lines of the program that the log of graph breaks names as the place of a break, in the innermost frame.
    """

    graphs: int
    breaks: int
    lines: tuple[int, ...]


class _Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextlib.contextmanager
def _graph_break_log() -> Iterator[list[str]]:
    import torch

    torch._logging.set_logs(graph_breaks=True)
    loggers = [logging.getLogger(f"torch._dynamo.{module}.__graph_breaks") for module in _LOGGING]
    before = [(list(logger.handlers), logger.propagate) for logger in loggers]
    messages = _Messages()
    for logger in loggers:
        logger.handlers[:] = [messages]
        logger.propagate = False
    try:
        yield messages.texts
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.propagate = propagate


def observe(path: Path) -> Observation:
    """Runs a program whose `torch.compile` uses a backend that runs the graphs as they are.

    What the program raises is no matter: some variants raise.
    """
    import torch
    import torch._dynamo
    from torch._dynamo.testing import CompileCounterWithBackend
    from torch._dynamo.utils import counters

    os.environ["PYTHONBREAKPOINT"] = "0"
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    counter = CompileCounterWithBackend("eager")
    module = ModuleType(f"variant_{path.stem}")
    sys.modules[module.__name__] = module
    original = torch.compile
    torch.compile = lambda target: original(target, backend=counter)
    try:
        with (
            _graph_break_log() as texts,
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(Exception),
        ):
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    finally:
        torch.compile = original
        del sys.modules[module.__name__]
    lines = {line for text in texts for line in _places(text, path)}
    return Observation(counter.frame_count, sum(counters["graph_break"].values()), tuple(sorted(lines)))


def _places(text: str, path: Path) -> list[int]:
    """The line of the innermost frame in this file that a message names."""
    found = re.findall(rf'{re.escape(str(path))}(?:", line |:)(\d+)', text)
    return [int(found[-1])] if found else []
