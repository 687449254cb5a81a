"""Running the body of an effect: now, or when the graph that called for it ends."""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import dis
import functools
import logging
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from graphmend.runtime.codec import decode_call

MAX_MESSAGES = 1000
MAX_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Body:
    """What an effect runs.

    Attributes:
        function: The function that the user wrote.
        validates: Whether it is there to stop the program, so that it must not wait.
        names: The global names that its code loads.
        wants_location: Whether it asks for another frame than its own to be reported (``stacklevel=``).
    """

    function: types.FunctionType
    validates: bool
    names: tuple[str, ...]
    wants_location: bool

    def values(self) -> list[object]:
        """What the global names stand for now."""
        return [self.function.__globals__.get(name, getattr(builtins, name, None)) for name in self.names]


@dataclass
class Pending:
    """Messages that wait for the end of a graph, in order, with the tensors as they were."""

    calls: list[Callable[[], None]] = field(default_factory=list)
    bytes: int = 0

    def add(self, call: Callable[[], None], tensors: Sequence[torch.Tensor]) -> None:
        """Keep a call for later; all of them are made at once when they become too many."""
        self.calls.append(call)
        self.bytes += sum([tensor.nbytes for tensor in tensors])
        if len(self.calls) >= MAX_MESSAGES or self.bytes >= MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make the calls. One that raises ends it, as it would have ended the program: the later ones are dropped."""
        calls, self.calls, self.bytes = self.calls, [], 0
        for call in calls:
            call()


_pending: contextvars.ContextVar[Pending | None] = contextvars.ContextVar("graphmend_pending", default=None)


@contextlib.contextmanager
def deferring() -> Iterator[None]:
    """Have messages wait until the end of the block, also when it raises; for this thread or task only.

    Inside another such block, in the kernel of an operator say, the end of either makes all calls.
    """
    outer = _pending.get()
    pending = outer or Pending()
    token = _pending.set(pending)
    try:
        yield
    finally:
        _pending.reset(token)
        pending.flush()


def run(body: Body, location: str, layout: str, tensors: Sequence[torch.Tensor], ints: Sequence[int]) -> None:
    """Call a body with the arguments that a graph carries, or have the call wait.

    Args:
        body: The body.
        location: Line and function of the user's call, see :func:`_frame`; may be empty.
        layout: How the arguments are put together, see :mod:`graphmend.runtime.codec`.
        tensors: The tensors among them.
        ints: The integers among them.
    """
    pending = _pending.get()
    if pending is not None and _may_wait(body):
        copies = [tensor.clone() for tensor in tensors]
        args, kwargs = decode_call(layout, copies, ints)
        pending.add(lambda: _call_from(location, body.function, args, kwargs), copies)
        return
    if pending is not None:
        pending.flush()
    views = [tensor.detach() for tensor in tensors]
    try:
        _call_from(location, body.function, *decode_call(layout, views, ints))
    finally:
        _part(views)


def _part(views: list[torch.Tensor]) -> None:
    """Give tensors that the body has kept (in a log record, in an exception) memory of their own.

    What they are views of may be an intermediate result, whose memory the compiled graph uses again.
    """
    for view in views:
        if sys.getrefcount(view) > _UNKEPT:
            view.data = view.clone()


def _references() -> int:
    items = [object()]
    for item in items:
        return sys.getrefcount(item)
    raise AssertionError


_UNKEPT = _references()


def _call_from(location: str, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    frame = _frame(location, function)
    # As a rule the graph has turned both off, and to do it again would take longer than all the rest.
    if torch.is_grad_enabled() or _is_any_autocast_enabled():
        with torch.no_grad(), torch._C._DisableAutocast():
            frame(lambda: function(*args, **kwargs))
    else:
        frame(lambda: function(*args, **kwargs))


_is_any_autocast_enabled: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)


@functools.lru_cache(maxsize=1024)
def _frame(location: str, function: types.FunctionType) -> Callable[[Callable[[], object]], object]:
    """A function whose frame looks like the user's, to whoever walks up the stack from the body.

    In eager the caller of the body is the function that ``effect`` made, and its caller is the user's. Here, likewise,
    the caller's caller of the body is a frame of the user's file and module, at the line of the call.

    Args:
        location: ``"LINE:FUNCTION"``, with ``":FILE"`` if that is another file than the body's; empty if not known.
        function: The body.
    """
    code = function.__code__
    line, _, rest = location.partition(":")
    name, _, file = rest.partition(":")
    frame = _pass_on.__code__.replace(
        co_filename=file or code.co_filename,
        co_name=name or code.co_name,
        co_firstlineno=int(line or code.co_firstlineno),
    )
    return types.FunctionType(frame, function.__globals__)


_pass_on = lambda call: call()  # noqa: E731  (all of it has to be on one line)


def _may_wait(body: Body) -> bool:
    """Whether a call of the body can be made later: it only reports, so that nothing of the program depends on it."""
    if body.validates:
        return False
    if not all(map(_reports, body.values())):
        return False
    # A warning that a filter turns into an exception stops the program where it is.
    return not any(action == "error" for action, *_ in warnings.filters)


def _reports(value: object) -> bool:
    """Whether using this global value can do no more than to format and emit."""
    if isinstance(value, type):
        return value.__module__ == "builtins" or issubclass(value, Warning)
    if isinstance(value, types.ModuleType):
        return value in _MODULES
    if isinstance(value, types.BuiltinFunctionType):
        return value is warnings.warn or value.__module__ == "builtins"
    return isinstance(value, (str, int, float, complex, torch.dtype, logging.Logger, logging.LoggerAdapter, type(None)))


_STOPPING = ("abort", "assert", "check", "exit", "fail", "quit", "raise", "valid", "verify")
_MODULES = (logging, warnings, sys, torch)


def make_body(function: types.FunctionType, validates: bool | None) -> Body:
    """Look at the code of an effect.

    Args:
        function: The function that the user wrote.
        validates: Whether it may stop the program; None to find out, by a ``raise`` or an ``assert`` in it, or by the
            name of something that it calls.
    """
    codes = list(_codes(function.__code__))
    instructions = [instruction for code in codes for instruction in dis.get_instructions(code)]
    stops = any(instruction.opname == "RAISE_VARARGS" for instruction in instructions) or any(
        name.lstrip("_").startswith(_STOPPING) for code in codes for name in code.co_names
    )
    return Body(
        function=function,
        validates=stops if validates is None else validates,
        names=tuple({str(i.argval) for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}),
        wants_location="stacklevel" in repr([code.co_consts for code in codes]),
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
