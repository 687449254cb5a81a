"""Places that write into existing objects, across functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphmend.flow.aliasing import (
    Origin,
    Source,
    Sources,
    aliasing_of,
    asks_in_place,
    bind_arguments,
    is_in_place_name,
)
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import (
    Bound,
    ClassRef,
    ExternalName,
    Kind,
    ObjectMethod,
    Target,
    TensorMethod,
    Value,
    ordered,
)
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.signatures.behaviour import behaviour

_CHANGEABLE = Kind.TENSOR | Kind.CONTAINER | Kind.UNKNOWN | Kind.OBJECT


@dataclass(frozen=True)
class Mutation:
    """A place that writes into an existing object.

    Args:
        node: the node that does it.
        target: the expression of what it writes into.
        what: how, for a person.
    """

    node: ast.AST
    target: ast.expr
    what: str


class Mutations:
    """In-place changes of the functions of a program.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.frames = frames_of(program)
        self.aliasing = aliasing_of(program)
        self._parameters: dict[Function, frozenset[str]] = {}
        self._solving: Function | None = None
        self._found: dict[Function, frozenset[str]] = {}
        self._open: dict[Function, None] = {}
        self._dependents: dict[Function, dict[Function, None]] = {}
        self._constructions: dict[tuple[Class, str], tuple[ast.Call, ...]] = {}

    # ---------------------------------------------------------------- asking

    def below(self, roots: Iterable[ast.AST], frame: Frame) -> Iterator[Mutation]:
        """The changes that some statements or expressions make, those of called functions at their calls."""
        for node in walk_scope(roots):
            yield from self.of(node, frame)

    def of(self, node: ast.AST, frame: Frame) -> Iterator[Mutation]:
        """The changes that one node itself makes."""
        match node:
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                yield Mutation(node, owner, "assigns to an element")
            case ast.AugAssign(target=ast.Name() | ast.Attribute() as target):
                held = _held(target, frame)
                if (held.may(_CHANGEABLE) or not held.kinds) and not _is_tuple(target, frame):
                    yield Mutation(node, target, "is changed in place by an augmented assignment")
            case ast.Call():
                yield from self._call(node, frame)

    def sources(self, mutation: Mutation, frame: Frame) -> Sources:
        """The objects that a change may write into."""
        target = mutation.target
        if any(isinstance(each, ObjectMethod) for each in frame.facts.value(target).targets):
            return self._method_sources(target, frame, frame.statement(mutation.node))
        if isinstance(mutation.node, ast.AugAssign) and isinstance(target, ast.Name):
            return self.aliasing.name_sources(target.id, frame, mutation.node)
        looped = _looped_over(target, frame) if isinstance(target, ast.Name) else None
        if looped is not None:
            parts = looped.elts if isinstance(looped, (ast.Tuple, ast.List)) else [looped]
            at = frame.statement(mutation.node)
            return frozenset(source for part in parts for source in self.aliasing.objects(part, frame, at))
        return self.aliasing.objects(target, frame, frame.statement(mutation.node))

    def _method_sources(self, method: ast.expr, frame: Frame, at: ast.stmt | None) -> Sources:
        """The object of a method that was given a name of its own, as in ``add = self.seen.append``."""
        if isinstance(method, ast.Name) and at is not None:
            definitions = frame.names.definitions(method.id, at) or []
            made = definitions[0] if len(definitions) == 1 else None
            if isinstance(made, ast.Assign) and isinstance(made.value, ast.Attribute):
                return self.aliasing.objects(made.value.value, frame, made)
        return frozenset((Source(Origin.GLOBAL, ast.unparse(method)),))  # not known, so somebody else may hold it

    def parameters(self, function: Function) -> frozenset[str]:
        """The parameters into whose object, or what shares memory with it, a function may write.

        Writes to attributes of a parameter are not among them.
        """
        known = self._parameters.get(function)
        if known is not None:
            return known
        if self._solving is None:
            self._solve(function)
            return self._parameters[function]
        self._dependents.setdefault(function, {})[self._solving] = None
        if function not in self._found:
            self._found[function] = frozenset()
            self._open[function] = None
        return self._found[function]

    def _solve(self, function: Function) -> None:
        """Find the least solution for a function and all that it may call, recursion included."""
        self._found[function] = frozenset()
        self._open[function] = None
        try:
            while self._open:
                self._solving, _ = self._open.popitem()
                before = self._found[self._solving]
                after = before | frozenset(self._changed_parameters(self._solving))
                if after != before:
                    self._found[self._solving] = after
                    self._open.update(self._dependents.get(self._solving, {}))
            self._parameters.update(self._found)
        finally:
            self._solving = None
            for known in (self._found, self._open, self._dependents):
                known.clear()

    def _changed_parameters(self, function: Function) -> Iterator[str]:
        state = self.program.states.get(function)
        if state is None or not state.passes:
            return
        frame = self.frames.frame(function)
        for mutation in self.below(function.body, frame):
            for source in self.sources(mutation, frame):
                if source.origin is Origin.PARAMETER:
                    yield source.name

    # ---------------------------------------------------------------- calls

    def _call(self, node: ast.Call, frame: Frame) -> Iterator[Mutation]:
        callee = frame.facts.value(node.func)
        for target in ordered(callee.targets):
            yield from self._target(target, node)
        for keyword in node.keywords:
            if keyword.arg == "out":
                yield Mutation(node, keyword.value, "`out=` writes into it")
        if asks_in_place(node) and node.args:
            yield Mutation(node, node.args[0], "`inplace=` writes into it")
        if not callee.targets and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if is_in_place_name(name) or name in self.program.python.writers:
                yield Mutation(node, node.func.value, f"`{name}` changes its object")
        if callee.may(Kind.OBJECT):
            yield from self._object(callee, node, frame)
        yield from self._handed_on(node, frame)

    def _handed_on(self, node: ast.Call, frame: Frame) -> Iterator[Mutation]:
        """What a function that is handed to a call writes into: its own object, or anything else that is handed on."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for argument in given:
            for target in ordered(frame.facts.value(argument).targets):
                others: list[ast.expr] = []
                if isinstance(target, TensorMethod) and self._writes(target.name, method=True):
                    others = [argument.value] if isinstance(argument, ast.Attribute) else given
                elif isinstance(target, ExternalName) and self._writes(target.name, method=False):
                    others = given
                elif isinstance(target, Function) and self.parameters(target):
                    others = given
                for other in others:
                    if other is not argument:
                        parts = other.elts if isinstance(other, (ast.Tuple, ast.List)) else [other]
                        what = f"`{brief(argument)}`, which is handed to a call, writes in place"
                        yield from (Mutation(node, part, what) for part in parts)

    def _target(self, target: Target, node: ast.Call) -> Iterator[Mutation]:
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        match target:
            case TensorMethod(name=name) if self._writes(name, method=True):
                if receiver is None and isinstance(node.func, ast.Call) and node.func.args:
                    receiver = node.func.args[0]  # getattr(x, "add_")(1)
                if receiver is not None:
                    yield Mutation(node, receiver, f"`{name}` writes in place")
            case ExternalName(name=name) if node.args and self._writes(name, method=False):
                first = node.args[0]  # of `torch._foreach_add_`, a list of tensors
                for written in first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first]:
                    yield Mutation(node, written, f"`{name.rpartition('.')[2]}` writes in place")
            case ObjectMethod(owner="list" | "dict", name=name) if name in self.program.python.writers:
                yield Mutation(node, receiver or node.func, f"`{name}` changes a container")
            case Function():
                yield from self._function(target, None, node)
            case Bound(function=function):
                yield from self._function(function, receiver, node)

    def _writes(self, name: str, *, method: bool) -> bool:
        signature = self.program.torch.method(name) if method else self.program.torch.function(name)
        if signature is not None and signature.has("mutates"):
            return True
        if not method and name in behaviour().changing:
            return True
        return is_in_place_name(name) and (method or name.startswith("torch."))

    def _object(self, callee: Value, node: ast.Call, frame: Frame) -> Iterator[Mutation]:
        for cls in ordered(callee.classes):
            if isinstance(cls, Class):
                method = self.program.index.method(cls, "forward" if self.program.is_module(cls) else "__call__")
                if method is not None:
                    yield from self._function(method, node.func, node)
            elif cls.name in behaviour().in_place_modules and node.args:
                calls = self.made_by(node.func, frame)
                if not calls or any(_may_ask_in_place(call, behaviour().in_place_modules[cls.name]) for call in calls):
                    yield Mutation(node, node.args[0], f"`{cls.name.rpartition('.')[2]}` may work in place")
            elif cls.name in self.program.torch.module_containers and node.args:
                made = self.made_by(node.func, frame)
                if self._stages_write(callee, made[0] if len(made) == 1 else None):
                    yield Mutation(node, node.args[0], f"a stage of `{brief(node.func)}` may work in place")

    def _stages_write(self, container: Value, made: ast.Call | None) -> bool:
        """Whether one of the modules that a container runs in turn writes into what the container is given.

        Args:
            container: the container.
            made: the constructor call that made it, if that is known.
        """
        stages = container.items
        if stages is None:
            # In which order they run is not known: what makes a new tensor is taken to be in front.
            element = container.element
            writing = behaviour().in_place_modules
            return (
                element is not None
                and all(self._keeps(cls) or cls.name in writing for cls in element.classes)
                and self._writes_in(element)
            )
        plain = made is not None and len(made.args) == len(stages)
        for position, stage in enumerate(stages):
            given = made.args[position] if made is not None and plain else None
            if self._writes_in(stage, given if isinstance(given, ast.Call) else None):
                return True
            if not all(self._keeps(cls) for cls in stage.classes):
                return False  # the next stages get a tensor that this one made
        return False

    def _writes_in(self, stage: Value, made: ast.Call | None = None) -> bool:
        """Whether a stage of a container may write into its argument; ``made`` is the constructor call, if known."""
        for cls in stage.classes:
            if isinstance(cls, Class):
                forward = self.program.index.method(cls, "forward")
                if forward is not None and self.parameters(forward) - {forward.parameters[0].arg}:
                    return True
            elif cls.name in behaviour().in_place_modules:
                if made is None or _may_ask_in_place(made, behaviour().in_place_modules[cls.name]):
                    return True
            elif cls.name in self.program.torch.module_containers and self._stages_write(stage, made):
                return True
        return False

    def _keeps(self, cls: ClassRef) -> bool:
        """Whether a module may hand on the tensor that it is given."""
        if isinstance(cls, Class):
            return True
        tables = behaviour()
        return cls.name in tables.passing_modules | self.program.torch.module_containers

    def _function(self, function: Function, receiver: ast.expr | None, node: ast.Call) -> Iterator[Mutation]:
        names = self.parameters(function)
        arguments = bind_arguments(function, receiver, node) if names else {}
        if arguments is None:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield Mutation(node, argument, f"`{function.name}` may change it in place")
            return
        for name in sorted(names & arguments.keys()):
            yield Mutation(node, arguments[name], f"`{function.name}` changes it in place")

    # ---------------------------------------------------------------- how modules are made

    def made_by(self, node: ast.expr, frame: Frame) -> tuple[ast.Call, ...]:
        """The constructor calls behind ``self.<attr>``; empty if they are not known."""
        if not isinstance(node, ast.Attribute):
            return ()
        owners = [cls for cls in frame.facts.value(node.value).classes if isinstance(cls, Class)]
        calls = [self._constructed(cls, node.attr) for cls in owners]
        return tuple(call for each in calls for call in each) if calls and all(calls) else ()

    def _constructed(self, cls: Class, attr: str) -> tuple[ast.Call, ...]:
        """The calls whose value the ``__init__`` of a class keeps in an attribute."""
        known = self._constructions.get((cls, attr))
        if known is None:
            methods = [base.methods.get("__init__") for base in self.program.index.mro(cls) if isinstance(base, Class)]
            known = self._constructions[cls, attr] = tuple(
                node.value
                for method in methods
                if method is not None
                for node in walk(method.node)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                if any(isinstance(target, ast.Attribute) and target.attr == attr for target in node.targets)
            )
        return known


def _may_ask_in_place(call: ast.Call, position: int) -> bool:
    """Whether a module may have been made with ``inplace=True``, the argument at a position."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("inplace", None)]
    given += call.args[position : position + 1]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(not (isinstance(value, ast.Constant) and not value.value) for value in given)


