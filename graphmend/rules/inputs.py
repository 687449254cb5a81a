"""Numbers that a graph break makes known: tensors of one number that the next graph gets as its inputs."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.flow.interpreter import Facts
from graphmend.flow.order import runs_before
from graphmend.flow.program import Program
from graphmend.model.tree import walk
from graphmend.rules.callees import held_arguments
from graphmend.rules.matcher import Match
from graphmend.rules.model import CallMatch, SubscriptMatch

_COMPUTED = frozenset({"computed-tensor", "holds-computed", "position-tensor"})


def is_known_behind(
    earlier: Match, match: Match, program: Program, facts: Facts, parents: Mapping[int, ast.AST]
) -> bool:
    """Whether a rule asks for a number that was computed, and an earlier break makes it an input of the next graph.

    Of those, tracing asks for the value where it needs one (measured with torch 2.13, for numbers on the CPU).

    Args:
        earlier: another match in the function.
        match: the match.
        program: the program under analysis.
        facts: of the function.
        parents: the parent of every node of the function.
    """
    if earlier.statement is match.statement or not _asks_for_computed(match):
        return False
    if not runs_before(earlier.node, match.statement, parents):
        return False
    nodes = [node for part in _numbers(match, program, facts) for node in walk(part)]
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


def _numbers(match: Match, program: Program, facts: Facts) -> list[ast.expr]:
    """The expressions that the number comes from."""
    rule, node = match.rule.match, match.node
    if isinstance(rule, CallMatch) and isinstance(node, ast.Call):
        return held_arguments(rule, program, facts, node)
    return [node.slice] if isinstance(node, ast.Subscript) else []
