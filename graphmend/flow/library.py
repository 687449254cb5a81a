"""Calls of code outside the linted files: torch operations, Python's own functions, library objects."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.flow.launches import HOOKS, LAUNCHING, launching_call
from graphmend.flow.operations import Keywords, operation
from graphmend.flow.values import (
    DRAWN,
    MISSING,
    NONE,
    NOTHING,
    NUMPY,
    SCALAR,
    SIZE,
    STATIC,
    TENSOR,
    TENSOR_GUESS,
    UNKNOWN,
    ExternalName,
    Kind,
    ObjectMethod,
    Super,
    Value,
    container,
    dictionary,
    element,
    field_of,
    held,
    instance,
    join_all,
    keyed,
    sequence,
    target,
)
from graphmend.model.module import Function
from graphmend.signatures import python, torch

if TYPE_CHECKING:
    from graphmend.flow.interpreter import Interpreter
    from graphmend.flow.program import Program

ARRAY = "numpy.ndarray"
"""The class whose methods those of a NumPy array or number are."""
_WRAPPING = frozenset({"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"})
"""The modules that hold another one, and run it."""


class Library:
    """The library calls of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.torch = torch()
        self.python = python()

    def call_function(
        self, name: str, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        """The value of a call of an external function or class by its dotted name."""
        tables = self.torch
        if name in tables.compiling or name in tables.not_compiling:
            return replace(STATIC, constant=name in tables.compiling, traced=True)
        if name in LAUNCHING:
            return launching_call(name, arguments, keywords, node, interpreter)
        if name in tables.tensors:
            return replace(TENSOR, leaf=True, dtype="bool" if name == "torch.BoolTensor" else "")
        if name in tables.selections:
            return self._select(arguments, node, interpreter)
        if tables.is_module_class(name):
            return self._make_module(name, arguments)
        if made := self.python.instances.get(name, name if name in self.program.classes else ""):
            return instance(ExternalName(made))
        signature = tables.function(name)
        if signature is not None:
            return operation(signature, arguments, keywords, method=False)
        if name.startswith("builtins."):
            return self._call_builtin(name, arguments, keywords, node, interpreter)
        wrapped = self._call_wrapper(name, arguments, node, interpreter)
        return self._call_python(name, arguments) if wrapped is None else wrapped

    def _call_wrapper(
        self, name: str, arguments: list[Value], node: ast.Call, interpreter: Interpreter
    ) -> Value | None:
        """The value of a function that calls, or wraps, the function that it is given; ``None`` for others."""
        if not arguments:
            return None
        if name.startswith("torch.utils.checkpoint."):
            return self.program.calls.call(arguments[0], arguments[1:], [], node, interpreter)
        return None

    def _call_python(self, name: str, arguments: list[Value]) -> Value:
        """The value of a function of Python's library or of NumPy, by what it is given."""
        if name in self.python.passes:
            return join_all(arguments[-1:])
        if name.startswith("math."):
            read = [value for value in arguments if value.depends_on_data]
            return replace(SCALAR, inferred=all(value.inferred for value in read)) if read else STATIC
        if name in self.python.returns:
            return STATIC
        if name in self.python.draws:
            return DRAWN
        if name.startswith("numpy."):
            return self._call_numpy(name.removeprefix("numpy."), arguments)
        if name.startswith("random."):
            return UNKNOWN if any(value.depends_on_data for value in arguments) else STATIC
        return UNKNOWN

    def _call_numpy(self, name: str, arguments: list[Value]) -> Value:
        """The value of a function of NumPy, which tracing makes an operation on tensors (torch._numpy)."""
        data = any(value.depends_on_data or value.may(Kind.UNKNOWN) for value in arguments)
        if name.startswith("random."):
            # Arrays are drawn in the graph; what draws a number ends it, and the number is known from then on.
            draws = name.removeprefix("random.") in self.python.numpy_draws_arrays and bool(arguments)
            return NUMPY if draws else STATIC
        if "." in name and not name.startswith(("linalg.", "fft.")):
            return UNKNOWN if data else STATIC
        if name in self.python.numpy_plain:
            return STATIC
        known = all(value.fixed or not value.depends_on_data for value in arguments)
        read = [value for value in arguments if value.depends_on_data]
        inferred = bool(read) and all(value.inferred for value in read)
        return Value(Kind.NUMPY, inferred, fixed=known and name in self.python.numpy_elementwise)

    def _select(self, arguments: list[Value], node: ast.Call, interpreter: Interpreter) -> Value:
        """A choice between the results of two functions: both may be called."""
        operands = list(arguments[3].items or ()) if len(arguments) > 3 else []
        return join_all([self.program.calls.call(arm, operands, [], node, interpreter) for arm in arguments[1:3]])

    def _make_module(self, name: str, arguments: list[Value]) -> Value:
        made = instance(ExternalName(name))
        if arguments and name.rpartition(".")[2] in _WRAPPING:
            return replace(made, items=(arguments[0],), element=arguments[0])
        if name in self.torch.module_containers and arguments:
            if arguments[0].kinds & Kind.OBJECT:  # nn.Sequential(a, b)
                return replace(made, items=tuple(arguments), element=join_all(arguments))
            return replace(made, items=arguments[0].items, element=element(arguments[0]))
        if name in self.torch.module_dicts and arguments:
            return replace(made, element=element(arguments[0]))
        return made

    def _call_builtin(
        self, name: str, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        first = arguments[0] if arguments else NOTHING
        if name in self.python.reads:
            if first.only(Kind.DRAWN):
                return DRAWN
            if first.fixed:
                return STATIC
            if first.depends_on_data:
                return replace(SCALAR, inferred=first.inferred)
            is_number = not first.may(Kind.UNKNOWN | Kind.OBJECT) and not isinstance(first.constant, str)
            return first if first.kinds and is_number else STATIC
        if name in self.python.passes:
            pool = [element(first)] if len(arguments) == 1 and first.may(Kind.CONTAINER) else arguments
            joined = join_all(pool)
            return replace(joined, leaf=False, constant=MISSING) if joined.kinds else UNKNOWN
        found = self._call_container_builtin(name, arguments, keywords)
        if found is not None:
            return found
        match name.removeprefix("builtins."):
            case "super":
                return self._super(interpreter)
            case "any" | "all":
                inner = element(first)
                return replace(SCALAR, inferred=inner.inferred) if inner.depends_on_data else STATIC
            case "map" if len(arguments) > 1:
                each = [element(value) for value in arguments[1:]]
                return container(self.program.calls.call(first, each, [], node, interpreter))
            case "getattr" if len(arguments) > 1:
                attr = arguments[1].constant
                found = UNKNOWN
                if isinstance(attr, str):
                    found = self.program.heap.read(first, attr, node.lineno, interpreter)
                return join_all([found, *arguments[2:]])
            case "setattr" if len(arguments) > 2 and isinstance(arguments[1].constant, str):
                self.program.heap.write(first, arguments[1].constant, arguments[2])
                return NONE
            case "print" | "setattr":
                return NONE
        known = self.python.returns.get(name)
        return UNKNOWN if known is None else SIZE if known == "size" else STATIC

    def _call_container_builtin(self, name: str, arguments: list[Value], keywords: Keywords) -> Value | None:
        first = arguments[0] if arguments else NOTHING
        if name in self.python.sequences:
            return first if first.may(Kind.CONTAINER) else container(element(first) if arguments else NOTHING)
        match name.removeprefix("builtins."):
            case "enumerate":
                return container(sequence((SIZE, element(first))))
            case "zip":
                return container(sequence([element(argument) for argument in arguments]))
            case "dict":
                if not arguments and all(key is not None for key, _ in keywords):
                    return keyed({key: value for key, value in keywords if key is not None})
                inner = join_all(value for _, value in keywords)
                return dictionary(join_all([inner, element(first)]) if arguments else inner)
            case "range":
                return container(SCALAR if any(value.depends_on_data for value in arguments) else SIZE)
            case "slice":
                return SCALAR if any(value.depends_on_data for value in arguments) else STATIC
            case "next":
                return element(first)
        return None

    @staticmethod
    def _super(interpreter: Interpreter) -> Value:
        function: Function | None = interpreter.function
        while function is not None and function.owner is None:
            function = function.parent
        if function is None or function.owner is None or not function.parameters:
            return UNKNOWN
        return target(Super(function.owner, interpreter.parameters.get(function.parameters[0].arg, UNKNOWN)))

    def call_tensor_method(self, name: str, receiver: Value, arguments: list[Value], keywords: Keywords) -> Value:
        """The value of a method call on a tensor, or on something that is used like one."""
        if name == "numpy":
            return Value(Kind.NUMPY, inferred=receiver.inferred)
        signature = self.torch.method(name)
        if signature is None:
            return TENSOR_GUESS if receiver.only(Kind.TENSOR) else UNKNOWN
        return operation(signature, [receiver, *arguments], keywords, method=True)

    def call_object_method(
        self, method: ObjectMethod, arguments: list[Value], keywords: Keywords, node: ast.Call, interpreter: Interpreter
    ) -> Value:
        """The value of a method call on a container or an instance of an external class."""
        name, receiver = method.name, method.receiver
        if method.owner == "list":
            return _container_method(name, receiver, arguments)
        if f"{method.owner}.{name}" in self.python.draws:
            return DRAWN
        if method.owner == ARRAY:
            return replace(SCALAR if name in ("item", "tolist") else NUMPY, inferred=receiver.inferred)
        if name == "__getattribute__" and arguments and isinstance(attr := arguments[0].constant, str):
            return self.program.heap.read(receiver, attr, node.lineno, interpreter)
        if name == "getChild" and method.owner == "logging.Logger":
            return instance(ExternalName(method.owner))
        if self.torch.is_module_class(method.owner):
            return self._module_method(name, receiver, arguments, node, interpreter)
        return UNKNOWN

    def _module_method(
        self, name: str, receiver: Value, arguments: list[Value], node: ast.Call, interpreter: Interpreter
    ) -> Value:
        leaf = replace(TENSOR, leaf=True)
        match name:
            case "parameters" | "buffers":
                return container(leaf)
            case "named_parameters" | "named_buffers":
                return container(sequence((STATIC, leaf)))
            case "modules" | "children":
                return container(element(receiver))
            case "register_buffer" | "register_parameter" | "register_module" | "add_module":
                if len(arguments) > 1 and isinstance(arguments[0].constant, str):
                    value = arguments[1]
                    stored = replace(value, leaf=True) if value.may(Kind.TENSOR) else value
                    if name == "register_buffer" and not value.may(Kind.TENSOR) and not value.only(Kind.NONE):
                        stored = _BUFFER  # whatever is handed on, a buffer is a tensor or None
                    self.program.heap.write(receiver, arguments[0].constant, stored)
                return NONE
            case "items":
                return container(sequence((STATIC, element(receiver))))
            case "values":
                return container(element(receiver))
            case "keys" | "state_dict" | "extra_repr":
                return container(STATIC)
            case "append" | "extend" | "insert":
                return NONE
            case "to" | "eval" | "train" | "half" | "float" | "double" | "bfloat16" | "cuda" | "cpu" | "requires_grad_":
                return receiver
            case "__call__":
                return self.program.calls.call(receiver, arguments, [], node, interpreter)
            case "compile" if self.program.launches is not None:
                self.program.launches.compiled(receiver, node.lineno, interpreter.function)
                return NONE
            case _ if name in HOOKS and self.program.launches is not None and arguments:
                self.program.launches.hooked(receiver, arguments[0], node.lineno, interpreter.function)
        return UNKNOWN


_BUFFER = Value(Kind.TENSOR | Kind.NONE, inferred=True, leaf=True)


def _container_method(name: str, receiver: Value, arguments: list[Value]) -> Value:
    each = held(receiver)
    known = field_of(receiver, arguments[0].constant) if arguments else None
    match name:
        case "get" | "pop" if known is not None:
            return join_all([known, *(arguments[1:] or [NONE])]) if name == "get" else known
        case "items":
            return container(sequence((STATIC, each)))
        case "values":
            return container(each)
        case "keys":
            return container(STATIC)
        case "get":
            return join_all([each, *(arguments[1:] or [NONE])])
        case "pop" | "popitem" | "setdefault":
            return join_all([each, *arguments[1:]])
        case "copy":
            return receiver
        case "append" | "add" | "insert" | "extend" | "update" | "clear" | "sort" | "reverse" | "remove":
            return NONE
    return STATIC
