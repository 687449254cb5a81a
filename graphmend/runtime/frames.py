"""Functions that Dynamo follows into from traced code, but whose frames it does not compile on their own."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from graphmend.runtime.tracing import at_trace_time, compiled_code

_inlined_only: dict[types.CodeType, bool] = {}
_callback: Callable[[], object] = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", lambda: None)


def inlined_only(function: Callable[..., Any], *, with_callees: bool) -> None:
    """Let Dynamo follow ``function`` where traced code calls it, but never compile its frame on its own.

    Dynamo comes to that where the caller's frame is not compiled or broke at the call. What is left to do then is what
    eager does, and a graph of its own would be one graph more.

    Args:
        function: The function; it asks :func:`is_inlined` before anything else when it is traced.
        with_callees: Whether what it calls is not compiled either.
    """
    _inlined_only[function.__code__] = with_callees


def is_marked(code: types.CodeType) -> bool:
    """Whether a code object is that of a function given to :func:`inlined_only`."""
    return code in _inlined_only


def is_left_alone() -> bool:
    """Whether the frame that asks runs in eager inside of a call that is compiled: Dynamo broke there, or gave up."""
    return bool(_callback())


def run_with_caller(*functions: Callable[..., Any]) -> None:
    """Have local functions that are about to be called run in eager, as their caller does.

    They are part of its text. What they call is compiled, as it is where the caller calls it itself. In a version of
    torch that cannot be told so they are compiled, too.
    """
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:
        return
    for function in functions:
        if isinstance(function, types.FunctionType) and "<locals>" in function.__qualname__:
            set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT))


@at_trace_time(otherwise=False)
def is_inlined() -> bool:
    """Whether traced code calls the function that asks, rather than that its own frame is being compiled.

    In the latter case the frame is given up, and is run in eager from then on.

    Returns:
        False in a version of torch where this cannot be told.
    """
    from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    from torch._dynamo.exc import SkipFrame

    for code, with_callees in _inlined_only.items():
        callees = _FrameAction.SKIP if with_callees else _FrameAction.DEFAULT
        set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction.SKIP, callees))
    if compiled_code() in _inlined_only:
        raise SkipFrame("part of the graphmend runtime, called from a frame that is not compiled")
    return True
