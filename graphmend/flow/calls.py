"""Calls: what may be called, how arguments meet parameters, and which functions they bring into a region."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.flow.operations import Keywords
from graphmend.flow.state import DEPTH, PASSES, State
from graphmend.flow.values import (
    NOTHING,
    STATIC,
    TENSOR,
    TENSOR_GUESS,
    UNKNOWN,
    Bound,
    ClassRef,
    ExternalName,
    Kind,
    ObjectMethod,
    Target,
    TensorMethod,
    Value,
    container,
    dictionary,
    element,
    instance,
    join,
    join_all,
    keyed,
    ordered,
    sequence,
    settled,
)
from graphmend.model.index import External
from graphmend.model.module import Class, Function
from graphmend.signatures import torch

if TYPE_CHECKING:
    from graphmend.flow.environment import Environment
    from graphmend.flow.interpreter import Interpreter
    from graphmend.flow.program import Program

_LIST = "builtins.list"
_STRUCTURED = Kind.CONTAINER | Kind.SIZE | Kind.OBJECT
_NUMBERS = Kind.STATIC | Kind.SIZE | Kind.SCALAR


class Calls:
    """The calls of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.torch = torch()
        self.of_modules: dict[Function, Environment] = {}
        """What code outside of regions gives to modules, by their ``forward``."""

    def call(
        self, callee: Value, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        """The value of a call, and its consequences for the functions it may reach."""
        results: list[Value] = []
        passing = self._passing(callee.targets)
        for each in ordered(callee.targets):
            result = self._call_target(each, arguments, keywords, node, interpreter)
            if function_of(each) not in passing:
                results.append(result)
        if callee.may(Kind.OBJECT):
            for cls in ordered(callee.classes):
                results.append(self._call_object(cls, callee, arguments, keywords, node, interpreter))
        if callee.may(Kind.UNKNOWN | Kind.TENSOR | Kind.SCALAR):
            results.append(UNKNOWN)
        if callee.may(Kind.STATIC | Kind.SIZE) and not results:
            # Something configured: an activation from a table, a method of the configuration.
            results.append(UNKNOWN if any(value.depends_on_data for value in arguments) else STATIC)
        return join_all(results) if results else UNKNOWN

    def _passing(self, targets: frozenset[Target]) -> frozenset[Function]:
        """Wrappers that give back what another target gives, which they decorate, and that of all others like it."""
        if len(targets) < 2:
            return frozenset()
        wrapped = (self.program.wrappers.get(function, ()) for each in targets if (function := function_of(each)))
        return frozenset(each for wrappers in wrapped for each in wrappers if each in self.program.passing)

    def _call_target(
        self, each: Target, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        line, caller = node.lineno, interpreter.function
        self.program.note(caller, each)
        match each:
            case Function(module=module) if self.program.is_runtime(module):
                return self.program.library.call_function(
                    f"graphmend.{each.name}", arguments, keywords, node, interpreter
                )
            case Function():
                return self.invoke(each, None, arguments, keywords, line, caller)
            case Bound(function=function, receiver=receiver):
                return self.invoke(function, receiver, arguments, keywords, line, caller)
            case Class():
                return self._construct(each, arguments, keywords, line, caller)
            case ExternalName(name=name):
                if name.startswith("torch."):
                    self._note_numbers(name.rpartition(".")[2], arguments, keywords, caller, 0)
                elif self.program.watched.takes(name) and any(
                    _holds_data(value) for value in (*arguments, *(value for _, value in keywords))
                ):
                    self.program.tests_data.add(caller)
                return self.program.library.call_function(name, arguments, keywords, node, interpreter)
            case TensorMethod(name=name, receiver=receiver):
                self._note_numbers(name, arguments, keywords, caller, 1)
                return self.program.library.call_tensor_method(name, receiver, arguments, keywords)
            case ObjectMethod():
                return self.program.library.call_object_method(each, arguments, keywords, node, interpreter)
        return UNKNOWN

    def _note_numbers(
        self, name: str, arguments: list[Value], keywords: Keywords, caller: Function, before: int
    ) -> None:
        """Note where an operation that takes whole numbers may be given some that depend on data.

        Args:
            name: the operation.
            arguments: the positional arguments.
            keywords: the keyword arguments.
            caller: the function that holds the call.
            before: how many arguments stand in front: 1 for the receiver of a method.
        """
        for parameter in self.torch.integers.get(name, ()):
            first = parameter.position - before
            given = arguments[first : None if parameter.onwards else first + 1] if first >= 0 else []
            for value in (*given, *(value for key, value in keywords if key == parameter.name)):
                if _holds_data(value):
                    self.program.tests_data.add(caller)

    def _call_object(
        self,
        cls: ClassRef,
        callee: Value,
        arguments: list[Value],
        keywords: Keywords,
        node: ast.Call,
        interpreter: Interpreter,
    ) -> Value:
        receiver = replace(instance(cls), items=callee.items, element=callee.element)
        if isinstance(cls, ExternalName):
            self.program.note(interpreter.function, ObjectMethod(cls.name, "__call__", receiver))
            if cls.name in self.program.torch.module_containers and callee.element is not None:
                value = arguments[0] if arguments else UNKNOWN
                stages = callee.items or (callee.element,)
                for stage in stages:
                    value = self.call(stage, [value], [], node, interpreter)
                return value
            if cls.name in self.program.torch.recurrent:
                return sequence((TENSOR, UNKNOWN))
            if cls.name == "torch.nn.Identity" and arguments:
                return arguments[0]
            return TENSOR if self.program.torch.is_module_class(cls.name) else UNKNOWN
        if self.program.launches is not None and self.program.is_module(cls):
            # What modules compute does not matter outside of regions; what they are given does.
            forward = self.program.index.method(cls, "forward")
            if forward is not None:
                known = self.of_modules.setdefault(forward, {})
                for name, value in self._match(forward, receiver, arguments, keywords).items():
                    known[name] = join(known.get(name, NOTHING), settled(value))
            return TENSOR_GUESS
        for name in ("forward",) if self.program.is_module(cls) else ("__call__",):
            method = self.program.index.method(cls, name)
            if method is not None:
                bound = self.program.heap.bind(
                    self.program.bindings.decorated(method), replace(receiver, classes=frozenset((cls,)))
                )
                return self.call(bound, arguments, keywords, node, interpreter)
        return TENSOR_GUESS if self.program.is_module(cls) else UNKNOWN

    def call_method(
        self, holder: Value, name: str, arguments: list[Value], node: ast.expr, interpreter: Interpreter
    ) -> Value:
        """The value of ``holder.name(...)`` for a special method that an operator stands for."""
        results: list[Value] = []
        for cls in ordered(holder.classes):
            method = self.program.index.method(cls, name) if isinstance(cls, Class) else None
            if method is not None:
                results.append(self.invoke(method, instance(cls), arguments, [], node.lineno, interpreter.function))
        return join_all(results) if len(results) == len(holder.classes) else UNKNOWN

    def _construct(self, cls: Class, arguments: list[Value], keywords: Keywords, line: int, caller: Function) -> Value:
        made = instance(cls)
        if arguments and External(_LIST) in self.program.index.mro(cls):
            made = replace(made, items=arguments[0].items, element=element(arguments[0]))
        method = self.program.index.method(cls, "__init__")
        if method is not None and (not self.program.is_module(cls) or self.program.follows_making(cls)):
            self.invoke(method, made, arguments, keywords, line, caller)
        elif method is None:
            self._construct_fields(cls, arguments, keywords)
        return made

    def _construct_fields(self, cls: Class, arguments: list[Value], keywords: Keywords) -> None:
        fields = [
            name
            for base in reversed(self.program.index.mro(cls))
            if isinstance(base, Class)
            for name in base.annotations
        ]
        for name, value in [*zip(fields, arguments), *keywords]:
            if name is not None and name in fields:
                self.program.heap.write(instance(cls), name, value)

    def invoke(
        self,
        function: Function,
        receiver: Value | None,
        arguments: Sequence[Value],
        keywords: Keywords,
        line: int,
        caller: Function,
        traced: bool | None = None,
    ) -> Value:
        """The result of calling a function of the linted files; interprets it if that may change anything."""
        state = self.program.state(function)
        values = self._match(function, receiver, arguments, keywords)
        changed = self.join_parameters(state, values)
        state.dependents[caller] = None
        if traced is None:
            traced = self.program.state(caller).traced and not self.program.cut(caller)
        if traced and not self.program.cut(function):
            state.callers.setdefault(caller, set()).add(line)
            for wrapper in self.program.wrappers.get(function, ()):
                state.callers.setdefault(wrapper, set()).add(wrapper.line)
            if not state.traced:
                state.traced = changed = True
        if changed or not state.passes:
            if len(self.program.active) < DEPTH and function not in self.program.active and state.passes < PASSES:
                self.program.interpret(function)
            else:
                self.program.enqueue(function)
        if state.result.kinds == Kind.NOTHING:
            return UNKNOWN if function in self.program.active else NOTHING
        return state.result

    def join_parameters(self, state: State, values: Environment) -> bool:
        """Add values to what a function's parameters may be; whether that changed anything."""
        changed = False
        for name, value in values.items():
            before = state.parameters.get(name, NOTHING)
            after = join(before, settled(value))
            if after != before:
                if state.passes > PASSES:
                    after = self._declared(state.function, name)
                if after != before:
                    state.parameters[name] = after
                    changed = True
        return changed

    def _declared(self, function: Function, name: str) -> Value:
        """What a parameter is declared to be, with which a fixed point is reached that is too far away otherwise."""
        parameter = next(each for each in function.parameters if each.arg == name)
        return self.program.annotations.declared(function, parameter)

    def _match(
        self, function: Function, receiver: Value | None, arguments: Sequence[Value], keywords: Keywords
    ) -> Environment:
        """Give each parameter the value of its argument, as Python binds them."""
        node = function.node.args
        positional = [arg.arg for arg in (*node.posonlyargs, *node.args)]
        given = list(arguments)
        if receiver is not None:
            given.insert(0, receiver)
        values: Environment = dict(zip(positional, given))
        rest = given[len(positional) :]
        if node.vararg is not None:
            values[node.vararg.arg] = container(join_all(rest)) if rest else container(NOTHING)
        named = {*positional, *(arg.arg for arg in node.kwonlyargs)}
        extra: dict[str, Value] = {}
        spread = False
        for name, value in keywords:
            if name is None:
                spread = True
            elif name in named:
                values[name] = value
            else:
                extra[name] = value
        if node.kwarg is not None:
            values[node.kwarg.arg] = keyed(extra) if extra and not spread else dictionary(UNKNOWN)
        for parameter in function.parameters:
            name = parameter.arg
            declared = self.program.annotations.declared(function, parameter)
            if name not in values:
                default = function.defaults.get(name)
                value = self.program.bindings.value_of(default, function.module) if default is not None else NOTHING
                # Of what is spread (`f(*args, **kwargs)`), any parameter that is not given may get something.
                values[name] = join(value, UNKNOWN) if spread and parameter not in (node.vararg, node.kwarg) else value
                if declared.kinds != Kind.UNKNOWN and not values[name].kinds:
                    values[name] = declared
            if declared.kinds != Kind.UNKNOWN:
                values[name] = _as_declared(values[name], declared)
        return values


def _as_declared(given: Value, declared: Value) -> Value:
    """What an argument is, and what its parameter is declared to be: that is believed before what is inferred."""
    if given.kinds & Kind.UNKNOWN:
        given = join(declared, given.without(Kind.UNKNOWN))
    if given.inferred and not given.kinds & declared.kinds:
        return declared
    if declared.only(Kind.TENSOR | Kind.NONE) and given.may(Kind.TENSOR):
        if given.may(_STRUCTURED):
            given = given.without(_STRUCTURED).guess()
        if declared.dtype and not given.dtype:
            given = replace(given, dtype=declared.dtype, inferred=True)
    if declared.only(_NUMBERS | Kind.NONE) and given.may(_NUMBERS) and given.may(Kind.TENSOR):
        return given.guess()  # one of the values of a dictionary, say, and hardly a tensor
    return given


def function_of(called: Target) -> Function | None:
    """The function of the linted files that a target is, also as a method."""
    if isinstance(called, Bound):
        return called.function
    return called if isinstance(called, Function) else None


def _holds_data(value: Value) -> bool:
    """Whether a value, or what it holds, may depend on data."""
    return value.depends_on_data or (value.element is not None and value.element.depends_on_data)
