"""The edits of *outline*: the new function, the call in the place of the statement, and the runtime's import."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from graphmend.findings import Edit, NewName
from graphmend.fixes.capture import Capture, Moved
from graphmend.fixes.emit import insert_function, runtime_name
from graphmend.fixes.expressions import argument_of
from graphmend.fixes.identifiers import names_of, snake_case, subject_of
from graphmend.fixes.layout import Argument
from graphmend.fixes.movedtext import Header, after_else, moved_text, own_end, text_of
from graphmend.fixes.observe import Observation
from graphmend.fixes.site import Site
from graphmend.fixes.style import Style, style_of
from graphmend.source.edits import make_edit

_PREFIX = {"print": "print", "log": "log", "warn": "warn", "raise": "check"}


@dataclass(frozen=True)
class Form:
    """The parts of the statement at a site.

    Args:
        moved: the statement whose text moves; for an ``if`` perhaps without its ``else``.
        header: the condition of an ``if`` and its split.
        rest: the ``else`` side that stays, if the branch always raises.
        is_elif: whether the statement is written as an ``elif``.
    """

    moved: ast.stmt
    header: Header | None = None
    rest: Sequence[ast.stmt] = ()
    is_elif: bool = False


def new_name(site: Site, kinds: Sequence[str]) -> NewName:
    """The name of the new function of a site."""
    place = ("outline", site.statement.lineno, site.statement.col_offset)
    return names_of(site.module).fresh(effect_name(site, kinds), place)


def edits_of(
    site: Site, name: str, form: Form, captures: Sequence[Capture], moved: Moved, seen: Observation
) -> tuple[Edit, ...]:
    """The edits of one fix, those that other fixes share first.

    Args:
        site: the place.
        name: the name of the new function.
        form: what moves.
        captures: the arguments, with names.
        moved: where in the text they occur.
        seen: what the text does.
    """
    source, style = site.source, style_of(site.module)
    runtime = runtime_name(site)
    replacements = [*((node, capture.name) for node, capture in moved.places), *seen.replaced]
    body = moved_text(site, form.moved, form.header, replacements, style.unit)
    text = style.function(f"{runtime.name}.effect", name, [capture.name for capture in captures], body)
    arguments = [argument_at(site, capture.expression) for capture in captures]
    edits = [*runtime.edits, *insert_function(site, text)]
    if form.header is None:
        replaced = form.moved.value if isinstance(form.moved, ast.Expr) else form.moved
        call = style.call(name, arguments, source.indentation(form.moved.lineno))
        edits.append(make_edit(source, *source.span(replaced), call))
        return tuple(edits)
    start, end = source.span(form.moved)[0], own_end(site, form.moved)
    edits.append(make_edit(source, start, end, _branch_call(site, form, form.header, name, arguments, style)))
    if form.rest:
        assert isinstance(site.statement, ast.If)
        edits.append(after_else(site, site.statement, form.rest))
    return tuple(edits)


def _branch_call(site: Site, form: Form, header: Header, name: str, arguments: Sequence[Argument], style: Style) -> str:
    """What stands in the place of an ``if``: the call, behind the conditions that tracing decides."""
    newline, outer = site.source.newline, site.source.indentation(form.moved.lineno)
    inner = outer + style.unit
    if header.static:
        keyword = "elif" if form.is_elif else "if"
        comments = "".join(f"{inner}{comment}{newline}" for comment in header.comments)
        head = style.header(keyword, header.static, outer)
        return f"{head}{newline}{comments}{inner}{style.call(name, arguments, inner)}"
    if form.is_elif:
        return f"else:{newline}{inner}{style.call(name, arguments, inner)}"
    return style.call(name, arguments, outer)


def argument_at(site: Site, node: ast.expr) -> Argument:
    """An expression of the function as an argument of the call."""
    text = text_of(site, node)
    # Inside a string the source's positions may be wrong.
    return (
        Argument(text)
        if isinstance(node, ast.Name) or text != site.source.segment(node)
        else argument_of(site.source, node)
    )


def effect_name(site: Site, kinds: Sequence[str]) -> str:
    """What the new function is called, by the first thing that it does and what it does it for."""
    kind = "raise" if "raise" in kinds else kinds[0]
    call = site.statement.value if isinstance(site.statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) else None
    called = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if kind == "call":
        verb = snake_case(called) or "note"
    elif kind == "log" and "warn" in called:
        verb = "warn"
    else:
        verb = _PREFIX[kind]
    subject = subject_of(site.function)
    return f"_{subject}" if f"{subject}_".startswith(f"{verb}_") else f"_{verb}_{subject}"
