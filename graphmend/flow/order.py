"""What certainly runs before what in one function, as far as tracing follows it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from graphmend.model.tree import walk

_BLOCKS = ("body", "orelse", "finalbody")


def runs_before(node: ast.AST, later: ast.stmt, parents: Mapping[int, ast.AST]) -> bool:
    """Whether tracing gets to a node whenever it gets to a statement of the same function.

    The node's statement comes earlier in the same block, or in one around it, and nothing decides whether it runs. The
    body of a loop counts as run.

    Args:
        node: the statement or expression.
        later: the statement.
        parents: the parent of every node of the function.
    """
    around = {id(later)}
    step: ast.AST | None = later
    while (step := parents.get(id(step))) is not None:
        around.add(id(step))
    child: ast.AST = node
    parent = parents.get(id(child))
    while parent is not None:
        for block in _blocks(parent):
            if child in block:
                position = block.index(child)
                if any(id(each) in around for each in block[position + 1 :]):
                    return True
                if not _is_sure(parent, block, position):
                    return False
        if id(parent) in around:
            return parent is not later and _is_header(parent, child)
        if not _is_evaluated(parent, child):
            return False
        child, parent = parent, parents.get(id(parent))
    return False


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    return [block for name in _BLOCKS if isinstance(block := getattr(node, name, None), list)]


def _is_sure(parent: ast.AST, block: Sequence[ast.stmt], position: int) -> bool:
    """Whether a statement of a block runs whenever the statement does that holds the block."""
    match parent:
        case ast.For() | ast.AsyncFor() | ast.While():
            earlier = (node for statement in block[:position] for node in walk(statement))
            return block is parent.body and not any(isinstance(node, (ast.Break, ast.Continue)) for node in earlier)
        case ast.With() | ast.AsyncWith():
            return True
        case ast.Try():
            # What comes before it there may raise, and a handler may go on behind it.
            return block is parent.finalbody or (block is parent.body and position == 0)
    return False


def _is_header(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a part of a statement is evaluated before its blocks."""
    return any(child is getattr(parent, name, None) for name in ("test", "iter", "subject"))


def _is_evaluated(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a part of an expression or statement is evaluated whenever the whole is."""
    match parent:
        case ast.IfExp(test=test):
            return child is test
        case ast.BoolOp(values=values):
            return child is values[0]
        case ast.Lambda() | ast.ExceptHandler() | ast.match_case():
            return False
        case ast.Compare(left=left, comparators=comparators):
            return child is left or child is comparators[0]
    return True
