"""What declarations say of values: annotations and defaults. All of it is inference."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.flow.values import (
    MASK_GUESS,
    NONE,
    SIZES,
    STATIC,
    TENSOR,
    TENSOR_GUESS,
    UNKNOWN,
    ExternalName,
    Kind,
    Value,
    container,
    dictionary,
    instance,
    join,
    join_all,
    sequence,
)
from graphmend.model.index import External, ModuleValue
from graphmend.model.module import Class, Function, Module

if TYPE_CHECKING:
    from graphmend.flow.environment import Environment
    from graphmend.flow.interpreter import Interpreter
    from graphmend.flow.program import Program


class Annotations:
    """The declarations of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._classes = program.classes.union(program.python.instances.values())
        self._known: dict[int, Value] = {}

    def declared(self, function: Function, parameter: ast.arg) -> Value:
        """What a parameter's annotation says; ``UNKNOWN`` if it says nothing."""
        args = function.node.args
        value = self.value(parameter.annotation, function.module) if parameter.annotation else UNKNOWN
        if value.kinds == Kind.UNKNOWN:
            return UNKNOWN
        default = function.defaults.get(parameter.arg)
        if isinstance(default, ast.Constant) and default.value is None:
            value = join(value, NONE)
        if parameter is args.kwarg:
            return dictionary(value)
        if parameter is args.vararg:
            return container(value)
        return value

    def entry_parameter(self, function: Function, parameter: ast.arg) -> Value:
        """What a parameter may be when code that is not seen calls the function."""
        declared = self.declared(function, parameter)
        if declared.kinds != Kind.UNKNOWN:
            return replace(declared, leaf=declared.may(Kind.TENSOR))
        args = function.node.args
        if parameter is args.vararg or parameter is args.kwarg:
            return container(UNKNOWN) if parameter is args.vararg else dictionary(UNKNOWN)
        default = function.defaults.get(parameter.arg)
        used = parameter.arg in self.program.uses.as_tensor(function)
        if default is None:
            guess = used or not self.program.uses.as_plain(function, parameter.arg)
            return replace(TENSOR_GUESS, leaf=True) if guess else UNKNOWN
        value = self.program.bindings.value_of(default, function.module)
        if value.kinds == Kind.NONE:
            return join(replace(TENSOR_GUESS, leaf=True) if used else UNKNOWN, NONE)
        return value

    def value(self, node: ast.expr, module: Module) -> Value:
        """What a type annotation says of a value; everything it says is inferred."""
        known = self._known.get(id(node))
        if known is None:
            self._known[id(node)] = UNKNOWN
            known = self._known[id(node)] = self._read(node, module)
        return known

    def _read(self, node: ast.expr, module: Module) -> Value:
        match node:
            case ast.Constant(value=None):
                return NONE
            case ast.Constant(value=str(text)):
                try:
                    return self._read(ast.parse(text.strip(), mode="eval").body, module)
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
        values = [self._read(part, module) for part in parts]
        if any(value.kinds == Kind.UNKNOWN for value in values):
            return UNKNOWN
        return join_all(values)

    def _generic(self, value: ast.expr, inner: ast.expr, module: Module) -> Value:
        names = {
            definition.name.rpartition(".")[2]
            for definition in self.program.index.dotted(module, value)
            if isinstance(definition, External)
        }
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if names & {"Optional"}:
            return join(self._read(inner, module), NONE) if self._read(inner, module).kinds != Kind.UNKNOWN else UNKNOWN
        if names & {"Union"}:
            return self._union(parts, module)
        if names & {"Tuple", "tuple"}:
            if any(isinstance(part, ast.Constant) and part.value is ... for part in parts) or len(parts) == 1:
                return container(self._read(parts[0], module))
            return sequence([self._read(part, module) for part in parts])
        if names & {
            "List",
            "list",
            "Sequence",
            "Iterable",
            "Set",
            "set",
            "FrozenSet",
            "frozenset",
            "Collection",
            "Iterator",
        }:
            return container(self._read(parts[0], module))
        if names & {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict"} and len(parts) == 2:
            return dictionary(self._read(parts[1], module))
        if names & {"Annotated", "Final", "ClassVar", "Required"}:
            return self._read(parts[0], module)
        if names & {"Callable", "Type", "type"}:
            return UNKNOWN
        if names & {"Literal"}:
            return STATIC
        return UNKNOWN

    def _annotation_name(self, node: ast.expr, module: Module) -> Value:
        results: list[Value] = []
        for definition in self.program.index.dotted(module, node):
            match definition:
                case External(name=name):
                    last = name.rpartition(".")[2]
                    if name in self.program.torch.tensors:
                        results.append(MASK_GUESS if last == "BoolTensor" else TENSOR_GUESS)
                    elif name in (
                        "builtins.int",
                        "builtins.float",
                        "builtins.bool",
                        "builtins.str",
                        "builtins.bytes",
                        "torch.device",
                        "torch.dtype",
                        "torch.layout",
                        "torch.memory_format",
                        "torch.long",
                        "torch.bool",
                    ):
                        results.append(STATIC)
                    elif name == "torch.Size":
                        results.append(SIZES)
                    elif name in ("builtins.list", "builtins.tuple", "builtins.dict", "builtins.set"):
                        results.append(container(UNKNOWN))
                    elif last in ("List", "Tuple", "Dict") and name.startswith("typing."):
                        results.append(container(UNKNOWN))
                    elif self.program.torch.is_module_class(name) or name in self._classes:
                        results.append(instance(ExternalName(name)))
                    else:
                        results.append(UNKNOWN)
                case Class():
                    results.append(instance(definition))
                case ModuleValue(module=owner, value=value) if value is not None:
                    results.append(self._read(value, owner))
                case _:
                    results.append(UNKNOWN)
        return join_all(results) if results else UNKNOWN

    def instance_test(self, types: ast.expr, interpreter: Interpreter, env: Environment) -> Value:
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
        if name in self.program.torch.tensors:
            return TENSOR
        if name in ("builtins.int", "builtins.float", "builtins.bool", "builtins.str", "builtins.complex"):
            return Value(Kind.STATIC | Kind.SIZE | Kind.SCALAR)
        if name in ("builtins.list", "builtins.tuple", "builtins.dict", "builtins.set"):
            return Value(Kind.CONTAINER | Kind.SIZE, element=UNKNOWN)
        if self.program.torch.is_module_class(name):
            return instance(ExternalName(name))
        return None
