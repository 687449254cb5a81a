"""Where a selection that cannot be made breaks the graph: at its own ``if``, as the unmended branch did.

A break inside of a function that is inlined is, to Dynamo, a break at the outermost call. The function is called in
eager then, and what it calls becomes graphs of its own: one more than the branch had. In torch that can be told
otherwise for everything at once (``nested_graph_breaks``); here it is for the frames of selections and their arms only.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from graphmend.runtime.frames import is_marked
from graphmend.runtime.tracing import at_trace_time

_broken_inside: set[types.CodeType] = set()


def breaks_inside(function: Callable[..., Any]) -> None:
    """Have the graph break inside of ``function``, and what it calls, instead of at its call.

    It goes on inside of it, too, with what follows its call, in one graph.
    """
    _broken_inside.add(function.__code__)


@at_trace_time(otherwise=None)
def let_break_inside() -> None:
    """Tell Dynamo of the functions given to :func:`breaks_inside`; a version of torch without the means is left alone.

    The graph breaks at the call then.
    """
    if not _hooks:
        from torch._dynamo.exc import UnspecializeRestartAnalysis

        _hook()
        # This trace has begun with other answers.
        raise UnspecializeRestartAnalysis


_hooks: list[str] = []
"""The methods of Dynamo that take notice."""


def _hook() -> None:
    from torch._dynamo.output_graph import OutputGraph
    from torch._dynamo.symbolic_convert import InliningInstructionTranslator

    for owner, name, place in (
        (InliningInstructionTranslator, "should_compile_partial_graph", 0),
        (InliningInstructionTranslator, "create_call_resume_at", 0),
        (InliningInstructionTranslator, "step_graph_break", 0),
        (OutputGraph, "compile_subgraph", 1),
    ):
        setattr(owner, name, _permitting(getattr(owner, name), place))
        _hooks.append(name)


def _permitting(method: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A method of Dynamo that takes breaks to be allowed in some frames.

    Args:
        method: The method.
        place: The position of the frame among its arguments.
    """
    from torch._dynamo import config

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if config.nested_graph_breaks or not _is_inside(args[place]):
            return method(*args, **kwargs)
        with config.patch(nested_graph_breaks=True):
            return method(*args, **kwargs)

    return call


def _is_inside(frame: Any) -> bool:
    """Whether an inlined frame and all around it, up to the compiled one, are those of selections and their arms."""
    inlined = False
    while frame.parent is not None:
        inlined = True
        called = _is_selection(frame.parent.f_code) and not is_marked(frame.f_code)
        if not called and not _is_selection(frame.f_code):
            return False
        frame = frame.parent
    return inlined


def _is_selection(code: types.CodeType) -> bool:
    return code in _broken_inside or any(_continues(code, broken) for broken in _broken_inside)


def _continues(code: types.CodeType, broken: types.CodeType) -> bool:
    """Whether Dynamo made a code object to go on behind a break in another one."""
    same = code.co_filename == broken.co_filename
    return same and code.co_name.startswith(f"torch_dynamo_resume_in_{broken.co_name}_at_")
