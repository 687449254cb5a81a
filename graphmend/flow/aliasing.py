"""Where values come from: which objects an expression may be, share memory with, or hold inside.

Sources are what the obligations about identity and in-place changes need: whether a value was made here, or may be
an argument, an attribute or a global itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from graphmend.flow.cfg import Iterate
from graphmend.flow.frames import Frame, Frames, frames_of
from graphmend.flow.program import Program
from graphmend.flow.values import Bound, ExternalName, Kind, ObjectMethod, TensorMethod, Value
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.signatures import Signature

_IMMUTABLE = Kind.STATIC | Kind.SIZE | Kind.NONE | Kind.CALLABLE | Kind.SCALAR
_DEPTH = 24

MAY_RETURN_OPERAND = frozenset({
    "contiguous", "positive", "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d",
    "dropout3d", "broadcast_tensors", "meshgrid", "as_tensor", "asarray", "from_numpy", "unfold", "conj", "resolve_conj", "resolve_neg",
    "masked_select", "rrelu", "to_dense", "atleast_1d", "atleast_2d", "atleast_3d", "grad", "numpy", "pin_memory",
})  # fmt: skip
"""Operations that carry no ``view`` flag and may nevertheless give back their operand or a view of it."""
PASSING_MODULES = frozenset({
    "torch.nn.Identity", "torch.nn.Dropout", "torch.nn.Dropout1d", "torch.nn.Dropout2d", "torch.nn.Dropout3d", "torch.nn.AlphaDropout",
    "torch.nn.FeatureAlphaDropout", "torch.nn.Flatten", "torch.nn.Unflatten",
})  # fmt: skip
"""Modules that may return their argument or a view of it."""
IN_PLACE_MODULES = frozenset(
    f"torch.nn.{name}"
    for name in (
        "ReLU",
        "ReLU6",
        "LeakyReLU",
        "ELU",
        "SELU",
        "CELU",
        "SiLU",
        "Mish",
        "Hardtanh",
        "Hardswish",
        "Hardsigmoid",
        "Threshold",
        "RReLU",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "FeatureAlphaDropout",
    )  # fmt: skip
)
"""Modules that write into their argument when they were made with ``inplace=True``."""


class Origin(str, Enum):
    """Where an object comes from."""

    FRESH = "fresh"
    PARAMETER = "parameter"
    ATTRIBUTE = "attribute"
    GLOBAL = "global"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Source:
    """One object that a value may be.

    Args:
        origin: where it comes from.
        name: the parameter, the last part of the attribute's path, or the global name.
        node: for a fresh object, the expression that makes it.
    """

    origin: Origin
    name: str = ""
    node: ast.AST | None = None


Sources = frozenset[Source]
_NOTHING: Sources = frozenset()
_UNKNOWN: Sources = frozenset((Source(Origin.UNKNOWN),))


@dataclass(frozen=True)
class Mutation:
    """A place that writes into an existing object: the node that does it and the expression of what it writes into."""

    node: ast.AST
    target: ast.expr
    what: str


def is_in_place_name(name: str) -> bool:
    """Whether a tensor method of this name writes into its tensor, by torch's convention."""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


