"""What moved text takes along: which expressions travel as arguments, and which stay in the text.

Tensor computations are evaluated at the call, where they are part of the graph; names of plain values travel as they
are; formatting, comparing and reading numbers out of tensors stay in the text, which runs when the graph does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum

from graphmend.fixes.names import Scope, check_fresh, is_bound, scope_of
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.total import Totality
from graphmend.flow.values import MISSING, Bound, ExternalName, Kind, ObjectMethod, TensorMethod, Value
from graphmend.model.module import Class, Function
from graphmend.model.scopes import bound_names
from graphmend.obligations import Obligation

_DTYPES = frozenset({
    "float", "float16", "float32", "float64", "half", "double", "bfloat16", "int", "int8", "int16", "int32", "int64", "long", "short", "uint8",
    "bool", "complex64", "complex128", "strided", "sparse_coo", "contiguous_format", "channels_last", "preserve_format",
})  # fmt: skip
_METADATA = frozenset({"shape", "dtype", "device", "ndim", "layout", "itemsize", "nbytes", "is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu", "names"})
_AUTOGRAD_ATTRIBUTES = frozenset({"requires_grad", "is_leaf"})
_AUTOGRAD_OBJECTS = frozenset({"grad_fn", "grad", "_version", "_base", "data_ptr", "untyped_storage", "storage", "retain_grad", "register_hook"})
# Operations that compute the same in the text as at the call: autocast leaves them alone and they need no gradient.
_SAME_ANYWHERE = frozenset({
    "item", "tolist", "numpy", "cpu", "detach", "clone", "float", "double", "half", "bfloat16", "int", "long", "short", "bool", "to", "type",
    "any", "all", "isnan", "isinf", "isfinite", "isneginf", "isposinf", "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "mean", "median",
    "abs", "neg", "sign", "round", "floor", "ceil", "clamp", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not",
    "logical_xor", "nonzero", "argwhere", "unique", "count_nonzero", "numel", "size", "dim", "ndimension", "nelement", "stride", "is_contiguous",
    "is_floating_point", "is_complex", "element_size", "flatten", "view", "reshape", "squeeze", "unsqueeze", "equal", "allclose", "is_nonzero",
    "isclose", "sort", "topk", "masked_select", "index_select", "where", "add", "sub", "mul", "std", "var",
})  # fmt: skip
_SAME_FOR_INTEGERS = frozenset({"sum", "cumsum", "prod"})
_TORCH_CONSTANTS = frozenset({"torch.finfo", "torch.iinfo", "torch.device", "torch.Size", "torch.is_tensor", "torch.is_floating_point"})
_MODES = frozenset({
    "torch.is_grad_enabled", "torch.is_autocast_enabled", "torch.is_inference_mode_enabled", "torch.get_default_dtype", "torch.are_deterministic_algorithms_enabled",
})  # fmt: skip
_BUILTINS = frozenset({
    "len", "str", "repr", "ascii", "int", "float", "bool", "complex", "list", "tuple", "dict", "set", "frozenset", "sorted", "reversed", "min", "max",
    "sum", "abs", "round", "any", "all", "range", "enumerate", "zip", "map", "filter", "format", "type", "isinstance", "issubclass", "hasattr",
    "getattr", "callable", "ord", "chr", "hex", "oct", "bin", "divmod", "pow", "slice", "bytes",
})  # fmt: skip
_SAFE_BUILTINS = frozenset({"len", "str", "repr", "ascii", "list", "tuple", "type", "isinstance", "callable", "bool"})
_UNCARRIED_RESULTS = frozenset(
    ExternalName(f"builtins.{name}")
    for name in ("type", "range", "set", "frozenset", "enumerate", "zip", "map", "filter", "reversed", "slice", "bytes", "complex")
)
_TEXT_METHODS = frozenset({"format", "join", "format_map", "ljust", "rjust", "center", "zfill"})
_FORBIDDEN = frozenset({"locals", "globals", "vars", "dir", "exec", "eval", "super", "breakpoint", "input", "open", "id", "hash", "__import__", "compile"})


class Certainty(IntEnum):
    """Whether a value can travel through a graph."""

    NO = 0
    CHECKED = 1
    """Known only while tracing; if it cannot travel, the text runs in place, as it did before."""
    YES = 2


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

    def inside(self, conditional: bool = True) -> Context:
        """The context of a part that may not be evaluated."""
        return replace(self, conditional=True) if conditional else self


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
        self.site = site
        self.facts = site.facts
        self.torch = site.program.torch
        self.python = site.program.python
        self.total = Totality(site)
        self.moved = Moved()
        self.objects = _objects(site)
        handlers = (node for node in ast.walk(site.function.node) if isinstance(node, ast.ExceptHandler))
        self.exceptions = frozenset(handler.name for handler in handlers if handler.name)

    # ---------------------------------------------------------------- travelling

    def certainty(self, node: ast.expr) -> Certainty:
        """Whether the value of an expression can travel."""
        if ast.dump(node) in self.objects and not self.facts.value(node).may(Kind.TENSOR | Kind.CONTAINER):
            return Certainty.NO
        if isinstance(node, ast.Call) and self.facts.value(node.func).targets & _UNCARRIED_RESULTS:
            return Certainty.NO
        if isinstance(node, ast.Name) and node.id in self.exceptions:
            return Certainty.NO
        return _certainty(self.facts.value(node))

    def capture(self, node: ast.expr, place: bool = True) -> None:
        """Make an expression an argument."""
        key = ast.dump(node)
        found = self.moved.captures.get(key)
        if found is None:
            found = self.moved.captures[key] = Capture(node, self.certainty(node))
        if place:
            self.moved.places.append((node, found))

    def refuse(self, obligation: Obligation, reason: str, node: ast.AST) -> Refused:
        """A refusal that points at a node."""
        line = getattr(node, "lineno", None)
        return Refused(obligation, reason, line if line != self.site.statement.lineno else None)

    def _evaluate(self, node: ast.expr, context: Context) -> bool:
        """Capture a computed expression if the call may evaluate it; returns whether it was."""
        if not self._pure(node, context) or self.certainty(node) is Certainty.NO:
            return False
        if context.conditional and not self.total.is_total(node):
            return False
        self.capture(node)
        return True

    def _pure(self, node: ast.expr, context: Context) -> bool:
        """Whether evaluating an expression changes nothing, reads no data and depends on the function's names only."""
        for child in ast.walk(node):
            match child:
                case ast.Name(id=name) if name in context.bound:
                    return False
                case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.Lambda() | ast.JoinedStr():
                    return False
                case ast.Call() if not self._pure_call(child):
                    return False
        return True

    def _pure_call(self, node: ast.Call) -> bool:
        value = self.facts.value(node.func)
        if not value.targets or value.may(Kind.UNKNOWN | Kind.OBJECT):
            return False
        for target in value.targets:
            match target:
                case TensorMethod(name=name):
                    signature = self.torch.method(name)
                case ExternalName(name=name) if name in _MODES or name in _TORCH_CONSTANTS:
                    continue
                case ExternalName(name=name):
                    short = name.rpartition(".")[2]
                    if name.startswith("builtins.") and self.python.is_pure(name) and short not in _FORBIDDEN | {"str", "repr", "format", "map", "filter"}:
                        if short in ("int", "float", "bool", "complex", "any", "all", "sorted") and self._any_data(node.args):
                            return False
                        continue
                    signature = self.torch.function(name)
                case _:
                    return False
            if signature is None or signature.returns == "scalar" or signature.flags & {"mutates", "random", "dynamic"}:
                return False
            if any(keyword.arg in ("out", "inplace", "generator") for keyword in node.keywords):
                return False
        return True

    def _any_data(self, nodes: Iterable[ast.expr]) -> bool:
        return any(self.facts.value(node).depends_on_data for node in nodes)

    def _attempt(self, stay: Callable[[], None], node: ast.expr, context: Context) -> None:
        """Leave an expression in the text if its parts can travel for certain, else evaluate it at the call, else whatever works."""
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
        certain = self.certainty(node) is Certainty.YES
        wanted = failure is not None or (certain and not context.conditional)
        if wanted and not _builds_text(node) and self._evaluate(node, context):
            return
        if failure is not None:
            raise failure
        self.moved.restore(after)

    # ---------------------------------------------------------------- expressions

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
                self._call(node, context)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                self._operator(node, context)
            case ast.BoolOp(values=values):
                self.expression(values[0], context)
                for value in values[1:]:
                    self.expression(value, context.inside())
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.expression(test, context)
                for arm in (body, orelse):
                    self.expression(arm, replace(context.inside(), early=False))
            case ast.JoinedStr(values=parts):
                for part in parts:
                    self.expression(part, context)
            case ast.FormattedValue(value=value, format_spec=spec):
                self.expression(value, context)
                if spec is not None:
                    self.expression(spec, context)
                    self._risk_of_format(value)
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Starred() | ast.Slice():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, context)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, context)
            case ast.Lambda(args=args, body=body):
                names = frozenset(argument.arg for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs))
                for default in (*args.defaults, *(each for each in args.kw_defaults if each)):
                    self.expression(default, context)
                self.expression(body, replace(context.inside(), bound=context.bound | names, early=False))
            case ast.NamedExpr():
                raise self.refuse(Obligation.MOVABLE_TEXT, f"`{ast.unparse(node)}` binds a name of the function", node)
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                raise self.refuse(Obligation.MOVABLE_TEXT, f"`{ast.unparse(node)}` suspends the function", node)
            case _:
                raise self.refuse(Obligation.SUPPORTED_FORM, f"`{ast.unparse(node)}` has a form that is not known", node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, context: Context) -> None:
        inner = context
        for position, generator in enumerate(node.generators):
            self.expression(generator.iter, context if position == 0 else inner)
            names = bound_names([generator.target])
            inner = replace(inner.inside(), bound=inner.bound | names, early=False)
            for condition in generator.ifs:
                self.expression(condition, inner)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.expression(part, inner)

    def _name(self, node: ast.Name, context: Context) -> None:
        name = node.id
        if name in context.bound:
            return
        if name == "__class__" or _is_private(name):
            raise self.refuse(Obligation.MOVABLE_TEXT, f"the name `{name}` means something else outside the class", node)
        if scope_of(self.site, name) is Scope.GLOBAL:
            self._global(node)
            return
        if context.conditional and not is_bound(self.site, name):
            raise self.refuse(Obligation.BOUND_NAMES, f"`{name}` may not be bound where the call would read it", node)
        if self.certainty(node) is Certainty.NO:
            raise self._not_carried(node)
        self.capture(node, place=False)

    def _not_carried(self, node: ast.expr) -> Refused:
        text = ast.unparse(node)
        value = self.facts.value(node)
        names = sorted(cls.name.rpartition(".")[2] for cls in value.classes)
        what = f" (a `{names[0]}`)" if len(names) == 1 else ""
        reason = f"`{text}`{what} is an object that no operator in a graph can carry; use its parts in the message instead"
        if value.only(Kind.CALLABLE) and not value.classes:
            reason = f"`{text}` is no plain value that an operator in a graph can carry; a name from an import inside the function belongs to the top of the file"
        return self.refuse(Obligation.CARRIABLE_ARGUMENTS, reason, node)

    def _global(self, node: ast.Name | ast.Attribute) -> None:
        try:
            check_fresh(self.site, node)
        except Refused:
            value = self.facts.value(node)
            if isinstance(node, ast.Name) and value.only(Kind.STATIC | Kind.SIZE | Kind.NONE | Kind.TENSOR | Kind.SCALAR):
                self.capture(node, place=False)  # as it is at the time of the call
                return
            raise
        if isinstance(node, ast.Name) and node.id in _FORBIDDEN and self.facts.value(node).targets == frozenset((ExternalName(f"builtins.{node.id}"),)):
            raise self.refuse(Obligation.MOVABLE_TEXT, f"`{node.id}` means something else outside the function", node)

    def _attribute(self, node: ast.Attribute, context: Context) -> None:
        root = root_of(node)
        if _is_private(node.attr):
            raise self.refuse(Obligation.MOVABLE_TEXT, f"the name `{node.attr}` means something else outside the class", node)
        if isinstance(root, ast.Name) and is_path(node) and root.id not in context.bound and scope_of(self.site, root.id) is Scope.GLOBAL:
            if not self.facts.value(node).may(Kind.TENSOR):
                self._global(node)
                return
        owner, attr = node.value, node.attr
        holder = self.facts.value(owner)
        tensor = holder.may(Kind.TENSOR) or (holder.may(Kind.UNKNOWN) and attr in self.torch.attributes)
        if tensor and attr in _AUTOGRAD_OBJECTS:
            raise self.refuse(Obligation.CARRIABLE_ARGUMENTS, f"`{ast.unparse(node)}` does not exist where the graph runs the message", node)
        if tensor and attr in _AUTOGRAD_ATTRIBUTES:
            if not self._evaluate(node, context):
                raise self._not_total(node)
            return
        if tensor and attr in _METADATA:
            if not holder.is_tensor:
                self._risk(node, f"`{ast.unparse(node)}` fails if `{ast.unparse(owner)}` is no tensor")
            self.expression(owner, context)
            return
        if holder.is_tensor:
            self._computed(node, context, [owner])
            return
        if isinstance(root, ast.Name) and root.id in context.bound:
            self._risk(node, f"`{ast.unparse(node)}` may not exist")
            return
        self._leaf(node, context)

    def _leaf(self, node: ast.Attribute, context: Context) -> None:
        """An attribute of an object that cannot travel itself: its value does, if the call may read it."""
        if self.certainty(node) is Certainty.NO:
            raise self._not_carried(node)
        if not is_path(node):
            self._attempt(lambda: self.expression(node.value, context), node, context)
            return
        root = root_of(node)
        assert isinstance(root, ast.Name)
        if context.conditional and not self.total.is_total(node):
            raise self._not_total(node)
        self.capture(node)

    def _not_total(self, node: ast.expr) -> Refused:
        return self.refuse(
            Obligation.TOTAL_ARGUMENTS,
            f"`{ast.unparse(node)}` would be evaluated on every call, and it is not proven that this cannot fail where the original does not get there",
            node,
        )

    def _subscript(self, node: ast.Subscript, context: Context) -> None:
        if self.facts.value(node.value).is_tensor:
            self._computed(node, context, [node.value, node.slice])
            return

        def stay() -> None:
            self.expression(node.value, context)
            self.expression(node.slice, context)

        self._attempt(stay, node, context)
        if not any(place is node for place, _ in self.moved.places):
            self._risk(node, f"`{ast.unparse(node)}` may not exist")

    # ---------------------------------------------------------------- computations

    def _computed(self, node: ast.expr, context: Context, parts: Iterable[ast.expr], same: bool = True, integers: bool = False) -> None:
        """A tensor computation: at the call if it may be, else in the text if it is the same there.

        Args:
            node: the computation.
            context: how it is evaluated.
            parts: its operands.
            same: whether the text, which runs outside autocast and without gradients, computes the same.
            integers: whether it does so for integers and booleans only.
        """
        operands = list(parts)
        if integers and operands and self.facts.value(operands[0]).dtype in ("int", "bool"):
            same = True
        if context.conditional and not context.early and same:
            before = self.moved.copy()
            try:
                self._stay(node, operands, context)
            except Refused:
                self.moved.restore(before)
                if not self._evaluate(node, context):
                    raise
        elif self._evaluate(node, context):
            return
        elif same:
            self._stay(node, operands, context)
        else:
            raise self._not_total(node)

    def _stay(self, node: ast.expr, parts: Iterable[ast.expr], context: Context) -> None:
        for part in parts:
            self.expression(part, context)
        self._risk(node, f"`{ast.unparse(node)}` may fail")

    def _operator(self, node: ast.BinOp | ast.UnaryOp | ast.Compare, context: Context) -> None:
        value = self.facts.value(node)
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        same = not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.MatMult, ast.Pow)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) and not self.facts.value(node.left).may(Kind.TENSOR):
            same = same and not self.facts.value(node.right).may(Kind.TENSOR)
        if value.is_tensor and not isinstance(node, ast.UnaryOp) or value.is_tensor and isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            self._computed(node, context, parts, same)
            return
        if not same and any(self.facts.value(part).may(Kind.TENSOR | Kind.UNKNOWN) for part in parts):
            if not self._evaluate(node, context):
                raise self._not_total(node)
            return
        identity = isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        if identity and not all(isinstance(part, ast.Constant) and part.value is None for part in parts[1:]):
            if not self._evaluate(node, context):
                raise self.refuse(Obligation.CARRIABLE_ARGUMENTS, f"`{ast.unparse(node)}` asks for identity, which does not travel", node)
            return

        def stay() -> None:
            for position, part in enumerate(parts):
                self.expression(part, context.inside() if isinstance(node, ast.Compare) and position > 1 else context)

        # A text operator takes its parts along; another one may as well be evaluated at the call.
        if _builds_text(node):
            stay()
        else:
            self._attempt(stay, node, context)
        if not identity and not any(place is node for place, _ in self.moved.places):
            self._risk_of_operator(node, parts)

    def _call(self, node: ast.Call, context: Context) -> None:
        if any(keyword.arg is not None and _is_private(keyword.arg) for keyword in node.keywords):
            raise self.refuse(Obligation.MOVABLE_TEXT, "a private name means something else outside the class", node)
        value = self.facts.value(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not value.targets or value.may(Kind.OBJECT):
            self._unknown_call(node, value, arguments, context)
            return
        for target in value.targets:
            match target:
                case TensorMethod(name=name) if isinstance(node.func, ast.Attribute):
                    self._tensor_call(node, name, [node.func.value, *arguments], context)
                case ExternalName(name=name):
                    self._external_call(node, name, arguments, context)
                case ObjectMethod(owner="list" | "dict" | "str" | "tuple" | "set", name=name) if isinstance(node.func, ast.Attribute):
                    self._plain_method(node, name, arguments, context)
                case _:
                    raise self._unknown(node)

    def _unknown(self, node: ast.Call) -> Refused:
        called = ast.unparse(node.func)
        return self.refuse(
            Obligation.ONLY_OBSERVES,
            f"the message calls `{called}`, which is not known to only read; put its result into a local name first",
            node,
        )

    def _unknown_call(self, node: ast.Call, value: Value, arguments: list[ast.expr], context: Context) -> None:
        func = node.func
        if isinstance(func, ast.Attribute) and not value.may(Kind.OBJECT | Kind.CALLABLE):
            holder = self.facts.value(func.value)
            if func.attr in self.python.readers and holder.may(Kind.STATIC | Kind.SIZE | Kind.CONTAINER | Kind.UNKNOWN):
                self._plain_method(node, func.attr, arguments, context)
                return
            if holder.may(Kind.UNKNOWN | Kind.SCALAR) and func.attr in _SAME_ANYWHERE:
                self._stay(node, [func.value, *arguments], context)
                return
        raise self._unknown(node)

    def _tensor_call(self, node: ast.Call, name: str, operands: list[ast.expr], context: Context) -> None:
        signature = self.torch.method(name)
        text = ast.unparse(node)
        if name in _AUTOGRAD_OBJECTS:
            raise self.refuse(Obligation.CARRIABLE_ARGUMENTS, f"`{text}` does not exist where the graph runs the message", node)
        if signature is None and name not in _SAME_ANYWHERE:
            raise self._unknown(node)
        if signature is not None and signature.has("mutates") or name.endswith("_") and name != "__len__":
            raise self.refuse(Obligation.ONLY_OBSERVES, f"`{text}` writes into a tensor", node)
        if signature is not None and signature.has("random"):
            raise self.refuse(Obligation.ONLY_OBSERVES, f"`{text}` draws random numbers", node)
        reads = signature is None or signature.returns in ("scalar", "size", "static")
        if reads or (signature is not None and signature.has("dynamic")):
            if name not in _SAME_ANYWHERE:
                raise self._unknown(node)
            for operand in operands:
                self.expression(operand, context)
            holder = self.facts.value(operands[0])
            if not (holder.is_tensor and (signature is None or signature.returns != "scalar" or holder.single)):
                self._risk(node, f"`{text}` may fail")
            return
        self._computed(node, context, operands, name in _SAME_ANYWHERE, name in _SAME_FOR_INTEGERS)

    def _external_call(self, node: ast.Call, name: str, arguments: list[ast.expr], context: Context) -> None:
        short = name.rpartition(".")[2]
        if self._from_inside(node.func):
            raise self._not_carried(node.func)
        if name in _MODES:
            if not self._evaluate(node, context):
                raise self._not_total(node)
            return
        if name in _TORCH_CONSTANTS:
            self._attempt(lambda: self._all(arguments, context), node, context)
            return
        if self.torch.function(name) is not None:
            self._tensor_call(node, short, arguments, context)
            return
        if name.startswith("builtins.") and short in _FORBIDDEN:
            raise self.refuse(Obligation.MOVABLE_TEXT, f"`{short}` means something else outside the function", node)
        if name.startswith("builtins.") and short in _BUILTINS:
            if self.facts.value(node).is_tensor:
                self._computed(node, context, arguments)
                return
            if short in _SAFE_BUILTINS or not self._any_data(arguments):
                self._attempt(lambda: self._all(arguments, context), node, context)
            else:
                self._all(arguments, context)
            if short not in _SAFE_BUILTINS:
                self._risk(node, f"`{ast.unparse(node)}` may fail")
            return
        if name.startswith("math."):
            self._attempt(lambda: self._all(arguments, context), node, context)
            self._risk(node, f"`{ast.unparse(node)}` may fail")
            return
        raise self._unknown(node)

    def _plain_method(self, node: ast.Call, name: str, arguments: list[ast.expr], context: Context) -> None:
        """A method of a string, a number or a container that only reads it."""
        assert isinstance(node.func, ast.Attribute)
        receiver = node.func.value
        if name not in self.python.readers and name not in _TEXT_METHODS and name != "numel":
            raise self._unknown(node)
        if name in _TEXT_METHODS:
            self._all([receiver, *arguments], context)
        else:
            self._attempt(lambda: self._all([receiver, *arguments], context), node, context)
        if not any(place is node for place, _ in self.moved.places):
            self._risk(node, f"`{ast.unparse(node)}` may fail")

    def _all(self, nodes: Iterable[ast.expr], context: Context) -> None:
        for node in nodes:
            self.expression(node, context)

    def _from_inside(self, node: ast.expr) -> bool:
        """Whether a called name was imported or bound inside the function, so that the moved text does not have it."""
        root = root_of(node)
        return isinstance(root, ast.Name) and scope_of(self.site, root.id) is not Scope.GLOBAL

    # ---------------------------------------------------------------- risks

    def _risk(self, node: ast.AST, reason: str) -> None:
        self.moved.risks.append((node, reason))

    def _risk_of_format(self, node: ast.expr) -> None:
        value = self.facts.value(node)
        if not (value.only(Kind.SIZE | Kind.SCALAR) or value.is_tensor and value.single or value.constant is not MISSING):
            self._risk(node, f"formatting `{ast.unparse(node)}` may fail")

    def _risk_of_operator(self, node: ast.BinOp | ast.UnaryOp | ast.Compare, parts: list[ast.expr]) -> None:
        values = [self.facts.value(part) for part in parts]
        numbers = all(value.only(Kind.SIZE | Kind.SCALAR) or isinstance(value.constant, (int, float)) for value in values)
        division = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift))
        equality = isinstance(node, ast.Compare) and all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
        negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        if equality or negation:
            if any(value.may(Kind.TENSOR | Kind.UNKNOWN) and not value.single for value in values):
                self._risk(node, f"`{ast.unparse(node)}` may fail")
        elif not numbers or division:
            self._risk(node, f"`{ast.unparse(node)}` may fail")


