"""Messages in a branch that also computes: they move out of the branch, into an effect that takes its condition.

A selection runs both of its sides, so a message inside one of them would appear at all times. Messages that a branch
begins with are told before it, those that it ends with behind it, both under the same condition.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphmend.findings import Applicability, Edit, Fix, NewName
from graphmend.fixes.capture import Capture, Capturer, Context
from graphmend.fixes.carry import Certainty
from graphmend.fixes.emit import insert_function, runtime_name
from graphmend.fixes.expressions import expression_text
from graphmend.fixes.handlers import check_handlers
from graphmend.fixes.identifiers import names_of
from graphmend.fixes.movedtext import moved_text
from graphmend.fixes.naming import name_captures
from graphmend.fixes.observe import Observer
from graphmend.fixes.outline_edits import argument_at, effect_name
from graphmend.fixes.outline_proof import proof_of
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.style import style_of
from graphmend.model.scopes import bound_names, walk_scope
from graphmend.model.tree import walk
from graphmend.source.edits import make_edit

_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class _Group:
    """Neighbouring messages at one end of a branch."""

    branch: ast.If
    messages: Sequence[ast.stmt]
    leading: bool


def split_plan(site: Site, transform: str) -> Fix | None:
    """The fix that moves a message out of a branch on a tensor; ``None`` if it has to stay where it is."""
    group = _group(site)
    if group is None:
        return None
    # What the call evaluates is evaluated whether the branch is taken or not, so it is proven where the branch begins.
    observer = Observer(Capturer(replace(site, statement=group.branch, node=group.branch.test)))
    try:
        observer.block(group.messages, Context(conditional=True, early=False))
    except Refused:
        return None
    if not group.leading and any(_depends(each, group.branch) for each in observer.capturer.moved.captures.values()):
        return None
    moved = observer.capturer.moved
    check_handlers(site, [], moved.risks)
    captures = list(moved.captures.values())
    for message in group.messages:
        name_captures(site, captures, message, raises=False)
    local, name = _condition_name(site, group), _effect_name(site, group, observer)
    bound = local.given if local is not None else ast.unparse(group.branch.test)
    if not any(capture.name == bound for capture in captures):
        captures.insert(0, Capture(ast.Name(bound, ast.Load()), Certainty.YES, bound))
    edits = (
        *_new_function(site, group, captures, observer, bound, name.given),
        *_moved_call(site, group, captures, bound, name.given),
    )
    names = (name,) if local is None else (local, name)
    return Fix(transform, Applicability.SAFE, proof_of(captures, raises=False), edits, names=names)


def _depends(capture: Capture, branch: ast.If) -> bool:
    """Whether an argument asks something of what the branch binds: another object, if the branch is not taken."""
    if isinstance(capture.expression, ast.Name):
        return False
    names = {node.id for node in walk(capture.expression) if isinstance(node, ast.Name)}
    return not names.isdisjoint(bound_names(branch.body))


def _condition_name(site: Site, group: _Group) -> NewName | None:
    """The local name that the condition is given; ``None`` if it is a name already."""
    branch = group.branch
    if isinstance(branch.test, ast.Name):
        return None
    place = ("split", branch.lineno, branch.col_offset)
    return names_of(site.module).fresh_local("condition", site.function, place)


def _effect_name(site: Site, group: _Group, observer: Observer) -> NewName:
    place = ("split", group.branch.lineno, group.branch.col_offset, group.leading)
    return names_of(site.module).fresh(effect_name(site, observer.found.kinds), place)


def _group(site: Site) -> _Group | None:
    """The messages that leave the branch together with the one at the site."""
    branch = site.parents.get(id(site.statement))
    if (
        not isinstance(branch, ast.If)
        or site.statement not in branch.body
        or not site.facts.value(branch.test).is_tensor
    ):
        return None
    if isinstance(branch.test, ast.BoolOp) or site.source.text.startswith("elif", site.source.span(branch)[0]):
        return None
    body = branch.body
    first = next((number for number, each in enumerate(body) if not _is_message(each, site)), len(body))
    last = next((number for number, each in enumerate(reversed(body)) if not _is_message(each, site)), len(body))
    position = body.index(site.statement)
    core = body[first : len(body) - last]
    if not core or not _on_own_lines(branch):
        return None
    if position < first:
        above = site.source.line(body[0].lineno - 1).lstrip().startswith("#")
        return None if above or _has_comments(site, body[:first]) else _Group(branch, body[:first], leading=True)
    if position < len(body) - last or any(isinstance(node, _LEAVING) for node in walk_scope(core)):
        return None
    if isinstance(branch.test, ast.Name) and branch.test.id in bound_names(branch.body):
        return None
    if branch.orelse or _has_comments(site, body[len(body) - last :]):
        return None
    return _Group(branch, body[len(body) - last :], leading=False)


def _is_message(statement: ast.stmt, site: Site) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    try:
        Observer(Capturer(site)).statement(statement, Context(conditional=True, early=False))
    except Refused:
        return False
    return True


def _on_own_lines(branch: ast.If) -> bool:
    """Whether no statement of a branch shares a line with another one."""
    lines = [branch.test.end_lineno, *(line for each in branch.body for line in {each.lineno, each.end_lineno})]
    return len(lines) == len(set(lines))


def _has_comments(site: Site, messages: Sequence[ast.stmt]) -> bool:
    """Whether there is anything between or behind some messages in their lines."""
    source = site.source
    position = source.line_starts[messages[0].lineno - 1]
    for message in messages:
        start, end = source.span(message)
        if source.text[position:start].strip():
            return True
        position = end
    line, column = source.position(position)
    return bool(source.line(line)[column - 1 :].strip())


def _new_function(
    site: Site, group: _Group, captures: Sequence[Capture], observer: Observer, bound: str, name: str
) -> Sequence[Edit]:
    """The edits that make the effect, called ``name``: the messages behind their condition."""
    style, runtime = style_of(site.module), runtime_name(site)
    replacements = [
        *((node, capture.name) for node, capture in observer.capturer.moved.places),
        *observer.found.replaced,
    ]
    texts = [moved_text(site, each, None, replacements, style.unit * 2) for each in group.messages]
    body = site.source.newline.join([f"{style.unit}if {bound}:", *texts])
    function = style.function(f"{runtime.name}.effect", name, [capture.name for capture in captures], body)
    return (*runtime.edits, *insert_function(site, function))


def _moved_call(site: Site, group: _Group, captures: Sequence[Capture], bound: str, name: str) -> Sequence[Edit]:
    """The edits that put the call outside the branch and give the condition its name."""
    source, branch = site.source, group.branch
    newline, indentation = source.newline, source.indentation(branch.lineno)
    arguments = [argument_at(site, capture.expression) for capture in captures]
    call = style_of(site.module).call(name, arguments, indentation)
    start, end = source.span(branch)
    first = source.line_starts[group.messages[0].lineno - 1]
    edits: list[Edit] = []
    if not isinstance(branch.test, ast.Name):
        # Edits of their own: the messages at the other end of the branch share them.
        condition = f"{bound} = {expression_text(source, branch.test)}{newline}{indentation}"
        edits.append(make_edit(source, *source.span(branch.test), bound))
        edits.append(make_edit(source, start, start, condition))
    if group.leading:
        line = (group.messages[-1].end_lineno or 0) + 1
        while not source.line(line).strip():
            line += 1
        edits.append(make_edit(source, start, start, f"{call}{newline}{indentation}"))
        edits.append(make_edit(source, first, source.line_starts[line - 1], ""))
        return edits
    return [*edits, make_edit(source, first, end, indentation + call)]
