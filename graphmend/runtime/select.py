"""``select``: the Python ``if`` in eager; in a graph a selection, where tracing can tell that it gives the same."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import torch
from torch.compiler import is_dynamo_compiling

from graphmend.runtime.arms import arms_change, cond_breaks, enter_arms, gradients_join, leave_arms
from graphmend.runtime.breaks import breaks_inside, let_break_inside
from graphmend.runtime.frames import inlined_only, is_inlined, is_left_alone, run_with_caller
from graphmend.runtime.tracing import enclosing_operators, is_static, known_true, runs_graphs_as_they_are, transform

Result = TypeVar("Result")
Gradient = Literal[False, "where", "cond"]

# Not the others: `where` has no kernel for some, and Dynamo cannot say whether a complex one is a conjugate view.
_SELECTED = frozenset(
    {
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    }
)
_CONSTANTS = (str, torch.dtype, torch.device, torch.layout, torch.memory_format, enum.Enum)


def select(
    p: Any,
    true_fn: Callable[[], Result],
    false_fn: Callable[[], Result],
    *,
    grad: Gradient = False,
    when: Callable[[], object] | None = None,
) -> Result:
    """Return ``true_fn() if p else false_fn()``.

    In eager it is that expression. While Dynamo traces, both arms are evaluated and their results selected by ``p``,
    if everything that tracing knows for free shows that this gives the same; otherwise it is that expression again,
    which breaks the graph as an ``if`` does.

    Args:
        p: The condition: anything that has a truth value. Only a tensor of one element is selected by.
        true_fn: Called without arguments; pure. Returns a tensor, or nested tuples, lists and dicts of tensors and
            constants.
        false_fn: Likewise.
        grad: What the caller has proven of both arms, for results that need a gradient. ``"where"``: they read the
            same leaves and their derivatives are bounded for every input. ``"cond"``: they read the same leaves.
            False: nothing.
        when: Called while tracing, before the arms; unless it returns a constant True, the expression is taken.

    Returns:
        What the taken arm returns.
    """
    if is_dynamo_compiling():
        if isinstance(p, torch.Tensor):
            let_break_inside()
            # Where an arm breaks the graph, Dynamo breaks at this call and has it run in eager, where it calls neither.
            selected = _attempt(p, true_fn, false_fn, grad, when)
            if isinstance(selected, tuple):
                return selected[0]
            p = selected
    elif is_left_alone():
        run_with_caller(true_fn, false_fn)
    return true_fn() if p else false_fn()


def _attempt(
    p: torch.Tensor,
    true_fn: Callable[[], Result],
    false_fn: Callable[[], Result],
    grad: Gradient,
    when: Callable[[], object] | None,
) -> tuple[Result] | torch.Tensor | bool:
    """The selected result, or the condition: what to branch on."""
    # Not traced: the graph broke at this call.
    if not is_dynamo_compiling() or not is_inlined():
        return bool(p)
    around = transform()
    if not _one_element(p) or around == "vmap" or not enter_arms():
        return p
    try:
        selected = _predicate(p, true_fn, false_fn, grad, in_transform=around != "") if _allowed(when) else None
    except Exception:  # noqa: BLE001  (raised by an arm while it is traced; the arm raises it again, if taken)
        selected = None
    if selected is not None:
        return selected
    # Nothing of the arms may stay in the graph: on the condition it breaks, and this call is made in eager.
    return True if p else False  # noqa: SIM210


def _predicate(
    p: torch.Tensor,
    true_fn: Callable[[], Result],
    false_fn: Callable[[], Result],
    grad: Gradient,
    *,
    in_transform: bool,
) -> tuple[Result] | None:
    """The selected result, or None where the arms show that it is not right."""
    # Not traced: Dynamo goes on in eager where it cannot tell how to go on in the middle of the caller.
    if not is_dynamo_compiling():
        return None
    taken, other = true_fn(), false_fn()
    leaves: list[Any] = []
    other_leaves: list[Any] = []
    structure = _flatten(taken, leaves)
    if structure != _flatten(other, other_leaves):
        return None
    differing: list[int] = []
    for index, (a, b) in enumerate(zip(leaves, other_leaves)):
        if _same(a, b):
            continue
        if type(a) is not torch.Tensor or type(b) is not torch.Tensor or not _alike(a, b):
            return None
        differing.append(index)
    way = _way([leaves[index] for index in differing], grad, in_transform=in_transform)
    if way is None or arms_change():
        return None
    condition = p.bool().reshape(())
    if way == "where":
        chosen = tuple([torch.where(condition, leaves[index], other_leaves[index]) for index in differing])
    else:
        chosen = _cond(condition, true_fn, false_fn, differing)
    for index, result in zip(differing, chosen):
        # What `where` makes of views that do not fill their storage, for one, has other strides than they have.
        if not _alike(leaves[index], result):
            return None
        leaves[index] = result
    leave_arms()
    return (_unflatten(taken, iter(leaves)),)


inlined_only(select, with_callees=False)
breaks_inside(select)
inlined_only(_attempt, with_callees=False)
inlined_only(_predicate, with_callees=False)


def _one_element(p: torch.Tensor) -> bool:
    return type(p) in (torch.Tensor, torch.nn.Parameter) and known_true(p.numel() == 1)


def _allowed(when: Callable[[], object] | None) -> bool:
    if when is None:
        return True
    answer = when()
    return type(answer) is bool and is_static(answer) and answer


def _flatten(value: Any, leaves: list[Any]) -> str:
    """Append the leaves of nested tuples, lists and dicts to ``leaves``; return how they were nested."""
    if type(value) is dict:
        return f"{{{len(value)}" + "".join([repr(key) + _flatten(item, leaves) for key, item in value.items()])
    if type(value) in (tuple, list):
        return f"{type(value).__name__}{len(value)}" + "".join([_flatten(item, leaves) for item in value])
    leaves.append(value)
    return "*"


def _unflatten(value: Any, leaves: Iterator[Any]) -> Any:
    """``value`` with other leaves."""
    if type(value) is dict:
        return {key: _unflatten(item, leaves) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)([_unflatten(item, leaves) for item in value])
    return next(leaves)


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors differ in nothing but values, for every input that the graph accepts."""
    return (
        a.dtype == b.dtype
        and a.device == b.device
        and a.layout == b.layout == torch.strided
        and a.requires_grad == b.requires_grad
        and a.dim() == b.dim()
        and a.dtype in _SELECTED
        and all(known_true(m == n) for m, n in zip(a.shape, b.shape))
        and all(known_true(m == n) for m, n in zip(a.stride(), b.stride()))
    )


