"""What the analyses on top of the interpreter need of each function, computed once a program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from graphmend.flow.interpreter import Facts, Interpreter
from graphmend.flow.names import Names
from graphmend.flow.program import Program
from graphmend.flow.values import UNKNOWN, Kind, Value
from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import children, walk

_UNCERTAIN = Kind.TENSOR | Kind.SCALAR | Kind.UNKNOWN
_DEPTH = 4
"""How many calls in a row are looked at with their own arguments."""


@dataclass(eq=False)
class Frame:
    """One function with its facts, its names and the way from its nodes to the statements around them.

    Args:
        function: the function.
        find_facts: finds its facts; only asked where they are needed, since that takes another look at the function.
        general: for one call's own facts, the frame of all calls.
    """

    function: Function
    find_facts: Callable[[], Facts]
    general: Frame | None = None
    depth: int = 0
    """How many calls with known arguments lead to it; 0 for the facts that hold for all calls."""

    @cached_property
    def facts(self) -> Facts:
        """What is known of the function's expressions."""
        return self.find_facts()

    @cached_property
    def names(self) -> Names:
        """Where its names are bound and read."""
        return Names(self.function, self.facts.graph) if self.general is None else self.general.names

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The parent of each node, by identity."""
        roots: list[ast.AST] = list(self.function.body)
        return {id(child): node for root in roots for node in walk(root) for child in children(node)}

    @cached_property
    def calls(self) -> dict[int, list[ast.Call | ast.Attribute]]:
        """The calls and attributes of the function's own code, by line."""
        found: dict[int, list[ast.Call | ast.Attribute]] = {}
        for node in walk_scope(self.function.body):
            if isinstance(node, (ast.Call, ast.Attribute)):
                found.setdefault(node.lineno, []).append(node)
        return found

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that holds a node."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parents.get(id(current))
        return current


class Frames:
    """The frames of a program's functions, made when they are asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._frames: dict[Function, Frame] = {}
        self._special: dict[tuple[Function, tuple[tuple[str, int], ...]], Frame] = {}

    def frame(self, function: Function, facts: Facts | None = None) -> Frame:
        """The frame of a function; ``facts`` saves interpreting it once more."""
        found = self._frames.get(function)
        if found is None:
            found = self._frames[function] = Frame(function, lambda: facts or self.program.facts(function))
        return found

    def for_call(self, function: Function, arguments: Mapping[str, Value], caller: Frame) -> Frame:
        """The frame of a function for one call, where the call's arguments say more than those of all calls together.

        Args:
            function: the called function.
            arguments: the values of the parameters that are given.
            caller: the frame that holds the call.
        """
        general = self.frame(function)
        state = self.program.states[function]
        values = dict(state.parameters)
        for name, value in arguments.items():
            if values.get(name, UNKNOWN).may(_UNCERTAIN) and value.kinds and not value.may(_UNCERTAIN):
                values[name] = value
        if values == state.parameters or caller.depth >= _DEPTH:
            return general
        key = (function, tuple(sorted((name, values[name].kinds) for name in values)))
        found = self._special.get(key)
        if found is None:
            found = Frame(function, lambda: self._facts_for(function, values), general, caller.depth + 1)
            self._special[key] = found
        return found

    def _facts_for(self, function: Function, parameters: dict[str, Value]) -> Facts:
        facts = Facts(function, self.program.graph(function), is_module=self.program.is_module)
        Interpreter(self.program, function, parameters, facts).run(facts.graph)
        return facts


def frames_of(program: Program) -> Frames:
    """The frames of a program, shared by all who ask; they live as long as the program does."""
    return program.derived(Frames, lasting=False)
