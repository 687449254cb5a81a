"""*normalize*: write a condition on tensors so that Python asks for one truth value, not for several.

``and``, ``or``, ``not`` and chained comparisons of tensors become operations on tensors, and ``nonzero`` that is only
counted becomes ``any``. Whatever the condition decides stays as it is: what is left is one branch on one tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphmend.findings import Applicability, Fix, Proof, Refusal
from graphmend.fixes.condition import part_condition, require_proven, tensor_call
from graphmend.fixes.emit import Style
from graphmend.fixes.expressions import expression_text
from graphmend.fixes.proven import Provenance
from graphmend.fixes.site import Refused, Site
from graphmend.flow.values import TensorMethod
from graphmend.obligations import Obligation
from graphmend.source.edits import make_edit

NAME = "normalize"


def plan(site: Site, arguments: Mapping[str, object]) -> Fix | Refusal:  # noqa: ARG001 - transforms are called alike
    """The condition of a site in its normal form, or why there is none."""
    try:
        return _normalize(site)
    except Refused as refused:
        return refused.refusal(NAME)


def _normalize(site: Site) -> Fix:
    test = site.node
    if not isinstance(test, ast.expr):
        raise Refused(Obligation.SUPPORTED_FORM, "only conditions are normalised", site.statement.lineno)
    counted = _counted(site, test)
    if counted is not None:
        text, detail = counted
    else:
        condition = part_condition(site, Style(site.source, site.module.tree), test)
        if not condition.rewritten:
            raise Refused(Obligation.SUPPORTED_FORM, "the condition asks for one truth value already", test.lineno)
        text = condition.inline
        detail = "the operands of the condition have one element each, are free of effects and cannot fail"
    start, end = site.source.span(test)
    proofs = (
        Proof(Obligation.SUPPORTED_FORM.value, "statically", "a condition on tensors"),
        Proof(Obligation.SAME_TRUTH.value, "statically", detail),
    )
    return Fix(NAME, Applicability.SAFE, proofs, (make_edit(site.source, start, end, text),))


def _counted(site: Site, test: ast.expr) -> tuple[str, str] | None:
    """``x.nonzero()`` that is only asked for its length, as a question whether there is anything."""
    match test:
        case ast.Compare(left=count, ops=[op], comparators=[ast.Constant(value=0)]) if isinstance(
            op, (ast.Eq, ast.NotEq, ast.Gt)
        ):
            empty = isinstance(op, ast.Eq)
        case ast.Call() | ast.Subscript():
            count, empty = test, False
        case _:
            return None
    rows = _rows(count)
    if rows is None or not _is_nonzero(site, rows):
        return None
    assert isinstance(rows.func, ast.Attribute)
    text = expression_text(site.source, rows.func.value)
    require_proven(Provenance(site), text, rows)
    found = tensor_call(site, "any", text)
    detail = "a tensor has a row in `nonzero()` for each element that is not zero, a 0-d tensor included"
    return (tensor_call(site, "logical_not", found) if empty else found), detail


def _rows(count: ast.expr) -> ast.Call | None:
    """The call whose rows are counted: ``len(…)``, ``….size(0)``, ``….shape[0]``.

    Not ``….numel()``: the rows of a 0-d tensor have no columns.
    """
    match count:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Call() as rows], keywords=[]):
            return rows
        case ast.Call(func=ast.Attribute(value=ast.Call() as rows, attr="size"), args=[ast.Constant(value=0)]):
            return rows
        case ast.Subscript(value=ast.Attribute(value=ast.Call() as rows, attr="shape"), slice=ast.Constant(value=0)):
            return rows
    return None


def _is_nonzero(site: Site, node: ast.Call) -> bool:
    targets = site.facts.value(node.func).targets
    method = bool(targets) and all(isinstance(each, TensorMethod) and each.name == "nonzero" for each in targets)
    return method and not node.args and not node.keywords and isinstance(node.func, ast.Attribute)
