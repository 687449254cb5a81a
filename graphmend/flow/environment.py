"""What the names of a function, and attributes of them, stand for at one place in it.

An environment maps names to values, and the dotted paths of attributes of which more is known there than in general.
"""

from __future__ import annotations

import ast

from graphmend.flow.values import Value, join

Environment = dict[str, Value]


def merge(known: Environment, other: Environment) -> Environment:
    """The join of two environments; ``known`` itself if ``other`` adds nothing."""
    changed: Environment | None = None
    for name, value in other.items():
        before = known.get(name)
        if before is None:
            after = value if "." not in name else None
        elif before is value or before == value:
            continue
        else:
            after = join(before, value)
            if after == before:
                continue
        if after is None:
            continue
        if changed is None:
            changed = dict(known)
        changed[name] = after
    for name in known:
        # A refinement of an attribute holds after a join only if both sides have it.
        if "." in name and name not in other:
            if changed is None:
                changed = dict(known)
            changed.pop(name, None)
    return known if changed is None else changed


def forget(name: str, env: Environment) -> None:
    """Drop what was known of the attributes of ``name``."""
    prefix = name + "."
    for key in [key for key in env if key.startswith(prefix)]:
        del env[key]


def path_of(node: ast.expr) -> str:
    """The dotted path of a name or of an attribute of a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