def _certainty(value: Value) -> Certainty:
    kinds = value.kinds
    if value.only(Kind.TENSOR | Kind.SIZE | Kind.SCALAR | Kind.NONE):
        return Certainty.YES
    if kinds & Kind.CALLABLE and value.only(Kind.CALLABLE | Kind.NONE | Kind.STATIC):
        dtypes = all(isinstance(target, ExternalName) and _is_constant_of_torch(target.name) for target in value.targets)
        return Certainty.YES if value.targets and dtypes else Certainty.NO
    if kinds & Kind.OBJECT and not kinds & (Kind.TENSOR | Kind.CONTAINER | Kind.UNKNOWN):
        return Certainty.NO
    if kinds & Kind.CONTAINER:
        # Of a list or tuple written out the items are known; another container may be a set, a range, a dictionary's keys.
        listed = Certainty.YES if value.items is not None or kinds & Kind.SIZE else Certainty.CHECKED
        inner = _certainty(value.element) if value.element is not None and value.element.kinds else Certainty.YES
        rest = replace(value, kinds=kinds & ~Kind.CONTAINER)
        return min(listed, inner, _certainty(rest) if rest.kinds else Certainty.YES)
    if kinds == Kind.STATIC and value.constant is not MISSING:
        return Certainty.YES
    return Certainty.CHECKED


