"""The way of an exception out of the region: the calls it passes, and what else may run them.

A raise that becomes an operator of the graph leaves the whole graph: from the function of the site through all its
traced callers, nothing may catch it, and no visible state may change before it.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphmend.fixes.changes import callees_of
from graphmend.fixes.replaced import Replacements
from graphmend.fixes.site import Site
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.program import Program
from graphmend.flow.values import Kind
from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope

WITH = (ast.With, ast.AsyncWith)
_CALLING = ("__call__", "_call_impl", "_wrapped_call_impl")


@dataclass(frozen=True)
class Place:
    """A node of one function's own code through which the exception passes.

    Args:
        frame: the function.
        node: the statement or call; ``None`` if it is not known where in the function.
        unknown: whether it is a call of which it is not known what it runs.
    """

    frame: Frame
    node: ast.AST | None
    unknown: bool = False


def places(site: Site, concerns: Callable[[Function], bool] = lambda _: True) -> Iterator[Place]:
    """The places through which an exception of a site passes, from the site outwards.

    Args:
        site: where the exception is raised.
        concerns: which functions are of interest; the others are passed through, without a closer look.
    """
    frames = frames_of(site.program)
    yield Place(frames.frame(site.function, site.facts), site.statement)
    seen: set[Function] = set()
    pending = [site.function]
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        state = site.program.states.get(function)
        for caller, lines in state.callers.items() if state is not None else ():
            if site.program.cut(caller):
                continue
            pending.append(caller)
            if concerns(caller):
                frame = frames.frame(caller)
                for node in _calls(function, frame, lines, site):
                    yield Place(frame, node)


def _calls(function: Function, frame: Frame, lines: set[int], site: Site) -> Iterator[ast.AST | None]:
    """The nodes in some lines of a caller that call a function."""
    for line in sorted(lines):
        at = frame.calls.get(line, [])
        calls = [node for node in at if isinstance(node, ast.Call)]
        exact: list[ast.AST | None] = list(calls)
        if len(calls) > 1:
            exact = [node for node in calls if function in callees_of(node, frame, site.program)]
        yield from exact or calls or [node for node in at if isinstance(node, ast.Attribute)] or [None]


def guarding(function: Function) -> Iterator[ast.stmt]:
    """The ``try`` and ``with`` statements of a function's own code."""
    lines = function.module.guarding_lines
    last = function.node.end_lineno
    if bisect_left(lines, function.line) < (len(lines) if last is None else bisect_right(lines, last)):
        for node in walk_scope(function.body):
            if isinstance(node, ast.stmt) and (hasattr(node, "handlers") or isinstance(node, WITH)):
                yield node


class Guarded:
    """Remembers which functions hold a ``try`` or a ``with``, or are wrapped into something."""

    def __init__(self, program: Program) -> None:
        self._replacements = program.derived(Replacements)
        self._known: dict[Function, bool] = {}

    def __call__(self, function: Function) -> bool:
        """Whether a function is one of these."""
        found = self._known.get(function)
        if found is None:
            replaced = (*self._replacements.of(function), *self._replacements.by_name(function))
            wrapped = bool(function.decorators) or bool(replaced)
            found = self._known[function] = wrapped or any(guarding(function))
        return found


class Open:
    """The calls inside a ``try`` or a ``with`` that may run any module that somebody has handed in."""

    def __init__(self, program: Program) -> None:
        self.places: list[Place] = []
        for function in program.traced():
            inside = [statement for node in guarding(function) for statement in getattr(node, "body", ())]
            if not inside:
                continue
            calls = {id(node): node for node in walk_scope(inside) if isinstance(node, ast.Call)}
            frame = frames_of(program).frame(function)
            self.places += [Place(frame, call, unknown=True) for call in calls.values() if _is_open(call.func, frame)]


def _is_open(callee: ast.expr, frame: Frame) -> bool:
    """Whether it is not known what is called, and it may be a module."""
    value = frame.facts.value
    if isinstance(callee, ast.Name) and callee.id not in frame.function.locals:
        return False  # what a decorator wraps is known where it is applied
    if isinstance(callee, ast.Attribute) and not value(callee.value).only(Kind.OBJECT):
        return False  # a method of something, rather than something that a module holds
    return value(callee).may(Kind.UNKNOWN | Kind.STATIC)  # what a constructor is given counts as static, whatever it is


class _Calling:
    """The methods of module classes inside which ``forward`` runs, where a class has its own."""

    def __init__(self, program: Program) -> None:
        self.methods = [
            (cls, cls.methods[name])
            for module in program.index.modules().values()
            for cls in module.classes
            for name in _CALLING
            if name in cls.methods and program.is_module(cls)
        ]


def around_calls(place: Place, site: Site) -> Iterator[Place]:
    """The places in methods inside which a ``forward`` runs."""
    function, program = place.frame.function, site.program
    owner = function.owner
    if owner is None or function.name != "forward":
        return
    for cls, method in program.derived(_Calling).methods:
        if cls in program.index.mro(owner) or owner in program.index.mro(cls):
            if program.state(method).passes == 0:
                program.look_into(method)
            yield Place(frames_of(program).frame(method), None)
