"""What a break costs, from where it sits in the traced frame (measured on torch 2.13)."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.findings import Impact
from graphmend.flow.interpreter import Facts
from graphmend.flow.values import ExternalName, Kind, ObjectMethod, Target
from graphmend.model.module import Function
from graphmend.model.scopes import COMPREHENSIONS, Comprehension, walk_scope
from graphmend.model.tree import children, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_RANGE = frozenset({ExternalName("builtins.range")})
_ASKING = ("builtins.", "logging.", "warnings.")
"""Libraries whose functions put no operation on a tensor into the graph, whatever they are given."""
_LAZY = frozenset({"builtins.enumerate", "items", "keys", "values"})
"""Functions and methods whose result Dynamo cannot hand to a comprehension that it leaves to Python."""


def parents_of(function: Function) -> dict[int, ast.AST]:
    """The parent of every node below a function, by the node's identity."""
    return {id(child): node for node in walk(function.node) for child in children(node)}


def impact_of(facts: Facts, node: ast.AST, parents: Mapping[int, ast.AST], is_entry: bool) -> Impact:
    """The cost of a break at ``node``.

    Inside a loop, a generator, a ``try`` or a context manager that Dynamo does not know, it gives up on the whole
    frame, and so it does at some operators. A comprehension is left to Python, and the frame around it goes on behind.
    In an entry, with no operation on a tensor before it or nothing after it, no second graph comes of it, though
    ``fullgraph=True`` fails.

    Args:
        facts: of the function that holds the node.
        node: the statement or expression that breaks.
        parents: see :func:`parents_of`.
        is_entry: whether the function is the first frame of its region.
    """
    function = facts.function
    top = _top_statement(node, parents)
    if _is_given_up(node, parents, facts) or _is_generator(function):
        return Impact.SKIPS_FRAME
    child, parent = node, parents.get(id(node))
    while parent is not None and child is not function.node:
        if isinstance(parent, _LOOPS) and child in parent.body:
            return Impact.SKIPS_FRAME
        if isinstance(parent, COMPREHENSIONS) and not _is_before(node, parent) and _is_lazy(parent, facts):
            return Impact.SKIPS_FRAME
        if isinstance(parent, ast.Try) and child in (*parent.body, *parent.finalbody):
            return Impact.SKIPS_FRAME
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body:
            if not all(_traces_through(item.context_expr, facts) for item in parent.items):
                return Impact.SKIPS_FRAME
        child, parent = parent, parents.get(id(parent))
    body = [statement for statement in function.body if not _is_docstring(statement)]
    if (
        is_entry
        and top is node
        and isinstance(top, ast.Expr)
        and (top is body[-1] or _is_before_work(top, body, facts))
    ):
        return Impact.FULLGRAPH_ONLY
    return Impact.SPLITS_GRAPH


def _is_given_up(node: ast.AST, parents: Mapping[int, ast.AST], facts: Facts) -> bool:
    """Whether Dynamo gives up on the frame at an operator, wherever it stands."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not isinstance(operand, ast.BoolOp):
            asked = facts.value(operand)
            return asked.depends_on_data and not asked.may(Kind.NUMPY) and not _is_decided(node, parents)
        case ast.Call(args=[ast.GeneratorExp()]):
            return True
        case ast.Call(func=function, args=arguments) if facts.value(function).targets == _RANGE:
            return any(facts.value(each).may(Kind.DRAWN) for each in arguments)
        case ast.Compare(ops=operators, comparators=comparators):
            asks = (
                right for operator, right in zip(operators, comparators) if isinstance(operator, (ast.In, ast.NotIn))
            )
            return any(facts.value(right).may(Kind.TENSOR) for right in asks)
    return False


def _is_decided(node: ast.AST, parents: Mapping[int, ast.AST]) -> bool:
    """Whether a truth is only asked for to go one way or the other, or returned at once."""
    parent = parents.get(id(node))
    match parent:
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return _is_decided(parent, parents)
        case ast.comprehension(ifs=conditions):
            return node in conditions
    return isinstance(parent, ast.Return) or getattr(parent, "test", None) is node


def _is_generator(function: Function) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in walk_scope(function.body))


def _is_before(node: ast.AST, comprehension: Comprehension) -> bool:
    """Whether a part of a comprehension is evaluated before it starts."""
    return any(node is part for part in walk(comprehension.generators[0].iter))


def _is_lazy(comprehension: Comprehension, facts: Facts) -> bool:
    """Whether a comprehension, or what it goes through, cannot be left to Python by itself."""
    first = comprehension.generators[0].iter
    if isinstance(comprehension, ast.GeneratorExp):
        return True
    if facts.value(first).is_keyed:
        return True
    targets = facts.value(first.func).targets if isinstance(first, ast.Call) else ()
    return any(isinstance(target, (ExternalName, ObjectMethod)) and target.name in _LAZY for target in targets)


def _is_before_work(breaking: ast.Expr, body: list[ast.stmt], facts: Facts) -> bool:
    """Whether nothing in the text up to the end of a statement puts an operation into the graph."""
    end = breaking.end_lineno, breaking.end_col_offset
    return not any(
        _computes(node, facts)
        for statement in body
        for node in walk(statement)
        if isinstance(node, ast.expr) and (node.lineno, node.col_offset) < end
    )


def _computes(node: ast.expr, facts: Facts) -> bool:
    """Whether evaluating an expression, its parts apart, may be an operation on a tensor."""
    value = facts.value(node)
    match node:
        case ast.Call(func=func, args=arguments, keywords=keywords):
            if facts.value(func).targets and all(map(_asks, facts.value(func).targets)):
                return False
            given = [*arguments, *(keyword.value for keyword in keywords)]
            if isinstance(func, ast.Attribute):
                given.append(func.value)
            uses = any(facts.value(each).depends_on_data for each in given)
            return uses or value.may(Kind.TENSOR | Kind.SCALAR | Kind.UNKNOWN)
        case ast.Attribute(value=holder, ctx=ast.Load()) | ast.Subscript(value=holder, ctx=ast.Load()):
            return value.may(Kind.TENSOR) and facts.value(holder).may(Kind.TENSOR)
        case ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return value.depends_on_data
    return False


def _asks(target: Target) -> bool:
    name = target.owner if isinstance(target, ObjectMethod) else target.name if isinstance(target, ExternalName) else ""
    return name.startswith(_ASKING)


def _traces_through(expression: ast.expr, facts: Facts) -> bool:
    """Whether a break inside ``with <expression>`` only splits the graph."""
    called = expression.func if isinstance(expression, ast.Call) else expression
    names = [target.name for target in facts.value(called).targets if isinstance(target, ExternalName)]
    return bool(names) and all(name.startswith("torch.") or name == "contextlib.nullcontext" for name in names)


def _top_statement(node: ast.AST, parents: Mapping[int, ast.AST]) -> ast.AST:
    while isinstance(node, ast.expr) and id(node) in parents:
        node = parents[id(node)]
    return node


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
