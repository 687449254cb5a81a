"""The whole program under analysis: the functions that its entries reach, interpreted to a fixed point.

Functions are interpreted when a call or an entry first reaches them and again when what they depend on changes: the
values of their parameters, a callee's result, an attribute they read. That ends because values only grow.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from graphmend.flow.annotations import Annotations
from graphmend.flow.bindings import Bindings
from graphmend.flow.calls import Calls
from graphmend.flow.cfg import Graph
from graphmend.flow.chains import Chains
from graphmend.flow.environment import Environment
from graphmend.flow.heap import Heap
from graphmend.flow.interpreter import Facts, Interpreter, graph_of
from graphmend.flow.launchers import Launchers
from graphmend.flow.launches import Launch, Launches, launching_paths
from graphmend.flow.library import Library
from graphmend.flow.state import State
from graphmend.flow.uses import Uses
from graphmend.flow.values import (
    ABSENT,
    NOTHING,
    UNKNOWN,
    ClassRef,
    ExternalName,
    Kind,
    Target,
    Value,
    instance,
    join,
    ordered,
    settled,
)
from graphmend.model.index import Index
from graphmend.model.module import Class, Function, Module
from graphmend.regions.entries import Entry, entries, is_cut, is_module_class, is_runtime
from graphmend.signatures import python, torch

Analysis = TypeVar("Analysis")


@dataclass(frozen=True)
class Watched:
    """What rules look for, so that only the functions are looked through that may hold it.

    Args:
        reads: attributes, where they are read.
        writes: attributes, where they are written.
        functions: functions outside of torch, where they are given something that depends on data; ``module.*`` stands
            for each of a module.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()

    def takes(self, name: str) -> bool:
        """Whether a function is one of those."""
        return name in self.functions or f"{name.rpartition('.')[0]}.*" in self.functions


NOTHING_WATCHED = Watched()


