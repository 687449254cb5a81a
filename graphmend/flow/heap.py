"""Attributes: what reading one gives, and what is known to be written to them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.flow.library import ARRAY
from graphmend.flow.state import DEPTH, PASSES
from graphmend.flow.values import (
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
    Super,
    Target,
    TensorMethod,
    Value,
    external,
    instance,
    join,
    join_all,
    ordered,
    settled,
    shallow,
)
from graphmend.model.index import External
from graphmend.model.module import Class, Function, Module
from graphmend.signatures import torch

if TYPE_CHECKING:
    from graphmend.flow.environment import Environment
    from graphmend.flow.interpreter import Interpreter
    from graphmend.flow.program import Program


class Heap:
    """The attributes of a program's objects, one value for each class and name."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.torch = torch()
        self.attributes: dict[tuple[Class, str], Value] = {}
        self.readers: dict[tuple[Class, str], dict[Function, None]] = {}
        self._initialised: set[Class] = set()
        self._cache: dict[tuple[Class, str], Value] = {}
        self._inheritors: dict[tuple[Class, str], dict[Class, None]] = {}

    def read(self, holder: Value, name: str, line: int, interpreter: Interpreter) -> Value:
        """The value of ``holder.name``."""
        results: list[Value] = []
        for each in ordered(holder.targets):
            results.append(self._target_attribute(each, name))
        if holder.may(Kind.TENSOR):
            results.append(self._tensor_attribute(holder, name))
        if holder.may(Kind.OBJECT):
            for cls in ordered(holder.classes):
                results.append(self._object_attribute(cls, holder, name, line, interpreter))
        if holder.may(Kind.CONTAINER):
            if holder.may(Kind.SIZE) and name == "numel":
                results.append(SIZE)
            elif name in _PARTS and holder.items is not None and all(item.is_tensor for item in holder.items):
                results.append(holder.items[_PARTS.index(name)] if len(holder.items) == len(_PARTS) else UNKNOWN)
            elif not results or hasattr(list, name) or hasattr(dict, name) or hasattr(set, name):
                owner = ObjectMethod("list", name, holder)
                results.append(Value(Kind.CALLABLE, targets=frozenset((owner,))))
        if holder.may(Kind.STATIC | Kind.SIZE) and not holder.may(Kind.CONTAINER):
            results.append(STATIC)
        if holder.may(Kind.SCALAR):
            results.append(SCALAR if holder.kinds == Kind.SCALAR else NOTHING)
        if holder.may(Kind.NUMPY):
            results.append(self._array_attribute(holder, name))
        if holder.may(Kind.UNKNOWN):
            results.append(self._unknown_attribute(holder, name))
        return join_all(results) if results else UNKNOWN

    def _unknown_attribute(self, holder: Value, name: str) -> Value:
        known = self.program.torch.attributes.get(name)
        if known == "size":
            return SIZES if name == "shape" else SIZE
        if known == "static":
            return STATIC
        if name in self.program.torch.telling:
            receiver = replace(TENSOR_GUESS, low=holder.low, high=holder.high)
            return Value(Kind.CALLABLE, targets=frozenset((TensorMethod(name, receiver),)), inferred=True)
        if name in ("item", "tolist") or name.endswith("_") and self.program.torch.method(name):
            return Value(Kind.CALLABLE, targets=frozenset((TensorMethod(name, TENSOR_GUESS),)), inferred=True)
        return UNKNOWN

    def _tensor_attribute(self, holder: Value, name: str) -> Value:
        known = self.program.torch.attributes.get(name)
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
        return Value(Kind.CALLABLE, holder.inferred, targets=frozenset((TensorMethod(name, receiver),)))

    def _array_attribute(self, holder: Value, name: str) -> Value:
        known = "size" if name == "size" else self.program.torch.attributes.get(name)
        if known == "tensor":
            return Value(Kind.NUMPY, holder.inferred)
        if known == "size":
            return SIZES if name == "shape" else SIZE
        return STATIC if known == "static" else _external_method(ARRAY, name, Value(Kind.NUMPY, holder.inferred))

    def _target_attribute(self, each: Target, name: str) -> Value:
        match each:
            case Module():
                return self.program.bindings.global_value(each, name)
            case ExternalName(name=base):
                dotted = f"{base}.{name}"
                if base.startswith("torch") and name in ("inf", "nan", "pi", "e") or base == "math":
                    return STATIC if name in ("inf", "nan", "pi", "e") else external(dotted)
                return external(dotted)
            case Class():
                method = self.program.index.method(each, name)
                if method is not None:
                    return self.program.bindings.decorated(method)
                if name == "apply" and self._is_autograd_function(each):
                    return self._applied(each)
                return self.class_value(each, name) or STATIC
            case Super():
                return self._super_attribute(each, name)
            case Bound() | Function():
                return STATIC if name in ("__name__", "__qualname__", "__doc__") else UNKNOWN
        return UNKNOWN

    def _is_autograd_function(self, cls: Class) -> bool:
        return any(isinstance(base, External) and base.name in _FUNCTIONS for base in self.program.index.mro(cls))

    def _applied(self, cls: Class) -> Value:
        """``apply`` of a ``torch.autograd.Function``: torch's own, which calls ``forward`` with a context."""
        forward = self.program.index.method(cls, "forward")
        targets: list[Target] = [ExternalName(f"{_FUNCTIONS[0]}.apply")]
        if forward is not None:
            targets.append(Bound(forward, UNKNOWN))
        return Value(Kind.CALLABLE, targets=frozenset(targets))

    def _super_attribute(self, each: Super, name: str) -> Value:
        """What ``super().<name>`` finds: behind the owner among the bases of each class that the instance may be of."""
        index = self.program.index
        orders = dict.fromkeys(
            order[order.index(each.owner) + 1 :]
            for cls in ordered(each.receiver.classes)
            if isinstance(cls, Class) and each.owner in (order := index.mro(cls))
        )
        return join_all([self._after(order, each, name) for order in orders or (index.mro(each.owner)[1:],)])

    def _after(self, bases: tuple[Class | External, ...], each: Super, name: str) -> Value:
        for base in bases:
            if isinstance(base, Class):
                if name in base.methods:
                    return self.bind(self.program.bindings.decorated(base.methods[name]), each.receiver)
            else:
                return _external_method(base.name, name, each.receiver)
        return _external_method("builtins.object", name, each.receiver) if hasattr(object, name) else UNKNOWN

    def _object_attribute(self, cls: ClassRef, holder: Value, name: str, line: int, interpreter: Interpreter) -> Value:
        if isinstance(cls, ExternalName):
            if self.program.torch.is_module_class(cls.name):
                if name in ("weight", "running_mean", "running_var", "in_proj_weight"):
                    return replace(TENSOR, leaf=True)
                if name == "bias":
                    return replace(TENSOR, kinds=Kind.TENSOR | Kind.NONE, leaf=True)
                if name == "training" or name.endswith(("_features", "_size", "_dim", "_channels", "_heads")):
                    return STATIC
            return _external_method(cls.name, name, _as_one(holder, cls))
        method = self.program.index.method(cls, name)
        if method is not None:
            value = self.program.bindings.decorated(method)
            if _is_property(method):
                return self.program.calls.invoke(method, _as_one(holder, cls), [], [], line, interpreter.function)
            if "staticmethod" in _decorator_words(method):
                return value
            return self.bind(value, _as_one(holder, cls))
        stored = self._stored(cls, name, interpreter.function)
        if stored.kinds:
            return stored
        declared = self.class_value(cls, name)
        if declared is not None:
            return declared
        if name == "training":
            return STATIC
        for base in self.program.index.mro(cls):
            if isinstance(base, External) and base.name != "builtins.object":
                owner = ObjectMethod(base.name, name, _as_one(holder, cls))
                return Value(Kind.CALLABLE | Kind.UNKNOWN, targets=frozenset((owner,)))
        return UNKNOWN if self.program.is_module(cls) else STATIC

    def _stored(self, cls: Class, name: str, reader: Function) -> Value:
        """The join of everything that is known to be written to an attribute of a class's instances."""
        key = (cls, name)
        self.readers.setdefault(key, {})[reader] = None
        known = self._cache.get(key)
        if known is None:
            values: list[Value] = []
            for base in self.program.index.mro(cls):
                if isinstance(base, Class):
                    self._initialise(base)
                    self._inheritors.setdefault((base, name), {})[cls] = None
                    values.append(self.attributes.get((base, name), NOTHING))
                    if name in base.annotations and not values[-1].kinds:
                        values.append(self.program.annotations.value(base.annotations[name], base.module))
            known = self._cache[key] = join_all(values)
        return known

    def written(self, cls: Class, name: str) -> Value:
        """The join of everything that methods are known to write to an attribute of a class's instances."""
        bases = [base for base in self.program.index.mro(cls) if isinstance(base, Class)]
        return join_all(self.attributes.get((base, name), NOTHING) for base in bases)

    def class_value(self, cls: Class, name: str) -> Value | None:
        """The value of a class-level assignment, looked up through the bases."""
        for base in self.program.index.mro(cls):
            if isinstance(base, Class) and name in base.values:
                return self.program.bindings.value_of(base.values[name], base.module)
        return None

    def _initialise(self, cls: Class) -> None:
        """Interpret a class's constructor once, for the attributes it sets."""
        if cls in self._initialised:
            return
        self._initialised.add(cls)
        method = cls.methods.get("__init__")
        if method is None:
            return
        state = self.program.state(method)
        values: Environment = {}
        for position, parameter in enumerate(method.parameters):
            if position == 0:
                values[parameter.arg] = instance(cls)
            else:
                declared = self.program.annotations.declared(method, parameter)
                values[parameter.arg] = declared if declared.kinds != Kind.UNKNOWN else STATIC
        if self.program.calls.join_parameters(state, values) or not state.passes:
            if method in self.program.active or len(self.program.active) >= DEPTH:
                self.program.enqueue(method)
            else:
                self.program.interpret(method)

    def write(self, holder: Value, name: str, value: Value) -> None:
        """Remember that an attribute of some objects may have a value."""
        if not holder.may(Kind.OBJECT):
            return
        for cls in ordered(holder.classes):
            if isinstance(cls, Class):
                key = (cls, name)
                before = self.attributes.get(key, NOTHING)
                after = join(before, shallow(settled(value)))
                if after != before:
                    self.attributes[key] = after
                    for inheritor in self._inheritors.get(key, ()):
                        self._cache.pop((inheritor, name), None)
                        for reader in self.readers.get((inheritor, name), ()):
                            if reader not in self.program.active and self.program.state(reader).passes < PASSES:
                                self.program.enqueue(reader)

    def bind(self, value: Value, receiver: Value) -> Value:
        """The method that reading a function from an instance gives."""
        targets = frozenset(Bound(each, receiver) if isinstance(each, Function) else each for each in value.targets)
        return Value(value.kinds, targets=targets, inferred=value.inferred)


_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_PARTS = ("values", "indices")
"""The fields of what `torch.max`, `sort`, `topk` and their like return (``torch.return_types``)."""


def _external_method(owner: str, name: str, receiver: Value) -> Value:
    return Value(Kind.CALLABLE, targets=frozenset((ObjectMethod(owner, name, receiver),)))


def _as_one(holder: Value, cls: ClassRef) -> Value:
    """The object as an instance of one of its classes."""
    if holder.kinds == Kind.OBJECT and len(holder.classes) == 1 and not holder.targets:
        return holder
    return Value(Kind.OBJECT, holder.inferred, classes=frozenset((cls,)), items=holder.items, element=holder.element)


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
