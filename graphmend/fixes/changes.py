"""Changes that are visible to others after code has run: attributes, arguments, module state, statistics of a layer.

In-place changes are looked at more closely than for purity: an element that is assigned to a list made in the function
changes nobody's tensors, though the list holds them, and a tensor out of code that is not known is taken to be new.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphmend.flow.aliasing import Origin, bind_arguments
from graphmend.flow.effects import Effect, effects_of
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.mutation import Mutation, mutations_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import Bound, Kind, Value
from graphmend.model.module import Class, Function
from graphmend.model.scopes import COMPREHENSIONS, walk_scope
from graphmend.model.tree import walk

_LASTING = frozenset({Effect.WRITES, Effect.STATEFUL})
_OUTER = frozenset({Origin.ATTRIBUTE, Origin.GLOBAL, Origin.UNKNOWN})
_DEPTH = 8
_MAKERS = frozenset({"list", "dict", "set", "tuple", "sorted", "defaultdict", "OrderedDict", "deque"})


@dataclass(frozen=True)
class Change:
    """One visible change.

    Args:
        what: what makes it, as the predicate of a sentence.
        line: its line in the file of the function that was asked about.
        node: the node that makes it there.
        memory: whether it writes into the memory of a tensor, which a graph may do earlier than the program says.
    """

    what: str
    line: int
    node: ast.AST | None
    memory: bool = False


class Changes:
    """The visible changes that code makes, through the functions that it calls.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.mutations = mutations_of(program)
        self.effects = effects_of(program)
        self.frames = frames_of(program)
        self._parameters: dict[Function, frozenset[str]] = {}
        self._outer: dict[Function, Change | None] = {}

    def of(self, roots: Sequence[ast.AST], frame: Frame) -> Iterator[Change]:
        """The visible changes of some code of a function, calls included: not those of what the code makes itself."""
        for doing in self.effects.doings(roots, frame):
            if doing.effect in _LASTING:
                yield Change(doing.what, doing.line, doing.node, doing.effect is Effect.STATEFUL)
        yield from self._in_place(roots, frame)

    def _in_place(self, roots: Iterable[ast.AST], frame: Frame) -> Iterator[Change]:
        for node, mutation, callee in self._mutations(roots, frame):
            line = getattr(node, "lineno", 0)
            if callee is not None:
                outer = self._outer_change(callee)
                if outer is not None:
                    what = f"calls `{callee.name}`, which {outer.what} (line {outer.line})"
                    yield Change(what, line, node, outer.memory)
            elif mutation is not None and self._visible(mutation, frame) - {Origin.FRESH}:
                yield self._change(mutation, node, frame)

    def _change(self, mutation: Mutation, node: ast.AST, frame: Frame) -> Change:
        tensor = frame.facts.value(mutation.target).may(Kind.TENSOR | Kind.UNKNOWN)
        memory = tensor and not self._is_call_result(mutation, frame)
        what = f"changes `{brief(mutation.target)}` ({mutation.what})"
        return Change(what, getattr(node, "lineno", 0), node, memory)

    def _is_call_result(self, mutation: Mutation, frame: Frame) -> bool:
        """Whether a mutation writes into what functions of the linted files returned: a tensor that they computed."""
        statement = frame.statement(mutation.node)
        if statement is None or not isinstance(mutation.target, ast.Name):
            return False
        definitions = frame.names.definitions(mutation.target.id, statement)
        return bool(definitions) and all(
            isinstance(item, ast.Assign) and bool(callees_of(item.value, frame, self.program))
            for item in definitions or ()
        )

    def _mutations(
        self, roots: Iterable[ast.AST], frame: Frame
    ) -> Iterator[tuple[ast.AST, Mutation | None, Function | None]]:
        """The in-place changes of some code, and the functions that it calls."""
        for node in walk_scope(roots):
            if not _is_reached(node, frame):
                continue
            for mutation in self.mutations.of(node, frame):
                yield node, mutation, None
            for callee in callees_of(node, frame, self.program):
                yield node, None, callee

    def _visible(self, mutation: Mutation, frame: Frame) -> frozenset[Origin]:
        """Where the objects that a mutation certainly or possibly writes into come from; empty if nobody sees it."""
        if self._is_passed_only(mutation, frame) or self._is_own_container(mutation, frame):
            return frozenset()
        origins = frozenset(source.origin for source in self.mutations.sources(mutation, frame))
        guessed = Origin.UNKNOWN in origins and _is_of_tensor(mutation, frame)
        return frozenset() if guessed else origins

    def _is_passed_only(self, mutation: Mutation, frame: Frame) -> bool:
        """Whether a call hands over an object that none of the called functions writes into after all."""
        node = mutation.node
        callees = callees_of(node, frame, self.program)
        if not callees:
            return False
        assert isinstance(node, ast.Call)
        for callee in callees:
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            given = bind_arguments(callee, receiver, node)
            if given is None or not any(argument is mutation.target for argument in given.values()):
                return False
            if self._parameters_of(callee) & {name for name, argument in given.items() if argument is mutation.target}:
                return False
        return True

    def _is_own_container(self, mutation: Mutation, frame: Frame) -> bool:
        """Whether a mutation changes a list or dictionary that the function, or one that it called, made."""
        target = mutation.target
        statement = frame.statement(mutation.node)
        if statement is None or not isinstance(target, ast.Name) or not frame.facts.value(target).only(Kind.CONTAINER):
            return False
        return self._makes(target, statement, frame, _DEPTH)

    def _makes(self, node: ast.expr, at: ast.stmt, frame: Frame, depth: int, part: int | None = None) -> bool:
        """Whether an expression, or one part of the tuple that it is, is a container that was made on the way."""
        if depth == 0:
            return False
        match node:
            case ast.Tuple(elts=elements) if part is not None:
                return part < len(elements) and self._makes(elements[part], at, frame, depth - 1)
            case ast.Name(id=name):
                definitions = frame.names.definitions(name, at)
                return bool(definitions) and all(
                    self._binds(item, name, frame, depth - 1, part) for item in definitions or ()
                )
            case ast.Call():
                callees = callees_of(node, frame, self.program)
                if callees:
                    return all(self._returns(callee, depth - 1, part) for callee in callees)
        return part is None and _is_container(node)

    def _binds(self, item: object, name: str, frame: Frame, depth: int, part: int | None) -> bool:
        """Whether a definition binds a name to a container that was made on the way."""
        match item:
            case ast.Assign(targets=[ast.Name()], value=value):
                return self._makes(value, item, frame, depth, part)
            case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
                return self._makes(value, item, frame, depth, part)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value) if part is None:
                names = [target.id if isinstance(target, ast.Name) else "" for target in targets]
                return names.count(name) == 1 and self._makes(value, item, frame, depth, names.index(name))
        return False

    def _returns(self, function: Function, depth: int, part: int | None) -> bool:
        """Whether what a function returns, or a part of it, is a container that it made."""
        frame = self.frames.frame(function)
        returned = [node for node in walk_scope(function.body) if isinstance(node, ast.Return)]
        return bool(returned) and all(
            node.value is not None and self._makes(node.value, node, frame, depth, part) for node in returned
        )

    def _parameters_of(self, function: Function) -> frozenset[str]:
        """The parameters whose object a function may write into."""
        known = self._parameters.get(function)
        if known is None:
            # Cuts recursion: while a function is looked at, calls of it may change all that they are given.
            self._parameters[function] = frozenset(parameter.arg for parameter in function.parameters)
            frame = self.frames.frame(function)
            found: set[str] = set()
            for _, mutation, _ in self._mutations(function.body, frame):
                if mutation is not None and self._visible(mutation, frame):
                    sources = self.mutations.sources(mutation, frame)
                    found |= {source.name for source in sources if source.origin is Origin.PARAMETER}
            known = self._parameters[function] = frozenset(found)
        return known

    def _outer_change(self, function: Function) -> Change | None:
        """An in-place change that a function makes to something other than its arguments."""
        if function in self._outer:
            return self._outer[function]
        self._outer[function] = None
        if function not in self.program.states:
            return None
        frame = self.frames.frame(function)
        for node, mutation, callee in self._mutations(function.body, frame):
            if callee is not None and callee is not function:
                inner = self._outer_change(callee)
                if inner is not None:
                    self._outer[function] = Change(inner.what, inner.line, node, inner.memory)
                    break
            elif mutation is not None and self._visible(mutation, frame) & _OUTER:
                self._outer[function] = self._change(mutation, node, frame)
                break
        return self._outer[function]


