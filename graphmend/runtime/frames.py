"""Functions that Dynamo follows into from traced code, but whose frames it does not compile on their own."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from graphmend.runtime.tracing import at_trace_time, compiled_code

_inlined_only: dict[types.CodeType, bool] = {}


def inlined_only(function: Callable[..., Any], *, with_callees: bool) -> None:
    """Let Dynamo follow ``function`` where traced code calls it, but never compile its frame on its own.

    Dynamo comes to that where the caller's frame is not compiled or broke at the call. What is left to do then is what
    eager does, and a graph of its own would be one graph more.

    Args:
        function: The function; it asks :func:`is_inlined` before anything else when it is traced.
        with_callees: Whether what it calls is not compiled either.
    """
    _inlined_only[function.__code__] = with_callees


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
