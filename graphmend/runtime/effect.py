"""``effect``: a function that only observes, as one ordered operator of the graph."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from typing import Any, ParamSpec, overload

import torch
from torch.compiler import is_dynamo_compiling

from graphmend.runtime.around import is_first_behind_break, may_raise, may_report
from graphmend.runtime.calls import next_call, note_constants
from graphmend.runtime.codec import encode_call
from graphmend.runtime.defer import make_body
from graphmend.runtime.frames import inlined_only, is_inlined
from graphmend.runtime.operator import OPERATOR, TOKEN, register_body
from graphmend.runtime.tracing import (
    at_trace_time,
    caller,
    enclosing_operators,
    is_static,
    runs_graphs_as_they_are,
    transform,
)

Parameters = ParamSpec("Parameters")

_CHECKPOINT = "tag_activation_checkpoint"


@overload
def effect(function: Callable[Parameters, object], /) -> Callable[Parameters, None]: ...
@overload
def effect(
    *, validates: bool | None = None
) -> Callable[[Callable[Parameters, object]], Callable[Parameters, None]]: ...
def effect(function: Callable[..., object] | None = None, /, *, validates: bool | None = None) -> Callable[..., Any]:
    """Keep a function that only observes in the graph.

    In eager the result calls ``function``. While Dynamo traces, a call becomes one opaque operator that calls
    ``function`` when the graph runs, in order with all other effects, with gradients and autocast off: the same text,
    the same exception, no graph break. Where that cannot be done (an argument that no operator can carry, a
    ``torch.func`` transform, ``torch.export``), Dynamo sees the body itself, as if there were no decorator.

    Between the body and the user's call lies one frame, in eager and in a graph: a ``stacklevel`` of 3 in the body
    reports the line of the call.

    Args:
        function: A function at module level, without closure, that prints, logs, warns or raises and does nothing
            else. Its arguments may be tensors, numbers, strings, None, dtypes, devices, sizes, enum members, and
            tuples, lists and dicts of these.
        validates: Whether it is there to stop the program, and so is never deferred (see ``graphmend.compile``). By
            default, whether there is a ``raise`` or an ``assert`` in it; say so if it raises through a helper.

    Returns:
        A function of the same arguments that returns None; without ``function``, a decorator.

    Raises:
        TypeError: ``function`` is not a plain function.
        ValueError: ``function`` is not defined at module level, so that no other process could find it.
    """
    if function is None:
        return functools.partial(_decorate, validates)
    return _decorate(validates, function)


def _decorate(validates: bool | None, function: Callable[..., object]) -> Callable[..., None]:
    plain = _check(function)
    site = f"{plain.__module__}:{plain.__qualname__}#{_digest(plain.__code__)}"
    body = make_body(plain, validates)
    register_body(site, body)
    file = plain.__code__.co_filename if body.wants_location else ""
    stops = body.validates

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> None:
        if is_dynamo_compiling() and _emit(site, file, stops, args, kwargs):
            return
        plain(*args, **kwargs)

    call.__graphmend_site__ = site  # type: ignore[attr-defined]
    inlined_only(call, with_callees=True)
    # What is set for what a function calls holds from its next call on only.
    inlined_only(plain, with_callees=True)
    return call


def _emit(site: str, file: str, stops: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Put the operator into the graph that is being traced.

    Args:
        site: What to call.
        file: The file of the body if it wants to know its caller's place, else empty.
        stops: Whether the body may raise.
        args: The positional arguments.
        kwargs: The keyword arguments.

    Returns:
        False when this call has to stay as it was.
    """
    # Not traced: Dynamo was told to go on inside of broken calls (nested_graph_breaks), and did, before this call.
    number = _place(site, stops) if is_dynamo_compiling() else -1
    if number < 0:
        return False
    tensors: list[torch.Tensor] = []
    ints: list[Any] = []
    layout = encode_call(args, kwargs, tensors, ints)
    if layout is None:
        return False
    note_constants(site, number, layout + "".join([f" {each}" for each in ints if is_static(each)]))
    location = caller(__file__, file) if file else ""
    OPERATOR(TOKEN, f"{site}\n{location}\n{layout}", tensors, ints)
    return True


inlined_only(_emit, with_callees=True)


@at_trace_time(otherwise=-1)
def _place(site: str, stops: bool) -> int:
    """The number of this call of the effect in the graph that is being traced, or -1 if it cannot be part of it."""
    # An exported program holds what the original one did. Inside a transform the body would see other tensors than in
    # eager: a batched one has no value of its own.
    if not is_inlined() or torch.compiler.is_exporting() or transform():
        return -1
    enclosing = set(enclosing_operators().split())
    # In other operators, torch.cond for one, the effect would be lost.
    if not enclosing <= {_CHECKPOINT, "autograd.Function"} or (_CHECKPOINT in enclosing and runs_graphs_as_they_are()):
        return -1
    if is_first_behind_break() or not (may_raise() if stops else may_report(site)):
        return -1
    return next_call(site)


def _check(function: Callable[..., object]) -> types.FunctionType:
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"effect expects a function, not {function!r}")
    name = function.__qualname__
    if (
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise TypeError(f"effect expects a plain function; {name} is a generator or a coroutine")
    if not name.isidentifier() or function.__closure__:
        raise ValueError(f"effect expects a function defined at module level, without a closure, not {name}")
    return function


def _digest(code: types.CodeType) -> str:
    return hashlib.sha256(repr(_content(code)).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _content(code: types.CodeType) -> tuple[object, ...]:
    """What a code object does, without where it is: moving a function in its file is no change."""
    constants = [_content(item) if isinstance(item, types.CodeType) else _stable(item) for item in code.co_consts]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return (code.co_code, constants, code.co_names, code.co_varnames, counts)


def _stable(constant: object) -> str:
    """A text for a constant that does not depend on the hash seed of the process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(repr, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_stable, constant))})"
    return repr(constant)
