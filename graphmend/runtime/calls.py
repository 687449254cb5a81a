"""How often a call of an effect is compiled: for each of its constants, up to a limit."""

from __future__ import annotations

import threading
import types
import weakref

from graphmend.runtime.tracing import at_trace_time, compiled_code, current_trace

MAX_LAYOUTS = 3
"""In how many ways one call may be compiled before it is left alone."""


class _Calls(threading.local):
    """How often each site was called in the trace under way in this thread."""

    def __init__(self) -> None:
        self.trace: tuple[object, int] | None = None
        self.numbers: dict[str, int] = {}


_calls = _Calls()
_Layouts = dict[tuple[str, int], dict[str, object]]
_layouts: weakref.WeakKeyDictionary[types.CodeType, _Layouts] = weakref.WeakKeyDictionary()
"""For each call of each frame its constants, with the compilation that came upon them."""


@at_trace_time(otherwise=0)
def next_call(site: str) -> int:
    """The number of this call of ``site`` in the frame that is being compiled, or -1 if it is to be left alone.

    A string or another constant that changes from call to call (an integer in an attribute of a module is one to
    Dynamo) has the frame compiled for each of its values, until Dynamo gives up on it for good. The unmended code broke
    there, and may not have looked at the value. So after :data:`MAX_LAYOUTS` values the call breaks again, and nobody
    looks at them.
    """
    from torch._guards import CompileContext

    trace = current_trace()
    if _calls.trace != trace:
        _calls.trace, _calls.numbers = trace, {}
        compilation = CompileContext.current_compile_id()
        if compilation is not None and compilation.frame_compile_id == 0:
            # The first of this frame, or the first after torch.compiler.reset.
            _layouts.pop(compiled_code(), None)
    number = _calls.numbers[site] = _calls.numbers.get(site, -1) + 1
    seen = _layouts.get(compiled_code(), {}).get((site, number), {})
    # Not those of this compilation, of which this may be another attempt.
    earlier = [compilation for compilation in seen.values() if compilation != trace[0]]
    return -1 if len(earlier) >= MAX_LAYOUTS else number


@at_trace_time(otherwise=None)
def note_constants(site: str, number: int, constants: str) -> None:
    """Note what a call is compiled for, see :func:`next_call`."""
    seen = _layouts.setdefault(compiled_code(), {}).setdefault((site, number), {})
    seen.setdefault(constants, current_trace()[0])
