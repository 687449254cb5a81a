"""Comparisons that make a mask: what is compared and then used as an index is taken for a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope

_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def compared_to_index(function: Function) -> frozenset[int]:
    """The comparisons that a function indexes with, by identity: directly, through ``~``, ``&`` and ``|``, or by name.

    Those with a string are not among them, nor those that pick from a list that is written out.
    """
    found: set[int] = set()
    names: set[str] = set()
    for node in walk_scope(function.body):
        if isinstance(node, ast.Subscript) and not isinstance(node.value, (ast.List, ast.Tuple, ast.Dict)):
            for part in _parts(node.slice):
                if isinstance(part, ast.Name):
                    names.add(part.id)
                elif _makes_mask(part):
                    found.add(id(part))
    if names:
        for node in walk_scope(function.body):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                    found.update(id(part) for part in _parts(value) if _makes_mask(part))
    return frozenset(found)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression combines by ``&`` and ``|``, or turns around."""
    match node:
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            yield from _parts(left)
            yield from _parts(right)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            yield from _parts(operand)
        case _:
            yield node


def _makes_mask(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            texts = (isinstance(each, ast.Constant) and isinstance(each.value, str) for each in (left, right))
            return isinstance(operator, _COMPARING) and not any(texts)
    return False
