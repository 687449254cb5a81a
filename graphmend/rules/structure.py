"""Matching a parsed pattern against a syntax tree: shape by shape, names by what they stand for."""

from __future__ import annotations

import ast

from graphmend.flow.interpreter import Facts
from graphmend.rules.callees import callee_names
from graphmend.rules.pattern import Metavariable, Pattern, metavariable

Captures = dict[str, "ast.expr | tuple[ast.expr, ...]"]


def match_pattern(pattern: Pattern, node: ast.AST, facts: Facts) -> Captures | None:
    """What the metavariables stand for if ``node`` has the pattern's shape, else ``None``.

    A dotted name in the pattern is a qualified name: it matches whatever resolves to it, however it is spelled.
    """
    captures: Captures = {}
    return captures if _match(pattern.node, node, facts, captures) else None


def _match(pattern: ast.AST, node: ast.AST, facts: Facts, captures: Captures) -> bool:
    if isinstance(pattern, ast.Name):
        variable = metavariable(pattern.id)
        if variable is not None:
            return isinstance(node, ast.expr) and _capture(variable, node, captures)
    dotted = _dotted(pattern)
    if dotted is not None and isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        names = set(callee_names(facts.value(node)))
        if dotted in names or f"builtins.{dotted}" in names:
            return True
        if isinstance(pattern, ast.Name):
            return isinstance(node, ast.Name) and node.id == pattern.id and not names
    if type(pattern) is not type(node):
        return False
    for name, expected in ast.iter_fields(pattern):
        if name in ("ctx", "type_comment", "kind"):
            continue
        actual = getattr(node, name)
        if isinstance(expected, list):
            if not _match_list(expected, actual, facts, captures):
                return False
        elif isinstance(expected, ast.AST):
            if not isinstance(actual, ast.AST) or not _match(expected, actual, facts, captures):
                return False
        elif expected != actual or type(expected) is not type(actual):
            return False
    return True


def _match_list(expected: list[object], actual: list[object], facts: Facts, captures: Captures) -> bool:
    if expected and isinstance(expected[0], ast.keyword):
        return _match_keywords(expected, actual, facts, captures)
    for position, each in enumerate(expected):
        variable = metavariable(each.id) if isinstance(each, ast.Name) else None
        if variable is not None and variable.rest:
            after = expected[position + 1 :]
            end = len(actual) - len(after)
            taken = tuple(node for node in actual[position:end] if isinstance(node, ast.expr))
            known = captures.setdefault(variable.name, taken)
            same = isinstance(known, tuple) and [ast.dump(x) for x in known] == [ast.dump(x) for x in taken]
            return end >= position and same and _match_list(after, actual[end:], facts, captures)
        if position >= len(actual) or not isinstance(each, ast.AST):
            return False
        node = actual[position]
        if not isinstance(node, ast.AST) or not _match(each, node, facts, captures):
            return False
    return len(expected) == len(actual)


def _match_keywords(expected: list[object], actual: list[object], facts: Facts, captures: Captures) -> bool:
    given = {node.arg: node.value for node in actual if isinstance(node, ast.keyword)}
    wanted = {node.arg: node.value for node in expected if isinstance(node, ast.keyword)}
    return given.keys() == wanted.keys() and all(
        _match(value, given[name], facts, captures) for name, value in wanted.items()
    )


def _capture(variable: Metavariable, node: ast.expr, captures: Captures) -> bool:
    known = captures.setdefault(variable.name, node)
    return isinstance(known, ast.expr) and (known is node or ast.dump(known) == ast.dump(node))


def _dotted(node: ast.AST) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or metavariable(node.id) is not None:
        return None
    return ".".join([node.id, *reversed(parts)])
