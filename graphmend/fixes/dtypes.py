"""Questions about dtypes that an arm asks: of a dtype that does not fit, the answer is an exception.

``torch.finfo`` of an integer dtype fails, and while tracing both sides are asked. So what the source does not say of
the dtype is asked while tracing, before the sides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.fixes.arms import Branch
from graphmend.fixes.site import Refused, Site
from graphmend.flow.names import accessed
from graphmend.flow.values import ExternalName
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_FLOATING = frozenset(
    f"torch.{name}" for name in ("float16", "bfloat16", "float32", "float64", "half", "float", "double")
)


def dtype_checks(site: Site, branch: Branch) -> list[str]:
    """What must be true while tracing so that no arm asks a dtype something that it has no answer to.

    Raises:
        Refused: this cannot be asked outside of the arm.
    """
    checks: dict[str, None] = {}
    known = {ast.dump(each) for each in _known_floating(site)}
    for arm in branch.choice.arms():
        written = accessed(list(arm.kept)).writes
        for node in (inner for root in arm.nodes for inner in walk(root)):
            name = _asks(site, node)
            if not name or not isinstance(node, ast.Call):
                continue
            if name == "torch.iinfo" or len(node.args) != 1 or not _is_path(node.args[0], written):
                raise Refused(Obligation.TOTAL_ARMS, f"`{ast.unparse(node)}` fails for some dtypes", node.lineno)
            if ast.dump(node.args[0]) not in known:
                checks[f"{site.source.segment(node.args[0])}.is_floating_point"] = None
    return list(checks)


def _asks(site: Site, node: ast.AST) -> str:
    """``torch.finfo`` or ``torch.iinfo``, if a node is a call of one that may fail."""
    if not isinstance(node, ast.Call) or not node.args:
        return ""
    if _names(site, node.args[0]) <= _FLOATING:
        return ""
    return next(iter(_names(site, node.func) & {"torch.finfo", "torch.iinfo"}), "")


def _known_floating(site: Site) -> Iterator[ast.expr]:
    """The dtypes of which a condition around the site, or in front in its own, says that they are floating."""
    for node, parent in site.ancestors(site.node):
        if isinstance(parent, ast.If) and node in (parent.test, *parent.body):
            conjoined = isinstance(parent.test, ast.BoolOp) and isinstance(parent.test.op, ast.And)
            for each in parent.test.values if conjoined else [parent.test]:  # type: ignore[attr-defined]
                match each:
                    case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if (
                        _names(site, right) <= _FLOATING
                    ):
                        yield left


def _names(site: Site, node: ast.expr) -> set[str]:
    """The external names that an expression stands for; an empty name where that is not known."""
    return {each.name for each in site.facts.value(node).targets if isinstance(each, ExternalName)} or {""}


def _is_path(node: ast.expr, written: frozenset[str] | set[str]) -> bool:
    """Whether an expression is a path of attributes from a name that the arm does not bind."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in written