def _looped_over(target: ast.Name, frame: Frame) -> ast.expr | None:
    """What a comprehension around a name takes it from; ``None`` if none binds it."""
    parent = frame.parents.get(id(target))
    while parent is not None and not isinstance(parent, ast.stmt):
        for generator in getattr(parent, "generators", ()):
            if any(isinstance(each, ast.Name) and each.id == target.id for each in walk(generator.target)):
                found: ast.expr = generator.iter
                return found
        parent = frame.parents.get(id(parent))
    return None


def _is_tuple(target: ast.expr, frame: Frame) -> bool:
    """Whether a name certainly stands for a tuple, which an augmented assignment replaces and does not change."""
    function = frame.function
    if not isinstance(target, ast.Name) or target.id not in function.locals:
        return False
    if any(parameter.arg == target.id for parameter in function.parameters):
        return False
    stored = {
        id(node)
        for node in walk(function.node)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Store)
    }
    for node in walk_scope(function.body):
        if isinstance(node, ast.Assign) and _makes_tuple(node.value):
            stored -= {id(each) for each in node.targets}
        elif isinstance(node, ast.AugAssign):
            stored.discard(id(node.target))
    return not stored


def _makes_tuple(value: ast.expr) -> bool:
    match value:
        case ast.Tuple():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _makes_tuple(body) and _makes_tuple(orelse)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _makes_tuple(left) or _makes_tuple(right)
    return False


def _held(target: ast.Name | ast.Attribute, frame: Frame) -> Value:
    """The value that an augmented assignment reads: the facts keep it under a node of their own."""
    place, values = (type(target), target.lineno, target.col_offset), frame.facts.values
    for kept in frame.facts.kept:
        if (type(kept), getattr(kept, "lineno", 0), getattr(kept, "col_offset", 0)) == place and id(kept) in values:
            return values[id(kept)]
    return frame.facts.value(target)


def mutations_of(program: Program) -> Mutations:
    """The in-place changes of a program, shared by all who ask."""
    return program.derived(Mutations, lasting=False)
