"""The effects of code: what running it does besides computing a value, through the functions that it calls.

Effects are those that matter while tracing: code that tracing never reaches has none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.flow.aliasing import Origin, Source, aliasing_of, bind_arguments
from graphmend.flow.callees import Callees
from graphmend.flow.doings import IMPURE, PARTIAL, Doing, Effect
from graphmend.flow.failures import ends_tracing, failures
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.implicit import Implicit
from graphmend.flow.mutation import mutations_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName
from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.regions.entries import EFFECTS, decorator_names
from graphmend.signatures.behaviour import behaviour

_STORING = frozenset({"__setattr__", "__delattr__", "__setitem__", "__delitem__"})
"""The methods behind the statements that store, which may be called by name."""


class Effects:
    """The effects of the functions of a program.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.frames = frames_of(program)
        self.aliasing = aliasing_of(program)
        self.mutations = mutations_of(program)
        self.implicit = Implicit(program)
        self._unwritten: set[Function] = set()
        """Functions that are run without a call that is written."""
        self.callees = Callees(program, self._follow, self.of_function)
        self._own: dict[Frame, tuple[tuple[Doing, ...], tuple[Frame, ...]]] = {}
        self._all: dict[Frame, tuple[tuple[Doing, Function], ...]] = {}

    # ---------------------------------------------------------------- asking

    def doings(self, roots: Iterable[ast.AST], frame: Frame) -> list[Doing]:
        """What some statements or expressions of a function do, calls included.

        Writes into objects that they make themselves are nobody's business and left out.
        """
        nodes = list(roots)
        inside = {id(node) for root in nodes for node in walk(root)}
        return [doing for node in walk_scope(nodes) for doing in self._node(node, frame, inside, None)]

    def of_function(self, function: Function) -> tuple[tuple[Doing, Function], ...]:
        """Everything that calling a function may do, each with the function whose text does it."""
        if not self._is_analysed(function):
            return ((Doing(Effect.UNKNOWN, "is not analysed", function.node), function),)
        return self._of_frame(self.frames.frame(function))

    def _is_analysed(self, function: Function) -> bool:
        state = self.program.states.get(function)
        return state is not None and state.passes > 0

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
            inside = {id(node) for statement in body for node in walk(statement)}
            callees: list[Frame] = []
            own = [doing for node in walk_scope(body) for doing in self._node(node, frame, inside, callees)]
            known = self._own[frame] = (tuple(own), tuple(dict.fromkeys(callees)))
        return known

    # ---------------------------------------------------------------- one node

    def _node(self, node: ast.AST, frame: Frame, inside: set[int], callees: list[Frame] | None) -> Iterator[Doing]:
        """The effects of one node without its children; with ``callees``, called functions are only collected there."""
        if not _is_reached(node, frame):
            return
        match node:
            case ast.Call():
                yield from self.callees.doings(node, frame, callees)
                if isinstance(node.func, ast.Attribute) and node.func.attr in _STORING:
                    yield Doing(Effect.WRITES, f"calls `{node.func.attr}`", node)
            case ast.Attribute(value=owner, attr=attr, ctx=ast.Store() | ast.Del()):
                if not _all_fresh(self.aliasing.objects(owner, frame), inside):
                    yield Doing(Effect.WRITES, f"writes the attribute `{attr}`", node, attr, owner)
            case ast.With():
                yield from self._contexts(node, frame)
            case ast.Global() | ast.Nonlocal():
                yield Doing(Effect.WRITES, f"may write the outer name `{node.names[0]}`", node)
            case ast.Import() | ast.ImportFrom():
                yield Doing(Effect.UNKNOWN, "imports a module", node)
            case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield Doing(Effect.SUSPENDS, "suspends the function", node)
            case _:
                yield from failures(node, frame)
        yield from self._implicit(node, frame, callees)
        for mutation in self.mutations.of(node, frame):
            if not _all_fresh(self.mutations.sources(mutation, frame), inside):
                yield Doing(Effect.MUTATES, f"changes `{brief(mutation.target)}` ({mutation.what})", node)

    def _contexts(self, node: ast.With, frame: Frame) -> Iterator[Doing]:
        for item in node.items:
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            names = {target.name for target in frame.facts.value(called).targets if isinstance(target, ExternalName)}
            if not names or not names <= behaviour().contexts:
                what = f"enters the context manager `{brief(item.context_expr)}`"
                yield Doing(Effect.UNKNOWN, what, item.context_expr)

    def _implicit(self, node: ast.AST, frame: Frame, callees: list[Frame] | None) -> Iterator[Doing]:
        """The effects of code that a node runs without calling it by name."""
        if ends_tracing(frame.statement(node), frame):
            return
        for run in self.implicit.run_by(node, frame):
            if isinstance(run, str):
                yield Doing(Effect.UNKNOWN, run, node)
            else:
                self._unwritten.add(run)
                if not self._is_analysed(run):
                    self.program.look_into(run)
                yield from self._follow(run, None, None, node, frame, callees)

    # ---------------------------------------------------------------- called functions

    def _follow(
        self,
        function: Function,
        receiver: ast.expr | None,
        call: ast.Call | None,
        node: ast.AST,
        frame: Frame,
        callees: list[Frame] | None,
    ) -> Iterator[Doing]:
        """The effects of a called function, told from the place of the call."""
        special = self._special(function, node)
        if special is not None:
            yield from special
            return
        if not self._is_analysed(function):
            yield Doing(Effect.UNKNOWN, f"calls `{function.name}`, which is not analysed", node)
            return
        arguments = bind_arguments(function, receiver, call) if call is not None else None
        values = {name: frame.facts.value(given) for name, given in (arguments or {}).items()}
        called = self.frames.for_call(function, values, frame)
        if callees is not None:
            callees.append(called)
            return
        for doing, owner in self._of_frame(called):
            # What a function changes of its own arguments is told by the look at what it is handed.
            if doing.effect is not Effect.MUTATES or not self._only_own(doing, owner):
                yield told(doing, owner, node, frame.function)

    def _special(self, function: Function, node: ast.AST) -> list[Doing] | None:
        """What is known of a function without looking into it; ``None``: nothing."""
        if self.program.is_runtime(function.module):
            what = f"calls the effect runtime (`{function.name}`)"
            return [] if function.name == "select" else [Doing(Effect.MESSAGE, what, node)]
        if decorator_names(self.program.index, function) & EFFECTS:
            return [Doing(Effect.MESSAGE, f"calls the effect `{function.name}`", node)]
        if self.program.cut(function):
            what = f"calls `{function.name}`, which the compiler is told not to trace"
            return [Doing(Effect.UNKNOWN, what, node)]
        return None

    def _only_own(self, doing: Doing, owner: Function) -> bool:
        """Whether what a function changes in place is one of its own arguments (or made by it) and nothing else."""
        if owner in self._unwritten:
            return False  # no call shows what it is handed
        frame = self.frames.frame(owner)
        return all(
            source.origin in (Origin.PARAMETER, Origin.FRESH)
            for mutation in self.mutations.of(doing.node, frame)
            for source in self.mutations.sources(mutation, frame)
        )


def told(doing: Doing, owner: Function, node: ast.AST, asker: Function) -> Doing:
    """An effect of a called function, as an effect of the call."""
    place = f"line {doing.line}" if owner.module is asker.module else f"{owner.module.path}:{doing.line}"
    return Doing(doing.effect, f"calls `{owner.name}`, which {doing.what} ({place})", node, doing.attribute)


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


def effects_of(program: Program) -> Effects:
    """The effects of a program, shared by all who ask."""
    return program.derived(Effects, lasting=False)


__all__ = ["IMPURE", "PARTIAL", "Doing", "Effect", "Effects", "effects_of", "told"]
