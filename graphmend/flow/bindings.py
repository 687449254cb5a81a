"""What names stand for: module-level names, names of enclosing functions, decorated functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.flow.environment import Environment
from graphmend.flow.interpreter import Interpreter
from graphmend.flow.launches import compiles
from graphmend.flow.state import DEPTH, PASSES
from graphmend.flow.values import (
    NOTHING,
    STATIC,
    UNKNOWN,
    Bound,
    ExternalName,
    Kind,
    Target,
    Value,
    constant,
    external,
    join,
    join_all,
    ordered,
    settled,
    target,
)
from graphmend.model.index import Definition, External, ModuleValue
from graphmend.model.module import MODULE_CODE, Class, Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.regions.entries import DISABLED, is_disabler

if TYPE_CHECKING:
    from graphmend.flow.program import Program

_BUILTINS = frozenset(dir(builtins))
_OF_MODULES = frozenset({"__name__", "__file__", "__doc__", "__package__", "__path__", "__spec__"})
"""Names that every module has."""


class Bindings:
    """The names of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._globals: dict[tuple[Module, str], Value] = {}
        self._values: dict[int, Value] = {}
        self._evaluating: set[int] = set()
        self._decorated: dict[Function, Value] = {}
        self._scratch: dict[Module, Interpreter] = {}
        self.stand_ins: dict[Module, Function] = {}

    def free_name(self, function: Function, name: str) -> Value:
        """The value of a name that the running function does not hold in its environment."""
        scope: Function | None = function
        while scope is not None:
            state = self.program.states.get(scope)
            if state is not None and name in state.closure:
                return state.closure[name]
            if name in self.program.enclosing.get(scope, ()):
                return self.program.enclosing[scope][name]
            scope = scope.parent
        if name not in function.module.bindings and name not in _BUILTINS and name in function.locals:
            return NOTHING  # a local that no path has bound yet
        return self.global_value(function.module, name)

    def global_value(self, module: Module, name: str) -> Value:
        """The value of a module-level name."""
        key = (module, name)
        known = self._globals.get(key)
        if known is None:
            self._globals[key] = UNKNOWN  # cuts cycles
            definitions = self.program.index.global_name(module, name)
            if name in _OF_MODULES and name not in module.bindings:
                known = STATIC
            elif definitions:
                known = join_all(self.definition_value(definition) for definition in definitions)
            else:
                known = external(f"builtins.{name}") if name not in module.bindings else UNKNOWN
            if name == "TYPE_CHECKING":
                known = replace(STATIC, constant=False, traced=True)
            self._globals[key] = known
        return known

    def named(self, dotted: str) -> Value:
        """The value behind an absolute dotted name."""
        return (
            join_all(self.definition_value(definition) for definition in self.program.index.resolve(dotted)) or UNKNOWN
        )

    def definition_value(self, definition: Definition) -> Value:
        """The value of something the index found."""
        match definition:
            case External(name="typing.TYPE_CHECKING"):
                return replace(STATIC, constant=False, traced=True)
            case External(name=name):
                return external(name)
            case ModuleValue(module=module, value=value):
                return self.value_of(value, module)
            case Function():
                return self.decorated(definition)
            case Class() | Module():
                return target(definition)
        return UNKNOWN

    def value_of(self, node: ast.expr | None, module: Module) -> Value:
        """The value of an expression written at module or class level, or of a default."""
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return constant(node.value) if not isinstance(node.value, (complex, type(...))) else STATIC
        known = self._values.get(id(node))
        if known is not None:
            return known
        if id(node) in self._evaluating or len(self.program.active) >= DEPTH:
            return UNKNOWN
        self._evaluating.add(id(node))
        interpreter = self._scratch_for(module)
        self.program.active.append(interpreter.function)
        try:
            known = settled(interpreter.eval(node, {}))
        finally:
            self.program.active.pop()
            self._evaluating.discard(id(node))
        self._values[id(node)] = known
        return known

    def _scratch_for(self, module: Module) -> Interpreter:
        interpreter = self._scratch.get(module)
        if interpreter is None:
            interpreter = self._scratch[module] = Interpreter(self.program, self.stand_in(module), {}, None)
        return interpreter

    def stand_in(self, module: Module) -> Function:
        """What stands for the code of a module where a single expression of it is looked at."""
        function = self.stand_ins.get(module)
        if function is None:
            node = ast.Lambda(
                args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]),
                body=ast.Constant(None, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0),
                lineno=1,
                col_offset=0,
                end_lineno=1,
                end_col_offset=0,
            )
            function = self.stand_ins[module] = Function(node, module, MODULE_CODE)
            # Lambdas of module level (tables of functions, defaults) belong to this stand-in for the module's own code.
            for each in walk_scope(module.tree.body):
                if isinstance(each, ast.Lambda):
                    function.nested[id(each)] = Function(each, module, "<lambda>", None, function)
        return function

    def close(self, nested: Function, env: Environment) -> None:
        """Give a nested function the names of the function around it."""
        state = self.program.state(nested)
        changed = False
        for name, value in env.items():
            if "." not in name:
                before = state.closure.get(name, NOTHING)
                after = join(before, settled(value))
                if after != before:
                    state.closure[name] = after
                    changed = True
        if changed and state.passes and state.passes < PASSES and nested not in self.program.active:
            self.program.enqueue(nested)

    def made_class(self, cls: Class, env: Environment, interpreter: Interpreter) -> Value:
        """A class that a function makes: its methods are given the names of the function around it.

        Args:
            cls: the class.
            env: these names.
            interpreter: interprets that function.
        """
        made = target(cls)
        for decorator in cls.node.decorator_list if self.program.launches is not None else ():
            if self.program.launches is not None and compiles(self.program, interpreter.eval(decorator, env)):
                self.program.launches.compiled(made, decorator.lineno, interpreter.function)
        for method in cls.methods.values():
            self.close(method, {**env, cls.name: made})
            if self.program.launches is not None:
                self.decorated(method, interpreter, env)
        return made

    def decorated(
        self, function: Function, interpreter: Interpreter | None = None, env: Environment | None = None
    ) -> Value:
        """What the name of a function stands for once its decorators were applied.

        Args:
            function: the function.
            interpreter: for a nested function, what interprets the one around it.
            env: the names that the decorators find there.
        """
        plain = target(function)
        if not function.decorators:
            return plain
        if interpreter is None:
            known = self._decorated.get(function)
            if known is not None:
                return known
            self._decorated[function] = plain  # cuts cycles
        value = plain
        for decorator in reversed(function.decorators):
            if is_disabler(self.program.index, function, decorator):
                continue  # it may be another one, where torch is too old
            if self.program.launches is not None:
                self._launch(decorator, value, function, interpreter, env or {})
            value = self._decorate(decorator, value, function, interpreter)
        if interpreter is None:
            self._decorated[function] = value
        return value

    def _launch(
        self, decorator: ast.expr, value: Value, function: Function, interpreter: Interpreter | None, env: Environment
    ) -> None:
        """Note a decorator that compiles what it decorates."""
        runner = interpreter or self._scratch_for(function.module)
        applied = self.value_of(decorator, function.module) if interpreter is None else interpreter.eval(decorator, env)
        if self.program.launches is not None and compiles(self.program, applied):
            self.program.launches.compiled(value, decorator.lineno, runner.function)

    def _decorate(
        self, decorator: ast.expr, value: Value, function: Function, interpreter: Interpreter | None
    ) -> Value:
        runner = interpreter or self._scratch_for(function.module)
        applied = self.value_of(decorator, function.module) if interpreter is None else UNKNOWN
        wrappers = [each for each in ordered(applied.targets) if isinstance(each, (Function, Bound))]
        if not wrappers:
            return value  # outside the linted files: assumed to keep what it decorates
        results: list[Value] = []
        for each in wrappers:
            called = each.function if isinstance(each, Bound) else each
            receiver = each.receiver if isinstance(each, Bound) else None
            results.append(
                self.program.calls.invoke(called, receiver, [value], [], function.line, runner.function, False)
            )
        made = join_all(results)
        if any(isinstance(each, ExternalName) and each.name == DISABLED for each in made.targets):
            return external(DISABLED)
        # A decorator is interpreted once for all that it decorates: what it made itself (a wrapper) is kept; of what
        # was passed through it only what was passed here.
        found = frozenset(each for each in made.targets if each in value.targets or self._is_wrapper(each, value))
        calling = [each for each in found if isinstance(each, Function) and _calls_decorated(each)]
        if calling:
            # What such a wrapper calls is one of all that the decorator decorates; this is what it calls here.
            self.program.wrappers.setdefault(function, set()).update(calling)
            self.program.passing.update(filter(_passes_results, calling))
            found |= value.targets
        return Value(Kind.CALLABLE, targets=found) if found else value

    def _is_wrapper(self, each: Target, decorated: Value) -> bool:
        """Whether a decorator's result is a function of its own, not the decorator proper that its call makes."""
        function = each.function if isinstance(each, Bound) else each
        if not isinstance(function, Function) or function.parent is None:
            return False
        first = function.parameters[0].arg if function.parameters else ""
        given = self.program.state(function).parameters.get(first, NOTHING)
        return not given.targets & decorated.targets