class Aliasing:
    """Sources of expressions and places of in-place changes, across functions."""

    def __init__(self, program: Program, frames: Frames) -> None:
        self.program = program
        self.frames = frames
        self._returns: dict[Function, Sources] = {}
        self._mutated: dict[Function, frozenset[str]] = {}
        self._constructed: dict[tuple[Class, str], tuple[ast.Call, ...]] = {}
        self._open: set[tuple[int, str]] = set()

    # ---------------------------------------------------------------- sources

    def sources(self, node: ast.expr, frame: Frame, at: ast.AST | None = None, depth: int = 0) -> Sources:
        """The objects that ``node`` may be, share memory with or hold, as read where statement ``at`` begins."""
        value = frame.facts.value(node)
        if value.kinds and value.only(_IMMUTABLE):
            return _NOTHING
        at = at if at is not None else frame.statement(node)
        if at is None or depth > _DEPTH:
            return _UNKNOWN
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda():
                return _NOTHING
            case ast.Name(id=name):
                return self._name(name, frame, at, depth)
            case ast.Attribute(value=owner, attr=attr):
                holder = frame.facts.value(owner)
                kept = self.sources(owner, frame, at, depth + 1)
                if holder.is_tensor:
                    return kept
                own = frozenset((Source(Origin.ATTRIBUTE, attr),))
                return own | kept if holder.may(Kind.TENSOR) else own
            case ast.Subscript(value=owner):
                return self.sources(owner, frame, at, depth + 1)
            case ast.BinOp(left=left, right=right):
                return self._operation([left, right], node, frame, at, depth)
            case ast.UnaryOp(op=op, operand=operand):
                kept = self.sources(operand, frame, at, depth + 1) if isinstance(op, ast.UAdd) else _NOTHING
                return kept | {Source(Origin.FRESH, node=node)}
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return self._union(parts, frame, at, depth) | {Source(Origin.FRESH, node=node)}
            case ast.Dict(values=parts):
                return self._union(parts, frame, at, depth) | {Source(Origin.FRESH, node=node)}
            case ast.Starred(value=inner) | ast.NamedExpr(value=inner):
                return self.sources(inner, frame, at, depth + 1)
            case ast.IfExp(body=body, orelse=orelse):
                return self._union([body, orelse], frame, at, depth)
            case ast.BoolOp(values=parts):
                return self._union(parts, frame, at, depth)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                iterables = [generator.iter for generator in node.generators]
                made = node.value if isinstance(node, ast.DictComp) else node.elt
                kept = self.sources(made, frame, at, depth + 1) - _UNKNOWN
                return kept | self._union(iterables, frame, at, depth) | {Source(Origin.FRESH, node=node)}
            case ast.Call():
                return self._call(node, frame, at, depth)
        return _UNKNOWN

    def name_sources(self, name: str, frame: Frame, at: ast.AST) -> Sources:
        """The objects that a local name may stand for where statement ``at`` begins."""
        return self._name(name, frame, at, 0)

    def _union(self, nodes: Iterable[ast.expr], frame: Frame, at: ast.AST, depth: int) -> Sources:
        return frozenset(source for node in nodes for source in self.sources(node, frame, at, depth + 1))

    def _operation(self, operands: list[ast.expr], node: ast.expr, frame: Frame, at: ast.AST, depth: int) -> Sources:
        made = frozenset((Source(Origin.FRESH, node=node),))
        if any(frame.facts.value(operand).may(Kind.CONTAINER | Kind.OBJECT) for operand in operands):
            return made | self._union(operands, frame, at, depth)
        return made

    def _name(self, name: str, frame: Frame, at: ast.AST, depth: int) -> Sources:
        if name not in frame.function.locals or name in frame.names.declared_outside:
            return frozenset((Source(Origin.GLOBAL, name),))
        definitions = frame.names.definitions(name, at)
        if definitions is None:
            return _UNKNOWN
        found: set[Source] = set()
        for item in definitions:
            key = (id(item), name)
            if item is None:
                if name in {parameter.arg for parameter in frame.function.parameters}:
                    found.add(Source(Origin.PARAMETER, name))
            elif key not in self._open:  # in a loop a name may be made of itself, which adds nothing
                self._open.add(key)
                found |= self._definition(name, item, frame, depth + 1)
                self._open.discard(key)
        return frozenset(found)

    def _definition(self, name: str, item: object, frame: Frame, depth: int) -> Sources:
        match item:
            case ast.Assign(targets=targets, value=value):
                found: set[Source] = set()
                for target in targets:
                    if name in {
                        node.id
                        for node in ast.walk(target)
                        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                    }:
                        part = _matching(target, value, name)
                        # What a container holds is among its own sources.
                        found |= self.sources(part if part is not None else value, frame, item, depth)
                return frozenset(found) or self.sources(value, frame, item, depth)
            case ast.AnnAssign(value=value) if value is not None:
                return self.sources(value, frame, item, depth)
            case ast.AugAssign(target=ast.Name()):
                # `x += y` may be in place: the result may be the object that the name stood for.
                return self._name(name, frame, item, depth) | {Source(Origin.FRESH, node=item)}
            case Iterate(statement=loop):
                return self.sources(loop.iter, frame, loop, depth)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
                return _NOTHING
        if isinstance(item, ast.AST):
            for node in ast.walk(item):
                if isinstance(node, ast.NamedExpr) and node.target.id == name:
                    return self.sources(node.value, frame, item, depth)
        return _UNKNOWN

    def _call(self, node: ast.Call, frame: Frame, at: ast.AST, depth: int) -> Sources:
        callee = frame.facts.value(node.func)
        fresh = frozenset((Source(Origin.FRESH, node=node),))
        arguments: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not callee.kinds or callee.may(Kind.UNKNOWN | Kind.STATIC) and not callee.targets:
            return self._union(arguments, frame, at, depth) | _UNKNOWN
        found: set[Source] = set()
        for target in callee.targets:
            match target:
                case TensorMethod(name=name):
                    assert isinstance(node.func, ast.Attribute)
                    found |= self._torch(self.program.torch.method(name), name, node.func.value, node, frame, at, depth)
                case ExternalName(name=name):
                    found |= self._external(name, node, frame, at, depth)
                case Function():
                    found |= self._function(target, None, node, frame, at, depth)
                case Bound(function=function):
                    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                    found |= self._function(function, receiver, node, frame, at, depth)
                case ObjectMethod(owner="list" | "dict") if isinstance(node.func, ast.Attribute):
                    found |= self.sources(node.func.value, frame, at, depth + 1) | self._union(
                        arguments, frame, at, depth
                    )
                case Class():
                    found |= self._union(arguments, frame, at, depth)
                case _:
                    found |= self._union(arguments, frame, at, depth) | _UNKNOWN
        if callee.may(Kind.OBJECT):
            for cls in callee.classes:
                if isinstance(cls, ExternalName):
                    if (
                        cls.name in PASSING_MODULES
                        or cls.name in IN_PLACE_MODULES
                        or cls.name in self.program.torch.module_containers
                    ):
                        found |= self._union(arguments, frame, at, depth)
                    elif not self.program.is_module(cls):
                        found |= _UNKNOWN
                else:
                    method = self.program.index.method(cls, "forward" if self.program.is_module(cls) else "__call__")
                    found |= self._function(method, node.func, node, frame, at, depth) if method else _UNKNOWN
        return frozenset(found) | fresh

    def _external(self, name: str, node: ast.Call, frame: Frame, at: ast.AST, depth: int) -> Sources:
        arguments: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
        signature = self.program.torch.function(name)
        if signature is not None:
            return self._torch(signature, signature.name, node.args[0] if node.args else None, node, frame, at, depth)
        last = name.rpartition(".")[2]
        if name in self.program.torch.tensors or name.startswith("torch.") and is_in_place_name(last):
            return self._union(arguments, frame, at, depth)
        if name == "builtins.getattr" and len(node.args) > 1:
            attr = node.args[1]
            own = (
                Source(Origin.ATTRIBUTE, attr.value)
                if isinstance(attr, ast.Constant) and isinstance(attr.value, str)
                else Source(Origin.UNKNOWN)
            )
            return frozenset((own,)) | self._union(node.args[2:], frame, at, depth)
        if self.program.python.is_pure(name):
            return self._union(arguments, frame, at, depth)
        return self._union(arguments, frame, at, depth) | _UNKNOWN

    def _torch(
        self,
        signature: Signature | None,
        name: str,
        first: ast.expr | None,
        node: ast.Call,
        frame: Frame,
        at: ast.AST,
        depth: int,
    ) -> Sources:
        if signature is None:
            return _UNKNOWN | (self.sources(first, frame, at, depth + 1) if first is not None else _NOTHING)
        returned = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        if signature.has("view") or signature.has("mutates") or name in MAY_RETURN_OPERAND or _is_in_place(node):
            returned += [first] if first is not None else []
            returned += [keyword.value for keyword in node.keywords if keyword.arg in ("input", "data", "self")]
        return self._union(returned, frame, at, depth)

    def _function(
        self, function: Function, receiver: ast.expr | None, node: ast.Call, frame: Frame, at: ast.AST, depth: int
    ) -> Sources:
        """The caller's view of what a function returns."""
        found: set[Source] = set()
        arguments = bind_arguments(function, receiver, node)
        for source in self.returned(function):
            if source.origin is Origin.PARAMETER:
                given = arguments.get(source.name) if arguments is not None else None
                if arguments is None:
                    found |= self._union([*node.args, *(keyword.value for keyword in node.keywords)], frame, at, depth)
                elif given is not None:
                    found |= self.sources(given, frame, at, depth + 1)
            elif source.origin is not Origin.FRESH:
                found.add(source)
        return frozenset(found)

    def returned(self, function: Function) -> Sources:
        """The sources of what a function returns, in terms of its own parameters."""
        known = self._returns.get(function)
        if known is not None:
            return known
        self._returns[function] = _UNKNOWN  # cuts recursion
        state = self.program.states.get(function)
        if state is None or state.graph is None:
            return _UNKNOWN
        frame = self.frames.frame(function)
        found: set[Source] = set()
        for node in walk_scope(function.body):
            if isinstance(node, ast.Return) and node.value is not None and id(node) in frame.facts.reached:
                found |= self.sources(node.value, frame, node)
            elif isinstance(node, (ast.Yield, ast.YieldFrom)):
                found |= _UNKNOWN
        result = self._returns[function] = frozenset(found)
        return result

    # ---------------------------------------------------------------- in-place changes

    def mutations(self, roots: Iterable[ast.AST], frame: Frame) -> Iterator[Mutation]:
        """The places among ``roots`` that write into existing objects, those in called functions at their calls."""
        for node in walk_scope(roots):
            yield from self.mutations_of(node, frame)

    def mutations_of(self, node: ast.AST, frame: Frame) -> Iterator[Mutation]:
        """The objects that one node itself writes into."""
        facts = frame.facts
        match node:
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                yield Mutation(node, owner, "assigns to an element")
            case ast.AugAssign(target=ast.Name() | ast.Attribute() as target):
                held = _read_value(target, frame)
                if held.may(Kind.TENSOR | Kind.CONTAINER | Kind.UNKNOWN | Kind.OBJECT) or not held.kinds:
                    yield Mutation(node, target, "is changed in place by an augmented assignment")
            case ast.Call():
                callee = facts.value(node.func)
                for called in callee.targets:
                    yield from self._target_mutations(called, node, frame)
                yield from self._keyword_mutations(node)
                if not callee.targets and isinstance(node.func, ast.Attribute):
                    name = node.func.attr
                    if (
                        is_in_place_name(name)
                        or name in self.program.python.writers
                        and callee.may(Kind.UNKNOWN | Kind.STATIC)
                    ):
                        yield Mutation(node, node.func.value, f"`{name}` changes its object")
                if callee.may(Kind.OBJECT):
                    yield from self._object_mutations(callee, node, frame)

    def _target_mutations(self, target: object, node: ast.Call, frame: Frame) -> Iterator[Mutation]:
        match target:
            case TensorMethod(name=name):
                signature = self.program.torch.method(name)
                if (signature is not None and signature.has("mutates") or is_in_place_name(name)) and isinstance(
                    node.func, ast.Attribute
                ):
                    yield Mutation(node, node.func.value, f"`{name}` writes in place")
            case ExternalName(name=name):
                signature = self.program.torch.function(name)
                last = name.rpartition(".")[2]
                if node.args and (
                    signature is not None
                    and signature.has("mutates")
                    or name.startswith("torch.")
                    and is_in_place_name(last)
                ):
                    yield Mutation(node, node.args[0], f"`{last}` writes in place")
            case ObjectMethod(owner="list" | "dict", name=name) if name in self.program.python.writers:
                assert isinstance(node.func, ast.Attribute)
                yield Mutation(node, node.func.value, f"`{name}` changes a container")
            case Function():
                yield from self._callee_mutations(target, None, node)
            case Bound(function=function):
                yield from self._callee_mutations(
                    function, node.func.value if isinstance(node.func, ast.Attribute) else None, node
                )

    def _object_mutations(self, callee: Value, node: ast.Call, frame: Frame) -> Iterator[Mutation]:
        for cls in callee.classes:
            if isinstance(cls, Class):
                method = self.program.index.method(cls, "forward" if self.program.is_module(cls) else "__call__")
                if method is not None:
                    yield from self._callee_mutations(method, node.func, node)
            elif cls.name in IN_PLACE_MODULES and node.args and self.may_be_in_place(node.func, frame):
                yield Mutation(node, node.args[0], f"`{cls.name.rpartition('.')[2]}` may work in place")

    @staticmethod
    def _keyword_mutations(node: ast.Call) -> Iterator[Mutation]:
        for keyword in node.keywords:
            if keyword.arg == "out":
                yield Mutation(node, keyword.value, "`out=` writes into it")
        if _is_in_place(node):
            operand = node.args[0] if node.args else None
            if operand is not None:
                yield Mutation(node, operand, "`inplace=` writes into it")

    def _callee_mutations(self, function: Function, receiver: ast.expr | None, node: ast.Call) -> Iterator[Mutation]:
        names = self.mutated_parameters(function)
        if not names:
            return
        arguments = bind_arguments(function, receiver, node)
        if arguments is None:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield Mutation(node, argument, f"`{function.name}` may change it in place")
            return
        for name in sorted(names):
            if name in arguments:
                yield Mutation(node, arguments[name], f"`{function.name}` changes it in place")

    def mutated_parameters(self, function: Function) -> frozenset[str]:
        """The parameters whose object (or what it shares memory with) a function may write into.

        Writes to attributes of a parameter are not among them.
        """
        known = self._mutated.get(function)
        if known is not None:
            return known
        # Cuts recursion: while a function is looked at, calls of it may change all that they are given.
        self._mutated[function] = frozenset(parameter.arg for parameter in function.parameters)
        state = self.program.states.get(function)
        if state is None or state.graph is None:
            return frozenset()
        frame = self.frames.frame(function)
        found: set[str] = set()
        for mutation in self.mutations(function.body, frame):
            for source in self.sources_of(mutation, frame):
                if source.origin is Origin.PARAMETER:
                    found.add(source.name)
        result = self._mutated[function] = frozenset(found)
        return result

    def sources_of(self, mutation: Mutation, frame: Frame) -> Sources:
        """The objects that a mutation may write into."""
        target = mutation.target
        at = frame.statement(mutation.node)
        if isinstance(mutation.node, ast.AugAssign):
            if isinstance(target, ast.Name):
                return self._name(target.id, frame, mutation.node, 0)
            if isinstance(target, ast.Attribute):
                return frozenset((Source(Origin.ATTRIBUTE, target.attr),))
        return self.sources(target, frame, at)

    # ---------------------------------------------------------------- how attributes are made

    def constructions(self, cls: Class, attr: str) -> tuple[ast.Call, ...]:
        """The calls that make the module or object in ``self.<attr>`` of a class, as its ``__init__`` has them."""
        key = (cls, attr)
        known = self._constructed.get(key)
        if known is None:
            found: list[ast.Call] = []
            for base in self.program.index.mro(cls):
                method = base.methods.get("__init__") if isinstance(base, Class) else None
                for node in ast.walk(method.node) if method is not None else ():
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                        if any(isinstance(target, ast.Attribute) and target.attr == attr for target in node.targets):
                            found.append(node.value)
            known = self._constructed[key] = tuple(found)
        return known

    def made_by(self, node: ast.expr, frame: Frame) -> tuple[ast.Call, ...]:
        """The constructor calls behind ``self.<attr>``; empty if they are not known."""
        if not isinstance(node, ast.Attribute):
            return ()
        owners = [cls for cls in frame.facts.value(node.value).classes if isinstance(cls, Class)]
        calls = [self.constructions(cls, node.attr) for cls in owners]
        return tuple(call for each in calls for call in each) if calls and all(calls) else ()

    def may_be_in_place(self, node: ast.expr, frame: Frame) -> bool:
        """Whether the module that an expression stands for may have been made with ``inplace=True``."""
        calls = self.made_by(node, frame)
        return not calls or any(_may_ask_in_place(call) for call in calls)


