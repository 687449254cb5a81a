"""*outline*: a statement that only observes moves, unchanged, into a module-level effect, and the place calls that.

The whole statement moves: a message, or an ``if`` on a tensor together with what it prints or raises. What the text
reads of the function travels as arguments. Conditions that tracing decides stay in front of the call as a real ``if``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from graphmend.findings import Applicability, Fix
from graphmend.fixes.capture import Capturer, Context, Moved
from graphmend.fixes.earlier import check_earlier_changes
from graphmend.fixes.handlers import check_handlers
from graphmend.fixes.movedtext import header_of
from graphmend.fixes.naming import name_captures
from graphmend.fixes.observe import Observer
from graphmend.fixes.outline_edits import Form, edits_of, new_name
from graphmend.fixes.outline_proof import proof_of
from graphmend.fixes.reach import check_runner
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.split import split_plan
from graphmend.fixes.surroundings import check_surroundings
from graphmend.flow.frames import frames_of
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

NAME = "outline"


def plan(site: Site, arguments: Mapping[str, object]) -> Fix:
    """The fix of one site.

    Args:
        site: a message or a condition.
        arguments: ``observes: true`` declares that the matched call only observes, whatever it calls.

    Raises:
        Refused: an obligation does not hold.
    """
    check_runner(site)
    form = _form(site)
    if form.header is None and not arguments:
        split = split_plan(site, NAME)
        if split is not None:
            return split
    capturer = Capturer(site)
    observer = Observer(capturer, site.node if arguments.get("observes") else None)
    _observe(form, observer)
    _check_assigned(site, form, observer.found.assigned)
    moved = capturer.moved
    raises = "raise" in observer.found.kinds
    check_surroundings(site, emits=observer.found.kinds != ["raise"] * len(observer.found.kinds))
    check_handlers(site, observer.found.raised, moved.risks)
    if raises or moved.risks:
        check_earlier_changes(site, moved.risks if not raises else ())
    captures = list(moved.captures.values())
    name_captures(site, captures, form.moved, raises)
    name = new_name(site, observer.found.kinds)
    edits = edits_of(site, name.given, form, captures, moved, observer.found)
    return Fix(NAME, Applicability.SAFE, proof_of(captures, raises), edits, names=(name,))


# -------------------------------------------------------------------- what moves


def _form(site: Site) -> Form:
    statement, node = site.statement, site.node
    if isinstance(statement, ast.If) and node is statement.test:
        return _branch_form(site, statement)
    if isinstance(statement, ast.Assert) and node is statement.test:
        return Form(statement)
    if isinstance(node, ast.Call):
        if isinstance(statement, ast.Expr) and statement.value is node:
            return Form(statement)
        raise Refused(
            Obligation.VALUE_UNUSED, f"the value of `{ast.unparse(node.func)}(…)` is used, so the call cannot move"
        )
    raise Refused(
        Obligation.SUPPORTED_FORM, "only whole statements move: a message, or an `if` with what it prints or raises"
    )


def _branch_form(site: Site, statement: ast.If) -> Form:
    source = site.source
    start = source.span(statement)[0]
    is_elif = source.text.startswith("elif", start)
    rest: Sequence[ast.stmt] = ()
    moved = statement
    if statement.orelse and _always_raises(statement.body) and not _may_observe(statement.orelse):
        if is_elif:
            raise Refused(
                Obligation.SUPPORTED_FORM,
                "an `elif` with branches after it that do more than observe is not taken apart",
            )
        rest = statement.orelse
        moved = ast.copy_location(ast.If(statement.test, statement.body, []), statement)
        moved.end_lineno, moved.end_col_offset = statement.body[-1].end_lineno, statement.body[-1].end_col_offset
    header = header_of(site, statement)
    if header.static and statement.orelse and not rest:
        raise Refused(
            Obligation.SUPPORTED_FORM,
            "the condition mixes what tracing decides with a tensor, and the `else` belongs to both; write two of them",
        )
    return Form(moved, header, rest, is_elif)


def _always_raises(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_raises(last.body) and _always_raises(last.orelse)
    return isinstance(last, ast.Raise)


def _may_observe(body: Sequence[ast.stmt]) -> bool:
    """Whether statements look like they only observe, so that they move along."""
    return all(
        isinstance(each, (ast.Raise, ast.Pass, ast.Expr))
        or (isinstance(each, ast.If) and _may_observe(each.body) and _may_observe(each.orelse))
        for each in body
    )


def _observe(form: Form, observer: Observer) -> None:
    if form.header is None:
        observer.block([form.moved], Context())
        return
    assert isinstance(form.moved, ast.If)
    # What is evaluated first once the static conditions hold is evaluated on every call.
    context = Context()
    observer.capturer.total.certain = (*form.header.decided, form.header.dynamic[0])
    for part in form.header.dynamic:
        try:
            observer.capturer.expression(part, context)
        except Refused:
            observer.capturer.moved.restore(Moved())
            if context.conditional or not observer.capturer.evaluate_first(part):
                raise
        context = Context(conditional=True)
    branch = form.moved
    observer.block(branch.body, Context(conditional=True, early=False))
    if len(branch.orelse) == 1 and isinstance(branch.orelse[0], ast.If):
        observer.statement(branch.orelse[0], Context(conditional=True))
    else:
        observer.block(branch.orelse, Context(conditional=True, early=False))


def _check_assigned(site: Site, form: Form, assigned: set[str]) -> None:
    """Refuse names that the moved text binds if code that stays reads them."""
    inside = {id(node) for node in walk(form.moved)}
    inside |= {id(node) for statement in getattr(form.moved, "body", []) for node in walk(statement)}
    leaves = isinstance(form.moved, ast.If) and _always_raises(form.moved.body) and not form.moved.orelse
    names = frames_of(site.program).frame(site.function, site.facts).names
    for node in walk(site.function.node):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and assigned & set(node.names):
            outer = min(assigned & set(node.names))
            raise Refused(Obligation.ONLY_OBSERVES, f"the branch binds `{outer}` outside the function")
        if isinstance(node, ast.Name) and node.id in assigned and id(node) not in inside:
            if not leaves or node.id in names.captured:
                raise Refused(
                    Obligation.ONLY_OBSERVES, f"the branch binds `{node.id}`, which is used elsewhere", node.lineno
                )