class Program:
    """The functions reached from the entries of some files.

    Args:
        index: the package index through which other files are found.
        classes: qualified names of classes outside the linted files whose instances are to be told from other values.
        watched: what is to be noted of functions while they are interpreted.
        outside: whether it is the program that runs outside of every region, and launches what is compiled.
    """

    def __init__(
        self,
        index: Index,
        classes: frozenset[str] = frozenset(),
        watched: Watched = NOTHING_WATCHED,
        *,
        outside: bool = False,
    ) -> None:
        self.index = index
        self.launches = Launches(self) if outside else None
        """What is handed to `torch.compile` where the program is what runs outside of every region."""
        self.enclosing: dict[Function, Environment] = {}
        """The names of the functions around those that code outside of regions makes."""
        self.entries: dict[Function, Launch | None] = {}
        """The functions with which regions start, each with what launches it as far as that is seen."""
        self.launched: list[Launch] = []
        self.classes = classes
        self.watched = watched
        self.torch = torch()
        self.python = python()
        self.annotations = Annotations(self)
        self.uses = Uses(self)
        self.bindings = Bindings(self)
        self.calls = Calls(self)
        self.heap = Heap(self)
        self.library = Library(self)
        self.states: dict[Function, State] = {}
        self.noted: dict[Function, set[Target]] = {}
        """What each function calls."""
        self.tests_data: set[Function] = set()
        """Functions that ask for the truth of a value which may depend on data, or index by one."""
        self.attributes: dict[Function, set[str]] = {}
        """The attributes, of those that rules look for, that each function uses."""
        self.wrappers: dict[Function, set[Function]] = {}
        """The functions that run around a decorated one, and call it."""
        self.passing: set[Function] = set()
        """Those of them that give back what they get from it."""
        self.failures: dict[Function, Exception] = {}
        """Functions whose interpretation failed inside graphmend itself."""
        self.active: list[Function] = []
        """The functions that are being interpreted, outermost first."""
        self._queue: deque[Function] = deque()
        self._queued: set[Function] = set()
        self._graphs: dict[Function, Graph] = {}
        self._derived: dict[Callable[[Program], Any], Any] = {}
        self._passing: dict[Callable[[Program], Any], Any] = {}
        self._is_module: dict[Class, bool] = {}
        self._runtimes: dict[Module, bool] = {}
        self._cut: dict[Function, bool] = {}

    def find_launches(self, modules: Iterable[Module]) -> list[Launch]:
        """What some files hand to ``torch.compile``, and the hooks that they register, in the order of their places."""
        outer = Program(self.index, self.classes, outside=True)
        outer.bindings.stand_ins = self.bindings.stand_ins
        try:
            found = Launchers(outer, outer.launches).find(modules) if outer.launches is not None else []
            found = [replace(launch, given=outer.arguments_of(launch)) for launch in found]
            for function, state in outer.states.items():
                if state.closure:
                    self.enclosing[function] = state.closure
        finally:
            outer.close()
        return found

    def arguments_of(self, launch: Launch) -> Mapping[str, Value]:
        """What is bound beforehand of the parameters of a launched function, and what else the calls in sight give.

        Calls that are not in sight may give something else, so that it is inferred; and what is declared says more.
        """
        function = launch.function
        seen = self.state(function).parameters if launch.cls is None else self.calls.of_modules.get(function, {})
        given = dict(launch.given)
        for parameter in function.parameters:
            value = seen.get(parameter.arg, NOTHING)
            plain = parameter.annotation is None and parameter.arg not in function.defaults
            if plain and value.kinds and not value.may(Kind.UNKNOWN | Kind.OBJECT | Kind.CALLABLE):
                given.setdefault(parameter.arg, replace(settled(value), inferred=True, leaf=value.may(Kind.TENSOR)))
        return given

    def follows_making(self, cls: Class) -> bool:
        """Whether it matters what a module is made of: where it launches what it is given."""
        return self.launches is not None and any(base in self.launches.passing for base in self.index.mro(cls))

    def add_module(self, module: Module) -> None:
        """Follow every ``forward`` of a file."""
        for entry in entries(self.index, module):
            self.entries.setdefault(entry.function, None)
            self._enter(entry, {})
        self.settle()

    def launch(self, launches: Iterable[Launch]) -> None:
        """Follow what code outside of regions hands to ``torch.compile``, and then the hooks that it registers."""
        for launch in sorted(launches, key=lambda each: each.is_hook):
            function = launch.function
            if self.cut(function):
                continue
            caller = launch.hooked
            if not launch.is_hook:
                self.entries[function] = self.entries.get(function) or launch
            elif caller is not None and self.state(caller).traced:
                self.state(function).callers.setdefault(caller, set()).add(caller.line)
            else:
                self.entries.setdefault(function, None)
            self.launched.append(launch)
            self._enter(Entry(function, launch.cls), launch.given)
            self.settle()

    def _enter(self, entry: Entry, given: Mapping[str, Value]) -> None:
        function = entry.function
        state = self.state(function)
        values: Environment = {}
        positional = function.parameters
        if entry.cls is not None and positional:
            values[positional[0].arg] = instance(entry.cls)
            positional = positional[1:]
        for parameter in positional:
            bound = given.get(parameter.arg)
            values[parameter.arg] = self.annotations.entry_parameter(function, parameter) if bound is None else bound
        changed = self.calls.join_parameters(state, values)
        if not state.traced or changed:
            state.traced = True
            self.enqueue(function)
        if function.decorators and entry.cls is not None:
            # A decorator's wrapper runs in the region too.
            wrapped = self.bindings.decorated(function)
            if wrapped.targets != frozenset((function,)):
                arguments = [values[parameter.arg] for parameter in function.parameters if parameter.arg in values]
                for wrapper in ordered(wrapped.targets):
                    if isinstance(wrapper, Function) and wrapper is not function:
                        self.calls.invoke(wrapper, None, arguments, [], wrapper.line, function, True)

    def settle(self) -> None:
        """Interpret until nothing is left to do."""
        while self._queue:
            function = self._queue.popleft()
            if function in self._queued:  # else a call has had it interpreted since it was enqueued
                self.interpret(function)

    def graph(self, function: Function) -> Graph:
        """The control-flow graph of a function."""
        known = self._graphs.get(function)
        if known is None:
            known = self._graphs[function] = graph_of(function)
        return known

    def close(self) -> None:
        """End the use of the program: its parts refer to each other, and nobody collects cycles during a run."""
        parts = (self.annotations, self.bindings, self.calls, self.heap, self.library)
        _empty((*parts, *self._derived.values(), *self._passing.values(), self))

    def enqueue(self, function: Function) -> None:
        """Have a function interpreted again later."""
        if function not in self._queued:
            self._queued.add(function)
            self._queue.append(function)

    def state(self, function: Function) -> State:
        """What is known of a function, made when it is first asked for."""
        state = self.states.get(function)
        if state is None:
            state = self.states[function] = State(function)
        return state

    def interpret(self, function: Function) -> None:
        """Interpret a function once, with what its parameters may be by now."""
        self._queued.discard(function)
        state = self.state(function)
        state.passes += 1
        self.active.append(function)
        try:
            result = Interpreter(self, function, self._initial(state), None).run(self.graph(function))
        except Exception as error:  # noqa: BLE001 - one function that graphmend cannot follow must not end the run
            self.failures[function] = error
            result = UNKNOWN
        finally:
            self.active.pop()
        result = join(state.result, settled(result))
        if result != state.result:
            state.result = result
            for dependent in state.dependents:
                if dependent is not function or state.passes < 3:
                    self.enqueue(dependent)

    def look_into(self, method: Function) -> None:
        """Interpret a method that no written call reaches, called on any instance of its class."""
        values: Environment = {parameter.arg: UNKNOWN for parameter in method.parameters}
        if method.owner is not None and method.parameters:
            values[method.parameters[0].arg] = instance(method.owner)
        self.calls.join_parameters(self.state(method), values)
        self.interpret(method)
        self.settle()

    def _initial(self, state: State) -> Environment:
        return {parameter.arg: state.parameters.get(parameter.arg, UNKNOWN) for parameter in state.function.parameters}

    def facts(
        self, function: Function, absent: frozenset[int] = frozenset(), arguments: frozenset[str] = frozenset()
    ) -> Facts:
        """Interpret a function once more and keep the value of each of its expressions.

        Args:
            function: the function.
            absent: attributes in it that tracing finds to be ``None``, by the identity of their nodes.
            arguments: parameters that tracing finds to be ``None``.
        """
        state = self.state(function)
        facts = Facts(function, self.graph(function), absent=absent, is_module=self.is_module)
        self.active.append(function)
        try:
            Interpreter(self, function, self._initial(state) | dict.fromkeys(arguments, ABSENT), facts).run(facts.graph)
        finally:
            self.active.pop()
        return facts

    def traced(self) -> list[Function]:
        """All functions inside a region."""
        return [function for function, state in self.states.items() if state.traced and not self.cut(function)]

    def chains(self, compiled: bool = False) -> Chains:
        """How functions get into regions.

        Args:
            compiled: whether only what a visible ``torch.compile`` launches counts as the start of a region.
        """
        return self.derived(_from_launches if compiled else _from_entries)

    def caller_modules(self, path: str) -> set[str]:
        """The absolute paths of the files from which calls and launches reach the functions of a file."""
        pending = [f for f in self.states if f.module.path == path or os.path.abspath(f.module.path) == path]
        seen = set(pending)
        while pending:
            for caller in self.states[pending.pop()].callers:
                if caller not in seen:
                    seen.add(caller)
                    pending.append(caller)
        paths = {os.path.abspath(function.module.path) for function in seen}
        return paths | launching_paths(self.launched, seen)

    def is_runtime(self, module: Module) -> bool:
        """Whether a file is a vendored copy of the graphmend runtime."""
        known = self._runtimes.get(module)
        if known is None:
            known = self._runtimes[module] = is_runtime(module)
        return known

    def cut(self, function: Function) -> bool:
        """Whether a function is outside every region whatever calls it."""
        known = self._cut.get(function)
        if known is None:
            known = self.is_runtime(function.module) or is_cut(self.index, function)
            self._cut[function] = known
        return known

    def is_module(self, cls: ClassRef) -> bool:
        """Whether instances of a class are ``torch.nn.Module`` objects."""
        if isinstance(cls, ExternalName):
            return self.torch.is_module_class(cls.name)
        known = self._is_module.get(cls)
        if known is None:
            known = self._is_module[cls] = is_module_class(self.index, cls)
        return known

    def forward(self, cls: ClassRef) -> Function | None:
        """What runs where an instance of a class of the linted files is called."""
        if not isinstance(cls, Class):
            return None
        return self.index.method(cls, "forward" if self.is_module(cls) else "__call__")

    def derived(self, make: Callable[[Program], Analysis], *, lasting: bool = True) -> Analysis:
        """What ``make`` computes from the settled program: computed once, and kept.

        Args:
            make: computes it.
            lasting: kept as long as the program; otherwise, as what grows with every function asked about, until
                ``forget``.
        """
        kept = self._derived if lasting else self._passing
        if make not in kept:
            kept[make] = make(self)
        found: Analysis = kept[make]
        return found

    def forget(self) -> None:
        """Give back the memory of what was found out about single functions."""
        _empty(self._passing.values())
        self._passing.clear()
        self._graphs.clear()

    def note(self, function: Function, called: Target) -> None:
        """Remember that a function calls something, so that rules know where to look."""
        self.noted.setdefault(function, set()).add(called)


def _from_entries(program: Program) -> Chains:
    launched = [function for function, launch in program.entries.items() if launch is not None]
    return Chains(program.states, [*launched, *program.entries])


def _from_launches(program: Program) -> Chains:
    return Chains(program.states, [function for function, launch in program.entries.items() if launch is not None])


def _empty(parts: Iterable[object]) -> None:
    for part in parts:
        vars(part).clear()
