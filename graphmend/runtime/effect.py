"""``effect``: a function that only observes, as one ordered operator of the graph."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable
from typing import Any, ParamSpec

import torch
from torch.compiler import is_dynamo_compiling

from graphmend.runtime.codec import encode_call
from graphmend.runtime.operator import OPERATOR, TOKEN, register_body
from graphmend.runtime.tracing import inside_arms, transform

Parameters = ParamSpec("Parameters")


def effect(function: Callable[Parameters, object]) -> Callable[Parameters, None]:
    """Keep a function that only observes in the graph.

    In eager the result calls ``function``. While Dynamo traces, a call becomes one opaque operator that calls
    ``function`` when the graph runs, in order with all other effects, with gradients and autocast off: the same text,
    the same exception, no graph break. Where that cannot be done (an argument that no operator can carry, a
    ``torch.func`` transform, ``torch.export``), Dynamo sees the body itself, as if there were no decorator.

    Args:
        function: A function at module level, without closure, that prints, logs, warns or raises and does nothing
            else. Its arguments may be tensors, numbers, strings, None, dtypes, devices, sizes, enum members, and
            tuples, lists and dicts of these.

    Returns:
        A function of the same arguments that returns None.

    Raises:
        TypeError: ``function`` is not a plain function.
        ValueError: ``function`` is not defined at module level, so that no other process could find it.
    """
    site = _site(function)
    register_body(site, function)

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        if is_dynamo_compiling() and _emit(site, args, kwargs):
            return
        function(*args, **kwargs)

    return call


def _emit(site: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Put the operator into the graph that is being traced; false when this call has to stay as it was."""
    # An exported program holds what the original one did, and an arm of a selection runs whether it is taken or not.
    # Inside a transform the body would see other tensors than in eager (a batched one has no value of its own).
    if torch.compiler.is_exporting() or transform() or inside_arms():
        return False
    tensors: list[torch.Tensor] = []
    ints: list[Any] = []
    layout = encode_call(args, kwargs, tensors, ints)
    if layout is None:
        return False
    OPERATOR(TOKEN, site, layout, tensors, ints)
    return True


def _site(function: Callable[..., object]) -> str:
    """The name by which graphs, also cached and exported ones, refer to ``function``."""
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"effect expects a function, not {function!r}")
    if (
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise TypeError(f"effect expects a plain function; {function.__qualname__} is a generator or a coroutine")
    if not function.__qualname__.isidentifier() or function.__closure__:
        raise ValueError(
            f"effect expects a function defined at module level without a closure, not {function.__qualname__}"
        )
    return f"{function.__module__}:{function.__qualname__}#{_digest(function.__code__)}"


def _digest(code: types.CodeType) -> str:
    return hashlib.sha256(repr(_content(code)).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _content(code: types.CodeType) -> tuple[object, ...]:
    """What a code object does, without where it is: moving a function in its file is no change."""
    constants = [_content(item) if isinstance(item, types.CodeType) else _stable(item) for item in code.co_consts]
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_flags,
    )


def _stable(constant: object) -> str:
    """A text for a constant that does not depend on the hash seed of the process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(repr, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_stable, constant))})"
    return repr(constant)