def _same(a: Any, b: Any) -> bool:
    """Whether two results are one object, or equal constants, for every input that the graph accepts."""
    if type(a) is int or type(b) is int:
        return type(a) is type(b) and known_true(a == b)
    if isinstance(a, (bool, float)) or isinstance(b, (bool, float)):
        # Not by `==`, to which 0.0 and -0.0 are one, nor by `is`, for which Dynamo uses `==` here.
        return type(a) is type(b) and is_static(a) and is_static(b) and repr(a) == repr(b)
    return a is b or (isinstance(a, _CONSTANTS) and type(a) is type(b) and bool(a == b))


def _way(results: list[torch.Tensor], grad: Gradient, *, in_transform: bool) -> str | None:
    """``"where"``, ``"cond"``, or None where neither gives the same gradient."""
    if in_transform and any(result.is_floating_point() for result in results):
        # Inside torch.func.grad and its like a tensor does not say whether it needs a gradient.
        return "where" if grad == "where" else None
    if not any(result.requires_grad for result in results):
        return "where"
    # With gradients off the selected tensor would lose the history that the taken arm's has.
    if not grad or not torch.is_grad_enabled():
        return None
    # torch.cond does not work inside of other operators; in a checkpoint it fails when the graph runs.
    if grad == "cond" and (
        enclosing_operators() or runs_graphs_as_they_are() or not gradients_join() or not cond_breaks()
    ):
        return None
    return grad


def _cond(
    condition: torch.Tensor, true_fn: Callable[[], Any], false_fn: Callable[[], Any], differing: list[int]
) -> tuple[torch.Tensor, ...]:
    """Select with ``torch.cond``: only the taken arm is run, and differentiated.

    A branch must not return what exists outside of it, hence the copies. The gradients that reach the arms must have
    the same strides in both, hence the views of all rows: theirs are contiguous, whatever that of the result is.
    """

    def branch(arm: Callable[[], Any]) -> tuple[torch.Tensor, ...]:
        leaves: list[Any] = []
        _flatten(arm(), leaves)
        copies = [leaves[index].clone() for index in differing]
        return tuple([copy.narrow(0, 0, copy.shape[0]) if copy.dim() else copy for copy in copies])

    result: tuple[torch.Tensor, ...] = torch.cond(condition, lambda: branch(true_fn), lambda: branch(false_fn), ())
    return result
