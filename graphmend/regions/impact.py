"""What a break costs, from where it sits in the traced frame (measured on torch 2.13)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from graphmend.findings import Impact
from graphmend.model.module import Function
from graphmend.model.tree import children, walk

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def parents_of(function: Function) -> dict[int, ast.AST]:
    """The parent of every node below a function, by the node's identity."""
    return {id(child): node for node in walk(function.node) for child in children(node)}


def impact_of(
    function: Function,
    node: ast.AST,
    parents: Mapping[int, ast.AST],
    is_entry: bool,
    traces_through: Callable[[ast.expr], bool],
) -> Impact:
    """The cost of a break at ``node``.

    Inside a loop, a ``try`` or a context manager that Dynamo does not know, it gives up on the whole frame. As the
    first or last statement of an entry, no second graph comes of it, though ``fullgraph=True`` fails.

    Args:
        function: the function that holds the node.
        node: the statement or expression that breaks.
        parents: see :func:`parents_of`.
        is_entry: whether the function is the first frame of its region.
        traces_through: whether a break inside ``with <expression>`` only splits the graph.
    """
    child, parent = node, parents.get(id(node))
    while parent is not None and child is not function.node:
        if isinstance(parent, _LOOPS) and child in (*parent.body, getattr(parent, "test", None)):
            return Impact.SKIPS_FRAME
        if isinstance(parent, _COMPREHENSIONS):
            return Impact.SKIPS_FRAME
        if isinstance(parent, ast.Try) and child in (*parent.body, *parent.finalbody):
            return Impact.SKIPS_FRAME
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body:
            if not all(traces_through(item.context_expr) for item in parent.items):
                return Impact.SKIPS_FRAME
        child, parent = parent, parents.get(id(parent))
    body = [statement for statement in function.body if not _is_docstring(statement)]
    top = _top_statement(node, parents)
    if is_entry and body and top is node and top in (body[0], body[-1]) and isinstance(top, ast.Expr):
        return Impact.FULLGRAPH_ONLY
    return Impact.SPLITS_GRAPH


def _top_statement(node: ast.AST, parents: Mapping[int, ast.AST]) -> ast.AST:
    while isinstance(node, ast.expr) and id(node) in parents:
        node = parents[id(node)]
    return node


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
