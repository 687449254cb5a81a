"""Patterns of rule packs: Python code with metavariables, parsed into an ordinary syntax tree.

``$X`` stands for one expression, ``$...ARGS`` for any number of arguments or elements. Since neither is Python, each is
replaced by a name with a reserved prefix before parsing; :func:`metavariable` tells such a name from any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.model.tree import walk

_TOKEN = re.compile(r"\$(?P<rest>\.\.\.)?(?P<name>[A-Z_][A-Z0-9_]*)")
_ONE = "__graphmend_one_"
_REST = "__graphmend_rest_"


@dataclass(frozen=True, slots=True)
class Metavariable:
    """A metavariable: its name without ``$``, and whether it stands for any number of things."""

    name: str
    rest: bool


@dataclass(frozen=True)
class Pattern:
    """A parsed pattern.

    Attributes:
        node: one expression or one statement.
        metavariables: those that occur in it.
        words: texts that code of this shape contains, whatever its names are bound to.
        imported: names that a file with such code contains, be it only where it imports them under another name.
    """

    node: ast.expr | ast.stmt
    metavariables: frozenset[str]
    words: frozenset[str]
    imported: frozenset[str]


class PatternError(ValueError):
    """A pattern that cannot be parsed; the message says why."""


def metavariable(identifier: str) -> Metavariable | None:
    """Returns the metavariable that an identifier of a parsed pattern stands for, or None for an ordinary name."""
    for prefix, rest in ((_ONE, False), (_REST, True)):
        if identifier.startswith(prefix):
            return Metavariable(identifier[len(prefix) :], rest)
    return None


def parse_pattern(text: str) -> Pattern:
    """Parses the text of a pattern or of a replacement template.

    Arguments:
        text: one Python expression or statement with metavariables.

    Returns:
        The tree, in which metavariables are names (see :func:`metavariable`).

    Raises:
        PatternError: the text is no single expression or statement, a ``$`` starts no metavariable, ``$...X`` stands
            where only one thing can, or one metavariable is used both as ``$X`` and as ``$...X``.
    """
    encoded = _TOKEN.sub(lambda match: f"{_REST if match['rest'] else _ONE}{match['name']}", text.strip())
    try:
        tree = ast.parse(encoded)
    except SyntaxError as error:
        hint = "; a metavariable is `$` and a name in capitals" if "$" in encoded else ""
        raise PatternError(f"no valid Python: {error.msg}{hint}") from None
    except ValueError as error:
        raise PatternError(f"no valid Python: {error}") from None
    if len(tree.body) != 1:
        raise PatternError("a pattern is one expression or one statement")
    _decode_strings(tree)
    names = _collect(tree)
    node = tree.body[0]
    words, imported = frozenset(_words(tree)), frozenset(_imported(tree))
    return Pattern(node.value if isinstance(node, ast.Expr) else node, names, words, imported)


def _imported(tree: ast.AST) -> Iterator[str]:
    """The last parts of qualified names."""
    for node in walk(tree):
        if isinstance(node, ast.Attribute):
            root: ast.AST = node
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and metavariable(root.id) is None:
                yield node.attr


def _words(tree: ast.AST) -> Iterator[str]:
    """The texts that stand in whatever matches: attributes of metavariables (other names may be aliases), operators."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=attr) if metavariable(owner) is not None:
                yield attr
            case ast.BinOp(op=ast.Mod()):
                yield "%"


def _decode_strings(tree: ast.AST) -> None:
    """Gives string literals their own text back: a ``$X`` in a string is no metavariable."""
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = node.value.replace(_REST, "$...").replace(_ONE, "$")


def _collect(tree: ast.AST) -> frozenset[str]:
    kinds: dict[str, bool] = {}
    roomy = {id(element) for node in walk(tree) for element in _elements(node)}
    for node in walk(tree):
        for identifier in _identifiers(node):
            found = metavariable(identifier)
            if found is None:
                continue
            if kinds.setdefault(found.name, found.rest) != found.rest:
                raise PatternError(f"`${found.name}` and `$...{found.name}` cannot both be used")
            if found.rest and id(node) not in roomy:
                raise PatternError(f"`$...{found.name}` can only stand among arguments or elements")
    return frozenset(kinds)


def _elements(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return node.args
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return node.elts
    return []


def _identifiers(node: ast.AST) -> list[str]:
    candidates = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
    return [candidate for candidate in candidates if isinstance(candidate, str)]