def callees_of(node: ast.AST, frame: Frame, program: Program) -> set[Function]:
    """The functions of the linted files that a call may run."""
    if not isinstance(node, ast.Call):
        return set()
    value = frame.facts.value(node.func)
    found = {target for target in value.targets if isinstance(target, Function)}
    found |= {target.function for target in value.targets if isinstance(target, Bound)}
    stack: list[Value] = [value] if value.may(Kind.OBJECT) else []
    while stack:
        each = stack.pop()
        stack += [*(each.items or ()), *([each.element] if each.element is not None else [])]
        for cls in each.classes:
            name = "forward" if program.is_module(cls) else "__call__"
            method = program.index.method(cls, name) if isinstance(cls, Class) else None
            found |= {method} if method is not None else set()
    return {function for function in found if function in program.states and not program.cut(function)}


def _is_reached(node: ast.AST, frame: Frame) -> bool:
    if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return id(node) in frame.facts.values
    return True


def _is_container(node: ast.expr) -> bool:
    """Whether an expression makes a list, dictionary or the like."""
    match node:
        case ast.List() | ast.Dict() | ast.Set() | ast.BinOp(left=ast.List()):
            return True
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
            return called in _MAKERS
    return isinstance(node, COMPREHENSIONS)


def _is_of_tensor(mutation: Mutation, frame: Frame) -> bool:
    """Whether what is written into is a tensor, as far as is known: only tensors have slices in several dimensions."""
    if frame.facts.value(mutation.target).may(Kind.TENSOR):
        return True
    index = mutation.node.slice if isinstance(mutation.node, ast.Subscript) else None
    parts = walk(index) if index is not None else ()
    return any(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts)


def changes_of(program: Program) -> Changes:
    """The changes of a program, shared by all who ask; they live as long as the program does."""
    return program.derived(Changes, lasting=False)
