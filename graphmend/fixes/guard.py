"""*guard*: add a conjunct that Python can decide and that the condition implies.

``if p < self.rate`` with ``p`` drawn from [0, 1) can only hold if ``self.rate`` is positive. With that test in front,
compiled code whose rate is 0 never asks the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend.findings import Applicability, Fix, Proof, Refusal
from graphmend.fixes.condition import expression_text
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.total import Totality
from graphmend.flow.values import Kind
from graphmend.obligations import Obligation
from graphmend.source.edits import make_edit

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
    conjuncts = list(_conjuncts(test))
    texts = {ast.dump(each) for each in conjuncts}
    for conjunct in conjuncts:
        implied = _implied(site, conjunct)
        if implied is None:
            continue
        guard, detail = implied
        if ast.dump(ast.parse(guard, mode="eval").body) in texts:
            raise Refused(Obligation.IMPLIED_GUARD, f"`{guard}` is tested already", test.lineno)
        source = site.source
        start, end = source.span(conjunct)
        # A conjunct of an `and` may be followed by others; alone, the condition may stand behind a `not`.
        parent = site.parents.get(id(conjunct))
        closed = isinstance(parent, ast.UnaryOp) or (isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or))
        text = f"{guard} and {source.text[start:end]}"
        edit = make_edit(source, start, end, f"({text})" if closed else text)
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
        return Fix(NAME, Applicability.SAFE, proofs, (edit,))
    raise Refused(Obligation.IMPLIED_GUARD, "the condition implies nothing that Python could decide", test.lineno)


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
    text, name = expression_text(site, number), expression_text(site, tensor)
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
