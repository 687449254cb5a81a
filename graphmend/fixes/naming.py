"""Names for the parameters of a new function: what they carry, and nothing that the moved text uses otherwise."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Sequence

from graphmend.fixes.capture import Capture
from graphmend.fixes.site import Site
from graphmend.flow.values import ExternalName, TensorMethod
from graphmend.model.tree import walk

_RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_LONGEST = 30
_DECIDING = frozenset({"any", "all"})
_NUMBERS = frozenset({"item", "tolist", "detach", "cpu", "float", "clone"})


def name_captures(site: Site, captures: Sequence[Capture], moved: ast.stmt, raises: bool) -> None:
    """Give each argument that is no plain name the name of its parameter."""
    taken = {capture.expression.id for capture in captures if isinstance(capture.expression, ast.Name)}
    for node in walk(moved):
        if isinstance(node, ast.Name):
            taken.add(node.id)
        elif isinstance(node, ast.arg):
            taken.add(node.arg)
    test = moved.test if isinstance(moved, (ast.If, ast.Assert)) else None
    leaves = _leaves(test)
    for capture in captures:
        if isinstance(capture.expression, ast.Name):
            capture.name = capture.expression.id
            continue
        wanted = _suggest(site, capture.expression)
        if any(leaf is capture.expression for leaf in leaves) and (not wanted or _is_verdict(leaves)):
            wanted = _verdict(test, capture.expression, raises)
        capture.name = _free(wanted or "value", capture.expression, taken)
        taken.add(capture.name)


def _leaves(test: ast.expr | None) -> list[ast.expr]:
    """The expressions whose truth a condition asks for."""
    match test:
        case None:
            return []
        case ast.BoolOp(values=values):
            return [leaf for value in values for leaf in _leaves(value)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _leaves(operand)
    return [test]


def _is_verdict(leaves: Sequence[ast.expr]) -> bool:
    return len(leaves) == 1 and not isinstance(leaves[0], (ast.Attribute, ast.Subscript))


def _verdict(test: ast.expr | None, node: ast.expr, raises: bool) -> str:
    """``bad`` or ``ok`` for a check, by what makes it raise."""
    if not raises:
        return "condition"
    negated = any(
        isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not) and any(part is node for part in walk(each))
        for each in (walk(test) if test is not None else ())
    )
    return "ok" if negated else "bad"


def _free(wanted: str, node: ast.expr, taken: set[str]) -> str:
    if wanted in taken or wanted in _RESERVED:
        owner = node.value if isinstance(node, ast.Attribute) else None
        last = owner.attr if isinstance(owner, ast.Attribute) else ""
        longer = (
            f"{last}_{wanted}"
            if last and not last.startswith("_")
            else f"{wanted}_value"
            if wanted in _RESERVED
            else wanted
        )
        wanted = longer if longer not in taken and longer not in _RESERVED else wanted
    name, number = wanted, 2
    while name in taken or name in _RESERVED:
        name = f"{wanted}_{number}"
        number += 1
    return name


def _suggest(site: Site, node: ast.expr) -> str:
    """A name made of the words of an expression; empty if it would say little."""
    name = _words(site, node).strip("_").lower()
    return name if name.isidentifier() and len(name) <= _LONGEST else ""


def _words(site: Site, node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr="__name__"):
            return "class_name" if not isinstance(owner, ast.Name) else f"{owner.id}_name"
        case ast.Attribute(attr=attr):
            return attr
        case ast.Subscript(value=value, slice=ast.Constant(value=int() | str() as index)):
            return f"{_words(site, value)}_{index}"
        case ast.Subscript(value=value):
            return _words(site, value)
        case ast.Call(func=func):
            return _call_words(site, node, func)
        case ast.UnaryOp(operand=operand):
            return _words(site, operand)
    return ""


def _call_words(site: Site, node: ast.Call, func: ast.expr) -> str:
    target = next(iter(site.facts.value(func).targets), None)
    if isinstance(target, TensorMethod) and isinstance(func, ast.Attribute):
        owner = _words(site, func.value)
        return owner if func.attr in _DECIDING | _NUMBERS else f"{owner}_{func.attr}" if owner else ""
    if isinstance(func, ast.Attribute) and not isinstance(target, ExternalName):
        return func.attr
    if isinstance(target, ExternalName) and node.args:
        called, first = target.name.rpartition(".")[2], node.args[0]
        inner = _words(site, first)
        if called in _DECIDING:
            return inner
        return f"{called}_{inner}" if inner and isinstance(first, (ast.Name, ast.Attribute)) else called
    return ""
