"""The values of operators, from what is known of their operands."""

from __future__ import annotations

import ast
from dataclasses import replace

from graphmend.flow.values import ABSENT, DATA, NOTHING, SCALAR, SIZE, STATIC, Kind, Value, container, join, sequence

_NUMERIC = Kind.SIZE | Kind.STATIC | Kind.SCALAR | Kind.DRAWN
_DEPENDING = (Kind.NUMPY, Kind.SCALAR, Kind.DRAWN)
"""Numbers that only running the program tells; of two operands the first of these decides what the result is."""


def arithmetic(op: ast.operator, left: Value, right: Value) -> Value:
    """The value of a binary operation."""
    if isinstance(op, ast.Mod) and isinstance(left.constant, (str, bytes)):
        return STATIC  # a text with something filled in
    decides = {ast.BitOr: True, ast.BitAnd: False}.get(type(op))
    if any(value.traced and value.constant is decides for value in (left, right)) and decides is not None:
        return replace(STATIC, constant=decides, traced=True)
    kinds: int = Kind.NOTHING
    tensors = [value for value in (left, right) if value.may(Kind.TENSOR)]
    others = [value.kinds & ~(Kind.TENSOR | Kind.NONE) for value in (left, right)]
    if tensors:
        kinds |= Kind.TENSOR
    if isinstance(op, (ast.Add, ast.Mult)) and left.may(Kind.CONTAINER) and not tensors:
        if left.may(Kind.SIZE) or right.may(Kind.SIZE):
            return replace(container(SIZE), kinds=Kind.CONTAINER | Kind.SIZE)
        if isinstance(op, ast.Add) and left.items is not None and right.items is not None:
            return sequence([*left.items, *right.items])
        return container(join(left.element or NOTHING, right.element or NOTHING))
    if all(others):
        both = others[0] | others[1]
        for kind in (Kind.UNKNOWN, Kind.OBJECT, *_DEPENDING, Kind.SIZE):
            if both & kind:
                kinds |= Kind.UNKNOWN if kind is Kind.OBJECT else kind
                break
        else:
            kinds |= Kind.STATIC
    if not kinds & Kind.TENSOR:
        inferred = bool(kinds & DATA) and (left.inferred or right.inferred)
        return Value(kinds or Kind.UNKNOWN, inferred, fixed=kinds == Kind.NUMPY and _is_fixed(left, right))
    comparison = isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))
    booleans = all(value.dtype == "bool" for value in tensors)
    scalars = all(value.single or not value.may(Kind.TENSOR) and value.only(_NUMERIC) for value in (left, right))
    floating = any(value.dtype == "float" for value in tensors) or isinstance(op, ast.Div)
    integral = all(value.dtype in ("int", "bool") or not value.may(Kind.TENSOR) for value in (left, right))
    return Value(
        kinds,
        inferred=all(value.inferred for value in tensors),
        dtype="bool"
        if comparison and booleans
        else "float"
        if floating
        else "int"
        if integral and len(tensors) == 2
        else "",
        single=scalars,
        fixed=kinds == Kind.TENSOR and _is_fixed(left, right),
    )


def compared(op: ast.cmpop, left: Value, right: Value) -> Value:
    """The value of one comparison."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        if ABSENT in (left, right) and left.kinds == right.kinds:
            return replace(STATIC, constant=isinstance(op, ast.Is), traced=True)
        return STATIC
    if isinstance(op, (ast.In, ast.NotIn)):
        inside = right.element if right.may(Kind.CONTAINER) else None
        data = left.depends_on_data or right.may(Kind.TENSOR) or (inside is not None and inside.may(Kind.TENSOR))
        data = data and not (
            right.may(Kind.STATIC) and right.only(Kind.STATIC) and not left.may(Kind.TENSOR | Kind.SCALAR)
        )
        return replace(SCALAR, inferred=left.inferred or right.inferred) if data else STATIC
    if left.constant is None or right.constant is None:
        return STATIC  # `t == None` compares identities in effect
    tensors = [value for value in (left, right) if value.may(Kind.TENSOR)]
    kinds: int = Kind.NOTHING
    if tensors:
        if any(isinstance(value.constant, str) for value in (left, right)):
            return STATIC
        kinds |= Kind.TENSOR
    rest = [value.kinds & ~(Kind.TENSOR | Kind.NONE) for value in (left, right)]
    if all(rest):
        both = rest[0] | rest[1]
        if both & Kind.UNKNOWN:
            kinds |= Kind.UNKNOWN
        else:
            kinds |= next((kind for kind in _DEPENDING if both & kind), Kind.STATIC)
    single = all(v.single or (not v.may(Kind.TENSOR) and v.only(_NUMERIC)) for v in (left, right))
    return Value(
        kinds or Kind.STATIC,
        inferred=all(value.inferred for value in tensors) if tensors else left.inferred or right.inferred,
        dtype="bool" if tensors else "",
        single=bool(tensors) and single,
        fixed=kinds == Kind.NUMPY and _is_fixed(left, right),
    )


def _is_fixed(*operands: Value) -> bool:
    """Whether tracing knows the number that is computed from some operands."""
    return all(value.fixed or not value.depends_on_data for value in operands)