def _may_ask_in_place(call: ast.Call) -> bool:
    given: list[ast.expr] = [keyword.value for keyword in call.keywords if keyword.arg in ("inplace", None)]
    positional = [
        argument for argument in call.args if not isinstance(argument, ast.Constant) or argument.value is True
    ]
    return any(not (isinstance(value, ast.Constant) and not value.value) for value in given) or any(
        isinstance(argument, ast.Constant) for argument in positional
    )


def _is_in_place(node: ast.Call) -> bool:
    return any(
        keyword.arg == "inplace" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in node.keywords
    )


def _read_value(target: ast.Name | ast.Attribute, frame: Frame) -> Value:
    """The value that an augmented assignment reads: the facts keep it under a node of their own."""
    for kept in frame.facts.kept:
        if (kept.__class__ is target.__class__) and getattr(kept, "lineno", 0) == target.lineno:
            if getattr(kept, "col_offset", -1) == target.col_offset:
                return frame.facts.value(kept)
    return frame.facts.value(target)


def _matching(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    """The part of an assigned value that a name gets, where the text shows it."""
    match target:
        case ast.Name():
            return value
        case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(value, (ast.Tuple, ast.List)):
            if len(targets) == len(value.elts) and not any(
                isinstance(each, ast.Starred) for each in (*targets, *value.elts)
            ):
                for each, part in zip(targets, value.elts):
                    if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(each)):
                        return _matching(each, part, name)
    return None


def bind_arguments(function: Function, receiver: ast.expr | None, node: ast.Call) -> dict[str, ast.expr] | None:
    """The argument of each parameter; ``None`` if starred arguments hide it."""
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    ):
        return None
    args = function.node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    given = [*([receiver] if receiver is not None and function.owner is not None else []), *node.args]
    bound: dict[str, ast.expr] = dict(zip(positional, given))
    if len(given) > len(positional):
        if args.vararg is None:
            return None
        bound[args.vararg.arg] = ast.copy_location(ast.Tuple(given[len(positional) :], ast.Load()), node)
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg in positional or keyword.arg in {arg.arg for arg in args.kwonlyargs}:
            bound[keyword.arg] = keyword.value
        elif args.kwarg is not None:
            bound[args.kwarg.arg] = keyword.value
    return bound


def aliasing_of(program: Program) -> Aliasing:
    """The aliasing analysis of a program, shared by all who ask; it lives as long as the program does."""
    return program.derived(_make)


def _make(program: Program) -> Aliasing:
    return Aliasing(program, frames_of(program))
