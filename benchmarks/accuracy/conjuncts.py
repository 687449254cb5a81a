"""Which conditions have a static conjunct: one that is known before the program runs, by its form.

`if x.dtype == torch.float16 and torch.isinf(x).any():` breaks the graph only where the first part holds. A run that
never gets past it neither confirms nor refutes the finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from benchmarks.accuracy.statements import Function, Lines

OWNERS = frozenset({"self", "cls", "config"})
"""Names whose attributes are settings."""

METADATA = frozenset({"device", "dtype", "is_cuda", "itemsize", "layout", "ndim", "requires_grad", "shape", "training"})
"""Attributes of tensors and modules that are known without values."""

QUESTIONS = frozenset({"callable", "hasattr", "isinstance", "issubclass", "len"})
"""Functions whose answer does not depend on a tensor's values."""

METHODS = frozenset({"dim", "is_floating_point", "numel", "size"})
"""Methods whose answer does not depend on a tensor's values."""

SCALARS = frozenset({"bool", "float", "int", "str"})
"""Annotations of parameters that are no tensors."""


@dataclass(frozen=True)
class Branch:
    """Something that runs a body only if a condition holds.

    Attributes:
        node: the statement or conditional expression.
        condition: its test; with `and`, also that of an `if` around it that holds nothing else.
        body: the lines of its body.
    """

    node: ast.If | ast.While | ast.IfExp
    condition: ast.expr
    body: Lines


def branches(tree: ast.AST) -> Iterator[Branch]:
    """Everything that runs a body only if a condition holds."""
    around: dict[int, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While)):
            condition = around.get(id(node), node.test)
            if isinstance(node, ast.If) and not node.orelse and _is_only(inner := node.body[0], node.body):
                around[id(inner)] = ast.BoolOp(ast.And(), [condition, inner.test])
            yield Branch(node, condition, (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno))
        elif isinstance(node, ast.IfExp):
            yield Branch(node, node.test, (node.body.lineno, node.body.end_lineno or node.body.lineno))


def _is_only(inner: ast.stmt, block: list[ast.stmt]) -> TypeGuard[ast.If]:
    """Whether a statement is an `if` without `else`, and all that a block holds."""
    return len(block) == 1 and isinstance(inner, ast.If) and not inner.orelse


def has_static_conjunct(test: ast.expr, function: Function | None) -> bool:
    """Whether a condition is an `and` of which at least one part is static."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return False
    return any(is_static(value, function) or has_static_conjunct(value, function) for value in test.values)


def is_static(node: ast.expr, function: Function | None) -> bool:
    """Whether an expression is known before the program runs, by its form alone.

    Args:
        node: the expression.
        function: the function around it: a plain name is static if it is a parameter that says so by its annotation or
            default, or belongs to the module.
    """
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return _is_static_name(node.id, function)
    if isinstance(node, ast.Attribute):
        return node.attr in METADATA or _owner(node) in OWNERS or is_static(node.value, function)
    if isinstance(node, ast.Subscript):
        return is_static(node.value, function) and is_static(node.slice, function)
    if isinstance(node, ast.UnaryOp):
        return is_static(node.operand, function)
    if isinstance(node, ast.BinOp):
        return is_static(node.left, function) and is_static(node.right, function)
    if isinstance(node, ast.BoolOp):
        return all(is_static(value, function) for value in node.values)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(is_static(value, function) for value in node.elts)
    if isinstance(node, ast.Compare):
        if all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
            return True
        return all(is_static(value, function) for value in (node.left, *node.comparators))
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in QUESTIONS
        return isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
    return False


def _owner(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_static_name(name: str, function: Function | None) -> bool:
    if function is None:
        return True
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for parameter, default in [*zip(positional, defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]:
        if parameter.arg == name:
            annotated = (
                {part.id for part in ast.walk(parameter.annotation) if isinstance(part, ast.Name)}
                if (parameter.annotation)
                else set()
            )
            plain = isinstance(default, ast.Constant) and default.value is not None
            return plain or (bool(annotated & SCALARS) and not any("Tensor" in part for part in annotated))
    bound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return name not in bound and name not in {arg.arg for arg in ast.walk(arguments) if isinstance(arg, ast.arg)}
