"""What running code may do besides computing a value: effects, random numbers, failures that depend on data.

Effects are those that matter while tracing: code that tracing never reaches has none. A failure is *data-dependent* if
the numbers in a tensor decide it; wrong shapes, dtypes or attributes fail while tracing, where the runtime sees it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from graphmend.flow.aliasing import Aliasing, Mutation, Origin, Source, aliasing_of, bind_arguments
from graphmend.flow.frames import Frame, Frames, frames_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import Bound, ExternalName, Kind, ObjectMethod, TensorMethod, Value
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.regions.entries import EFFECTS, decorator_names
from graphmend.signatures import Signature

# Operations whose failures are all a matter of shapes and static arguments, though the tables do not call them total.
SHAPES_ONLY = frozenset({
    "max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "median", "nanmedian", "mode", "sort", "msort", "topk", "kthvalue",
    "diff", "scatter", "cov", "corrcoef",
})  # fmt: skip
_INTEGER_DIVISION = frozenset({"floor_divide", "remainder", "fmod", "div", "divide", "true_divide"})
# Where a Python number read from a tensor is an operand like any other, not a size or a position.
_NUMBER_OPERANDS = frozenset({
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "clamp", "clip", "clamp_min", "clamp_max", "where", "masked_fill", "lerp",
    "eq", "ne", "lt", "le", "gt", "ge", "minimum", "maximum", "pow", "full_like", "rsub", "isclose", "tensor", "scalar_tensor",
})  # fmt: skip
_RANDOM_UNLESS = {
    # Functions that draw random numbers only if asked to, with the argument that asks and its position.
    "dropout": ("training", 2), "dropout1d": ("training", 2), "dropout2d": ("training", 2), "dropout3d": ("training", 2),
    "alpha_dropout": ("training", 2), "feature_alpha_dropout": ("training", 2), "rrelu": ("training", 3),
}  # fmt: skip
_DROPOUT_ARGUMENT = {"scaled_dot_product_attention": ("dropout_p", 4)}
PURE_MODULES = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Identity Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LayerNorm GroupNorm RMSNorm "
        "LocalResponseNorm ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Softplus Softsign Softmax LogSoftmax Softmax2d Softmin "
        "Sigmoid Tanh LogSigmoid Hardtanh Hardswish Hardsigmoid Hardshrink Softshrink Tanhshrink Threshold PReLU GLU Flatten Unflatten "
        "AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
        "AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle ZeroPad1d "
        "ZeroPad2d ConstantPad1d ConstantPad2d ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d CosineSimilarity "
        "PairwiseDistance MSELoss L1Loss SmoothL1Loss HuberLoss Fold Unfold"
    ).split()
)
"""Modules of torch whose call reads its argument and its parameters and does nothing else, and cannot fail on data."""
_PARTIAL_MODULES = frozenset(
    f"torch.nn.{name}" for name in ("Embedding", "EmbeddingBag", "CrossEntropyLoss", "NLLLoss", "BCELoss")
)
PURE_CONTEXTS = frozenset({
    "torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode", "torch.autocast", "torch.amp.autocast",
    "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "contextlib.nullcontext", "torch.autograd.profiler.record_function",
    "torch.profiler.record_function",
})  # fmt: skip
_PURE_STATIC = frozenset({
    "torch.device", "torch.dtype", "torch.Size", "torch.finfo", "torch.iinfo", "torch.is_tensor", "torch.is_floating_point", "torch.is_complex",
    "torch.get_default_dtype", "torch.result_type", "torch.promote_types", "torch.broadcast_shapes", "torch.is_grad_enabled",
    "torch.is_autocast_enabled", "builtins.super", "builtins.iter", "builtins.next", "builtins.complex", "builtins.divmod", "builtins.hash",
    "builtins.ord", "builtins.chr", "builtins.bytes", "builtins.object",
})  # fmt: skip
_MESSAGES = frozenset(
    {"builtins.print", "warnings.warn", "warnings.warn_explicit", "sys.stdout.write", "sys.stderr.write"}
)
_MODULE_READERS = frozenset({
    "parameters", "buffers", "named_parameters", "named_buffers", "modules", "children", "named_modules", "named_children", "state_dict",
    "extra_repr", "get_parameter", "get_buffer", "get_submodule", "items", "values", "keys",
})  # fmt: skip
REGISTERING = frozenset({"register_buffer", "register_parameter", "register_module", "add_module"})
_READING = frozenset(
    {
        "builtins.int",
        "builtins.float",
        "builtins.bool",
        "builtins.complex",
        "builtins.any",
        "builtins.all",
        "builtins.sorted",
    }
)
_DATA = Kind.TENSOR | Kind.SCALAR


class Effect(str, Enum):
    """Kinds of things that code may do."""

    RANDOM = "random"
    MESSAGE = "message"
    WRITES = "writes"
    MUTATES = "mutates"
    STATEFUL = "stateful"
    UNKNOWN = "unknown"
    SUSPENDS = "suspends"
    FAILS = "fails"
    READS = "reads"


IMPURE = frozenset(
    {Effect.RANDOM, Effect.MESSAGE, Effect.WRITES, Effect.MUTATES, Effect.STATEFUL, Effect.UNKNOWN, Effect.SUSPENDS}
)
PARTIAL = frozenset({Effect.FAILS, Effect.READS})


@dataclass(frozen=True)
class Doing:
    """One effect, for a person to read.

    Args:
        effect: its kind.
        what: what does it, as the predicate of a sentence about the code.
        line: its line in the file of the code that was asked about.
        attribute: for a write, the name of the attribute that is written.
        node: the node that has the effect, in the code that was asked about.
        receiver: for a write to an attribute, the expression of the object.
    """

    effect: Effect
    what: str
    line: int
    attribute: str = ""
    node: ast.AST | None = None
    receiver: ast.expr | None = None


class Effects:
    """The effects of code, through the functions that it calls."""

    def __init__(self, program: Program, frames: Frames, aliasing: Aliasing) -> None:
        self.program = program
        self.frames = frames
        self.aliasing = aliasing
        self._own: dict[Frame, tuple[tuple[Doing, ...], tuple[Frame, ...]]] = {}
        self._all: dict[Frame, tuple[tuple[Doing, Function], ...]] = {}

    # ---------------------------------------------------------------- asking

    def doings(self, roots: Iterable[ast.AST], frame: Frame, region: Iterable[ast.AST] | None = None) -> list[Doing]:
        """What some statements or expressions of a function do, calls included.

        Writes into objects that are made inside ``region`` (by default ``roots``) are nobody's business and left out.
        """
        nodes = list(roots)
        inside = {id(node) for root in (nodes if region is None else region) for node in ast.walk(root)}
        found: list[Doing] = []
        for node in walk_scope(nodes):
            found += self._node(node, frame, inside)
        return found

    def of_function(self, function: Function) -> tuple[tuple[Doing, Function], ...]:
        """Everything that calling a function may do, each with the function whose text does it."""
        if not self._is_analysed(function):
            return ((Doing(Effect.UNKNOWN, "is not analysed", function.line), function),)
        return self._of_frame(self.frames.frame(function))

    def _is_analysed(self, function: Function) -> bool:
        state = self.program.states.get(function)
        return state is not None and state.graph is not None

    def _of_frame(self, frame: Frame) -> tuple[tuple[Doing, Function], ...]:
        known = self._all.get(frame)
        if known is not None:
            return known
        found: list[tuple[Doing, Function]] = []
        seen = {frame}
        stack = [frame]
        while stack:
            each = stack.pop()
            own, callees = self._direct(each)
            found += [(doing, each.function) for doing in own]
            for callee in callees:
                if callee not in seen:
                    seen.add(callee)
                    stack.append(callee)
        result = self._all[frame] = tuple(found)
        return result

    def _direct(self, frame: Frame) -> tuple[tuple[Doing, ...], tuple[Frame, ...]]:
        """What a function does itself, and the functions that it calls."""
        known = self._own.get(frame)
        if known is None:
            self._own[frame] = ((), ())  # cuts recursion through constructors
            body = frame.function.body
            inside = {id(node) for statement in body for node in ast.walk(statement)}
            callees: list[Frame] = []
            own: list[Doing] = []
            for node in walk_scope(body):
                own += self._node(node, frame, inside, callees)
            known = self._own[frame] = (tuple(own), tuple(dict.fromkeys(callees)))
        return known

    # ---------------------------------------------------------------- one node

    def _node(
        self, node: ast.AST, frame: Frame, inside: set[int], callees: list[Frame] | None = None
    ) -> Iterator[Doing]:
        """The effects of one node without its children; with ``callees``, called functions are only collected there."""
        if not _is_reached(node, frame):
            return
        match node:
            case ast.Call():
                yield from self._call(node, frame, callees)
            case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()):
                made = self.aliasing.sources(owner, frame, frame.statement(node))
                if not _all_fresh(made, inside):
                    yield Doing(Effect.WRITES, f"writes the attribute `{attr}`", node.lineno, attr, node, owner)
            case ast.Attribute(value=owner, attr=attr):
                yield from self._property(owner, attr, node, frame, callees)
            case ast.Subscript(ctx=ast.Load()):
                yield from self._subscript(node, frame)
            case ast.BinOp(op=op, left=left, right=right):
                yield from self._arithmetic(op, left, right, node, frame)
            case ast.Global() | ast.Nonlocal():
                yield Doing(Effect.WRITES, f"may write the outer name `{node.names[0]}`", node.lineno, node=node)
            case ast.Import() | ast.ImportFrom():
                yield Doing(Effect.UNKNOWN, "imports a module", node.lineno, node=node)
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                yield Doing(Effect.SUSPENDS, "suspends the function", node.lineno, node=node)
            case ast.AsyncFor() | ast.AsyncWith():
                yield Doing(Effect.SUSPENDS, "suspends the function", node.lineno, node=node)
            case ast.With():
                yield from self._contexts(node, frame)
            case _:
                yield from self._decisions(node, frame)
        for mutation in self.aliasing.mutations_of(node, frame):
            if not _all_fresh(self.aliasing.sources_of(mutation, frame), inside):
                line = getattr(mutation.node, "lineno", 0)
                yield Doing(Effect.MUTATES, f"changes `{brief(mutation.target)}` ({mutation.what})", line, node=node)

    def _decisions(self, node: ast.AST, frame: Frame) -> Iterator[Doing]:
        """Places where Python asks for the truth of a value, or raises."""
        tests: list[ast.expr] = []
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                tests = [test]
            case ast.comprehension(ifs=conditions):
                tests = conditions
            case ast.BoolOp(values=values):
                tests = values[:-1]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                tests = [operand]
            case ast.Assert(test=test):
                if frame.facts.value(test).depends_on_data:
                    yield Doing(Effect.FAILS, "asserts something about the values of a tensor", node.lineno, node=node)
            case ast.Compare(ops=ops, left=left, comparators=comparators):
                operands = [left, *comparators]
                data = any(frame.facts.value(each).may(Kind.TENSOR) for each in operands)
                if data and (len(ops) > 1 or any(isinstance(op, (ast.In, ast.NotIn)) for op in ops)):
                    yield Doing(Effect.READS, "asks a tensor for its truth value", node.lineno, node=node)
            case ast.For(iter=iterable):
                if frame.facts.value(iterable).may(Kind.SCALAR):
                    yield Doing(Effect.READS, "loops over a number read from a tensor", node.lineno, node=node)
                element = frame.facts.value(iterable).element
                if element is not None and element.may(Kind.SCALAR):
                    yield Doing(
                        Effect.READS, "loops as often as a number read from a tensor says", node.lineno, node=node
                    )
        for test in tests:
            if frame.facts.value(test).depends_on_data:
                yield Doing(Effect.READS, "branches on the value of a tensor", test.lineno, node=node)
        if isinstance(node, ast.Raise) and self._decided_by_data(node, frame):
            yield Doing(Effect.FAILS, "raises depending on the values of a tensor", node.lineno, node=node)

    @staticmethod
    def _decided_by_data(node: ast.AST, frame: Frame) -> bool:
        """Whether a branch on a tensor's value anywhere in the function may decide that ``node`` is reached."""
        if id(node) not in frame.facts.reached:
            return False
        return any(
            block.test is not None and frame.facts.value(block.test).depends_on_data
            for block in frame.facts.graph.blocks
        )

    def _contexts(self, node: ast.With, frame: Frame) -> Iterator[Doing]:
        for item in node.items:
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            names = {target.name for target in frame.facts.value(called).targets if isinstance(target, ExternalName)}
            if not names or not names <= PURE_CONTEXTS:
                what = f"enters the context manager `{brief(item.context_expr)}`"
                yield Doing(Effect.UNKNOWN, what, item.context_expr.lineno, node=node)

    def _property(
        self, owner: ast.expr, attr: str, node: ast.Attribute, frame: Frame, callees: list[Frame] | None
    ) -> Iterator[Doing]:
        for cls in frame.facts.value(owner).classes:
            method = self.program.index.method(cls, attr) if isinstance(cls, Class) else None
            if method is not None and decorator_names(self.program.index, method) & {
                "builtins.property",
                "functools.cached_property",
            }:
                yield from self._follow(method, owner, None, node, frame, callees)

    # ---------------------------------------------------------------- failures

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Iterator[Doing]:
        holder = frame.facts.value(node.value)
        if holder.only(Kind.CALLABLE):
            return
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            pieces = [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]
            for piece in pieces:
                index = frame.facts.value(piece) if piece is not None else None
                if index is None or piece is None:
                    continue
                if index.may(_DATA) or (index.may(Kind.UNKNOWN) and holder.may(Kind.TENSOR | Kind.UNKNOWN)):
                    what = f"indexes `{brief(node.value)}` with `{brief(piece)}`, which may be out of range"
                    yield Doing(Effect.FAILS, what, node.lineno, node=node)
                    return

    def _arithmetic(
        self, op: ast.operator, left: ast.expr, right: ast.expr, node: ast.expr, frame: Frame
    ) -> Iterator[Doing]:
        a, b = frame.facts.value(left), frame.facts.value(right)
        if a.may(Kind.OBJECT) or b.may(Kind.OBJECT):
            yield Doing(Effect.UNKNOWN, f"uses an operator on an object (`{brief(node)}`)", node.lineno, node=node)
        if isinstance(b.constant, (int, float)) and b.constant:
            return
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and (a.depends_on_data or b.depends_on_data):
            if "float" not in (a.dtype, b.dtype) or a.may(Kind.SCALAR) or b.may(Kind.SCALAR):
                yield Doing(Effect.FAILS, f"may divide integers by zero (`{brief(node)}`)", node.lineno, node=node)
        elif isinstance(op, (ast.Div, ast.Pow)) and not (a.is_tensor or b.is_tensor) and (a.may(_DATA) or b.may(_DATA)):
            yield Doing(
                Effect.FAILS,
                f"computes with a number read from a tensor, which may fail (`{brief(node)}`)",
                node.lineno,
                node=node,
            )

    # ---------------------------------------------------------------- calls

    def _call(self, node: ast.Call, frame: Frame, callees: list[Frame] | None) -> Iterator[Doing]:
        callee = frame.facts.value(node.func)
        known = False
        for target in callee.targets:
            known = True
            yield from self._target(target, callee, node, frame, callees)
        if callee.may(Kind.OBJECT):
            for cls in callee.classes:
                known = True
                yield from self._object(cls, callee, node, frame, callees)
        if not callee.targets and not callee.classes and self._reads_static(node, callee, frame):
            return
        # What is known of a method does not hang on which of the possible objects it is read from.
        method = callee.targets and all(isinstance(target, (TensorMethod, ObjectMethod)) for target in callee.targets)
        if not known or (callee.may(Kind.UNKNOWN | Kind.STATIC) and not method):
            yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known", node.lineno, node=node)
        # What is handed to a call may be called by it.
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            for target in frame.facts.value(argument).targets:
                if isinstance(target, (Function, Bound)):
                    function = target if isinstance(target, Function) else target.function
                    yield from self._follow(function, None, None, node, frame, callees)

    @staticmethod
    def _is_static_receiver(value: Value) -> bool:
        return value.only(Kind.STATIC | Kind.SIZE | Kind.NONE)

    def _reads_static(self, node: ast.Call, callee: Value, frame: Frame) -> bool:
        """Whether the call is a method that only reads a plain Python value."""
        if not isinstance(node.func, ast.Attribute):
            return False
        return node.func.attr in self.program.python.readers and self._is_static_receiver(
            frame.facts.value(node.func.value)
        )

    def _target(
        self, target: object, callee: Value, node: ast.Call, frame: Frame, callees: list[Frame] | None
    ) -> Iterator[Doing]:
        match target:
            case Function():
                yield from self._follow(target, None, node, node, frame, callees)
            case Bound(function=function):
                receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                yield from self._follow(function, receiver, node, node, frame, callees)
            case Class():
                yield from self._construct(target, node, frame, callees)
            case ExternalName(name=name):
                yield from self._external(name, node, frame)
            case TensorMethod(name=name):
                signature = self.program.torch.method(name)
                if signature is None:
                    yield Doing(
                        Effect.UNKNOWN, f"calls the tensor method `{name}`, which is not known", node.lineno, node=node
                    )
                else:
                    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                    yield from self._operation(signature, receiver, node, frame)
            case ObjectMethod(owner=owner, name=name):
                yield from self._object_method(owner, name, node, frame)
            case _:
                yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known", node.lineno, node=node)

    def _external(self, name: str, node: ast.Call, frame: Frame) -> Iterator[Doing]:
        if name in self.program.torch.selections or name in PURE_CONTEXTS or name in _PURE_STATIC:
            return
        if name in _MESSAGES or name.startswith(("logging.", "warnings.")):
            yield Doing(Effect.MESSAGE, f"emits a message (`{brief(node.func)}`)", node.lineno, node=node)
            return
        signature = self.program.torch.function(name)
        if signature is not None:
            yield from self._operation(signature, node.args[0] if node.args else None, node, frame)
            return
        if name in ("builtins.setattr", "builtins.delattr"):
            attr = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else ""
            yield Doing(
                Effect.WRITES, "writes an attribute", node.lineno, str(attr), node, node.args[0] if node.args else None
            )
            return
        if name in _READING and any(frame.facts.value(argument).depends_on_data for argument in node.args):
            yield Doing(Effect.READS, f"reads the value of a tensor (`{brief(node)}`)", node.lineno, node=node)
        elif name.startswith("math.") and any(frame.facts.value(argument).depends_on_data for argument in node.args):
            yield Doing(Effect.READS, f"reads the value of a tensor (`{brief(node)}`)", node.lineno, node=node)
        if not self.program.python.is_pure(name) and not _is_exception(name):
            yield Doing(Effect.UNKNOWN, f"calls `{name}`, which is not known to be pure", node.lineno, node=node)

    def _operation(self, signature: Signature, first: ast.expr | None, node: ast.Call, frame: Frame) -> Iterator[Doing]:
        name, line = signature.name, node.lineno
        if signature.has("random") and self._draws(signature, node, frame):
            yield Doing(Effect.RANDOM, f"draws random numbers (`{name}`)", line, node=node)
        dropout = _DROPOUT_ARGUMENT.get(name)
        if dropout is not None and not _is_off(_argument(node, *dropout), frame, missing=True):
            yield Doing(Effect.RANDOM, f"may draw random numbers (`{name}` with dropout)", line, node=node)
        if signature.returns == "scalar":
            yield Doing(Effect.READS, f"reads the value of a tensor (`{name}`)", line, node=node)
            return
        if signature.returns == "size" or signature.has("mutates"):
            return
        operands = [*([first] if first is not None and first not in node.args else []), *node.args]
        operands += [keyword.value for keyword in node.keywords]
        values = [frame.facts.value(operand) for operand in operands]
        total = signature.has("total") or name in SHAPES_ONLY or signature.has("random")
        if signature.has("dynamic") or (name == "where" and len(operands) < 2):
            yield Doing(Effect.READS, f"has a result whose shape depends on data (`{name}`)", line, node=node)
        elif not total:
            yield Doing(Effect.FAILS, f"`{name}` may fail for some values of its operands", line, node=node)
        elif name in _INTEGER_DIVISION and self._may_divide_by_zero(name, node, values):
            yield Doing(Effect.FAILS, f"`{name}` may divide integers by zero", line, node=node)
        elif name not in _NUMBER_OPERANDS and any(_holds_number(value) for value in values):
            yield Doing(Effect.FAILS, f"`{name}` may fail for a number that was read from a tensor", line, node=node)
        elif name == "repeat_interleave" and len(values) > 1 and values[1].may(Kind.TENSOR | Kind.UNKNOWN):
            yield Doing(Effect.READS, f"has a result whose shape depends on data (`{name}`)", line, node=node)

    @staticmethod
    def _may_divide_by_zero(name: str, node: ast.Call, values: list[Value]) -> bool:
        if name in ("div", "divide", "true_divide"):
            rounding = _argument(node, "rounding_mode", 99)
            if rounding is None or (isinstance(rounding, ast.Constant) and rounding.value is None):
                return False
        divisor = values[1] if len(values) > 1 else None
        if divisor is not None and isinstance(divisor.constant, (int, float)) and divisor.constant:
            return False
        return not any(value.dtype == "float" for value in values)

    def _draws(self, signature: Signature, node: ast.Call, frame: Frame) -> bool:
        asked = _RANDOM_UNLESS.get(signature.name)
        return asked is None or not _is_off(_argument(node, *asked), frame, missing=False)

    def _object(
        self, cls: object, callee: Value, node: ast.Call, frame: Frame, callees: list[Frame] | None
    ) -> Iterator[Doing]:
        line, text = node.lineno, brief(node.func)
        if isinstance(cls, Class):
            is_module = self.program.is_module(cls)
            method = self.program.index.method(cls, "forward" if is_module else "__call__")
            if method is None:
                yield Doing(Effect.UNKNOWN, f"calls `{text}`, which is not known", line, node=node)
            else:
                yield from self._follow(method, node.func, node, node, frame, callees)
            return
        assert isinstance(cls, ExternalName)
        short, tables = cls.name.rpartition(".")[2], self.program.torch
        if cls.name in tables.stateful:
            yield Doing(
                Effect.STATEFUL, f"calls `{text}` ({short}), which updates its statistics in training", line, node=node
            )
        elif cls.name in tables.random_modules:
            yield Doing(
                Effect.RANDOM, f"calls `{text}` ({short}), which draws random numbers in training", line, node=node
            )
        elif cls.name in _PARTIAL_MODULES:
            yield Doing(
                Effect.FAILS,
                f"calls `{text}` ({short}), which may fail for some values of its argument",
                line,
                node=node,
            )
        elif cls.name in tables.module_containers and callee.element is not None:
            for stage in callee.items or (callee.element,):
                if not stage.classes or not stage.only(Kind.OBJECT):
                    yield Doing(Effect.UNKNOWN, f"calls `{text}`, whose stages are not known", line, node=node)
                for each in stage.classes:
                    yield from self._object(each, stage, node, frame, callees)
        elif cls.name not in PURE_MODULES:
            yield Doing(Effect.UNKNOWN, f"calls `{text}` ({short}), which is not known to be pure", line, node=node)

    def _object_method(self, owner: str, name: str, node: ast.Call, frame: Frame) -> Iterator[Doing]:
        line, python = node.lineno, self.program.python
        if owner in ("list", "dict"):
            if name not in python.readers and name not in python.writers:
                yield Doing(Effect.UNKNOWN, f"calls the method `{name}` of a container", line, node=node)
            return
        if owner.startswith("logging."):
            yield Doing(Effect.MESSAGE, f"logs a message (`{brief(node.func)}`)", line, node=node)
            return
        if self.program.torch.is_module_class(owner):
            if name in REGISTERING:
                attr = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
                receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                yield Doing(Effect.WRITES, f"registers `{attr!s}`", line, str(attr), node, receiver)
                return
            if name in _MODULE_READERS:
                return
        yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known to be pure", line, node=node)

    def _construct(self, cls: Class, node: ast.Call, frame: Frame, callees: list[Frame] | None) -> Iterator[Doing]:
        if self.program.is_module(cls):
            yield Doing(
                Effect.RANDOM,
                f"makes a module (`{cls.name}`), whose parameters are drawn at random",
                node.lineno,
                node=node,
            )
            return
        if any(isinstance(base, object) and not isinstance(base, Class) for base in self.program.index.mro(cls)[1:]):
            names = [
                getattr(base, "name", "") for base in self.program.index.mro(cls)[1:] if not isinstance(base, Class)
            ]
            if set(names) - {"builtins.object", "typing.NamedTuple", "typing.Generic"}:
                yield Doing(
                    Effect.UNKNOWN, f"makes a `{cls.name}`, which is not known to be pure", node.lineno, node=node
                )
                return
        method = self.program.index.method(cls, "__init__")
        for each in (
            method,
            self.program.index.method(cls, "__post_init__"),
            self.program.index.method(cls, "__new__"),
        ):
            if each is None:
                continue
            own = each.parameters[0].arg if each.parameters else ""
            for doing, function in self.of_function(each):
                # A constructor may write into the object that it makes.
                written = doing.receiver
                if (
                    doing.effect is Effect.WRITES
                    and isinstance(written, ast.Name)
                    and written.id == own
                    and function is each
                ):
                    continue
                yield self._reported(doing, function, node, frame)

    def _follow(
        self,
        function: Function,
        receiver: ast.expr | None,
        call: ast.Call | None,
        node: ast.expr,
        frame: Frame,
        callees: list[Frame] | None,
    ) -> Iterator[Doing]:
        """The effects of a called function, told from the place of the call."""
        special = self._special(function)
        if special is not None:
            if special:
                yield Doing(Effect.MESSAGE if "effect" in special else Effect.UNKNOWN, special, node.lineno, node=node)
            return
        if not self._is_analysed(function):
            yield Doing(Effect.UNKNOWN, f"calls `{function.name}`, which is not analysed", node.lineno, node=node)
            return
        arguments = bind_arguments(function, receiver, call) if call is not None else None
        values = {name: frame.facts.value(given) for name, given in (arguments or {}).items()}
        called = self.frames.for_call(function, values, frame)
        if callees is not None:
            callees.append(called)
            return
        for doing, owner in self._of_frame(called):
            if doing.effect is Effect.MUTATES and self._only_own(doing, owner):
                continue  # told by the caller's own look at what it hands over
            yield self._reported(doing, owner, node, frame)

    def _special(self, function: Function) -> str | None:
        """What is known of a function without looking into it; ``None``: nothing, look. Empty: it does nothing."""
        names = decorator_names(self.program.index, function)
        if names & EFFECTS:
            return f"calls the effect `{function.name}`"
        if self.program.is_runtime(function.module):
            return "" if function.name == "select" else f"calls the effect runtime (`{function.name}`)"
        if self.program.cut(function):
            return f"calls `{function.name}`, which the compiler is told not to trace"
        return None

    def _only_own(self, doing: Doing, owner: Function) -> bool:
        """Whether what a function changes in place is one of its own arguments (or made by it) and nothing else."""
        frame = self.frames.frame(owner)
        if doing.node is None:
            return False
        allowed = {Origin.PARAMETER, Origin.FRESH}
        return all(
            source.origin in allowed
            for mutation in self.aliasing.mutations_of(doing.node, frame)
            for source in self.aliasing.sources_of(mutation, frame)
        )

    @staticmethod
    def _reported(doing: Doing, owner: Function, node: ast.expr, frame: Frame) -> Doing:
        what = f"calls `{owner.name}`, which {doing.what}"
        if owner.module is not frame.function.module:
            what += f" ({owner.module.path}:{doing.line})"
        else:
            what += f" (line {doing.line})"
        return Doing(doing.effect, what, node.lineno, doing.attribute, node)


