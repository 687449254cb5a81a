"""Branches that an earlier branch has answered: ``if a: v = False``, and later ``if a and v:``, which nothing enters.

Somebody may change what a condition reads in between, so this only serves to leave findings out, never as a proof.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk

_STABLE = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.UnaryOp, ast.BoolOp)


def is_answered(node: ast.AST, function: Function, parents: Mapping[int, ast.AST]) -> bool:
    """Whether a node stands under a condition that an earlier branch, taken under the same conditions, made false.

    Args:
        node: the node.
        function: the function that holds it.
        parents: the parent of every node below the function, by identity.
    """
    conditions = [part for branch in _branches_around(node, parents) for part in _conjuncts(branch.test)]
    known = {ast.dump(part) for part in conditions}
    names = {part.id for part in conditions if isinstance(part, ast.Name)}
    return bool(names) and any(
        name in names and all(ast.dump(part) in known for part in parts) and _holds(earlier, name, parts, function)
        for earlier in _statements_before(node, parents)
        if isinstance(earlier, ast.If)
        for parts in [_conjuncts(earlier.test)]
        for name in _cleared(earlier.body)
    )


def _branches_around(node: ast.AST, parents: Mapping[int, ast.AST]) -> Iterator[ast.If]:
    """The branches that are taken on the way to a node."""
    child, parent = node, parents.get(id(node))
    while parent is not None:
        if isinstance(parent, ast.If) and child in parent.body:
            yield parent
        child, parent = parent, parents.get(id(parent))


def _statements_before(node: ast.AST, parents: Mapping[int, ast.AST]) -> Iterator[ast.stmt]:
    """The statements that have run in full whenever a node is reached."""
    child, parent = node, parents.get(id(node))
    while parent is not None:
        for part in ("body", "orelse", "finalbody"):
            block = getattr(parent, part, None)
            if isinstance(block, list) and child in block:
                yield from block[: block.index(child)]
        child, parent = parent, parents.get(id(parent))


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    """The conditions that all hold if a test does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in _conjuncts(value)]
    return [test]


def _cleared(body: list[ast.stmt]) -> Iterator[str]:
    """The names that are false after a block, unless something sets them again."""
    for statement in body:
        yield from (target.id for target in _clearing(statement))
        if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and not statement.orelse:
            yield from (name for name in _cleared(statement.body) if name == statement.test.id)


def _clearing(statement: ast.AST) -> list[ast.Name]:
    """The names to which a statement assigns something that is false."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) and not statement.value.value:
        return [target for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _holds(earlier: ast.If, name: str, conditions: list[ast.expr], function: Function) -> bool:
    """Whether from an earlier branch on nothing sets a name to true, or changes the conditions."""
    parts = [node for condition in conditions for node in walk(condition)]
    if not all(isinstance(part, _STABLE) for part in parts):
        return False
    attributes = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    read = {part.id for part in parts if isinstance(part, ast.Name)}
    clearing = {id(target) for statement in walk_scope(function.body) for target in _clearing(statement)}
    for node in walk(function.node):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and {name, *read} & set(node.names):
            return False
        if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        if isinstance(node, ast.Attribute) and node.attr in attributes:
            return False
        if isinstance(node, ast.Name) and node.lineno >= earlier.lineno:
            if node.id in read or (node.id == name and id(node) not in clearing):
                return False
    return True
