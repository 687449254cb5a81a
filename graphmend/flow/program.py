"""The whole program under analysis: functions, classes, the calls between them, and what is inside a region.

Functions are interpreted when a call or an entry first reaches them and again when what they depend on changes: the
values of their parameters, a callee's result, an attribute they read. That ends because values only grow.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from graphmend.flow.cfg import Graph
from graphmend.flow.interpreter import Environment, Facts, Interpreter, graph_of
from graphmend.flow.values import (
    MISSING,
    NONE,
    NOTHING,
    SCALAR,
    SIZE,
    SIZES,
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
    constant,
    container,
    external,
    instance,
    join,
    join_all,
    sequence,
    target,
)
from graphmend.model.index import Definition, External, Index, ModuleValue
from graphmend.model.module import Class, Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.regions.entries import Entry, entries, is_cut, is_module_class
from graphmend.signatures import Signature, python, torch

Keywords = Sequence[tuple[str | None, Value]]

_DEPTH = 60
"""How deep calls are followed at once; what lies deeper waits in the queue."""
_BUILTINS = frozenset(dir(builtins))
_PASSES = 8
"""How often a function is interpreted again before its parameters stop growing."""
_SUBCLASSES = 12


@dataclass(eq=False)
class State:
    """What is known of one function."""

    function: Function
    parameters: Environment = field(default_factory=dict)
    closure: Environment = field(default_factory=dict)
    result: Value = NOTHING
    traced: bool = False
    parent: tuple[Function, int] | None = None
    """The caller and its line that first brought the function into a region; ``None`` for an entry."""
    compiled: bool = False
    callers: dict[Function, set[int]] = field(default_factory=dict)
    """Traced callers, with the lines of their calls."""
    dependents: set[Function] = field(default_factory=set)
    graph: Graph | None = None
    passes: int = 0


class Program:
    """The functions reached from the entries of some files, interpreted to a fixed point.

    Args:
        index: the package index through which other files are found.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.torch = torch()
        self.python = python()
        self.states: dict[Function, State] = {}
        self.attributes: dict[tuple[Class, str], Value] = {}
        self.readers: dict[tuple[Class, str], set[Function]] = {}
        self.initialised: set[Class] = set()
        self.noted: dict[Function, set[str]] = {}
        """What each function calls outside the linted files, by dotted name, and :data:`~graphmend.flow.interpreter.DATA_TEST`."""
        self.failures: dict[Function, Exception] = {}
        """Functions whose interpretation failed inside graphmend itself."""
        self._attribute_cache: dict[tuple[Class, str], Value] = {}
        self._inheritors: dict[tuple[Class, str], set[Class]] = {}
        self._tensor_uses: dict[Function, set[str]] = {}
        self._globals: dict[tuple[Module, str], Value] = {}
        self._values: dict[int, Value] = {}
        self._evaluating: set[int] = set()
        self._annotations: dict[int, Value] = {}
        self._decorated: dict[Function, Value] = {}
        self._is_module: dict[Class, bool] = {}
        self._cut: dict[Function, bool] = {}
        self._active: list[Function] = []
        self._queue: deque[Function] = deque()
        self._queued: set[Function] = set()
        self._scratch: dict[Module, Interpreter] = {}

    # ---------------------------------------------------------------- driving

    def add_module(self, module: Module) -> None:
        """Follow everything that starts in one file."""
        for entry in entries(self.index, module):
            self._enter(entry)
        self.settle()

    def _enter(self, entry: Entry) -> None:
        function = entry.function
        state = self._state(function)
        state.compiled |= entry.compiled
        values: Environment = {}
        positional = function.parameters
        if entry.cls is not None and positional:
            values[positional[0].arg] = instance(entry.cls)
            positional = positional[1:]
        for parameter in positional:
            values[parameter.arg] = self.entry_parameter(function, parameter)
        changed = self._bind(state, values)
        if not state.traced or changed:
            state.traced = True
            state.parent = None
            self._enqueue(function)
        if function.decorators and entry.cls is not None:
            # A decorator's wrapper runs in the region too.
            wrapped = self.decorated(function)
            if wrapped.targets != frozenset((function,)):
                arguments = [values[parameter.arg] for parameter in function.parameters if parameter.arg in values]
                for wrapper in wrapped.targets:
                    if isinstance(wrapper, Function) and wrapper is not function:
                        self._invoke(wrapper, None, arguments, [], wrapper.line, function, True)

    def settle(self) -> None:
        """Interpret until nothing is left to do."""
        while self._queue:
            function = self._queue.popleft()
            self._queued.discard(function)
            self._interpret(function)

    def _enqueue(self, function: Function) -> None:
        if function not in self._queued:
            self._queued.add(function)
            self._queue.append(function)

    def _state(self, function: Function) -> State:
        state = self.states.get(function)
        if state is None:
            state = self.states[function] = State(function)
        return state

    def _interpret(self, function: Function) -> None:
        state = self._state(function)
        state.passes += 1
        if state.graph is None:
            state.graph = graph_of(function)
        self._active.append(function)
        try:
            result = Interpreter(self, function, self._initial(state), None).run(state.graph)
        except Exception as error:  # one function that graphmend cannot follow must not end the run
            self.failures[function] = error
            result = UNKNOWN
        finally:
            self._active.pop()
        result = join(state.result, _settled(result))
        if result != state.result:
            state.result = result
            for dependent in state.dependents:
                if dependent is not function or state.passes < 3:
                    self._enqueue(dependent)

    def _initial(self, state: State) -> Environment:
        return {parameter.arg: state.parameters.get(parameter.arg, UNKNOWN) for parameter in state.function.parameters}

    def facts(self, function: Function) -> Facts:
        """Interpret a function once more and keep the value of each of its expressions."""
        state = self._state(function)
        if state.graph is None:
            state.graph = graph_of(function)
        facts = Facts(function, state.graph)
        self._active.append(function)
        try:
            Interpreter(self, function, self._initial(state), facts).run(state.graph)
        finally:
            self._active.pop()
        return facts

    def traced(self) -> list[Function]:
        """All functions inside a region."""
        return [function for function, state in self.states.items() if state.traced and not self.cut(function)]

    def chain(self, function: Function) -> list[tuple[Function, int]]:
        """The frames from an entry to ``function``: each with the line of its call, the last with its own line."""
        frames = [(function, function.line)]
        seen = {function}
        state = self.states.get(function)
        while state is not None and state.parent is not None and state.parent[0] not in seen:
            frames.insert(0, state.parent)
            seen.add(state.parent[0])
            state = self.states.get(state.parent[0])
        return frames

    def caller_modules(self, path: str) -> set[str]:
        """The absolute paths of the files from which calls, over any number of steps, reach the functions of a file."""
        pending = [f for f in self.states if f.module.path == path or os.path.abspath(f.module.path) == path]
        seen = set(pending)
        while pending:
            for caller in self.states[pending.pop()].callers:
                if caller not in seen:
                    seen.add(caller)
                    pending.append(caller)
        return {os.path.abspath(function.module.path) for function in seen}

    def cut(self, function: Function) -> bool:
        """Whether a function is outside every region whatever calls it."""
        known = self._cut.get(function)
        if known is None:
            known = self._cut[function] = is_cut(self.index, function)
        return known

    def is_module(self, cls: ClassRef) -> bool:
        """Whether instances of a class are ``torch.nn.Module`` objects."""
        if isinstance(cls, ExternalName):
            return self.torch.is_module_class(cls.name)
        known = self._is_module.get(cls)
        if known is None:
            known = self._is_module[cls] = is_module_class(self.index, cls)
        return known

    def note(self, function: Function, name: str) -> None:
        """Remember that a function calls ``name`` outside the linted files, so that rules know where to look."""
        self.noted.setdefault(function, set()).add(name)

    # ---------------------------------------------------------------- calls

    def call(
        self, callee: Value, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        """The value of a call, and its consequences for the functions it may reach."""
        results: list[Value] = []
        for each in callee.targets:
            results.append(self._call_target(each, arguments, keywords, node, interpreter))
        if callee.may(Kind.OBJECT):
            for cls in callee.classes:
                results.append(self._call_object(cls, callee, arguments, keywords, node, interpreter))
        if callee.may(Kind.UNKNOWN | Kind.TENSOR | Kind.SCALAR):
            results.append(self._call_unknown(arguments, node, interpreter))
        if callee.may(Kind.STATIC | Kind.SIZE) and not results:
            # Something configured: an activation from a table, a method of the configuration.
            results.append(UNKNOWN if any(value.depends_on_data for value in arguments) else STATIC)
        return join_all(results) if results else UNKNOWN

    def _call_target(
        self, each: Target, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        line, caller = node.lineno, interpreter.function
        match each:
            case Function():
                return self._invoke(each, None, arguments, keywords, line, caller)
            case Bound(function=function, receiver=receiver):
                return self._invoke(function, receiver, arguments, keywords, line, caller)
            case Class():
                return self._construct(each, arguments, keywords, line, caller)
            case ExternalName(name=name):
                self.note(caller, name)
                return self._call_external(name, arguments, keywords, node, interpreter)
            case TensorMethod(name=name, receiver=receiver):
                self.note(caller, f"torch.Tensor.{name}")
                return self._call_tensor_method(name, receiver, arguments, keywords)
            case ObjectMethod():
                self.note(caller, f"{each.owner}.{each.name}")
                return self._call_object_method(each, arguments, keywords, node, interpreter)
        return UNKNOWN

    def _call_unknown(self, arguments: list[Value], node: ast.Call, interpreter: Interpreter) -> Value:
        return UNKNOWN

    def _call_object(
        self,
        cls: ClassRef,
        callee: Value,
        arguments: list[Value],
        keywords: Keywords,
        node: ast.Call,
        interpreter: Interpreter,
    ) -> Value:
        receiver = instance(cls)
        if isinstance(cls, ExternalName):
            if cls.name in self.torch.module_containers and callee.element is not None:
                value = arguments[0] if arguments else UNKNOWN
                stages = callee.items or (callee.element,)
                for stage in stages:
                    value = self.call(stage, [value], [], node, interpreter)
                return value
            if cls.name in self.torch.recurrent:
                return sequence((TENSOR, UNKNOWN))
            if cls.name == "torch.nn.Identity" and arguments:
                return arguments[0]
            return TENSOR if self.torch.is_module_class(cls.name) else UNKNOWN
        for name in ("forward",) if self.is_module(cls) else ("__call__",):
            method = self.index.method(cls, name)
            if method is not None:
                bound = self.bind(self.decorated(method), replace(receiver, classes=frozenset((cls,))))
                return self.call(bound, arguments, keywords, node, interpreter)
        return TENSOR_GUESS if self.is_module(cls) else UNKNOWN

    def _construct(self, cls: Class, arguments: list[Value], keywords: Keywords, line: int, caller: Function) -> Value:
        made = instance(cls)
        method = self.index.method(cls, "__init__")
        if method is not None and not self.is_module(cls):
            self._invoke(method, made, arguments, keywords, line, caller)
        elif method is None:
            self._construct_fields(cls, arguments, keywords)
        return made

    def _construct_fields(self, cls: Class, arguments: list[Value], keywords: Keywords) -> None:
        fields = [name for base in reversed(self.index.mro(cls)) if isinstance(base, Class) for name in base.annotations]
        for name, value in [*zip(fields, arguments), *keywords]:
            if name is not None and name in fields:
                self.write_attribute(instance(cls), name, value)

    def _invoke(
        self,
        function: Function,
        receiver: Value | None,
        arguments: Sequence[Value],
        keywords: Keywords,
        line: int,
        caller: Function,
        traced: bool | None = None,
    ) -> Value:
        state = self._state(function)
        values = self._match(function, receiver, arguments, keywords)
        changed = self._bind(state, values)
        state.dependents.add(caller)
        if traced is None:
            traced = self._state(caller).traced and not self.cut(caller)
        if traced and not self.cut(function):
            state.callers.setdefault(caller, set()).add(line)
            if not state.traced:
                state.traced, state.parent, changed = True, (caller, line), True
        if changed or not state.passes:
            if len(self._active) < _DEPTH and function not in self._active and state.passes < _PASSES:
                self._interpret(function)
            else:
                self._enqueue(function)
        if state.result.kinds == Kind.NOTHING:
            return UNKNOWN if function in self._active else NOTHING
        return state.result

    def _bind(self, state: State, values: Environment) -> bool:
        changed = False
        for name, value in values.items():
            before = state.parameters.get(name, NOTHING)
            after = join(before, _settled(value))
            if after != before:
                if state.passes > _PASSES:
                    after = UNKNOWN
                if after != before:
                    state.parameters[name] = after
                    changed = True
        return changed

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
        extra: list[Value] = []
        spread = False
        for name, value in keywords:
            if name is None:
                spread = True
            elif name in named:
                values[name] = value
            else:
                extra.append(value)
        if node.kwarg is not None:
            values[node.kwarg.arg] = container(join_all(extra) if extra and not spread else UNKNOWN)
        for parameter in function.parameters:
            name = parameter.arg
            declared = self.declared(function, parameter)
            if name not in values:
                default = function.defaults.get(name)
                value = self.value_of(default, function.module) if default is not None else NOTHING
                values[name] = join(value, UNKNOWN) if spread and default is None else value
                if declared.kinds != Kind.UNKNOWN and not values[name].kinds:
                    values[name] = declared
            if declared.kinds != Kind.UNKNOWN and values[name].kinds & Kind.UNKNOWN:
                values[name] = join(declared, values[name].without(Kind.UNKNOWN))
        return values

    # ---------------------------------------------------------------- library calls

    def _call_external(
        self, name: str, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        tables = self.torch
        if name in tables.compiling:
            return replace(STATIC, constant=True, traced=True)
        if name in tables.not_compiling:
            return replace(STATIC, constant=False, traced=True)
        if name in tables.tensors:
            return replace(TENSOR, leaf=True)
        signature = tables.function(name)
        if signature is not None:
            return self._operation(signature, arguments, keywords, method=False)
        if tables.is_module_class(name):
            return self._make_module(name, arguments)
        if name in self.python.instances:
            return instance(ExternalName(self.python.instances[name]))
        if name.startswith("builtins."):
            return self._call_builtin(name.partition(".")[2], name, arguments, keywords, node, interpreter)
        if name in self.python.passes:
            return join_all(arguments[-1:])
        known = self.python.returns.get(name)
        if known == "static" or name.startswith("math."):
            return SCALAR if any(value.depends_on_data for value in arguments) and name.startswith("math.") else STATIC
        if name.endswith("checkpoint") and arguments and name.startswith("torch.utils.checkpoint"):
            return self.call(arguments[0], arguments[1:], [], node, interpreter)
        if name == "functools.partial" and arguments:
            return arguments[0] if arguments[0].targets else UNKNOWN
        if name.startswith(("numpy.", "random.")):
            return STATIC
        if name.startswith("torch.") and any(value.may(Kind.TENSOR) for value in arguments):
            return Value(Kind.UNKNOWN)
        return UNKNOWN

    def _make_module(self, name: str, arguments: list[Value]) -> Value:
        made = instance(ExternalName(name))
        if name in self.torch.module_containers and arguments:
            if name.endswith("Sequential") and arguments[0].kinds & Kind.OBJECT:
                return replace(made, items=tuple(arguments), element=join_all(arguments))
            inner = self.element(arguments[0])
            return replace(made, items=arguments[0].items, element=inner)
        if name in self.torch.module_dicts and arguments:
            return replace(made, element=self.element(arguments[0]))
        return made

    def _call_builtin(
        self,
        short: str,
        name: str,
        arguments: list[Value],
        keywords: Keywords,
        node: ast.Call,
        interpreter: Interpreter,
    ) -> Value:
        first = arguments[0] if arguments else NOTHING
        if short == "super":
            return self._super(arguments, interpreter)
        if name in self.python.reads:
            if first.depends_on_data:
                return replace(SCALAR, inferred=first.inferred)
            return first if first.kinds and not first.may(Kind.UNKNOWN | Kind.OBJECT) else STATIC
        if name in self.python.passes:
            pool = arguments if len(arguments) > 1 else [self.element(first)] if first.may(Kind.CONTAINER) else [first]
            joined = join_all(pool)
            return replace(joined, leaf=False, constant=MISSING) if joined.kinds else UNKNOWN
        if short in ("any", "all"):
            inner = self.element(first)
            return replace(SCALAR, inferred=inner.inferred) if inner.depends_on_data else STATIC
        if name in self.python.sequences:
            return first if first.may(Kind.CONTAINER) else container(self.element(first)) if arguments else container(NOTHING)
        if short == "enumerate":
            return container(sequence((SIZE, self.element(first))))
        if short == "zip":
            return container(sequence([self.element(argument) for argument in arguments]))
        if short == "map" and len(arguments) > 1:
            return container(self.call(first, [self.element(value) for value in arguments[1:]], [], node, interpreter))
        if short == "dict":
            inner = join_all([value for _, value in keywords] + ([self.element(first)] if arguments else []))
            return container(inner)
        if short == "range":
            return container(SCALAR if any(value.depends_on_data for value in arguments) else SIZE)
        if short == "next":
            return self.element(first)
        if short == "getattr" and len(arguments) > 1:
            attr = arguments[1].constant
            found = self.attribute(first, attr, interpreter) if isinstance(attr, str) else UNKNOWN
            return join_all([found, *arguments[2:]])
        if short == "setattr" and len(arguments) > 2:
            attr = arguments[1].constant
            if isinstance(attr, str):
                self.write_attribute(first, attr, arguments[2])
            return NONE
        if short == "slice":
            return SCALAR if any(value.depends_on_data for value in arguments) else STATIC
        known = self.python.returns.get(name)
        if known:
            return SIZE if known == "size" else STATIC
        if short == "print":
            return NONE
        return UNKNOWN

    def _super(self, arguments: list[Value], interpreter: Interpreter) -> Value:
        function: Function | None = interpreter.function
        while function is not None and function.owner is None:
            function = function.parent
        if function is None or function.owner is None or not function.parameters:
            return UNKNOWN
        receiver = interpreter.parameters.get(function.parameters[0].arg, UNKNOWN)
        return Value(Kind.CALLABLE, targets=frozenset((_Super(function.owner, receiver),)))  # type: ignore[arg-type]

    def _operation(self, signature: Signature, arguments: list[Value], keywords: Keywords, method: bool) -> Value:
        """The value of a torch operation; for a method the receiver is the first argument."""
        first = arguments[0] if arguments else NOTHING
        names = {name for name, _ in keywords}
        if signature.returns == "size":
            plain = signature.name in ("size", "stride", "shape") and len(arguments) < 2 and "dim" not in names
            return SIZES if plain else SIZE
        if signature.returns == "static":
            return STATIC
        if signature.returns == "scalar":
            return replace(SCALAR, inferred=method and first.inferred)
        whole = len(arguments) < 2 and not names & {"dim", "axis"}
        if signature.name == "where" and len(arguments) < 2:
            return container(Value(Kind.TENSOR, dtype="int"))
        if signature.name in ("max", "min") and len(arguments) == 2 and arguments[1].may(Kind.TENSOR):
            signature = replace(signature, pair=False, single="")
        inferred = method and first.inferred and not (signature.returns == "tensor" and first.only(Kind.TENSOR) and not first.inferred)
        dtype = signature.dtype if signature.dtype in ("bool", "int", "float") else first.dtype if signature.dtype == "same" else ""
        single = signature.single == "always" or (signature.single == "whole" and whole)
        if "random" in signature.flags and signature.name == "rand":
            empty = all(value.items == () or value.constant == 1 for value in arguments)
            return Value(Kind.TENSOR, dtype="float", single=empty, low=0.0, high=1.0)
        if signature.name in ("clamp", "abs", "neg", "float", "to", "clone", "detach", "cpu", "where", "nan_to_num", "squeeze", "bool",
                              "view", "reshape", "logical_not", "isnan", "isinf", "isfinite", "double", "half", "contiguous"):
            single = first.single and len(arguments) <= 1 or first.single and signature.name in ("to", "clamp", "view", "reshape")
        if signature.name in ("logical_and", "logical_or", "eq", "ne", "lt", "le", "gt", "ge"):
            single = all(value.single or not value.may(Kind.TENSOR) for value in arguments)
        if signature.name in ("tensor", "scalar_tensor", "as_tensor") and arguments:
            single = first.only(Kind.STATIC | Kind.SIZE | Kind.SCALAR) and isinstance(first.constant, (int, float))
        value = Value(Kind.TENSOR, inferred=inferred, dtype=dtype, single=single)
        if signature.name == "detach" or signature.name == "to":
            value = replace(value, low=first.low, high=first.high)
        if signature.pair and not whole:
            return sequence((value, Value(Kind.TENSOR, inferred=inferred)))
        if signature.returns == "tensors":
            return container(value)
        return value

    def _call_tensor_method(self, name: str, receiver: Value, arguments: list[Value], keywords: Keywords) -> Value:
        signature = self.torch.method(name)
        if signature is None:
            return replace(TENSOR, inferred=True) if receiver.only(Kind.TENSOR) else UNKNOWN
        return self._operation(signature, [receiver, *arguments], keywords, method=True)

    def _call_object_method(
        self, method: ObjectMethod, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        name, receiver = method.name, method.receiver
        if method.owner in ("list", "dict"):
            element = receiver.element or UNKNOWN
            if name in ("append", "add", "insert", "extend", "setdefault", "update", "appendleft") and isinstance(node.func, ast.Attribute):
                return self._grow(name, receiver, arguments)
            if name == "items":
                return container(sequence((STATIC, element)))
            if name == "keys":
                return container(STATIC)
            if name == "values":
                return container(element)
            if name in ("get", "pop", "popitem", "setdefault"):
                return join_all([element, *(arguments[1:] or ([NONE] if name == "get" else []))])
            if name in ("copy", "most_common"):
                return receiver
            return STATIC
        if method.owner == "logging.Logger" and name == "getChild":
            return instance(ExternalName(method.owner))
        if self.torch.is_module_class(method.owner):
            return self._module_method(name, receiver, arguments, node, interpreter)
        return UNKNOWN

    def _grow(self, name: str, receiver: Value, arguments: list[Value]) -> Value:
        return NONE

    def _module_method(
        self, name: str, receiver: Value, arguments: list[Value], node: ast.Call, interpreter: Interpreter
    ) -> Value:
        if name in ("parameters", "buffers"):
            return container(replace(TENSOR, leaf=True))
        if name in ("named_parameters", "named_buffers"):
            return container(sequence((STATIC, replace(TENSOR, leaf=True))))
        if name in ("modules", "children", "named_modules", "named_children"):
            return container(receiver.element or UNKNOWN)
        if name in ("register_buffer", "register_parameter", "register_module", "add_module"):
            if len(arguments) > 1 and isinstance(arguments[0].constant, str):
                value = arguments[1]
                tensor = name in ("register_buffer", "register_parameter")
                stored = replace(value, leaf=True) if value.may(Kind.TENSOR) else value
                self.write_attribute(receiver, arguments[0].constant, stored if stored.kinds or not tensor else TENSOR)
            return NONE
        if name in ("items", "values", "keys"):
            element = receiver.element or UNKNOWN
            return container({"items": sequence((STATIC, element)), "values": element}.get(name, STATIC))
        if name in ("append", "extend", "insert") and arguments:
            return NONE
        if name in ("to", "eval", "train", "half", "float", "cuda", "cpu", "requires_grad_", "double", "bfloat16"):
            return receiver
        if name == "__call__":
            return self.call(receiver, arguments, [], node, interpreter)
        return STATIC if name in ("state_dict", "extra_repr", "size", "dim") else UNKNOWN

    # ---------------------------------------------------------------- attributes

    def attribute(self, holder: Value, name: str, interpreter: Interpreter) -> Value:
        """The value of ``holder.name``."""
        results: list[Value] = []
        for each in holder.targets:
            results.append(self._target_attribute(each, name, interpreter))
        if holder.may(Kind.TENSOR):
            results.append(self._tensor_attribute(holder, name))
        if holder.may(Kind.OBJECT):
            for cls in holder.classes:
                results.append(self._object_attribute(cls, holder, name, interpreter))
        if holder.may(Kind.CONTAINER):
            if holder.may(Kind.SIZE) and name == "numel":
                results.append(SIZE)
            else:
                owner = ObjectMethod("list", name, holder)
                results.append(Value(Kind.CALLABLE, targets=frozenset((owner,))))
        if holder.may(Kind.STATIC | Kind.SIZE) and not holder.may(Kind.CONTAINER):
            results.append(STATIC)
        if holder.may(Kind.SCALAR):
            results.append(SCALAR if holder.kinds == Kind.SCALAR else NOTHING)
        if holder.may(Kind.UNKNOWN):
            results.append(self._unknown_attribute(holder, name))
        return join_all(results) if results else UNKNOWN

    def _unknown_attribute(self, holder: Value, name: str) -> Value:
        known = self.torch.attributes.get(name)
        if known == "size":
            return SIZES if name == "shape" else SIZE
        if known == "static":
            return STATIC
        if name in self.torch.telling:
            receiver = replace(TENSOR_GUESS, low=holder.low, high=holder.high)
            return Value(Kind.CALLABLE, targets=frozenset((TensorMethod(name, receiver),)), inferred=True)
        if name in ("item", "tolist") or name.endswith("_") and self.torch.method(name):
            return Value(Kind.CALLABLE, targets=frozenset((TensorMethod(name, TENSOR_GUESS),)), inferred=True)
        return UNKNOWN

    def _tensor_attribute(self, holder: Value, name: str) -> Value:
        known = self.torch.attributes.get(name)
        if known == "tensor":
            value = replace(holder, kinds=Kind.TENSOR, leaf=False)
            return join(value, NONE) if name == "grad" else value
        if known == "size":
            return SIZES if name == "shape" else SIZE
        if known == "static":
            return STATIC
        receiver = holder
        if holder.kinds != Kind.TENSOR:
            receiver = replace(
                holder, kinds=Kind.TENSOR, classes=frozenset(), targets=frozenset(), items=None, element=None
            )
        return Value(Kind.CALLABLE, targets=frozenset((TensorMethod(name, receiver),)))

    def _target_attribute(self, each: Target, name: str, interpreter: Interpreter) -> Value:
        match each:
            case Module():
                return self.global_value(each, name)
            case ExternalName(name=base):
                dotted = f"{base}.{name}"
                if base.startswith("torch") and name in ("inf", "nan", "pi", "e") or base == "math":
                    return STATIC if name in ("inf", "nan", "pi", "e") else external(dotted)
                return external(dotted)
            case Class():
                method = self.index.method(each, name)
                if method is not None:
                    return self.decorated(method)
                return self._class_value(each, name) or STATIC
            case _Super():
                return self._super_attribute(each, name, interpreter)
            case Bound() | Function():
                return STATIC if name in ("__name__", "__qualname__", "__doc__") else UNKNOWN
        return UNKNOWN

    def _super_attribute(self, each: _Super, name: str, interpreter: Interpreter) -> Value:
        for base in self.index.mro(each.owner)[1:]:
            if isinstance(base, Class):
                if name in base.methods:
                    return self.bind(self.decorated(base.methods[name]), each.receiver)
            else:
                method = ObjectMethod(base.name, name, each.receiver)
                return Value(Kind.CALLABLE, targets=frozenset((method,)))
        return UNKNOWN

    def _object_attribute(self, cls: ClassRef, holder: Value, name: str, interpreter: Interpreter) -> Value:
        receiver = holder
        if holder.kinds != Kind.OBJECT or len(holder.classes) > 1 or holder.targets:
            receiver = replace(holder, kinds=Kind.OBJECT, classes=frozenset((cls,)), targets=frozenset())
        if isinstance(cls, ExternalName):
            if self.torch.is_module_class(cls.name):
                if name in ("weight", "running_mean", "running_var", "in_proj_weight"):
                    return replace(TENSOR, leaf=True)
                if name == "bias":
                    return replace(TENSOR, kinds=Kind.TENSOR | Kind.NONE, leaf=True)
                if name in ("training",) or name.endswith(("_features", "_size", "_dim", "_channels", "_heads")):
                    return STATIC
            return Value(Kind.CALLABLE, targets=frozenset((ObjectMethod(cls.name, name, receiver),)))
        method = self.index.method(cls, name)
        if method is not None:
            value = self.decorated(method)
            if _is_property(method):
                return self._invoke(method, receiver, [], [], method.line, interpreter.function)
            if "staticmethod" in _decorator_words(method):
                return value
            return self.bind(value, receiver)
        stored = self._stored(cls, name, interpreter.function)
        if stored.kinds:
            return stored
        value = self._class_value(cls, name)
        if value is not None:
            return value
        if name == "training":
            return STATIC
        for base in self.index.mro(cls):
            if isinstance(base, External) and base.name != "builtins.object":
                owner = ObjectMethod(base.name, name, receiver)
                return Value(Kind.CALLABLE | Kind.UNKNOWN, targets=frozenset((owner,)))
        return UNKNOWN if self.is_module(cls) else STATIC

    def _stored(self, cls: Class, name: str, reader: Function) -> Value:
        """The join of everything that is known to be written to an attribute of a class's instances."""
        key = (cls, name)
        self.readers.setdefault(key, set()).add(reader)
        known = self._attribute_cache.get(key)
        if known is None:
            values: list[Value] = []
            for base in self.index.mro(cls):
                if isinstance(base, Class):
                    self._initialise(base)
                    self._inheritors.setdefault((base, name), set()).add(cls)
                    values.append(self.attributes.get((base, name), NOTHING))
                    if name in base.annotations and not values[-1].kinds:
                        values.append(self.annotation(base.annotations[name], base.module))
            known = self._attribute_cache[key] = join_all(values)
        return known

    def _class_value(self, cls: Class, name: str) -> Value | None:
        for base in self.index.mro(cls):
            if isinstance(base, Class) and name in base.values:
                return self.value_of(base.values[name], base.module)
        return None

    def _initialise(self, cls: Class) -> None:
        """Interpret a class's constructor once, for the attributes it sets."""
        if cls in self.initialised:
            return
        self.initialised.add(cls)
        method = cls.methods.get("__init__")
        if method is None:
            return
        state = self._state(method)
        values: Environment = {}
        for position, parameter in enumerate(method.parameters):
            if position == 0:
                values[parameter.arg] = instance(cls)
            else:
                declared = self.declared(method, parameter)
                values[parameter.arg] = declared if declared.kinds != Kind.UNKNOWN else STATIC
        if self._bind(state, values) or not state.passes:
            if method in self._active or len(self._active) >= _DEPTH:
                self._enqueue(method)
            else:
                self._interpret(method)

    def write_attribute(self, holder: Value, name: str, value: Value) -> None:
        """Remember that an attribute of some objects may have a value."""
        if not holder.may(Kind.OBJECT):
            return
        for cls in holder.classes:
            if isinstance(cls, Class):
                key = (cls, name)
                before = self.attributes.get(key, NOTHING)
                after = join(before, _settled(value))
                if after != before:
                    self.attributes[key] = after
                    for inheritor in self._inheritors.get(key, ()):
                        self._attribute_cache.pop((inheritor, name), None)
                        for reader in self.readers.get((inheritor, name), ()):
                            if reader not in self._active and self._state(reader).passes < _PASSES:
                                self._enqueue(reader)

    def bind(self, value: Value, receiver: Value) -> Value:
        """The method that reading a function from an instance gives."""
        targets = frozenset(Bound(each, receiver) if isinstance(each, Function) else each for each in value.targets)
        return replace(value, targets=targets)

    # ---------------------------------------------------------------- names

    def free_name(self, function: Function, name: str) -> Value:
        """The value of a name that the running function does not hold in its environment."""
        scope: Function | None = function
        while scope is not None:
            state = self.states.get(scope)
            if state is not None and name in state.closure:
                return state.closure[name]
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
            definitions = self.index.global_name(module, name)
            if definitions:
                known = join_all(self.definition_value(definition) for definition in definitions)
            else:
                known = external(f"builtins.{name}") if name not in module.bindings else UNKNOWN
            if name in ("TYPE_CHECKING",):
                known = replace(STATIC, constant=False, traced=True)
            self._globals[key] = known
        return known

    def named(self, dotted: str) -> Value:
        """The value behind an absolute dotted name."""
        return join_all(self.definition_value(definition) for definition in self.index.resolve(dotted)) or UNKNOWN

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
        if id(node) in self._evaluating or len(self._active) >= _DEPTH:
            return UNKNOWN
        self._evaluating.add(id(node))
        interpreter = self._scratch_for(module)
        self._active.append(interpreter.function)
        try:
            known = _settled(interpreter.eval(node, {}))
        finally:
            self._active.pop()
            self._evaluating.discard(id(node))
        self._values[id(node)] = known
        return known

    def _scratch_for(self, module: Module) -> Interpreter:
        interpreter = self._scratch.get(module)
        if interpreter is None:
            body = ast.Module(body=[], type_ignores=[])
            node = ast.Lambda(
                args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]),
                body=ast.Constant(None, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0),
                lineno=1,
                col_offset=0,
                end_lineno=1,
                end_col_offset=0,
            )
            del body
            function = Function(node, module, "<module>")
            # Lambdas of module level (tables of functions, defaults) belong to this stand-in for the module's own code.
            for each in walk_scope(module.tree.body):
                if isinstance(each, ast.Lambda):
                    function.nested[id(each)] = Function(each, module, "<lambda>", None, function)
            interpreter = self._scratch[module] = Interpreter(self, function, {}, None)
        return interpreter

    def close(self, nested: Function, env: Environment) -> None:
        """Give a nested function the names of the function around it."""
        state = self._state(nested)
        changed = False
        for name, value in env.items():
            if "." not in name:
                before = state.closure.get(name, NOTHING)
                after = join(before, _settled(value))
                if after != before:
                    state.closure[name] = after
                    changed = True
        if changed and state.passes and state.passes < _PASSES and nested not in self._active:
            self._enqueue(nested)

    def decorated(self, function: Function, interpreter: Interpreter | None = None) -> Value:
        """What the name of a function stands for once its decorators were applied."""
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
            value = self._decorate(decorator, value, function, interpreter)
        if interpreter is None:
            self._decorated[function] = value
        return value

    def _decorate(
        self, decorator: ast.expr, value: Value, function: Function, interpreter: Interpreter | None
    ) -> Value:
        runner = interpreter or self._scratch_for(function.module)
        applied = self.value_of(decorator, function.module) if interpreter is None else UNKNOWN
        wrappers = [each for each in applied.targets if isinstance(each, (Function, Bound))]
        if not wrappers:
            return value  # outside the linted files: assumed to keep what it decorates
        results: list[Value] = []
        for each in wrappers:
            called = each.function if isinstance(each, Bound) else each
            receiver = each.receiver if isinstance(each, Bound) else None
            results.append(self._invoke(called, receiver, [value], [], function.line, runner.function, False))
        made = join_all(results)
        found = frozenset(each for each in made.targets if isinstance(each, (Function, Bound)))
        return Value(Kind.CALLABLE, targets=found) if found else value

    # ---------------------------------------------------------------- containers

    def element(self, value: Value, interpreter: Interpreter | None = None) -> Value:
        """What iterating over a value gives."""
        results: list[Value] = []
        if value.may(Kind.CONTAINER) or value.element is not None:
            results.append(value.element or UNKNOWN)
        if value.may(Kind.TENSOR):
            results.append(Value(Kind.TENSOR, inferred=value.inferred, dtype=value.dtype))
        if value.may(Kind.SIZE) and not value.may(Kind.CONTAINER):
            results.append(SIZE)
        if value.may(Kind.STATIC):
            results.append(STATIC)
        if value.may(Kind.SCALAR):
            results.append(replace(SCALAR, inferred=value.inferred))
        if value.may(Kind.UNKNOWN | Kind.OBJECT) and not results:
            results.append(UNKNOWN)
        return join_all(results) if results else UNKNOWN

    def subscript(self, holder: Value, index: Value, node: ast.Subscript, interpreter: Interpreter) -> Value:
        """The value of ``holder[index]``."""
        results: list[Value] = []
        if holder.may(Kind.TENSOR):
            results.append(Value(Kind.TENSOR, inferred=holder.inferred, dtype=holder.dtype))
        if holder.may(Kind.CONTAINER) or holder.element is not None:
            position = index.constant
            if isinstance(node.slice, ast.Slice):
                results.append(replace(holder, items=None, constant=MISSING))
            elif holder.items is not None and isinstance(position, int) and -len(holder.items) <= position < len(holder.items):
                results.append(holder.items[position])
            else:
                results.append(holder.element or UNKNOWN)
        if holder.may(Kind.SIZE) and not holder.may(Kind.CONTAINER):
            results.append(SIZE)
        if holder.may(Kind.STATIC):
            results.append(STATIC)
        if holder.may(Kind.SCALAR):
            results.append(replace(SCALAR, inferred=holder.inferred))
        if holder.may(Kind.OBJECT) and holder.element is None:
            for cls in holder.classes:
                method = self.index.method(cls, "__getitem__") if isinstance(cls, Class) else None
                if method is not None:
                    results.append(self._invoke(method, instance(cls), [index], [], node.lineno, interpreter.function))
                else:
                    results.append(UNKNOWN)
        if holder.may(Kind.UNKNOWN):
            results.append(UNKNOWN)
        return join_all(results) if results else UNKNOWN

    def entered(self, value: Value, interpreter: Interpreter, node: ast.expr) -> Value:
        """What ``with value as name`` binds."""
        return UNKNOWN

    # ---------------------------------------------------------------- declarations

    def declared(self, function: Function, parameter: ast.arg) -> Value:
        """What a parameter's annotation says; ``UNKNOWN`` if it says nothing."""
        args = function.node.args
        value = self.annotation(parameter.annotation, function.module) if parameter.annotation else UNKNOWN
        if value.kinds == Kind.UNKNOWN:
            return UNKNOWN
        default = function.defaults.get(parameter.arg)
        if isinstance(default, ast.Constant) and default.value is None:
            value = join(value, NONE)
        if parameter is args.vararg or parameter is args.kwarg:
            return container(value)
        return value

    def entry_parameter(self, function: Function, parameter: ast.arg) -> Value:
        """What a parameter may be when code that is not seen calls the function."""
        declared = self.declared(function, parameter)
        if declared.kinds != Kind.UNKNOWN:
            return replace(declared, leaf=declared.may(Kind.TENSOR))
        args = function.node.args
        if parameter is args.vararg or parameter is args.kwarg:
            return container(UNKNOWN)
        default = function.defaults.get(parameter.arg)
        used = parameter.arg in self._used_as_tensor(function)
        if default is None:
            return replace(TENSOR_GUESS, leaf=True) if used or not self._used_otherwise(function, parameter.arg) else UNKNOWN
        value = self.value_of(default, function.module)
        if value.kinds == Kind.NONE:
            return join(replace(TENSOR_GUESS, leaf=True) if used else UNKNOWN, NONE)
        return value

    def _used_as_tensor(self, function: Function) -> set[str]:
        """The names that a function uses in a way that only tensors are used."""
        if function in self._tensor_uses:
            return self._tensor_uses[function]
        names = self._tensor_uses[function] = set()
        for node in walk_scope(function.body):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.attr in self.torch.telling or node.attr in ("shape", "size", "device", "dtype"):
                    names.add(node.value.id)
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                dotted = self.index.dotted(function.module, node.func)
                if any(isinstance(d, External) and self.torch.function(d.name) for d in dotted):
                    names.add(node.args[0].id)
        return names

    def _used_otherwise(self, function: Function, name: str) -> bool:
        """Whether a parameter without annotation or default is used in a way that tensors are not."""
        for node in walk_scope(function.body):
            match node:
                case ast.Call(func=ast.Name(id=called)) if called == name:
                    return True
                case ast.Attribute(value=ast.Name(id=owner), attr=attr) if owner == name:
                    if attr not in self.torch.operations and attr not in self.torch.attributes:
                        return True
                case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str())) if owner == name:
                    return True
        return False

    def annotation(self, node: ast.expr, module: Module) -> Value:
        """What a type annotation says of a value; everything it says is inferred."""
        known = self._annotations.get(id(node))
        if known is None:
            self._annotations[id(node)] = UNKNOWN
            known = self._annotations[id(node)] = self._annotation(node, module)
        return known

    def _annotation(self, node: ast.expr, module: Module) -> Value:
        match node:
            case ast.Constant(value=None):
                return NONE
            case ast.Constant(value=str(text)):
                try:
                    return self._annotation(ast.parse(text.strip(), mode="eval").body, module)
                except SyntaxError:
                    return UNKNOWN
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._union([left, right], module)
            case ast.Subscript(value=value, slice=inner):
                return self._generic(value, inner, module)
            case ast.Name() | ast.Attribute():
                return self._annotation_name(node, module)
        return UNKNOWN

    def _union(self, parts: Iterable[ast.expr], module: Module) -> Value:
        values = [self._annotation(part, module) for part in parts]
        if any(value.kinds == Kind.UNKNOWN for value in values):
            return UNKNOWN
        return join_all(values)

    def _generic(self, value: ast.expr, inner: ast.expr, module: Module) -> Value:
        names = {definition.name.rpartition(".")[2] for definition in self.index.dotted(module, value) if isinstance(definition, External)}
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if names & {"Optional"}:
            return join(self._annotation(inner, module), NONE) if self._annotation(inner, module).kinds != Kind.UNKNOWN else UNKNOWN
        if names & {"Union"}:
            return self._union(parts, module)
        if names & {"Tuple", "tuple"}:
            if any(isinstance(part, ast.Constant) and part.value is ... for part in parts) or len(parts) == 1:
                return container(self._annotation(parts[0], module))
            return sequence([self._annotation(part, module) for part in parts])
        if names & {"List", "list", "Sequence", "Iterable", "Set", "set", "FrozenSet", "frozenset", "Collection", "Iterator"}:
            return container(self._annotation(parts[0], module))
        if names & {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict"} and len(parts) == 2:
            return container(self._annotation(parts[1], module))
        if names & {"Annotated", "Final", "ClassVar", "Required"}:
            return self._annotation(parts[0], module)
        if names & {"Callable", "Type", "type"}:
            return UNKNOWN
        if names & {"Literal"}:
            return STATIC
        return UNKNOWN

    def _annotation_name(self, node: ast.expr, module: Module) -> Value:
        results: list[Value] = []
        for definition in self.index.dotted(module, node):
            match definition:
                case External(name=name):
                    last = name.rpartition(".")[2]
                    if name in self.torch.tensors:
                        results.append(TENSOR_GUESS)
                    elif name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.bytes", "torch.device", "torch.dtype",
                                  "torch.layout", "torch.memory_format", "torch.long", "torch.bool"):
                        results.append(STATIC)
                    elif name == "torch.Size":
                        results.append(SIZES)
                    elif name in ("builtins.list", "builtins.tuple", "builtins.dict", "builtins.set"):
                        results.append(container(UNKNOWN))
                    elif last in ("List", "Tuple", "Dict") and name.startswith("typing."):
                        results.append(container(UNKNOWN))
                    elif self.torch.is_module_class(name) or name == "logging.Logger":
                        results.append(instance(ExternalName(name)))
                    else:
                        results.append(UNKNOWN)
                case Class():
                    results.append(instance(definition))
                case ModuleValue(module=owner, value=value) if value is not None:
                    results.append(self._annotation(value, owner))
                case _:
                    results.append(UNKNOWN)
        return join_all(results) if results else UNKNOWN

    def annotation_union(self, types: ast.expr, interpreter: Interpreter, env: Environment) -> Value:
        """What ``isinstance(…, types)`` says of a value."""
        parts = types.elts if isinstance(types, ast.Tuple) else [types]
        values: list[Value] = []
        for part in parts:
            value = interpreter.eval(part, dict(env))
            if not value.targets:
                return UNKNOWN
            for each in value.targets:
                if isinstance(each, Class):
                    values.append(instance(each))
                elif isinstance(each, ExternalName):
                    known = self._external_class(each.name)
                    if known is None:
                        return UNKNOWN
                    values.append(known)
                else:
                    return UNKNOWN
        return join_all(values)

    def _external_class(self, name: str) -> Value | None:
        if name in self.torch.tensors:
            return TENSOR
        if name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.complex"):
            return Value(Kind.STATIC | Kind.SIZE | Kind.SCALAR)
        if name in ("builtins.list", "builtins.tuple", "builtins.dict", "builtins.set"):
            return Value(Kind.CONTAINER | Kind.SIZE, element=UNKNOWN)
        if self.torch.is_module_class(name):
            return instance(ExternalName(name))
        return None


@dataclass(frozen=True, slots=True)
class _Super:
    """``super()`` inside a method of ``owner``."""

    owner: Class
    receiver: Value


def _settled(value: Value) -> Value:
    """The value without what would keep a fixed point from being reached soon: literal values and bounds."""
    if value.constant is MISSING or value.constant is None or value.traced:
        return value if value.low is None or value.kinds & Kind.TENSOR else replace(value, low=None, high=None)
    if isinstance(value.constant, str):
        return value
    return replace(value, constant=MISSING, low=None, high=None)


def _decorator_words(function: Function) -> set[str]:
    words: set[str] = set()
    for decorator in function.decorators:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
    return words


def _is_property(function: Function) -> bool:
    return bool(_decorator_words(function) & {"property", "cached_property", "lazy_property"})