def _passes_results(wrapper: Function) -> bool:
    """Whether all that the function that a decorator returns gives back is what it gets from the decorated one."""
    nodes = list(walk_scope(wrapper.body))
    calls = [node for node in nodes if _is_call_of_decorated(wrapper, node)]
    names = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and node.value in calls
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    return (
        bool(returned)
        and _always_returns(wrapper.body)
        and all(
            value in calls or (isinstance(value, ast.Name) and value.id in names and stored.count(value.id) == 1)
            for value in returned
        )
    )


def _always_returns(body: Sequence[ast.stmt]) -> bool:
    """Whether the last of some statements, by its form, never lets the function go on behind it."""
    match body[-1]:
        case ast.Return() | ast.Raise():
            return True
        case ast.With(body=inner):
            return _always_returns(inner)
        case ast.If(body=inner, orelse=[_, *_] as other):
            return _always_returns(inner) and _always_returns(other)
        case ast.Try(body=inner, handlers=handlers, orelse=[]):
            return _always_returns(inner) and all(_always_returns(handler.body) for handler in handlers)
    return False


def _is_call_of_decorated(wrapper: Function, node: ast.AST) -> bool:
    """Whether a node of the function that a decorator returns calls what the decorator was given."""
    decorator = wrapper.parent
    given = decorator.parameters[0].arg if decorator is not None and decorator.parameters else ""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == given


def _calls_decorated(wrapper: Function) -> bool:
    """Whether the function that a decorator returns calls what the decorator was given."""
    return any(_is_call_of_decorated(wrapper, node) for node in walk_scope(wrapper.body))
