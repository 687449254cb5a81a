"""Where values come from: which objects an expression may be, share memory with, or hold inside.

Sources are what the obligations about identity and in-place changes need: whether a value was made here, or may be
an argument, an attribute or a global itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from graphmend.flow.cfg import Item, Iterate
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.program import Program
from graphmend.flow.values import Bound, ExternalName, Kind, ObjectMethod, Target, TensorMethod, ordered
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.signatures import Signature
from graphmend.signatures.behaviour import behaviour

_MAKING = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.BinOp)
_IMMUTABLE = Kind.STATIC | Kind.SIZE | Kind.NONE | Kind.CALLABLE | Kind.SCALAR
_DEPTH = 24


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
class _Place:
    """Where an expression is read: the function, and the statement whose beginning decides what names stand for."""

    frame: Frame
    at: ast.AST
    depth: int = 0
    held: bool = True
    """Whether what a container or object holds is asked for too, or only what it is itself."""

    @property
    def deeper(self) -> _Place:
        return replace(self, depth=self.depth + 1)

    @property
    def inside(self) -> _Place:
        return replace(self, depth=self.depth + 1, held=True)


class Aliasing:
    """The sources of expressions, across functions.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.frames = frames_of(program)
        self._returned: dict[Function, Sources] = {}
        self._open: set[tuple[int, str, bool]] = set()

    # ---------------------------------------------------------------- asking

    def sources(self, node: ast.expr, frame: Frame, at: ast.AST | None = None) -> Sources:
        """The objects that ``node`` may be, share memory with or hold, as read where statement ``at`` begins.

        By default that is the statement around the node.
        """
        statement = at if at is not None else frame.statement(node)
        return self._sources(node, _Place(frame, statement)) if statement is not None else _UNKNOWN

    def objects(self, node: ast.expr, frame: Frame, at: ast.AST | None = None) -> Sources:
        """The objects that ``node`` may be or share memory with, those that it holds left out."""
        statement = at if at is not None else frame.statement(node)
        return self._sources(node, _Place(frame, statement, held=False)) if statement is not None else _UNKNOWN

    def name_sources(self, name: str, frame: Frame, at: ast.AST) -> Sources:
        """The objects that a name may stand for where statement ``at`` begins."""
        return self._name(name, _Place(frame, at))

    def returned(self, function: Function) -> Sources:
        """The sources of what a function returns, in terms of its own parameters."""
        known = self._returned.get(function)
        if known is None:
            self._returned[function] = _UNKNOWN  # cuts recursion
            known = self._returned[function] = self._returned_by(function)
        return known

    def _returned_by(self, function: Function) -> Sources:
        state = self.program.states.get(function)
        if state is None or not state.passes:
            return _UNKNOWN
        frame = self.frames.frame(function)
        if isinstance(function.node, ast.Lambda):
            return self._sources(function.node.body, _Place(frame, function.node))
        found: set[Source] = set()
        for node in walk_scope(function.body):
            if isinstance(node, ast.Return) and node.value is not None and id(node) in frame.facts.reached:
                found |= self.sources(node.value, frame, node)
            elif isinstance(node, (ast.Yield, ast.YieldFrom)):
                found |= _UNKNOWN
        return frozenset(found)

    # ---------------------------------------------------------------- expressions

    def _sources(self, node: ast.expr, place: _Place) -> Sources:
        value = place.frame.facts.value(node)
        if value.kinds and value.only(_IMMUTABLE):
            return _NOTHING
        if place.depth > _DEPTH:
            return _UNKNOWN
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda():
                return _NOTHING
            case ast.Name(id=name):
                return self._name(name, place)
            case ast.Attribute():
                return self._attribute(node, place)
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self._sources(inner, place.inside)
            case ast.NamedExpr(value=inner):
                return self._sources(inner, place.deeper)
            case ast.Call():
                return self._call(node, place)
        return self._compound(node, place)

    def _compound(self, node: ast.expr, place: _Place) -> Sources:
        fresh: Sources = frozenset((Source(Origin.FRESH, node=node),))
        if not place.held and isinstance(node, _MAKING):
            return fresh
        match node:
            case ast.BinOp(left=left, right=right):
                # Of containers and objects an operation may keep the operands' parts.
                keeps = any(place.frame.facts.value(each).may(Kind.CONTAINER | Kind.OBJECT) for each in (left, right))
                return fresh | self._union([left, right], place) if keeps else fresh
            case ast.UnaryOp(op=op, operand=operand):
                return fresh | self._union([operand], place) if isinstance(op, ast.UAdd) else fresh
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return fresh | self._union(parts, place)
            case ast.IfExp(body=body, orelse=orelse):
                return self._union([body, orelse], place)
            case ast.BoolOp(values=parts):
                return self._union(parts, place)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                made = node.value if isinstance(node, ast.DictComp) else node.elt
                # Names that the comprehension binds are elements of what it goes through.
                kept = self._sources(made, place.deeper) - _UNKNOWN
                return fresh | kept | self._union([generator.iter for generator in node.generators], place)
        return _UNKNOWN

    def _union(self, nodes: Iterable[ast.expr], place: _Place) -> Sources:
        return frozenset(source for node in nodes for source in self._sources(node, place.deeper))

    def _attribute(self, node: ast.Attribute, place: _Place) -> Sources:
        holder = place.frame.facts.value(node.value)
        if holder.is_tensor:
            return self._sources(node.value, place.deeper)
        own: Sources = frozenset((Source(Origin.ATTRIBUTE, node.attr),))
        return own | self._sources(node.value, place.deeper) if holder.may(Kind.TENSOR) else own

    # ---------------------------------------------------------------- names

    def _name(self, name: str, place: _Place) -> Sources:
        frame = place.frame
        if name not in frame.function.locals or name in frame.names.declared_outside:
            return frozenset((Source(Origin.GLOBAL, name),))
        parameter: Sources = frozenset((Source(Origin.PARAMETER, name),))
        if isinstance(frame.function.node, ast.Lambda):
            return parameter
        definitions = frame.names.definitions(name, place.at)
        if definitions is None:
            return _UNKNOWN
        found: set[Source] = set()
        for item in definitions:
            key = (id(item), name, place.held)
            if item is None:
                if name in {each.arg for each in frame.function.parameters}:
                    found |= parameter
            elif key not in self._open:  # in a loop a name may be made of itself, which adds nothing
                self._open.add(key)
                found |= self._definition(name, item, replace(place, depth=place.depth + 1))
                self._open.discard(key)
        return frozenset(found)

    def _definition(self, name: str, item: Item, place: _Place) -> Sources:
        match item:
            case ast.Assign(targets=targets, value=value):
                here = replace(place, at=item)
                found: set[Source] = set()
                for target in targets:
                    if name in _stored(target):
                        part = matching_part(target, value, name)
                        # What a container holds is among its own sources.
                        found |= self._sources(part, here) if part is not None else self._sources(value, here.inside)
                return frozenset(found)
            case ast.AnnAssign(value=value) if value is not None:
                return self._sources(value, replace(place, at=item))
            case ast.AugAssign(target=ast.Name()):
                # `x += y` may be in place: the result may be the object that the name stood for.
                return self._name(name, replace(place, at=item)) | {Source(Origin.FRESH, node=item)}
            case Iterate(statement=loop):
                return self._sources(loop.iter, replace(place, at=loop, held=True))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
                return _NOTHING
            case ast.stmt():
                bound = [node for node in walk(item) if isinstance(node, ast.NamedExpr) and node.target.id == name]
                return self._union([node.value for node in bound], replace(place, at=item)) or _UNKNOWN
        return _UNKNOWN

    # ---------------------------------------------------------------- calls

    def _call(self, node: ast.Call, place: _Place) -> Sources:
        callee = place.frame.facts.value(node.func)
        found: set[Source] = {Source(Origin.FRESH, node=node)}
        if not callee.targets and not callee.classes:
            return frozenset(found) | _UNKNOWN | self._arguments(node, place)
        for target in ordered(callee.targets):
            found |= self._target(target, node, place)
        if callee.may(Kind.OBJECT):
            for cls in ordered(callee.classes):
                found |= self._object(cls, node, place)
        return frozenset(found)

    def _arguments(self, node: ast.Call, place: _Place) -> Sources:
        return self._union([*node.args, *(keyword.value for keyword in node.keywords)], place)

    def _target(self, target: Target, node: ast.Call, place: _Place) -> Sources:
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        match target:
            case TensorMethod(name=name):
                return self._torch(self.program.torch.method(name), receiver, node, place)
            case ExternalName(name=name) if name in self.program.torch.selections:
                return self._selection(node, place)
            case ExternalName(name=name):
                return self._external(name, node, place)
            case Function():
                return self._function(target, None, node, place)
            case Bound(function=function):
                return self._function(function, receiver, node, place)
            case ObjectMethod(owner="list" | "dict") if receiver is not None:
                return self._sources(receiver, place.deeper) | self._arguments(node, place)
            case ObjectMethod(owner=owner, name=name) if self._gives_state(owner, name):
                return frozenset((Source(Origin.ATTRIBUTE, name),))
            case Class():
                return self._arguments(node, place) if place.held else _NOTHING
        return _UNKNOWN | self._arguments(node, place)

    def _gives_state(self, owner: str, name: str) -> bool:
        """Whether a method gives the parameters, buffers or modules of a module."""
        return self.program.torch.is_module_class(owner) and name in behaviour().module_readers

    def _object(self, cls: Class | ExternalName, node: ast.Call, place: _Place) -> Sources:
        if isinstance(cls, Class):
            method = self.program.index.method(cls, "forward" if self.program.is_module(cls) else "__call__")
            return self._function(method, node.func, node, place) if method is not None else _UNKNOWN
        tables = behaviour()
        passing = tables.passing_modules | self.program.torch.module_containers
        if cls.name in passing or cls.name in tables.in_place_modules:
            return self._arguments(node, place)
        return _NOTHING if self.program.is_module(cls) else _UNKNOWN

    def _external(self, name: str, node: ast.Call, place: _Place) -> Sources:
        signature = self.program.torch.function(name)
        if signature is not None:
            return self._torch(signature, node.args[0] if node.args else None, node, place)
        if name in self.program.torch.tensors or (name.startswith("torch.") and is_in_place_name(name)):
            return self._arguments(node, place)
        if name == "builtins.getattr" and len(node.args) > 1:
            attr = node.args[1]
            known = isinstance(attr, ast.Constant) and isinstance(attr.value, str)
            own = Source(Origin.ATTRIBUTE, attr.value) if known else Source(Origin.UNKNOWN)  # type: ignore[attr-defined]
            return self._union(node.args[2:], place) | {own}
        kept = self._arguments(node, place)
        return kept if self.program.python.is_pure(name) else kept | _UNKNOWN

    def _torch(self, signature: Signature | None, first: ast.expr | None, node: ast.Call, place: _Place) -> Sources:
        operand = [first] if first is not None else []
        if signature is None:
            return _UNKNOWN | self._union(operand, place)
        returned = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
        passing = signature.has("view") or signature.has("mutates") or signature.name in behaviour().may_return_operand
        if passing or asks_in_place(node):
            named = [keyword.value for keyword in node.keywords if keyword.arg in ("input", "data", "self")]
            returned += [*operand, *named]
        return self._union(returned, place)

    def _function(self, function: Function, receiver: ast.expr | None, node: ast.Call, place: _Place) -> Sources:
        """The caller's view of what a function returns."""
        found: set[Source] = set()
        arguments = bind_arguments(function, receiver, node)
        for source in self.returned(function):
            if source.origin is Origin.PARAMETER:
                if arguments is None:
                    found |= self._arguments(node, place)
                elif source.name in arguments:
                    found |= self._sources(arguments[source.name], place.deeper)
            elif source.origin is not Origin.FRESH:
                found |= self._enclosed(source, place)
        return frozenset(found)

    def _enclosed(self, source: Source, place: _Place) -> Sources:
        """A source of a nested function that is a name of the function around it."""
        if source.origin is Origin.GLOBAL and source.name in place.frame.function.locals:
            return self._name(source.name, place.deeper)
        return frozenset((source,))

    def _selection(self, node: ast.Call, place: _Place) -> Sources:
        """The result of one of two functions that are called without arguments."""
        found: set[Source] = set()
        for arm in node.args[1:3]:
            for target in ordered(place.frame.facts.value(arm).targets):
                returned = self.returned(target) if isinstance(target, Function) else _UNKNOWN
                for source in returned:
                    found |= _NOTHING if source.origin is Origin.FRESH else self._enclosed(source, place)
        return frozenset(found)


