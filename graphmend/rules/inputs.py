"""Numbers that a graph break makes known: tensors of one number that the next graph gets as its inputs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.flow.order import runs_before
from graphmend.model.tree import walk
from graphmend.rules.matcher import Match
from graphmend.rules.model import CallMatch, SubscriptMatch

_COMPUTED = frozenset({"computed-tensor", "holds-computed", "position-tensor"})


def is_known_behind(earlier: Match, match: Match, parents: Mapping[int, ast.AST]) -> bool:
    """Whether a rule asks for a number that was computed, and an earlier break makes it an input of the next graph.

    Of those, tracing asks for the value where it needs one (measured with torch 2.13, for numbers on the CPU).

    Args:
        earlier: another match in the function.
        match: the match.
        parents: the parent of every node of the function.
    """
    if earlier.statement is match.statement or not _asks_for_computed(match):
        return False
    if not runs_before(earlier.node, match.statement, parents):
        return False
    nodes = [node for part in _parts(match.node) for node in walk(part)]
    if any(isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.IfExp)) for node in nodes):
        return False  # computed in the next graph
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    root: ast.AST = match.statement
    while id(root) in parents:
        root = parents[id(root)]
    end = earlier.statement.lineno
    return not any(
        isinstance(node, ast.Name)
        and not isinstance(node.ctx, ast.Load)
        and node.id in names
        and end < node.lineno < match.node.lineno
        for node in walk(root)
    )


def _asks_for_computed(match: Match) -> bool:
    rule = match.rule.match
    if isinstance(rule, CallMatch):
        return any(not _COMPUTED.isdisjoint(argument.facts) for argument in rule.given)
    return isinstance(rule, SubscriptMatch) and not _COMPUTED.isdisjoint(rule.index)


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions in which the number may stand."""
    match node:
        case ast.Call(args=arguments, keywords=keywords):
            yield from arguments
            yield from (keyword.value for keyword in keywords)
        case ast.Subscript(slice=index):
            yield index
