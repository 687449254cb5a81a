"""Failures that depend on data, and places where Python asks for the value of a tensor.

A failure depends on data if the numbers in a tensor decide it. Wrong shapes, dtypes and attributes are another matter:
they fail while tracing, where the runtime sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.flow.doings import Doing, Effect
from graphmend.flow.frames import Frame
from graphmend.flow.text import brief
from graphmend.flow.values import DATA, Kind, Value
from graphmend.signatures import Signature
from graphmend.signatures.behaviour import behaviour


def failures(node: ast.AST, frame: Frame) -> Iterator[Doing]:
    """The failures and reads of one node without its children, calls excepted."""
    match node:
        case ast.Subscript(ctx=ast.Load()):
            yield from _subscript(node, frame)
        case ast.BinOp():
            yield from _arithmetic(node, frame)
        case ast.Compare():
            yield from _comparison(node, frame)
        case ast.For():
            yield from _loop(node, frame)
        case ast.Assert(test=test) if frame.facts.value(test).depends_on_data:
            yield Doing(Effect.FAILS, "asserts something about the values of a tensor", node)
        case ast.Raise() if not ends_tracing(node, frame):
            yield Doing(Effect.FAILS, "raises depending on the values of a tensor", node)
        case _:
            for test in _tests(node):
                if frame.facts.value(test).depends_on_data:
                    yield Doing(Effect.READS, "branches on the value of a tensor", test)


def _tests(node: ast.AST) -> list[ast.expr]:
    """The expressions whose truth a node asks for."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=conditions):
            return conditions
        case ast.BoolOp(values=values):
            return values[:-1]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
    return []


def ends_tracing(statement: ast.AST | None, frame: Frame) -> bool:
    """Whether a statement raises and no tensor's value decides that it is reached: such a failure shows in tracing."""
    if not isinstance(statement, ast.Raise):
        return False
    tests = [block.test for block in frame.facts.graph.blocks if block.test is not None]
    return id(statement) not in frame.facts.reached or not any(
        frame.facts.value(test).depends_on_data for test in tests
    )


def _comparison(node: ast.Compare, frame: Frame) -> Iterator[Doing]:
    asks = len(node.ops) > 1 or any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
    if asks and any(frame.facts.value(each).may(Kind.TENSOR) for each in (node.left, *node.comparators)):
        yield Doing(Effect.READS, "asks a tensor for its truth value", node)


def _loop(node: ast.For, frame: Frame) -> Iterator[Doing]:
    iterable = frame.facts.value(node.iter)
    element = iterable.element
    if iterable.may(Kind.SCALAR) or (element is not None and element.may(Kind.SCALAR)):
        yield Doing(Effect.READS, "loops as often as a number read from a tensor says", node)


def _subscript(node: ast.Subscript, frame: Frame) -> Iterator[Doing]:
    holder = frame.facts.value(node.value)
    if holder.only(Kind.CALLABLE):
        return  # a subscripted type
    for piece in _index_parts(node.slice):
        index = frame.facts.value(piece)
        listed = isinstance(piece, (ast.List, ast.ListComp)) and holder.may(Kind.TENSOR | Kind.UNKNOWN)
        if listed or index.may(DATA) or (index.may(Kind.UNKNOWN) and holder.may(Kind.TENSOR | Kind.UNKNOWN)):
            what = f"indexes `{brief(node.value)}` with `{brief(piece)}`, which may be out of range"
            yield Doing(Effect.FAILS, what, node)
            return


def _index_parts(index: ast.expr) -> Iterator[ast.expr]:
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(part, ast.Slice):
            yield from (each for each in (part.lower, part.upper, part.step) if each is not None)
        else:
            yield part


def _arithmetic(node: ast.BinOp, frame: Frame) -> Iterator[Doing]:
    a, b = frame.facts.value(node.left), frame.facts.value(node.right)
    if a.may(Kind.OBJECT) or b.may(Kind.OBJECT):
        yield Doing(Effect.UNKNOWN, f"uses an operator on an object (`{brief(node)}`)", node)
    if isinstance(b.constant, (int, float)) and b.constant:
        return
    numbers = a.may(Kind.SCALAR) or b.may(Kind.SCALAR)
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        if (a.may(DATA) or b.may(DATA)) and ("float" not in (a.dtype, b.dtype) or numbers):
            yield Doing(Effect.FAILS, f"may divide integers by zero (`{brief(node)}`)", node)
    elif isinstance(node.op, (ast.Div, ast.Pow)) and not (a.is_tensor or b.is_tensor) and (a.may(DATA) or b.may(DATA)):
        what = f"computes with a number read from a tensor, which may fail (`{brief(node)}`)"
        yield Doing(Effect.FAILS, what, node)


def operation_failures(signature: Signature, operands: list[ast.expr], node: ast.Call, frame: Frame) -> Iterator[Doing]:
    """The failures and reads of a torch operation; ``operands`` begin with the receiver."""
    name = signature.name
    values = [frame.facts.value(operand) for operand in operands]
    if signature.returns == "scalar" or signature.has("reads"):
        yield Doing(Effect.READS, f"reads the value of a tensor (`{name}`)", node)
    elif signature.returns == "size" or signature.has("mutates"):
        return
    elif signature.has("dynamic") or (name == "where" and len(operands) < 2) or _repeats_by_data(name, values):
        yield Doing(Effect.READS, f"has a result whose shape depends on data (`{name}`)", node)
    elif not any(map(signature.has, ("total", "divides", "random"))):
        yield Doing(Effect.FAILS, f"`{name}` may fail for some values of its operands", node)
    elif signature.has("divides") and _may_divide_by_zero(name, node, values):
        yield Doing(Effect.FAILS, f"`{name}` may divide integers by zero", node)
    elif name not in behaviour().take_numbers and any(_holds_number(value) for value in values):
        yield Doing(Effect.FAILS, f"`{name}` may fail for a number that was read from a tensor", node)


def _repeats_by_data(name: str, values: list[Value]) -> bool:
    return name == "repeat_interleave" and (len(values) < 2 or values[1].may(Kind.TENSOR | Kind.UNKNOWN))


def _may_divide_by_zero(name: str, node: ast.Call, values: list[Value]) -> bool:
    if name in ("div", "divide", "true_divide"):
        rounding = [keyword.value for keyword in node.keywords if keyword.arg == "rounding_mode"]
        if all(isinstance(each, ast.Constant) and each.value is None for each in rounding):
            return False
    divisor = values[1].constant if len(values) > 1 else None
    if isinstance(divisor, (int, float)) and divisor:
        return False
    return not any(value.dtype == "float" for value in values)


def _holds_number(value: Value) -> bool:
    if value.may(Kind.SCALAR) and not value.may(Kind.TENSOR):
        return True
    return value.items is not None and any(_holds_number(item) for item in value.items)