_WRITING = frozenset(
    f"__{name}__"
    for name in (
        *("setitem", "delitem", "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow"),
        *("ilshift", "irshift", "iand", "ior", "ixor", "iconcat"),
    )
)


def is_in_place_name(name: str) -> bool:
    """Whether a tensor method or torch function of this name writes into its tensor, by torch's convention."""
    last = name.rpartition(".")[2]
    if last.endswith("__"):
        return last in _WRITING
    return last.endswith("_") and last != "requires_grad_"


def asks_in_place(node: ast.Call) -> bool:
    """Whether a call may say ``inplace=True``, by name or by position."""
    given = [keyword.value for keyword in node.keywords if keyword.arg == "inplace"]
    name = (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )
    position = behaviour().in_place.get(name)
    given += node.args[position : position + 1] if position is not None else []
    return any(not (isinstance(value, ast.Constant) and not value.value) for value in given)


def _stored(target: ast.expr) -> set[str]:
    return {node.id for node in walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def matching_part(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    """The part of an assigned value that a name gets, where the text shows it."""
    match target:
        case ast.Name():
            return value
        case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(value, (ast.Tuple, ast.List)):
            parts = [*targets, *value.elts]
            if len(targets) == len(value.elts) and not any(isinstance(each, ast.Starred) for each in parts):
                for each, part in zip(targets, value.elts):
                    if name in _stored(each):
                        return matching_part(each, part, name)
    return None


def bind_arguments(function: Function, receiver: ast.expr | None, node: ast.Call) -> dict[str, ast.expr] | None:
    """The argument of each parameter; ``None`` if starred arguments hide it."""
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if starred or any(keyword.arg is None for keyword in node.keywords):
        return None
    args = function.node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    given = [*([receiver] if receiver is not None and function.owner is not None else []), *node.args]
    bound: dict[str, ast.expr] = dict(zip(positional, given))
    if len(given) > len(positional):
        if args.vararg is None:
            return None
        bound[args.vararg.arg] = ast.copy_location(ast.Tuple(given[len(positional) :], ast.Load()), node)
    named = {*positional, *(arg.arg for arg in args.kwonlyargs)}
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg in named:
            bound[keyword.arg] = keyword.value
        elif args.kwarg is not None:
            bound[args.kwarg.arg] = keyword.value
    return bound


def aliasing_of(program: Program) -> Aliasing:
    """The aliasing analysis of a program, shared by all who ask."""
    return program.derived(Aliasing, lasting=False)