def _is_constant_of_torch(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return owner == "torch" and last in _DTYPES


def _is_private(name: str) -> bool:
    """Whether a class changes the name (``__x`` becomes ``_Class__x``)."""
    return name.startswith("__") and not name.endswith("__")


def _builds_text(node: ast.expr) -> bool:
    """Whether an expression makes a string, which the text has to do itself."""
    match node:
        case ast.JoinedStr():
            return True
        case ast.Constant(value=str()):
            return True
        case ast.BinOp(op=ast.Mod(), left=left):
            return _builds_text(left)
        case ast.BinOp(op=ast.Add() | ast.Mult(), left=left, right=right):
            return _builds_text(left) or _builds_text(right)
        case ast.Call(func=ast.Attribute(attr=name)) if name in _TEXT_METHODS:
            return True
        case ast.Call(func=ast.Name(id="str" | "repr" | "format" | "ascii")):
            return True
    return False


def _objects(site: Site) -> frozenset[str]:
    """Dumps of the paths that the function uses as objects: it reads attributes of them that plain values do not have."""
    torch, python = site.program.torch, site.program.python
    plain = {*torch.attributes, *torch.operations, *python.readers, *python.writers, "real", "imag", "type", "index", "start", "stop", "step"}
    found: set[str] = set()
    for node in ast.walk(site.function.node):
        if isinstance(node, ast.Attribute) and node.attr not in plain and not node.attr.endswith("_") and is_path(node.value):
            found.add(ast.dump(node.value))
    return frozenset(found)


def root_of(node: ast.expr) -> ast.expr:
    """What an attribute chain hangs from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def is_path(node: ast.expr) -> bool:
    """Whether an expression is a name or a chain of attributes of a name."""
    return isinstance(root_of(node), ast.Name)


__all__ = ["Bound", "Capture", "Capturer", "Certainty", "Class", "Context", "Function", "Moved", "is_path", "root_of"]
