"""Comparisons that make a mask: what is compared and then used as an index is taken for a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import asked

_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def compared_to_index(function: Function) -> Mapping[int, list[ast.expr]]:
    """What a function indexes with a comparison: directly, through ``~``, ``&`` and ``|``, or by name.

    Not among them are comparisons with a string, those that pick from a list that is written out, and those by a name
    whose own truth is asked for.

    Returns:
        what is indexed, by the identity of the comparison.
    """
    found: dict[int, list[ast.expr]] = {}
    holders: dict[str, list[ast.expr]] = {}
    nodes = list(walk_scope(function.body))
    for node in nodes:
        if isinstance(node, ast.Subscript) and not isinstance(node.value, (ast.List, ast.Tuple, ast.Dict)):
            for part in _parts(node.slice):
                if isinstance(part, ast.Name):
                    holders.setdefault(part.id, []).append(node.value)
                elif _makes_mask(part):
                    found.setdefault(id(part), []).append(node.value)
    if holders:
        decided = {each.id for node in nodes for each in asked(node) if isinstance(each, ast.Name)}
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in holders and name not in decided:
                    for part in _parts(value):
                        if _makes_mask(part):
                            found.setdefault(id(part), []).extend(holders[name])
    return found


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
