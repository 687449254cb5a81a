"""The arms of a selection while they are traced: both of them, whichever is taken at run time.

What an arm does must not show unless it is taken. Two things could: an effect in an arm, and an error. Dynamo takes
some errors (an operator that fails on fake tensors for their shapes, say) for errors in the program, and ends the
compilation with them. In an arm they are made to break the graph instead, as anything does that cannot be traced.
"""

from __future__ import annotations

import functools
import logging
import threading
from typing import Any

from graphmend.runtime.tracing import at_trace_time, current_trace


class _Arms(threading.local):
    """The trace that is evaluating the arms of a selection in this thread, and how deeply they are nested.

    A trace that is given up in the middle of an arm leaves its entry behind, hence the entry names its trace: a later
    one finds the entry of another trace and takes no notice.
    """

    trace: tuple[object, int] | None = None
    depth: int = 0


_arms = _Arms()


@at_trace_time(otherwise=False)
def enter_arms() -> bool:
    """Note that the arms of a selection are being traced: both of them, whichever is taken at run time.

    Returns:
        Whether errors in an arm will break the graph. If not, the arms must not be traced.
    """
    if not _failures_break():
        return False
    trace = current_trace()
    _arms.depth = _arms.depth + 1 if _arms.trace == trace else 1
    _arms.trace = trace
    return True


@at_trace_time(otherwise=None)
def leave_arms() -> None:
    """Note the end of what :func:`enter_arms` began."""
    _arms.depth -= 1


def _in_arms() -> bool:
    return _arms.depth > 0 and _arms.trace == current_trace()


@at_trace_time(otherwise=True)
def inside_arms() -> bool:
    """Whether the traced code is an arm of a selection, where nothing may be emitted."""
    return _in_arms()


@functools.cache
def _failures_break() -> bool:
    """Have an operator that fails in an arm break the graph; false if this version of torch offers no place for that.

    The step that runs an operator on fake tensors is made to report, in arms only, what it reports of an operator that
    fake tensors do not support.
    """
    from torch._dynamo import utils
    from torch._dynamo.exc import TorchDynamoException
    from torch._subclasses import fake_tensor

    run_node = getattr(utils, "run_node", None)
    if run_node is None:
        return False

    @functools.wraps(run_node)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return run_node(*args, **kwargs)
        except TorchDynamoException:
            raise
        except Exception as error:
            if _in_arms():
                raise fake_tensor.UnsupportedFakeTensorException(str(error)) from error
            raise

    utils.run_node = run
    # On the way both tell the log about it, one of them of an error.
    for module in (fake_tensor, utils):
        logging.getLogger(module.__name__).addFilter(lambda _record: not _in_arms())
    return True


@at_trace_time(otherwise=False)
def cond_breaks() -> bool:
    """Have ``torch.cond`` break the graph if it refuses the branches made of arms; false if that cannot be had.

    It refuses what it is not sure of, aliases and mutations among them, and then ends the compilation.
    """
    return _cond_falls_back()


@functools.cache
def _cond_falls_back() -> bool:
    from torch._dynamo.variables import higher_order_ops

    variable: Any = getattr(higher_order_ops, "CondHigherOrderVariable", None)
    falls_back = getattr(variable, "_ALLOW_FALLBACK_TO_EAGER", None)
    if not isinstance(falls_back, bool):
        return False
    variable._ALLOW_FALLBACK_TO_EAGER = property(lambda _self: falls_back or _in_arms())
    return True
