"""Plain data that changes from call to call, for each value of which a graph that holds it is compiled again.

The original may never have looked at it, or only in a part without a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.fixes.site import Refused, Site
from graphmend.flow.program import Program
from graphmend.flow.values import Kind
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})
_CARRIED_AS_THEY_ARE = Kind.TENSOR | Kind.OBJECT | Kind.CALLABLE | Kind.NONE


class _Changing:
    """The attributes and module-level names that functions change step by step."""

    def __init__(self, program: Program) -> None:
        self.places: dict[str, str] = {}
        writers = program.python.writers
        for module in program.index.modules().values():
            for function in module.functions:
                if function.name in _CONSTRUCTORS:
                    continue
                for node in walk(function.node):
                    for holder in _stepped(node, writers):
                        for name in _name_of(holder, function.locals):
                            self.places.setdefault(name, f"{module.path}:{holder.lineno}")


def check_settled(site: Site, expression: ast.expr) -> None:
    """Refuse to carry plain data that some function changes step by step.

    Raises:
        Refused: the graph would be compiled again for each value, and the original may not be.
    """
    places = site.program.derived(_Changing).places
    for node in _read(expression):
        for name in _name_of(node, site.function.locals):
            if name in places and not site.facts.value(node).only(_CARRIED_AS_THEY_ARE):
                raise Refused(
                    Obligation.CARRIABLE_ARGUMENTS,
                    f"`{ast.unparse(node)}` changes between calls ({places[name]}), and the graph would be compiled "
                    "again for each of its values",
                    node.lineno,
                )


def _stepped(node: ast.AST, writers: frozenset[str]) -> Iterator[ast.expr]:
    """The expressions of what a node makes new values of out of the old ones."""
    match node:
        case ast.AugAssign():
            yield node.target
        case ast.Assign(targets=targets, value=value):
            read = {each.attr for each in walk(value) if isinstance(each, ast.Attribute)}
            for target in targets:
                if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr in read):
                    yield target
        case ast.Call(func=ast.Attribute(value=holder, attr=method)) if method in writers:
            yield holder


def _name_of(node: ast.expr, own: set[str]) -> Iterator[str]:
    """The attribute, or the name from outside of the function, that holds what an expression stands for."""
    holder: ast.expr = node
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    if isinstance(holder, ast.Attribute):
        yield holder.attr
    elif isinstance(holder, ast.Name) and holder.id not in own:
        yield holder.id


def _read(expression: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes whose values an expression is made of."""
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
        else:
            stack += ast.iter_child_nodes(node)
