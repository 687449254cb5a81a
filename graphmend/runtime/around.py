"""What tracing has come through on its way to the call of an effect: handlers, changes, breaks.

A graph that raises ends the compiled frame. Handlers that Dynamo has traced do not run then, and what the frame has
changed (an attribute, a list of somebody else's, a buffer) is not changed: Dynamo makes such changes when the graph has
ended, and back ends write into the tensors that a graph was given as the last thing in it.
"""

from __future__ import annotations

import logging
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from graphmend.runtime.frames import is_marked
from graphmend.runtime.operator import body_of
from graphmend.runtime.tracing import at_trace_time

_HANDLES = frozenset({"PUSH_EXC_INFO", "COPY"})
"""The first instruction of a handler, and of what ends one; others (of a comprehension) run no code of the program."""


@at_trace_time(otherwise=False)
def may_raise() -> bool:
    """Whether no traced frame around the call would see an exception, and nothing has been changed before it.

    Changes of what the compiled frame has made itself do not count.
    """
    output = _output()
    guarded = any(map(_is_guarded, _frames(output)))
    return not (guarded or any(_changed(output)) or any(map(_is_written, _given(output))))


@at_trace_time(otherwise=False)
def may_report(site: str) -> bool:
    """Whether a message now is what it would be after the changes that wait for the end of the graph.

    Not if a module is to be changed, so that ``print``, say, is another function then, or if anything is, and something
    of the program's own sees the message on its way and may look at that. A warning that a filter turns into an
    exception is no message.
    """
    values = body_of(site).values()
    if any(value is warnings for value in values) and any(action == "error" for action, *_ in warnings.filters):
        return may_raise()
    changed = list(_changed(_output()))
    modules = any(isinstance(getattr(variable, "value", None), types.ModuleType) for variable in changed)
    return not changed or not (modules or any(map(_is_watched, values)))


@at_trace_time(otherwise=False)
def is_first_behind_break() -> bool:
    """Whether the graph is still empty, in a frame that goes on behind a break: to break again costs nothing there.

    An effect would make a graph where the original had none.
    """
    from torch._dynamo.utils import count_calls

    output = _output()
    frames = [frame for frame in _frames(output) if not is_marked(frame.f_code)]
    resumed = len(frames) == 1 and frames[0].f_code.co_name.startswith("torch_dynamo_resume_in_")
    return resumed and count_calls(output.graph) == 0


def _is_watched(value: object) -> bool:
    """Whether a filter, an adapter or a record factory of the program's own sees what goes through a logger."""
    if isinstance(value, logging.LoggerAdapter):
        return type(value) is not logging.LoggerAdapter or _is_watched(value.logger)
    logger = logging.root if value is logging else value
    if not isinstance(logger, logging.Logger):
        return False
    if logger.filters or logging.getLogRecordFactory() is not logging.LogRecord:
        return True
    while logger is not None:
        if any(handler.filters for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _output() -> Any:
    """What Dynamo has made of the compiled frame so far."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output


def _frames(output: Any) -> Iterator[Any]:
    """The traced frames, from the innermost to the one that is compiled."""
    frame = output.current_tx
    while frame is not None:
        yield frame
        frame = frame.parent


def _is_guarded(frame: Any) -> bool:
    """Whether a frame is inside of a ``try`` or ``with``, or handles an exception."""
    if sys.version_info < (3, 11):
        return bool(frame.block_stack)
    entry = frame.current_instruction.exn_tab_entry
    while entry is not None and entry.target.opname not in _HANDLES:
        entry = entry.target.exn_tab_entry
    return entry is not None


def _changed(output: Any) -> Iterator[Any]:
    """What was there before the compiled frame, and is to be changed when the graph has ended."""
    effects = output.side_effects
    for variable in effects.id_to_variable.values():
        # A dictionary of keyword arguments is made for the call.
        if effects.is_modified(variable) and not getattr(variable.source, "is_varkw", False):
            if variable.mutation_type.scope == 0:
                yield variable


def _given(output: Any) -> Iterator[torch.Tensor]:
    """The fake tensors that stand for what the graph is given: arguments, parameters, buffers."""
    yield from (each.fake for each in output.tracked_fakes if isinstance(each.fake, torch.Tensor))


def _is_written(fake: torch.Tensor) -> bool:
    """Whether the traced code has written into a tensor, itself or through a view: fake ones begin with version 0."""
    return not fake.is_inference() and fake._version > 0
