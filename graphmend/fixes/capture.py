"""What moved text takes along: which expressions travel as arguments, and which stay in the text.

Tensor computations are evaluated at the call, where they are part of the graph; names of plain values travel as they
are; formatting, comparing and reading numbers out of tensors stay in the text, which runs when the graph does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from graphmend.fixes.carry import (
    AUTOGRAD_ATTRIBUTES,
    AUTOGRAD_OBJECTS,
    FORBIDDEN,
    METADATA,
    MODES,
    READING_BUILTINS,
    TORCH_CONSTANTS,
    Carrier,
    Certainty,
    builds_text,
    is_path,
    is_private,
    root_of,
)
from graphmend.fixes.changing import check_settled
from graphmend.fixes.names import Scope, check_fresh, is_bound, scope_of
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.total import Totality
from graphmend.flow.effects import IMPURE, effects_of
from graphmend.flow.frames import frames_of
from graphmend.flow.values import MISSING, Bound, ExternalName, Kind, TensorMethod
from graphmend.model.module import Function
from graphmend.model.scopes import bound_names
from graphmend.model.tree import children, walk
from graphmend.obligations import Obligation

_UNEVALUATED = FORBIDDEN | {"str", "repr", "format", "map", "filter"}
_WRITING_KEYWORDS = frozenset({"out", "inplace", "generator"})
_SUSPENDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


@dataclass
class Capture:
    """One argument of the call.

    Args:
        expression: what the call evaluates.
        certainty: whether its value can travel.
        name: the parameter's name; for a plain name the name itself.
    """

    expression: ast.expr
    certainty: Certainty
    name: str = ""


@dataclass(frozen=True)
class Context:
    """How a part of the moved text is evaluated.

    Args:
        conditional: whether it is not always evaluated when the statement runs.
        early: whether it is worth evaluating at the call even so.
        bound: names that the moved text binds itself.
    """

    conditional: bool = False
    early: bool = True
    bound: frozenset[str] = frozenset()

    def inside(self) -> Context:
        """The context of a part that may not be evaluated."""
        return replace(self, conditional=True)

    def later(self) -> Context:
        """The context of a part that is only evaluated where something is to be told."""
        return replace(self, conditional=True, early=False)


@dataclass
class Moved:
    """What the analysis of moved text collects.

    Args:
        captures: the arguments by the dump of their expressions, in the order of their first use.
        places: the nodes that become a parameter's name.
        risks: expressions left in the text that may fail, with the reason.
    """

    captures: dict[str, Capture] = field(default_factory=dict)
    places: list[tuple[ast.expr, Capture]] = field(default_factory=list)
    risks: list[tuple[ast.AST, str]] = field(default_factory=list)

    def copy(self) -> Moved:
        """A snapshot to return to."""
        return Moved(dict(self.captures), list(self.places), list(self.risks))

    def restore(self, snapshot: Moved) -> None:
        """Return to a snapshot."""
        self.captures, self.places, self.risks = snapshot.captures, snapshot.places, snapshot.risks


class Capturer:
    """Decides for each part of moved text whether it stays or travels.

    Args:
        site: the place that the text moves away from.
    """

    def __init__(self, site: Site) -> None:
        from graphmend.fixes.calls import CallCapturer

        self.site = site
        self.facts = site.facts
        self.torch = site.program.torch
        self.python = site.program.python
        self.total = Totality(site)
        self.carrier = Carrier(site)
        self.moved = Moved()
        self.calls = CallCapturer(self)

    # ---------------------------------------------------------------- travelling

    def refuse(self, obligation: Obligation, reason: str, node: ast.AST) -> Refused:
        """A refusal that points at a node."""
        line = getattr(node, "lineno", None)
        return Refused(obligation, reason, line if line != self.site.statement.lineno else None)

    def risk(self, node: ast.AST, reason: str) -> None:
        """Note that something that stays in the text may fail."""
        self.moved.risks.append((node, reason))

    def is_captured(self, node: ast.expr) -> bool:
        """Whether this very node has become an argument."""
        return any(place is node for place, _ in self.moved.places)

    def capture(self, node: ast.expr, place: bool = True) -> None:
        """Make an expression an argument."""
        key = ast.dump(node)
        found = self.moved.captures.get(key)
        if found is None:
            check_settled(self.site, node)
            found = self.moved.captures[key] = Capture(node, self.carrier.certainty(node))
        if place:
            self.moved.places.append((node, found))

    def evaluate(self, node: ast.expr, context: Context) -> bool:
        """Capture a computed expression if the call may evaluate it; returns whether it was."""
        if not self._is_pure(node, context) or self.carrier.certainty(node) is Certainty.NO:
            return False
        if context.conditional and not self.total.is_total(node):
            return False
        self.capture(node)
        return True

    def _is_pure(self, node: ast.expr, context: Context) -> bool:
        """Whether evaluating an expression changes nothing, reads no data and depends on the function's names only."""
        for child in walk(node):
            match child:
                case ast.Name(id=name) if name in context.bound:
                    return False
                case ast.Lambda() | ast.JoinedStr():
                    return False
                case ast.Call() if not self._is_pure_call(child):
                    return False
            if isinstance(child, _SUSPENDING) or self._asks_for_truth(child):
                return False
        return True

    def impurity(self, node: ast.expr) -> str:
        """What an expression does besides computing a value, for a person; empty if it does nothing else."""
        frame = frames_of(self.site.program).frame(self.site.function, self.facts)
        doings = effects_of(self.site.program).doings([node], frame)
        return next((doing.what for doing in doings if doing.effect in IMPURE), "")

    def evaluate_first(self, node: ast.expr) -> bool:
        """Capture what is evaluated before anything else, whatever it calls; returns whether it was.

        The call evaluates it at the same moment, so it needs no purity. What asks for its truth stays in the text.
        """
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node = node.operand
        bound = any(isinstance(child, _SUSPENDING) for child in walk(node))
        if bound or not self.facts.value(node).is_tensor or any(map(self._asks_for_truth, walk(node))):
            return False
        self.capture(node)
        return True

    def _asks_for_truth(self, node: ast.AST) -> bool:
        """Whether a part of an expression asks a tensor whether it is true, which tracing cannot answer."""
        match node:
            case ast.BoolOp(values=values):
                return self.any_data(values[:-1])
            case ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                return self.any_data([test])
            case ast.Compare(ops=ops, left=left, comparators=comparators):
                members = any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)
                return (members or len(ops) > 1) and self.any_data([left, *comparators])
        return False

    def _is_pure_call(self, node: ast.Call) -> bool:
        value = self.facts.value(node.func)
        if value.may(Kind.UNKNOWN) or any(keyword.arg in _WRITING_KEYWORDS for keyword in node.keywords):
            return False
        if value.may(Kind.OBJECT) or any(isinstance(target, (Function, Bound)) for target in value.targets):
            return not self.impurity(node)
        return bool(value.targets) and all(self._is_pure_target(target, node) for target in value.targets)

    def _is_pure_target(self, target: object, node: ast.Call) -> bool:
        match target:
            case TensorMethod(name=name):
                signature = self.torch.method(name)
            case ExternalName(name=name) if name in MODES or name in TORCH_CONSTANTS:
                return True
            case ExternalName(name=name) if name.startswith("builtins.") and self.python.is_pure(name):
                short = name.rpartition(".")[2]
                return short not in _UNEVALUATED and not (short in READING_BUILTINS and self.any_data(node.args))
            case ExternalName(name=name):
                signature = self.torch.function(name)
            case _:
                return False
        return (
            signature is not None
            and signature.returns != "scalar"
            and not signature.flags & {"mutates", "random", "dynamic"}
        )

    def any_data(self, nodes: Iterable[ast.expr]) -> bool:
        """Whether one of some values may depend on what is in a tensor."""
        return any(self.facts.value(node).depends_on_data for node in nodes)

    def attempt(self, stay: Callable[[], None], node: ast.expr, context: Context) -> None:
        """Leave an expression in the text if its parts travel for certain, else evaluate it at the call, else either.

        Args:
            stay: what leaves it in the text.
            node: the expression.
            context: how it is evaluated.
        """
        before = self.moved.copy()
        failure: Refused | None = None
        try:
            stay()
        except Refused as refused:
            failure = refused
        else:
            added = [capture for key, capture in self.moved.captures.items() if key not in before.captures]
            if all(capture.certainty is Certainty.YES for capture in added):
                return
        after = self.moved.copy()
        self.moved.restore(before)
        certain = self.carrier.certainty(node) is Certainty.YES and not context.conditional
        if (failure is not None or certain) and not builds_text(node) and self.evaluate(node, context):
            return
        if failure is not None:
            raise failure
        self.moved.restore(after)

    # ---------------------------------------------------------------- expressions

    def expressions(self, nodes: Iterable[ast.expr], context: Context) -> None:
        """Take several expressions along."""
        for node in nodes:
            self.expression(node, context)

    def expression(self, node: ast.expr, context: Context) -> None:
        """Take one expression along.

        Raises:
            Refused: something in it can neither stay nor travel.
        """
        match node:
            case ast.Constant():
                return
            case ast.Name():
                self._name(node, context)
            case ast.Attribute():
                self._attribute(node, context)
            case ast.Subscript():
                self._subscript(node, context)
            case ast.Call():
                self.calls.call(node, context)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                self._operator(node, context)
            case ast.BoolOp() | ast.IfExp() | ast.Lambda():
                self._short_circuit(node, context)
            case ast.JoinedStr() | ast.FormattedValue():
                self._formatted(node, context)
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Starred() | ast.Slice():
                self.expressions((child for child in children(node) if isinstance(child, ast.expr)), context)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, context)
            case _:
                does = "binds a name of the function" if isinstance(node, ast.NamedExpr) else "suspends the function"
                raise self.refuse(Obligation.MOVABLE_TEXT, f"`{ast.unparse(node)}` {does}", node)

    def _short_circuit(self, node: ast.BoolOp | ast.IfExp | ast.Lambda, context: Context) -> None:
        match node:
            case ast.BoolOp(values=values):
                self.expression(values[0], context)
                self.expressions(values[1:], context.inside())
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.expression(test, context)
                self.expressions([body, orelse], context.later())
            case ast.Lambda(args=args, body=body):
                names = {argument.arg for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
                self.expressions([*args.defaults, *(each for each in args.kw_defaults if each)], context)
                self.expression(body, replace(context.later(), bound=context.bound | names))

    def _formatted(self, node: ast.JoinedStr | ast.FormattedValue, context: Context) -> None:
        if isinstance(node, ast.JoinedStr):
            self.expressions(node.values, context)
            return
        self.expression(node.value, context)
        if node.format_spec is not None:
            self.expression(node.format_spec, context)
            value = self.facts.value(node.value)
            numbers = value.only(Kind.SIZE | Kind.SCALAR) or value.constant is not MISSING
            if not numbers and not (value.is_tensor and value.single):
                self.risk(node, f"formatting `{ast.unparse(node.value)}` may fail")

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, context: Context
    ) -> None:
        inner = context
        for generator in node.generators:
            self.expression(generator.iter, inner)
            inner = replace(inner.later(), bound=inner.bound | bound_names([generator.target]))
            self.expressions(generator.ifs, inner)
        self.expressions((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,), inner)

    # ---------------------------------------------------------------- names

    def _name(self, node: ast.Name, context: Context) -> None:
        name = node.id
        if name in context.bound:
            return
        if name == "__class__" or is_private(name):
            raise self.refuse(
                Obligation.MOVABLE_TEXT, f"the name `{name}` means something else outside the class", node
            )
        if scope_of(self.site, name) is Scope.GLOBAL:
            self._global(node)
            return
        if context.conditional and not is_bound(self.site, name):
            raise self.refuse(Obligation.BOUND_NAMES, f"`{name}` may not be bound where the call would read it", node)
        if self.carrier.certainty(node) is Certainty.NO:
            raise self.not_carried(node)
        self.capture(node, place=False)

    def not_carried(self, node: ast.expr) -> Refused:
        """The refusal of a value that cannot travel."""
        text, value = ast.unparse(node), self.facts.value(node)
        names = sorted(cls.name.rpartition(".")[2] for cls in value.classes)
        what = f" (a `{names[0]}`)" if len(names) == 1 else ""
        reason = f"`{text}`{what} is an object that no operator in a graph can carry; use its parts in the message"
        if value.only(Kind.CALLABLE) and not value.classes:
            reason = (
                f"`{text}` is no value that an operator in a graph can carry; an import belongs to the top of the file"
            )
        return self.refuse(Obligation.CARRIABLE_ARGUMENTS, reason, node)

    def not_total(self, node: ast.expr) -> Refused:
        """The refusal of an expression that the call must not evaluate."""
        return self.refuse(
            Obligation.TOTAL_ARGUMENTS,
            f"`{ast.unparse(node)}` would be evaluated on every call, and it is not proven that this cannot fail where "
            "the original does not get there",
            node,
        )

    def _global(self, node: ast.Name | ast.Attribute) -> None:
        value = self.facts.value(node)
        try:
            check_fresh(self.site, node)
        except Refused:
            plain = value.only(Kind.STATIC | Kind.SIZE | Kind.NONE | Kind.TENSOR | Kind.SCALAR)
            if not isinstance(node, ast.Name) or not plain:
                raise
            self.capture(node, place=False)  # as it is at the time of the call
            return
        if isinstance(node, ast.Name) and node.id in FORBIDDEN:
            if value.targets == frozenset((ExternalName(f"builtins.{node.id}"),)):
                raise self.refuse(
                    Obligation.MOVABLE_TEXT, f"`{node.id}` means something else outside the function", node
                )

    # ---------------------------------------------------------------- attributes and elements

    def _attribute(self, node: ast.Attribute, context: Context) -> None:
        root, owner, attr = root_of(node), node.value, node.attr
        holder = self.facts.value(owner)
        if is_private(attr) or (isinstance(root, ast.Name) and root.id == "__class__"):
            raise self.refuse(
                Obligation.MOVABLE_TEXT, f"the name `{attr}` means something else outside the class", node
            )
        own = isinstance(root, ast.Name) and root.id in context.bound
        if isinstance(root, ast.Name) and not own and scope_of(self.site, root.id) is Scope.GLOBAL:
            if not self.facts.value(node).may(Kind.TENSOR):
                self._global(node)
                return
        if holder.may(Kind.TENSOR) or (holder.may(Kind.UNKNOWN) and attr in self.torch.attributes):
            if self._tensor_attribute(node, context):
                return
        if holder.is_tensor:
            self.computed(node, context, [owner])
        elif own:
            self.risk(node, f"`{ast.unparse(node)}` may not exist")
        else:
            self._leaf(node, context)

    def _tensor_attribute(self, node: ast.Attribute, context: Context) -> bool:
        """An attribute that tensors have: what autograd knows is read at the call, other metadata in the text."""
        if node.attr in AUTOGRAD_OBJECTS:
            reason = f"`{ast.unparse(node)}` does not exist where the graph runs the message"
            raise self.refuse(Obligation.CARRIABLE_ARGUMENTS, reason, node)
        if node.attr in AUTOGRAD_ATTRIBUTES:
            if not self.evaluate(node, context):
                raise self.not_total(node)
            return True
        if node.attr not in METADATA:
            return False
        if not self.facts.value(node.value).is_tensor:
            self.risk(node, f"`{ast.unparse(node)}` may not exist")
        self.expression(node.value, context)
        return True

    def _check_code(self, node: ast.Attribute, context: Context) -> None:
        """Refuse an attribute that runs code with an effect, where the call would run it more or less often."""
        if not (context.conditional or ast.dump(node) in self.moved.captures):
            return
        effect = self.impurity(node)
        if effect:
            what = f"reading `{ast.unparse(node)}` {effect}"
            raise self.refuse(
                Obligation.TOTAL_ARGUMENTS, f"{what}, and the call would do so another number of times", node
            )

    def _leaf(self, node: ast.Attribute, context: Context) -> None:
        """An attribute of an object that cannot travel itself: its value does, if the call may read it."""
        if self.carrier.certainty(node) is Certainty.NO:
            raise self.not_carried(node)
        if not is_path(node):
            self.attempt(lambda: self.expression(node.value, context), node, context)
            if not self.is_captured(node):
                self.risk(node, f"`{ast.unparse(node)}` may not exist")
            return
        self._check_code(node, context)
        if context.conditional and not self.total.is_total(node):
            raise self.not_total(node)
        self.capture(node)

    def _subscript(self, node: ast.Subscript, context: Context) -> None:
        if self.facts.value(node.value).is_tensor:
            self.computed(node, context, [node.value, node.slice])
            return
        self.attempt(lambda: self.expressions([node.value, node.slice], context), node, context)
        if not self.is_captured(node):
            self.risk(node, f"`{ast.unparse(node)}` may not exist")

    # ---------------------------------------------------------------- computations

    def computed(self, node: ast.expr, context: Context, operands: list[ast.expr], same: bool = True) -> None:
        """Take a tensor computation along: at the call if it may be evaluated there, else in the text.

        Args:
            node: the computation.
            context: how it is evaluated.
            operands: its parts.
            same: whether the text, which runs outside autocast and without gradients, computes the same.

        Raises:
            Refused: it can be neither.
        """
        if same and context.conditional and not context.early:
            before = self.moved.copy()
            try:
                self.stay(node, operands, context)
            except Refused:
                self.moved.restore(before)
                if not self.evaluate(node, context):
                    raise
        elif not self.evaluate(node, context):
            if not same:
                raise self.not_total(node)
            self.stay(node, operands, context)

    def stay(self, node: ast.expr, operands: Iterable[ast.expr], context: Context) -> None:
        """Leave a computation in the text."""
        self.expressions(operands, context)
        self.risk(node, f"`{ast.unparse(node)}` may fail")

    def _operator(self, node: ast.BinOp | ast.UnaryOp | ast.Compare, context: Context) -> None:
        parts = [child for child in children(node) if isinstance(child, ast.expr)]
        same = self._is_same_operator(node)
        negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if self.facts.value(node).is_tensor and not negation:
            self.computed(node, context, parts, same)
            return
        if not same and any(self.facts.value(part).may(Kind.TENSOR | Kind.UNKNOWN) for part in parts):
            if not self.evaluate(node, context):
                raise self.not_total(node)
            return
        identity = isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        if identity and not all(isinstance(part, ast.Constant) and part.value is None for part in parts[1:]):
            if not self.evaluate(node, context):
                reason = f"`{ast.unparse(node)}` asks for identity, which does not travel"
                raise self.refuse(Obligation.CARRIABLE_ARGUMENTS, reason, node)
            return

        def stay() -> None:
            # Of a chained comparison only the first two operands are always evaluated.
            count = 2 if isinstance(node, ast.Compare) else len(parts)
            self.expressions(parts[:count], context)
            self.expressions(parts[count:], context.inside())

        # An operator on text stays; another one may as well be evaluated at the call.
        if builds_text(node):
            stay()
        else:
            self.attempt(stay, node, context)
        if not identity and not self.is_captured(node):
            self._risk_of_operator(node, parts)

    def _is_same_operator(self, node: ast.BinOp | ast.UnaryOp | ast.Compare) -> bool:
        """Whether an operator computes the same outside autocast."""
        if not isinstance(node, ast.BinOp) or builds_text(node):
            return True
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            # A number divided by a tensor is a reciprocal, which autocast changes.
            return self.facts.value(node.left).may(Kind.TENSOR) or not self.facts.value(node.right).may(Kind.TENSOR)
        return not isinstance(node.op, (ast.MatMult, ast.Pow))

    def _risk_of_operator(self, node: ast.BinOp | ast.UnaryOp | ast.Compare, parts: list[ast.expr]) -> None:
        values = [self.facts.value(part) for part in parts]
        numbers = all(
            value.only(Kind.SIZE | Kind.SCALAR) or isinstance(value.constant, (int, float)) for value in values
        )
        dividing = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
        risky = not numbers or (isinstance(node, ast.BinOp) and isinstance(node.op, dividing))
        if (isinstance(node, ast.Compare) and all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            risky = any(value.may(Kind.TENSOR | Kind.UNKNOWN) and not value.single for value in values)
        if risky and not _is_text(node):
            self.risk(node, f"`{ast.unparse(node)}` may fail")


def _is_text(node: ast.expr) -> bool:
    """Whether an expression puts literal and formatted text together, which cannot fail of itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_text(node.left) and _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
