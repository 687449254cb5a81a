"""The arms of a selection while they are traced: both of them, whichever is taken at run time.

What an arm does must not show unless it is taken. So everything that would show is made to break the graph, as anything
does that cannot be traced: operators that draw random numbers or write what is not the arm's own (an effect, for one,
writes the token); and errors. Some errors (an operator that fails on fake tensors for their shapes, say) Dynamo takes
for errors in the program, and ends the compilation with them.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from graphmend.runtime.tracing import at_trace_time, current_trace, known_true

# Their results are smaller than an operand, and its gradient is dense nevertheless.
_DENSE_GRADIENT = frozenset(
    {
        *("mm", "addmm", "bmm", "baddbmm", "convolution", "embedding"),
        *("select", "slice", "index", "index_select", "gather", "split", "split_with_sizes", "unbind", "unsafe_split"),
    }
)


_MISSING = object()


class _Step(NamedTuple):
    """An operator that an arm consists of, with the tensors that it takes and gives."""

    operator: torch._ops.OpOverload
    operands: list[torch.Tensor]
    results: list[torch.Tensor]


class _Arms(threading.local):
    """The trace that is evaluating the arms of a selection in this thread, and how deeply they are nested.

    A trace that is given up in the middle of an arm leaves its entry behind, hence the entry names its trace: a later
    one finds the entry of another trace and takes no notice.
    """

    def __init__(self) -> None:
        self.trace: tuple[object, int] | None = None
        self.depth = 0
        self.steps: list[_Step] = []
        self.change = False


_arms = _Arms()


@at_trace_time(otherwise=False)
def enter_arms() -> bool:
    """Note that the arms of a selection are being traced: both of them, whichever is taken at run time.

    Returns:
        Whether errors in an arm will break the graph. If not, the arms must not be traced.
    """
    if not _what_shows_breaks():
        return False
    trace = current_trace()
    if _arms.trace != trace or _arms.depth == 0:
        _arms.trace, _arms.depth, _arms.steps, _arms.change = trace, 0, [], False
    _arms.depth += 1
    return True


@at_trace_time(otherwise=None)
def leave_arms() -> None:
    """Note the end of what :func:`enter_arms` began."""
    _arms.depth -= 1
    if _arms.depth == 0:
        _arms.steps = []


@at_trace_time(otherwise=True)
def arms_change() -> bool:
    """Whether an arm that was traced is to change something that was there before the compiled frame.

    An attribute that an object did not have does not count, nor a tensor in one: it may be there earlier than in the
    program, where the analysis has proven that nothing else looks (a lazy cache).
    """
    return _arms.change


@at_trace_time(otherwise=False)
def gradients_join() -> bool:
    """Whether ``torch.cond`` can be differentiated with the arms that were traced as its branches.

    Measured with torch 2.13: it does not compile where the gradients that the branches give an operand differ in
    their strides, as those of a sum (expanded) and of a transposed view do from all others, nor where the branches
    read two tensors that share memory.
    """
    own = {id(tensor) for step in _arms.steps for tensor in step.results}
    read = {id(tensor): tensor for step in _arms.steps for tensor in step.operands if id(tensor) not in own}.values()
    return all(map(_has_dense_gradients, _arms.steps)) and len({_storage(tensor) for tensor in read}) == len(read)


def _in_arms() -> bool:
    return _arms.depth > 0 and _arms.trace == current_trace()


class _ShowsError(Exception):
    """An operator in an arm does something that shows even if the arm is not taken."""


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the operators that one step of an arm consists of."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(operator, torch._ops.OpOverload):
            return operator(*args, **kwargs)
        given, operands = _named(operator, args, kwargs), _tensors((args, kwargs))
        if _is_random(operator, given) or _writes_statistics(given) or _writes_elsewhere(operator, given):
            raise _ShowsError(f"{operator} in an arm of a selection")
        if not all(known_true(tensor.numel() > 0) for tensor in operands):
            # The largest of no elements is an error, of which fake tensors know nothing.
            raise _ShowsError(f"{operator} in an arm of a selection may be given a tensor without elements")
        result = operator(*args, **kwargs)
        _arms.steps.append(_Step(operator, operands, _tensors(result)))
        return result


def _named(operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    arguments = operator._schema.arguments
    defaults = {argument.name: argument.default_value for argument in arguments if argument.has_default_value()}
    return {**defaults, **dict(zip([argument.name for argument in arguments], args)), **kwargs}


def _is_random(operator: torch._ops.OpOverload, given: dict[str, Any]) -> bool:
    # Attention is marked for what it does with a dropout.
    return torch.Tag.nondeterministic_seeded in operator.tags and given.get("dropout_p") != 0.0


def _writes_statistics(given: dict[str, Any]) -> bool:
    """Whether this is a normalization that updates its running statistics, which its schema does not say."""
    return given.get("running_mean") is not None and given.get("training", given.get("use_input_stats")) is True


def _writes_elsewhere(operator: torch._ops.OpOverload, given: dict[str, Any]) -> bool:
    """Whether the operator writes into a tensor that was there before the arm."""
    written = [a.name for a in operator._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if not written:
        return False
    own = {_storage(tensor) for step in _arms.steps if _creates(step) for tensor in step.results}
    return any(_storage(tensor) not in own for name in written for tensor in _tensors(given.get(name)))


def _creates(step: _Step) -> bool:
    """Whether the results of an operator are new tensors, rather than views of its operands."""
    return not any(returned.alias_info for returned in step.operator._schema.returns)


def _has_dense_gradients(step: _Step) -> bool:
    """Whether the gradients of the operands are contiguous if those of the results are."""
    if not all(map(_is_contiguous, (*step.operands, *step.results))):
        return False
    if not step.results or step.operator._schema.name.partition("::")[2] in _DENSE_GRADIENT:
        return True
    sizes = [result.numel() for result in step.results]
    differentiable = [tensor for tensor in step.operands if tensor.is_floating_point()]
    return all(any(known_true(tensor.numel() <= size) for size in sizes) for tensor in differentiable)


def _is_contiguous(tensor: torch.Tensor) -> bool:
    """Whether a tensor is contiguous for every input that the graph accepts; no guard is added to find out."""
    expected: Any = 1
    for size, stride in reversed(list(zip(tensor.shape, tensor.stride()))):
        if not known_true(size == 1) and not known_true(stride == expected):
            return False
        expected = expected * size
    return True


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


def _is_missing(item: Any, name: str) -> bool:
    """Whether the object that stands behind something that Dynamo traces lacks an attribute."""
    holder = getattr(item, "value", _MISSING)
    return holder is not _MISSING and inspect.getattr_static(holder, name, _MISSING) is _MISSING


@functools.cache
def _what_shows_breaks() -> bool:
    """Have operators that must not show break the graph in arms; false if this version of torch offers no place for it.

    The step that runs an operator on fake tensors is made to report, in arms only, what it reports of an operator that
    fake tensors do not support; those that change objects, to note it for :func:`arms_change`.
    """
    from torch._dynamo import utils
    from torch._dynamo.exc import TorchDynamoException
    from torch._dynamo.side_effects import SideEffects
    from torch._dynamo.variables import TensorVariable
    from torch._subclasses import fake_tensor

    run_node = getattr(utils, "run_node", None)
    mutation: Any = getattr(SideEffects, "mutation", None)
    store_attr: Any = getattr(SideEffects, "store_attr", None)
    if run_node is None or mutation is None or store_attr is None:
        return False

    @functools.wraps(run_node)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _in_arms():
            return run_node(*args, **kwargs)
        try:
            with _Watch():  # type: ignore[no-untyped-call]
                return run_node(*args, **kwargs)
        except TorchDynamoException:
            raise
        except Exception as error:
            raise fake_tensor.UnsupportedFakeTensorException(str(error)) from error

    # Changes are noted: an error would make Dynamo read a defaultdict, say, without the change.
    @functools.wraps(mutation)
    def mutate(self: Any, item: Any) -> Any:
        _arms.change |= _in_arms() and item.mutation_type.scope == 0
        return mutation(self, item)

    @functools.wraps(store_attr)
    def store(self: Any, item: Any, name: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        is_cache = isinstance(value, TensorVariable) or _is_missing(item, name)
        _arms.change |= _in_arms() and item.mutation_type.scope == 0 and not is_cache
        return store_attr(self, item, name, value, *args, **kwargs)

    utils.run_node = run
    SideEffects.mutation = mutate  # type: ignore[method-assign, assignment]
    SideEffects.store_attr = store  # type: ignore[method-assign]
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
    present = inspect.getattr_static(variable, "_ALLOW_FALLBACK_TO_EAGER", None)
    if isinstance(present, bool):
        variable._ALLOW_FALLBACK_TO_EAGER = property(lambda _self: present or _in_arms())
        return True
    if isinstance(present, property) and present.fget is not None:
        # Another copy of this runtime has been here.
        allowed = present.fget
        variable._ALLOW_FALLBACK_TO_EAGER = property(lambda self: allowed(self) or _in_arms())
        return True
    return False
