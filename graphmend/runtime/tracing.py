"""Questions asked of Dynamo while it traces: their answers cost no guard and leave nothing in the graph.

Functions marked with :func:`at_trace_time` are called by Dynamo itself, as ordinary Python, while it traces a call to
them; the result enters the graph as a constant. All others are traced like user code.
"""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def at_trace_time(function: Function) -> Function:
    """Have Dynamo call ``function`` while tracing and take its result as a constant.

    It is what ``torch.compiler.assume_constant_result`` does, without importing Dynamo (two seconds) where a library
    only defines functions. A version of torch that does not know the mark breaks the graph, as the unmended code did.

    Args:
        function: A function of constants that returns a constant.

    Returns:
        The same function.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def is_static(value: Any) -> bool:
    """Whether tracing knows ``value``, an int, float or bool, without a guard: false for symbolic numbers."""
    return bool(torch.fx.experimental.symbolic_shapes.has_static_value(value))


def known_true(condition: Any) -> bool:
    """Whether a comparison of sizes holds for every input that the graph accepts, asked without adding a guard."""
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(condition))


@at_trace_time
def transform() -> str:
    """The ``torch.func`` transform around the traced code: ``""``, ``"vmap"`` (anywhere on the stack) or ``"grad"``."""
    if torch._C._functorch.maybe_current_level() is None:
        return ""
    from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters

    kinds = {interpreter.key() for interpreter in retrieve_all_functorch_interpreters()}
    return "vmap" if torch._C._functorch.TransformType.Vmap in kinds else "grad"


@at_trace_time
def enclosing_operators() -> str:
    """The higher-order operators, such as a checkpoint, whose bodies the traced code is in, innermost first."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    names = []
    tracer = InstructionTranslator.current_tx().output.current_tracer
    while tracer.parent is not None:
        names.append(str(tracer.source_target))
        tracer = tracer.parent
    return " ".join(names)


def current_trace() -> tuple[object, int]:
    """The compilation under way, and which attempt it is at."""
    from torch._guards import CompileContext

    context = CompileContext.try_get()
    return (None, 0) if context is None else (weakref.ref(context), context.attempt)


@at_trace_time
def caller(called: str, known: str) -> str:
    """Where traced code calls into a file: ``LINE:FUNCTION``, or ``LINE:FUNCTION:FILE``; empty if it cannot be told.

    Args:
        called: The file.
        known: The file that goes without saying: that the path of a package is in the text would keep its graphs from
            being found in a cache that another machine has filled.
    """
    from torch._guards import TracingContext

    frames = [frame for frame in TracingContext.extract_stack() if frame.filename != called]
    if not frames:
        return ""
    frame = frames[-1]
    place = f"{frame.lineno}:{frame.name}"
    return place if frame.filename == known else f"{place}:{frame.filename}"


MAX_LAYOUTS = 3
"""In how many ways one call may be compiled before it is left alone."""


class _Calls(threading.local):
    """How often each site was called in the trace under way in this thread."""

    trace: tuple[object, int] | None = None
    numbers: dict[str, int]


_calls = _Calls()
_layouts: weakref.WeakKeyDictionary[types.CodeType, dict[tuple[str, int], set[str]]] = weakref.WeakKeyDictionary()


def _compiled_code() -> types.CodeType:
    """The code of the frame that is being compiled."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    code: types.CodeType = InstructionTranslator.current_tx().f_code
    return code


@at_trace_time
def next_call(site: str) -> int:
    """The number of this call of ``site`` in the frame that is being compiled, or -1 if it is to be left alone.

    A string or a constant that changes from call to call has the frame compiled for each of its values, until Dynamo
    gives up on it for good. The unmended code broke there, and did not look at the value. So after
    :data:`MAX_LAYOUTS` values the call breaks again.
    """
    from torch._guards import CompileContext

    trace = current_trace()
    if _calls.trace != trace:
        _calls.trace, _calls.numbers = trace, {}
        compilation = CompileContext.current_compile_id()
        if compilation is not None and compilation.frame_compile_id == 0:
            # The first of this frame, or the first after torch.compiler.reset.
            _layouts.pop(_compiled_code(), None)
    number = _calls.numbers[site] = _calls.numbers.get(site, -1) + 1
    seen = _layouts.get(_compiled_code(), {}).get((site, number), ())
    return -1 if len(seen) > MAX_LAYOUTS else number


@at_trace_time
def admit(site: str, number: int, layout: str) -> bool:
    """Note the constants of a call, see :func:`next_call`; false if they have changed too often."""
    seen = _layouts.setdefault(_compiled_code(), {}).setdefault((site, number), set())
    seen.add(layout)
    return len(seen) <= MAX_LAYOUTS


_inlined_only: dict[types.CodeType, bool] = {}


def inlined_only(function: Callable[..., Any], *, with_callees: bool) -> None:
    """Let Dynamo follow ``function`` where traced code calls it, but never compile its frame on its own.

    Dynamo comes to that where the caller's frame is not compiled or broke at the call. What is left to do then is what
    eager does, and a graph of its own would be one graph more.

    Args:
        function: The function; it calls :func:`stay_out_of_own_frame` first thing when it is traced.
        with_callees: Whether what it calls is not compiled either.
    """
    _inlined_only[function.__code__] = with_callees


@at_trace_time
def stay_out_of_own_frame() -> None:
    """Give up the frame that is being traced if it is that of a function for :func:`inlined_only`."""
    from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    from torch._dynamo.exc import SkipFrame

    for code, with_callees in _inlined_only.items():
        callees = _FrameAction.SKIP if with_callees else _FrameAction.DEFAULT
        set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, callees))
    if _compiled_code() in _inlined_only:
        raise SkipFrame("part of the graphmend runtime, called from a frame that is not compiled")