def _is_reached(node: ast.AST, frame: Frame) -> bool:
    """Whether tracing gets to a node."""
    if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", None), (ast.Load, type(None))):
        return id(node) in frame.facts.values
    statement = frame.statement(node)
    compound = isinstance(statement, (ast.With, ast.AsyncWith, ast.Try, ast.FunctionDef, ast.ClassDef))
    return statement is None or compound or id(statement) in frame.facts.reached


def _all_fresh(sources: Iterable[Source], inside: set[int]) -> bool:
    """Whether an object is certainly made by one of the nodes ``inside``."""
    found = list(sources)
    return bool(found) and all(source.origin is Origin.FRESH and id(source.node) in inside for source in found)


def _is_exception(name: str) -> bool:
    """Whether a dotted name is one of Python's own exceptions, which are made without an effect."""
    module, _, short = name.rpartition(".")
    made = getattr(builtins, short, None)
    return module == "builtins" and isinstance(made, type) and issubclass(made, BaseException)


def _holds_number(value: Value) -> bool:
    if value.may(Kind.SCALAR) and not value.may(Kind.TENSOR):
        return True
    return value.items is not None and any(_holds_number(item) for item in value.items)


def _argument(node: ast.Call, name: str, position: int) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg == name:
            return keyword.value
    return node.args[position] if position < len(node.args) else None


def _is_off(value: ast.expr | None, frame: Frame, missing: bool) -> bool:
    """Whether a switch or a probability is certainly off; ``missing``: the answer where the argument is not given."""
    if value is None:
        return missing
    constant = frame.facts.value(value).constant
    return constant is False or (isinstance(constant, (int, float)) and constant == 0)


def effects_of(program: Program) -> Effects:
    """The effect analysis of a program, shared by all who ask; it lives as long as the program does."""
    return program.derived(_make)


def _make(program: Program) -> Effects:
    return Effects(program, frames_of(program), aliasing_of(program))

