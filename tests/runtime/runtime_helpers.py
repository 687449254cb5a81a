"""What a user notices of a call, and the same call compiled."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.testing import CompileCounterWithBackend

BACKENDS = ("eager", "aot_eager", "inductor")


@dataclass(eq=False)
class Seen:
    """What one call did."""

    value: Any
    error: BaseException | None
    text: str
    warned: list[tuple[str, str, str, int]]
    records: list[logging.LogRecord]

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and self._comparable() == other._comparable()

    def _comparable(self) -> Any:
        error = self.error and (type(self.error), self.error.args, repr(self.error.__cause__))
        records = [(r.name, r.levelno, r.getMessage(), r.pathname) for r in self.records]
        return plain(self.value), error, self.text, self.warned, records


def plain(value: Any) -> Any:
    """A value that can be compared, with everything about a tensor that a program can see."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().resolve_conj().contiguous().reshape(-1)
        bits = (flat if flat.numel() == 0 else flat.view(torch.uint8)).tolist()
        return type(value), bits, value.shape, value.dtype, value.device, value.stride(), value.requires_grad
    if isinstance(value, (tuple, list)):
        return type(value), [plain(item) for item in value]
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items()]
    return type(value), repr(value)


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("user"):
            self.records.append(record)


@contextlib.contextmanager
def _records() -> Iterator[list[logging.LogRecord]]:
    handler = _Records()
    logging.getLogger().addHandler(handler)
    try:
        yield handler.records
    finally:
        logging.getLogger().removeHandler(handler)


def see(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Seen:
    """Call a function and note what a user notices."""
    value, error = None, None
    output = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(output),
        _records() as records,
    ):
        warnings.simplefilter("always")
        try:
            value = function(*args, **kwargs)
        except Exception as raised:
            error = raised
    mine = [w for w in caught if "test_" in w.filename or "graphmend" in w.filename]
    warned = [(str(w.message), w.category.__name__, w.filename, w.lineno) for w in mine]
    return Seen(value, error, output.getvalue(), warned, records)


class Compiled:
    """A compiled function that counts its graphs."""

    def __init__(self, function: Callable[..., Any], backend: str = "eager", **arguments: Any) -> None:
        torch._dynamo.reset()
        self._counter = CompileCounterWithBackend(backend)
        self._function = torch.compile(function, backend=self._counter, **arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def graphs(self) -> int:
        return self._counter.frame_count


def graphs_after(function: Callable[..., Any], calls: list[tuple[Any, ...]], **arguments: Any) -> int:
    """How many graphs a function is compiled to over several calls."""
    compiled = Compiled(function, **arguments)
    for args in calls:
        see(compiled, *args)
    return compiled.graphs
