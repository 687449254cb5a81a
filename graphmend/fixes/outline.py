"""*outline*: a statement that only observes moves, unchanged, into a module-level effect, and the place calls that.

The whole statement moves: a message, or an ``if`` on a tensor together with what it prints or raises. What the text
reads of the function travels as arguments. Conditions that tracing decides stay in front of the call as a real ``if``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphmend.findings import Applicability, Edit, Fix, Proof
from graphmend.fixes.capture import Capture, Capturer, Certainty, Context
from graphmend.fixes.emit import Style, insert_function, names_of, runtime_name, subject_of
from graphmend.fixes.escape import check_earlier_changes, check_handlers
from graphmend.fixes.movedtext import Header, header_of, moved_text, own_end
from graphmend.fixes.naming import name_captures
from graphmend.fixes.observe import Observer
from graphmend.fixes.reach import reach_of
from graphmend.fixes.site import Refused, Site
from graphmend.flow.frames import frames_of
from graphmend.flow.values import ExternalName
from graphmend.model.scopes import walk_scope
from graphmend.obligations import Obligation
from graphmend.source.edits import make_edit

NAME = "outline"
_PREFIX = {"print": "print", "log": "log", "warn": "warn", "raise": "check"}
_REDIRECTS = frozenset({"warnings.catch_warnings", "contextlib.redirect_stdout", "contextlib.redirect_stderr"})
_ASSUMED = (
    "an exception of the message is assumed to leave the compiled region: state that callers out of sight changed inside it since its "
    "entry is unspecified then, as with a captured assert"
)


@dataclass(frozen=True)
class _Form:
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


def plan(site: Site, arguments: Mapping[str, object]) -> Fix:
    """The fix of one site.

    Args:
        site: a message or a condition.
        arguments: ``observes: true`` declares that the matched call only observes, whatever it calls.

    Raises:
        Refused: an obligation does not hold.
    """
    check_runner(site)
    form = _form(site, declared=bool(arguments.get("observes")))
    capturer = Capturer(site)
    observer = Observer(capturer, site.node if arguments.get("observes") else None)
    _observe(form, observer)
    _check_assigned(site, form, observer.found.assigned)
    moved = capturer.moved
    raises = "raise" in observer.found.kinds
    if not raises:
        _check_redirects(site)
    check_handlers(site, observer.found.raised, moved.risks)
    if raises:
        check_earlier_changes(site)
    captures = list(moved.captures.values())
    name_captures(site, captures, form.moved, raises)
    return Fix(
        NAME,
        Applicability.SAFE,
        tuple(_proof(site, captures, raises)),
        _edits(site, form, captures, moved.places, observer),
    )


def check_runner(site: Site) -> None:
    """Refuse code that TorchScript compiles or that runs as an arm of a selection.

    Raises:
        Refused: the function is one of these, or is called from one.
    """
    reach = reach_of(site.program)
    reason = reach.scripted(site.function)
    if reason:
        raise Refused(Obligation.NOT_SCRIPTED, f"TorchScript cannot compile the call of an effect, and {reason}")
    reason = reach.arm(site.function)
    if reason:
        raise Refused(Obligation.NOT_IN_ARM, f"an effect would run whether or not its arm is taken: {reason}")
    parent, node = site.function.parent, site.function.node
    if parent is None:
        return
    if isinstance(node, ast.Lambda):
        raise Refused(Obligation.NOT_IN_ARM, "the code is a lambda, and who runs it is not known")
    called = {id(each.func) for each in ast.walk(parent.node) if isinstance(each, ast.Call)}
    for each in ast.walk(parent.node):
        if isinstance(each, ast.Name) and each.id == node.name and isinstance(each.ctx, ast.Load) and id(each) not in called:
            reason = f"the nested function `{node.name}` is handed on as a value, and who runs it is not known"
            raise Refused(Obligation.NOT_IN_ARM, reason, each.lineno)


# -------------------------------------------------------------------- what moves


def _form(site: Site, declared: bool) -> _Form:
    statement, node = site.statement, site.node
    if isinstance(statement, ast.If) and node is statement.test:
        return _branch_form(site, statement)
    if isinstance(statement, ast.Assert) and node is statement.test:
        return _Form(statement)
    if isinstance(node, ast.Call):
        if isinstance(statement, ast.Expr) and statement.value is node:
            return _Form(statement)
        raise Refused(Obligation.VALUE_UNUSED, f"the value of `{ast.unparse(node.func)}(…)` is used, so the call cannot move")
    if declared and isinstance(statement, ast.Expr) and statement.value is node:
        return _Form(statement)
    raise Refused(Obligation.SUPPORTED_FORM, "only whole statements move: a message, or an `if` with what it prints or raises")


def _branch_form(site: Site, statement: ast.If) -> _Form:
    source = site.source
    start = source.span(statement)[0]
    is_elif = source.text.startswith("elif", start)
    rest: Sequence[ast.stmt] = ()
    moved = statement
    if statement.orelse and _always_raises(statement.body) and not _may_observe(statement.orelse):
        if is_elif:
            raise Refused(Obligation.SUPPORTED_FORM, "an `elif` with branches after it that do more than observe is not taken apart")
        rest = statement.orelse
        moved = ast.copy_location(ast.If(statement.test, statement.body, []), statement)
        moved.end_lineno, moved.end_col_offset = statement.body[-1].end_lineno, statement.body[-1].end_col_offset
    header = header_of(site, statement)
    if header.static and statement.orelse and not rest:
        raise Refused(
            Obligation.SUPPORTED_FORM,
            "the condition mixes what tracing decides with a tensor, and the `else` belongs to both; write two conditions",
        )
    return _Form(moved, header, rest, is_elif)


def _always_raises(body: Sequence[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_raises(last.body) and _always_raises(last.orelse)
    return isinstance(last, ast.Raise)


def _may_observe(body: Sequence[ast.stmt]) -> bool:
    """Whether statements look like they only observe, so that they move along."""
    return all(
        isinstance(each, (ast.Raise, ast.Pass))
        or isinstance(each, ast.Expr)
        or isinstance(each, ast.If)
        and _may_observe(each.body)
        and _may_observe(each.orelse)
        for each in body
    )


def _observe(form: _Form, observer: Observer) -> None:
    if form.header is None:
        observer.block([form.moved], Context())
        return
    assert isinstance(form.moved, ast.If)
    # What is evaluated first once the static conditions hold is evaluated on every call.
    context = Context()
    for part in form.header.dynamic:
        observer.capturer.expression(part, context)
        context = Context(conditional=True)
    branch = form.moved
    observer.block(branch.body, Context(conditional=True, early=False))
    if len(branch.orelse) == 1 and isinstance(branch.orelse[0], ast.If):
        observer.statement(branch.orelse[0], Context(conditional=True))
    else:
        observer.block(branch.orelse, Context(conditional=True, early=False))


def _check_assigned(site: Site, form: _Form, assigned: set[str]) -> None:
    """Refuse names that the moved text binds if code that stays reads them."""
    inside = {id(node) for node in ast.walk(form.moved)}
    inside |= {id(node) for statement in getattr(form.moved, "body", []) for node in ast.walk(statement)}
    leaves = isinstance(form.moved, ast.If) and _always_raises(form.moved.body) and not form.moved.orelse
    names = frames_of(site.program).frame(site.function, site.facts).names
    for node in ast.walk(site.function.node):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and assigned & set(node.names):
            raise Refused(Obligation.ONLY_OBSERVES, f"the branch binds `{sorted(assigned & set(node.names))[0]}` outside the function")
        if isinstance(node, ast.Name) and node.id in assigned and id(node) not in inside:
            if not leaves or node.id in names.captured:
                raise Refused(Obligation.ONLY_OBSERVES, f"the branch binds `{node.id}`, which is used elsewhere", node.lineno)


def _check_redirects(site: Site) -> None:
    """Refuse a message whose way out is changed by a block that the graph does not have."""
    for _, parent in site.ancestors(site.statement):
        for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            names = {target.name for target in site.facts.value(called).targets if isinstance(target, ExternalName)}
            if names & _REDIRECTS:
                reason = f"`with {ast.unparse(item.context_expr)}` changes where the message goes, and is over when the graph runs"
                raise Refused(Obligation.FRESH_STATE, reason, item.context_expr.lineno)


# -------------------------------------------------------------------- edits


def _edits(
    site: Site, form: _Form, captures: Sequence[Capture], places: Sequence[tuple[ast.expr, Capture]], observer: Observer
) -> tuple[Edit, ...]:
    source, style = site.source, Style(site.source, site.module.tree)
    runtime = runtime_name(site)
    replacements = [(node, capture.name) for node, capture in places] + observer.found.loggers
    body = moved_text(site, form.moved, form.header, replacements, style)
    name = names_of(site.module).fresh(_effect_name(site, observer.found.kinds), ("outline", site.statement.lineno, site.statement.col_offset))
    text = style.function(f"{runtime.name}.effect", name, [capture.name for capture in captures], body)
    edits = [*runtime.edits, insert_function(site, text)]
    arguments = [_argument(site, capture) for capture in captures]
    if form.header is None:
        start, end = source.span(site.node if isinstance(form.moved, ast.Expr) else form.moved)  # type: ignore[arg-type]
        line = source.line(form.moved.lineno)
        call = style.call(name, arguments, source.indentation(form.moved.lineno) if line.strip() else "")
        return (*edits, make_edit(source, start, end, call))
    start = source.span(form.moved)[0]
    end = own_end(site, form.moved)
    edits.append(make_edit(source, start, end, _branch_call(site, form, name, arguments, style)))
    edits += _rest_edits(site, form, style)
    return tuple(edits)


def _branch_call(site: Site, form: _Form, name: str, arguments: Sequence[str], style: Style) -> str:
    """What stands in the place of an ``if``: the call, behind the conditions that tracing decides."""
    source, header = site.source, form.header
    assert header is not None
    newline, outer = source.newline, source.indentation(form.moved.lineno)
    comments = "".join(f"{comment}{newline}{outer}" for comment in header.comments)
    if header.static:
        inner = outer + style.unit
        keyword = "elif" if form.is_elif else "if"
        comments = "".join(f"{inner}{comment}{newline}" for comment in header.comments)
        return f"{keyword} {header.static}:{newline}{comments}{inner}{style.call(name, arguments, inner)}"
    if form.is_elif:
        inner = outer + style.unit
        return f"else:{newline}{inner}{style.call(name, arguments, inner)}"
    return comments + style.call(name, arguments, outer)


def _rest_edits(site: Site, form: _Form, style: Style) -> list[Edit]:
    """The edits that make the ``else`` side of a branch that always raises follow the call."""
    if not form.rest:
        return []
    from graphmend.fixes.movedtext import after_else

    return [after_else(site, site.statement, form.rest)]


def _argument(site: Site, capture: Capture) -> str:
    node = capture.expression
    if isinstance(node, (ast.Name, ast.Attribute)) and not any(isinstance(each, ast.Call) for each in ast.walk(node)):
        return ast.unparse(node)
    text = site.source.segment(node)
    return f"({text})" if isinstance(node, ast.Tuple) and not text.startswith("(") else text


def _effect_name(site: Site, kinds: Sequence[str]) -> str:
    kind = "raise" if "raise" in kinds else kinds[0] if kinds else "check"
    if kind == "call" or kind not in _PREFIX:
        func = site.node.func if isinstance(site.node, ast.Call) else None
        called = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else "note"
        return f"_{called.strip('_').lower()}_{subject_of(site.function)}"
    if kind == "log" and isinstance(site.statement, ast.Expr):
        kind = "warn" if "warn" in _called(site.statement.value) else "log"
    return f"_{_PREFIX[kind]}_{subject_of(site.function)}"


def _called(node: ast.expr) -> str:
    func = node.func if isinstance(node, ast.Call) else node
    return func.attr if isinstance(func, ast.Attribute) else ""


# -------------------------------------------------------------------- proof


def _proof(site: Site, captures: Sequence[Capture], raises: bool) -> list[Proof]:
    listed = ", ".join(f"`{_one_line(ast.unparse(capture.expression))}`" for capture in captures) or "nothing"
    doubtful = [capture for capture in captures if capture.certainty is not Certainty.YES]
    static, traced, assumed = "statically", "at trace time", "assumed"
    proof = [
        Proof(Obligation.ONLY_OBSERVES.value, static, "every moved statement prints, logs, warns or raises"),
        Proof(Obligation.VALUE_UNUSED.value, static, "the statement is a whole one, so nothing uses a value of it"),
        Proof(Obligation.BOUND_NAMES.value, static, f"the call reads {listed}: bound there, or read there by the original too"),
        Proof(Obligation.TOTAL_ARGUMENTS.value, static, "each argument is a name, is evaluated by the original as well, or cannot fail"),
    ]
    if doubtful:
        names = ", ".join(f"`{_one_line(ast.unparse(capture.expression))}`" for capture in doubtful)
        proof.append(
            Proof(Obligation.CARRIABLE_ARGUMENTS.value, traced, f"if {names} is no value that a graph can carry, the text runs in place, as before")
        )
    else:
        proof.append(Proof(Obligation.CARRIABLE_ARGUMENTS.value, static, "all arguments are tensors or plain values"))
    proof += [
        Proof(Obligation.FRESH_STATE.value, static, "the moved text reads its arguments and constants of the module only"),
        Proof(Obligation.NOT_IN_ARM.value, static, "no function that a selection or transform runs reaches the statement"),
        Proof(Obligation.NOT_SCRIPTED.value, static, "nothing says that TorchScript compiles the function"),
        Proof(Obligation.MOVABLE_TEXT.value, static, "no part of the text depends on the class or function around it"),
        Proof(Obligation.CALLER_LOCATION.value, static, "the text asks for no line of a caller"),
    ]
    if raises:
        callers = "no handler, `finally` or context manager in the function or its known callers is around the statement"
        changes = "nothing visible is changed before it in the function or its known callers"
        proof += [
            Proof(Obligation.NO_CATCHING_HANDLER.value, static, callers),
            Proof(Obligation.NO_EARLIER_MUTATION.value, static, changes),
            Proof(Obligation.NO_EARLIER_MUTATION.value, assumed, _ASSUMED),
        ]
    return proof


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"


__all__ = ["check_runner", "plan", "walk_scope"]
