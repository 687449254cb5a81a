"""The values of torch's operations, from their signatures and what they are given."""

from __future__ import annotations

from collections.abc import Sequence

from graphmend.flow.values import (
    NOTHING,
    SCALAR,
    SIZE,
    SIZES,
    STATIC,
    ExternalName,
    Kind,
    Target,
    Value,
    container,
    sequence,
)
from graphmend.signatures import Signature

Keywords = Sequence[tuple["str | None", Value]]

_NUMBERS = Kind.STATIC | Kind.SIZE | Kind.SCALAR
_CLASSES = {
    **{f"builtins.{name}": name for name in ("bool", "int", "float")},
    "torch.bool": "bool",
    **dict.fromkeys(["torch.long", "torch.int", "torch.short", "torch.uint8"], "int"),
    **dict.fromkeys([f"torch.int{bits}" for bits in (8, 16, 32, 64)], "int"),
    **dict.fromkeys(["torch.float", "torch.double", "torch.half", "torch.bfloat16"], "float"),
    **dict.fromkeys([f"torch.float{bits}" for bits in (16, 32, 64)], "float"),
}
"""The classes of dtypes, by their names."""


def operation(signature: Signature, arguments: list[Value], keywords: Keywords, method: bool) -> Value:
    """The value of a torch operation.

    Args:
        signature: its facts.
        arguments: the positional arguments; of a method, the receiver is the first.
        keywords: the keyword arguments.
        method: whether it is called as a method, so that the receiver may only be taken for a tensor.
    """
    first = arguments[0] if arguments else NOTHING
    names = {name for name, _ in keywords}
    guess = method and first.inferred
    if signature.returns == "size":
        plain = signature.name in ("size", "stride", "shape") and len(arguments) < 2 and "dim" not in names
        return SIZES if plain else SIZE
    if signature.returns == "static":
        return STATIC
    if signature.returns == "scalar":
        return Value(Kind.SCALAR, guess) if guess else SCALAR
    if signature.name == "where" and len(arguments) + len(keywords) < 2:
        return container(Value(Kind.TENSOR, guess, dtype="int"))
    whole = len(arguments) < 2 and not names & {"dim", "axis", "other"}
    operands = [*arguments, *(value for _, value in keywords)]
    tensors = [value for value in operands if value.may(Kind.TENSOR)]
    elementwise = signature.single == "operands"
    if signature.name in ("max", "min") and len(operands) == 2 and operands[1].may(Kind.TENSOR):
        whole, elementwise = True, True  # torch.max(a, b)
    dtype = _dtype(signature, first, arguments[1:], keywords, tensors)
    value = Value(
        Kind.TENSOR,
        guess,
        dtype,
        _is_single(signature, arguments, tensors, whole=whole, elementwise=elementwise),
        low=first.low if signature.has("view") else signature.low,
        high=first.high if signature.has("view") else signature.high,
        # Made of plain numbers alone: tracing computes it, and knows it where a number is wanted (measured).
        fixed=elementwise and bool(operands) and all(each.fixed or not each.depends_on_data for each in operands),
    )
    if signature.pair == "always" or (signature.pair == "along" and not whole):
        return sequence((value, Value(Kind.TENSOR, guess, single=value.single)))
    return container(value) if signature.returns == "tensors" else value


def _is_single(
    signature: Signature, arguments: Sequence[Value], tensors: Sequence[Value], *, whole: bool, elementwise: bool
) -> bool:
    """Whether the result has one element."""
    if signature.name == "rand":
        return all(value.items == () or value.constant == 1 for value in arguments)
    if signature.name == "view" and any(_may_be_dtype(value) for value in arguments[1:]):
        return False
    if elementwise:
        return bool(tensors) and all(value.single for value in tensors)
    if signature.single == "number":
        return bool(arguments) and arguments[0].only(_NUMBERS) and _is_number(arguments[0])
    return signature.single == "always" or signature.single == "whole" and whole


def _may_be_dtype(value: Value) -> bool:
    """Whether an argument of ``view`` may be a dtype, by which a tensor gets other elements."""
    return value.may(Kind.CALLABLE | Kind.STATIC | Kind.UNKNOWN) and not _is_number(value)


def _class_of(target: Target) -> str:
    """The class of a dtype that is named; empty for anything else."""
    return _CLASSES.get(target.name, "") if isinstance(target, ExternalName) else ""


def _dtype_of_numbers(value: Value) -> str:
    """The class of the dtype that a tensor of some numbers gets."""
    if value.items is not None:
        classes = {_dtype_of_numbers(item) for item in value.items}
        return classes.pop() if len(classes) == 1 else ""
    number = value.constant
    return type(number).__name__ if isinstance(number, (bool, int, float)) else ""


def _is_number(value: Value) -> bool:
    return isinstance(value.constant, (int, float))


def _dtype(
    signature: Signature, first: Value, rest: Sequence[Value], keywords: Keywords, tensors: Sequence[Value]
) -> str:
    """The class of the dtype of the result; empty if it is not known."""
    asked = [value for name, value in keywords if name in ("dtype", None)]
    if signature.name in ("to", "type"):
        asked += [value for value in rest if any(_class_of(each) for each in value.targets)]
    if asked:
        classes = {_class_of(each) for value in asked for each in value.targets}
        known = len(classes) == 1 and all(value.only(Kind.CALLABLE) for value in asked)
        return classes.pop() if known else ""
    if signature.name in ("tensor", "as_tensor", "asarray"):
        return first.dtype if first.may(Kind.TENSOR) else _dtype_of_numbers(first)
    if signature.name == "full":
        filling = [*rest[:1], *(value for name, value in keywords if name == "fill_value")]
        return _dtype_of_numbers(filling[0]) if filling else ""
    if signature.name == "where":
        chosen = [value.dtype for value in rest]
        return chosen[0] if len(chosen) == 2 and chosen[0] == chosen[1] else ""
    if signature.dtype == "same":
        as_another = signature.name == "view" and any(each.may(Kind.CALLABLE) for each in rest)
        return "" if as_another else first.dtype
    if signature.dtype == "promoted":
        return "float" if any(value.dtype == "float" and value.is_tensor for value in tensors) else ""
    return signature.dtype if signature.dtype in ("bool", "int", "float") else ""
