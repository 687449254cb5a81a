"""*guard*: add a conjunct that Python can decide and that the condition implies.

``if p < self.rate`` with ``p`` drawn from [0, 1) can only hold if ``self.rate`` is positive. With that test in front,
compiled code whose rate is 0 never asks the tensor.

In eager nothing changes. But backends that drop operations whose value nobody uses then drop the drawing of ``p``, and
random numbers drawn later are others than in eager: where the tensor is drawn, the fix is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.findings import Applicability, Edit, Fix, Proof, Refusal
from graphmend.fixes.emit import Style
from graphmend.fixes.expressions import expression_text
from graphmend.fixes.layout import breaks
from graphmend.fixes.movedtext import string_around
from graphmend.fixes.parentheses import spaced, with_grouping
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.total import Totality
from graphmend.flow.frames import frames_of
from graphmend.flow.values import ExternalName, Kind
from graphmend.model.tree import children
from graphmend.obligations import Obligation
from graphmend.source.edits import apply_edits, make_edit

NAME = "guard"

_LESS = (ast.Lt, ast.LtE)
_GREATER = (ast.Gt, ast.GtE)


def plan(site: Site, arguments: Mapping[str, object]) -> Fix | Refusal:  # noqa: ARG001 - transforms are called alike
    """The guarded condition of a site, or why there is none."""
    try:
        return _guard(site)
    except Refused as refused:
        return refused.refusal(NAME)


def _guard(site: Site) -> Fix:
    test = site.node
    assert isinstance(test, ast.expr)
    if string_around(site, test) is not None:
        raise Refused(Obligation.SUPPORTED_FORM, "the condition is inside an f-string", site.statement.lineno)
    conjuncts = list(_conjuncts(test))
    texts = {ast.dump(each) for each in conjuncts}
    for conjunct in conjuncts:
        implied = _implied(site, conjunct)
        if implied is None:
            continue
        guard, detail = implied
        if ast.dump(ast.parse(guard, mode="eval").body) in texts:
            raise Refused(Obligation.IMPLIED_GUARD, f"`{guard}` is tested already", test.lineno)
        edit = _edit(site, conjunct, guard)
        proofs = (
            Proof(
                Obligation.SUPPORTED_FORM.value, "statically", "a comparison with a value that does not depend on data"
            ),
            Proof(Obligation.IMPLIED_GUARD.value, "statically", detail),
            Proof(
                Obligation.TOTAL_ARGUMENTS.value,
                "statically",
                f"`{guard}` has no effect and is evaluated by the comparison as well",
            ),
        )
        if not _is_drawn(site, conjunct):
            return Fix(NAME, Applicability.SAFE, proofs, (edit,))
        changes = (
            "compiled with a backend that drops unused operations, a random number is no longer drawn where the guard "
            "decides, so that those drawn after it are others than in eager"
        )
        return Fix(NAME, Applicability.UNSAFE, proofs, (edit,), changes)
    raise Refused(Obligation.IMPLIED_GUARD, "the condition implies nothing that Python could decide", test.lineno)


def _edit(site: Site, conjunct: ast.expr, guard: str) -> Edit:
    """The insertion of a guard in front of a conjunct, on a line of its own where the line would be too long."""
    source, style = site.source, Style(site.source, site.module.tree)
    start, end = source.span(conjunct)
    line = source.position(start)[0]
    text = f"{guard} and {source.text[start:end]}"
    grouped = with_grouping(source, start, end)
    parent = site.parents.get(id(conjunct))
    if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
        start, end = grouped
    elif grouped == (start, end) and isinstance(parent, (ast.UnaryOp, ast.BoolOp)):
        # The guard must not reach further than the conjunct.
        text = f"({text})"
    longer = len(text) - (end - start)
    if breaks(text) or len(source.line(line)) + longer <= max(style.length, len(source.line(line))):
        return make_edit(source, start, end, text)
    return _on_lines(site, style, make_edit(source, start, end, text))


def _on_lines(site: Site, style: Style, edit: Edit) -> Edit:
    """An edit whose line would be too long, as one of the whole condition or value, in parentheses."""
    source, statement = site.source, site.statement
    whole = getattr(statement, "test", getattr(statement, "value", None))
    if not isinstance(whole, ast.expr):
        return edit
    start, end = with_grouping(source, *source.span(whole))
    outer = source.indentation(source.position(start)[0])
    if breaks(source.segment(whole)) or not start <= edit.start <= edit.end <= end:
        return edit
    first, last = source.span(whole)
    text = apply_edits(source.text, [edit])[first : last + len(edit.replacement) - (edit.end - edit.start)]
    return make_edit(source, start, end, spaced(source, start, end, style.in_parentheses(text, outer)))


def _is_drawn(site: Site, conjunct: ast.expr) -> bool:
    """Whether a condition compares a random number."""
    frame = frames_of(site.program).frame(site.function, site.facts)
    torch = site.program.torch
    stack: list[ast.AST] = [conjunct]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ast.Name):
            statement = frame.statement(node) or site.statement
            stack += [item for item in frame.names.definitions(node.id, statement) or () if isinstance(item, ast.stmt)]
        elif isinstance(node, ast.Call):
            for target in site.facts.value(node.func).targets:
                signature = torch.function(target.name) if isinstance(target, ExternalName) else None
                if signature is not None and signature.has("random"):
                    return True
        stack += children(node)
    return False


def _conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _conjuncts(value)
    else:
        yield test


def _implied(site: Site, node: ast.expr) -> tuple[str, str] | None:
    """What a comparison of a bounded tensor with a number implies of the number, and why."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, (*_LESS, *_GREATER)):
            pass
        case _:
            return None
    tensor, number, less = left, right, isinstance(op, _LESS)
    if not site.facts.value(left).may(Kind.TENSOR):
        tensor, number, less = right, left, not less
    value, other = site.facts.value(tensor), site.facts.value(number)
    if (
        not (value.may(Kind.TENSOR) and other.only(Kind.STATIC))
        or isinstance(number, ast.Constant)
        or not _is_path(number)
    ):
        return None
    if not (isinstance(tensor, ast.Name) or Totality(site).is_total(tensor)):
        return None
    strict = isinstance(op, (ast.Lt, ast.Gt))
    text, name = expression_text(site.source, number), expression_text(site.source, tensor)
    if less and value.low is not None:
        sign = ">" if strict else ">="
        return f"{text} {sign} {_number(value.low)}", f"`{name}` is never below {_number(value.low)}"
    if not less and value.high is not None:
        sign = "<" if strict else "<="
        return f"{text} {sign} {_number(value.high)}", f"`{name}` is never above {_number(value.high)}"
    return None


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
