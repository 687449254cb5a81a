"""Walking syntax trees, several times faster than the functions of :mod:`ast` do.

Most of what a run does outside the interpreter is looking through statements for something, so this is felt. What is
never looked for is left out: contexts (``Load``, ``Store``, ``Del``) and operators, which their owners hold as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LEAVES = frozenset(("arg", "attr", "ctx", "id", "kwd_attrs", "op", "ops", "type_comment"))
"""Fields that hold text, contexts or operators, whatever class they belong to."""


class _Fields(dict[type, tuple[str, ...]]):
    """The fields that may hold nodes, by class of node."""

    def __missing__(self, cls: type[ast.AST]) -> tuple[str, ...]:
        names = () if cls in (ast.Constant, ast.Global, ast.Nonlocal, ast.alias) else cls._fields
        found = self[cls] = tuple(name for name in names if name not in _LEAVES)
        return found


_FIELDS = _Fields()


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, in the order of the source as far as :mod:`ast` keeps it."""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [each for each in value if each is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def asked(node: ast.AST) -> list[ast.expr]:
    """The expressions whose own truth a node asks for, those of its children left out."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
    return []


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes below it, a parent before its children."""
    todo = [root]
    for node in todo:
        yield node
        todo += children(node)
