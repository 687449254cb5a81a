"""Conditions as tensors: what of a test Python still decides, and one tensor for the rest of it.

``and``, ``or``, ``not`` and chained comparisons ask a tensor for its truth value; the tensor written here has the same
truth. Conjuncts that do not depend on data stay Python's, in front.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from graphmend.fixes.emit import Style
from graphmend.fixes.expressions import expression_text
from graphmend.fixes.layout import in_brackets, primary
from graphmend.fixes.parentheses import with_grouping
from graphmend.fixes.proven import Provenance
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.total import Totality
from graphmend.flow.effects import IMPURE, effects_of
from graphmend.flow.frames import frames_of
from graphmend.flow.values import ExternalName, Kind, TensorMethod
from graphmend.model.module import ImportBinding, ValueBinding
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}


@dataclass(frozen=True)
class Condition:
    """A test, parted.

    Args:
        static: the leading operands that Python decides.
        conjunction: whether those are joined to the rest by ``and``; otherwise by ``or``.
        tensor: the text of the rest.
        operands: the tensors that the rest is made of.
        rewritten: whether the rest is written in another way than before.
    """

    static: tuple[str, ...]
    conjunction: bool
    tensor: str
    operands: tuple[ast.expr, ...]
    rewritten: bool

    @property
    def guard(self) -> str:
        """The static part as the test of an ``if`` around the selection; empty if there is none."""
        return " and ".join(self.static)

    @property
    def inline(self) -> str:
        """The whole as one expression: Python decides if it can, else the value is the tensor."""
        word = " and " if self.conjunction else " or "
        return word.join((*self.static, self.tensor))


def part_condition(site: Site, style: Style, test: ast.expr) -> Condition:
    """The parts of a test.

    Raises:
        Refused: it cannot be written as a tensor with the same truth.
    """
    return _Parter(site, style).part(test)


class _TotalAfter(Totality):
    """What can be evaluated without any risk once some other expressions were.

    Args:
        site: the place.
        before: what is certainly evaluated before.
    """

    def __init__(self, site: Site, before: Sequence[ast.expr]) -> None:
        super().__init__(site)
        self.before = before

    @cached_property
    def evidence(self) -> frozenset[str]:
        """Dumps of the expressions that were used as tensors."""
        return super().evidence.union(*(self._uses_as_tensor(each) for each in self.before))

    @cached_property
    def read_before(self) -> frozenset[str]:
        """Dumps of the attribute paths that were read."""
        return super().read_before.union(*(self._paths(each) for each in self.before))


class _Parter:
    def __init__(self, site: Site, style: Style) -> None:
        self.site = site
        self.style = style
        self.frame = frames_of(site.program).frame(site.function, site.facts)
        self.operands: list[ast.expr] = []
        self.provenance = Provenance(site)

    def part(self, test: ast.expr) -> Condition:
        values, conjunction = [test], True
        if isinstance(test, ast.BoolOp):
            values, conjunction = _flattened(test), isinstance(test.op, ast.And)
        static = [value for value in values if not self.depends_on_data(value)]
        rest = [value for value in values if value not in static]
        if not rest:
            raise Refused(Obligation.ONE_ELEMENT, "the condition is not known to depend on a tensor", test.lineno)
        for value in static:
            # An operand that comes to the front is evaluated also where the ones before it decided, and decides
            # whether those are evaluated at all.
            before = [each for each in rest if values.index(each) < values.index(value)]
            for each in (*before, value) if before else ():
                self.require_movable(each, ())
        self.require_pure(test)
        text, rewritten = self.joined(rest, ast.And() if conjunction else ast.Or())
        return Condition(
            tuple(self.operand_text(value, conjunction) for value in static),
            conjunction,
            text,
            tuple(self.operands),
            rewritten,
        )

    def depends_on_data(self, node: ast.expr) -> bool:
        """Whether an operand's truth hangs on a tensor."""
        if isinstance(node, ast.BoolOp):
            return any(self.depends_on_data(value) for value in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.depends_on_data(node.operand)
        return self.site.facts.value(node).depends_on_data

    # ---------------------------------------------------------------- obligations

    def require_pure(self, test: ast.expr) -> None:
        effects = effects_of(self.site.program)
        for doing in effects.doings([test], self.frame):
            if doing.effect in IMPURE:
                raise Refused(Obligation.PURE_ARMS, f"the condition {doing.what}", doing.line)
        for node in walk(test):
            if isinstance(node, ast.NamedExpr):
                raise Refused(Obligation.MOVABLE_TEXT, f"the condition binds `{node.target.id}` with `:=`", node.lineno)

    def require_movable(self, node: ast.expr, before: Sequence[ast.expr]) -> None:
        match node:
            case ast.BoolOp(values=values):
                for position, value in enumerate(values):
                    self.require_movable(value, [*before, *values[:position]])
                return
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.require_movable(operand, before)
                return
            case ast.Call() if (read := self.read_tensor(node)) is not None:
                self.require_movable(read, before)
                return
        if not _TotalAfter(self.site, before).is_total(node):
            reason = (
                f"`{self.text(node)}` would be evaluated also where the operands before it decide, and may fail there"
            )
            raise Refused(Obligation.SAME_TRUTH, reason, node.lineno)

    def require_single(self, node: ast.expr) -> None:
        if not self.is_single(node):
            reason = (
                f"`{self.text(node)}` is not proven to have one element: combined element by element it could have "
                "another truth than `and` and `or` give"
            )
            raise Refused(Obligation.ONE_ELEMENT, reason, node.lineno)

    def require_tensors(self, operands: Sequence[ast.expr]) -> None:
        for operand in operands:
            require_proven(self.provenance, self.text(operand), operand)

    def is_single(self, node: ast.expr) -> bool:
        """Whether the tensor behind an operand certainly has one element."""
        match node:
            case ast.BoolOp(values=values):
                return all(self.is_single(value) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.is_single(operand)
            case ast.Call() if (read := self.read_tensor(node)) is not None:
                return self.is_single(read)
        return self.site.facts.value(node).single

    # ---------------------------------------------------------------- tensors

    def joined(self, values: list[ast.expr], op: ast.boolop) -> tuple[str, bool]:
        """One tensor for several operands."""
        if len(values) == 1:
            return self.tensor(values[0])
        before = len(self.operands)
        texts = [self.tensor(value)[0] for value in values]
        for position, value in enumerate(values):
            self.require_single(value)
            if position:
                self.require_movable(value, values[:position])
        self.require_tensors(self.operands[before:])
        text = texts[0]
        for each in texts[1:]:
            text = tensor_call(self.site, _LOGICAL[type(op)], text, each)
        return text, True

    def tensor(self, node: ast.expr) -> tuple[str, bool]:
        """The text of a tensor with the truth of ``node``, and whether it differs from the original text."""
        match node:
            case ast.BoolOp(op=op):
                for value in node.values:
                    if not self.depends_on_data(value):
                        reason = f"`{self.text(node)}` mixes tensors and Python values; take the Python part out first"
                        raise Refused(Obligation.SUPPORTED_FORM, reason, node.lineno)
                return self.joined(_flattened(node), op)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                before = len(self.operands)
                text = self.tensor(operand)[0]
                self.require_tensors(self.operands[before:])
                return tensor_call(self.site, "logical_not", text), True
            case ast.Compare(left=left, ops=[_, _, *_]):
                return self.chained(node, left)
            case ast.Call() if (read := self.read_tensor(node)) is not None:
                # `item()` of several elements fails in another way than the truth value of them.
                if isinstance(node.func, ast.Attribute):
                    self.require_single(read)
                return self.tensor(read)[0], True
        if not self.site.facts.value(node).may(Kind.TENSOR):
            reason = (
                f"`{self.text(node)}` is a Python number that was read out of a tensor; use the tensor itself, "
                "minding that it computes in its own precision"
            )
            raise Refused(Obligation.ONE_ELEMENT, reason, node.lineno)
        self.operands.append(node)
        return self.text(node), False

    def chained(self, node: ast.Compare, left: ast.expr) -> tuple[str, bool]:
        """``a < t < b`` as the conjunction of its comparisons."""
        operands = [left, *node.comparators]
        if (
            not all(isinstance(each, (ast.Name, ast.Constant)) for each in operands[1:-1])
            or not self.site.facts.value(node).single
        ):
            reason = f"`{self.text(node)}` compares in a chain; write the comparisons one by one"
            raise Refused(Obligation.SUPPORTED_FORM, reason, node.lineno)
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            raise Refused(Obligation.SUPPORTED_FORM, f"`{self.text(node)}` compares in a chain", node.lineno)
        # What is between two comparisons is now text: the characters from one operand to the end of the next.
        source = self.site.source
        texts = [source.text[source.span(a)[0] : source.span(b)[1]] for a, b in pairwise(operands)]
        for last in operands[2:]:
            self.require_movable(last, operands[:2])
        for a, b in pairwise(operands):
            if not (self.site.facts.value(a).may(Kind.TENSOR) or self.site.facts.value(b).may(Kind.TENSOR)):
                raise Refused(
                    Obligation.SUPPORTED_FORM, f"a part of `{self.text(node)}` compares no tensor", node.lineno
                )
            if not self.provenance.is_proven(a):
                self.require_tensors([b])
        self.operands.append(node)
        text = texts[0]
        for each in texts[1:]:
            text = tensor_call(self.site, "logical_and", text, each)
        return text, True

    def read_tensor(self, node: ast.Call) -> ast.expr | None:
        """The tensor whose only element a call reads as a Python value: ``bool(t)``, ``t.item()``."""
        targets = self.site.facts.value(node.func).targets
        match node:
            case ast.Call(args=[operand], keywords=[]) if targets == {ExternalName("builtins.bool")}:
                return operand if self.depends_on_data(operand) else None
            case ast.Call(func=ast.Attribute(value=operand, attr="item"), args=[], keywords=[]):
                return operand if targets and all(isinstance(target, TensorMethod) for target in targets) else None
        return None

    # ---------------------------------------------------------------- text

    def text(self, node: ast.expr) -> str:
        """The node as written; in parentheses if it needs lines, since the ones around it may not come along."""
        return expression_text(self.site.source, node)

    def operand_text(self, node: ast.expr, conjunction: bool) -> str:
        """The node as an operand of ``and`` or ``or``."""
        text = self.text(node)
        span = self.site.source.span(node)
        grouped = isinstance(node, ast.BoolOp) and with_grouping(self.site.source, *span) != span
        binds_looser = isinstance(node, (ast.IfExp, ast.Lambda, ast.NamedExpr)) or (
            conjunction and isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        )
        return f"({text})" if (grouped or binds_looser) and not in_brackets(text) else text


def require_proven(provenance: Provenance, text: str, node: ast.expr) -> None:
    """Refuse what may be something else than a tensor in eager, where an operation on tensors would fail.

    Raises:
        Refused: it is not proven to be a tensor.
    """
    if not provenance.is_proven(node):
        reason = (
            f"`{text}` is not proven to be a tensor: an annotation would say so, or an earlier use that only tensors "
            "have; on anything else the operations that the condition becomes would fail"
        )
        raise Refused(Obligation.SAME_TRUTH, reason, node.lineno)


def tensor_call(site: Site, name: str, *operands: str) -> str:
    """A torch function applied to texts, or the method where the file has no name for torch."""
    torch = torch_name(site)
    if torch:
        return f"{torch}.{name}({', '.join(operands)})"
    first, *rest = operands
    return f"{primary(first)}.{name}({', '.join(rest)})"


def torch_name(site: Site) -> str:
    """The name by which a function may use torch; empty if there is none."""
    module = site.module
    for name, bindings in module.bindings.items():
        # A fallback such as `torch = None` in an `except ImportError` does not matter: code with tensors has torch.
        found = [binding for binding in bindings if not isinstance(binding, ValueBinding)]
        if found and all(isinstance(binding, ImportBinding) and binding.target == "torch" for binding in found):
            if not _hidden(site, name):
                return name
    return ""


def _hidden(site: Site, name: str) -> bool:
    """Whether a function's own scopes bind a module-level name to something else."""
    scope = site.function
    while scope is not None:
        if name in scope.locals:
            return True
        if scope.parent is None:
            return False
        scope = scope.parent
    return False


def _flattened(node: ast.BoolOp) -> list[ast.expr]:
    """The operands with those of operands of the same kind in their place."""
    found: list[ast.expr] = []
    for value in node.values:
        if isinstance(value, ast.BoolOp) and type(value.op) is type(node.op):
            found += _flattened(value)
        else:
            found.append(value)
    return found
