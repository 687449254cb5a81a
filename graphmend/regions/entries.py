"""Where compiled regions start, and what lies outside every region."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.model.index import External, Index, ModuleValue
from graphmend.model.module import Class, Function, Module, ValueBinding
from graphmend.signatures import torch

COMPILERS = frozenset({"torch.compile", "torch._dynamo.optimize", "graphmend.compile", "graphmend.runtime.compile"})
DISABLERS = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.skip"})
DISABLED = "torch.compiler.disabled"
"""Stands for what such a function made of another one."""
OPAQUE = frozenset(
    {"torch.library.custom_op", "torch.library.triton_op", "torch.library.impl", "torch.library.register_kernel"}
)
"""What they decorate is behind an operator, which Dynamo takes as a whole."""
SCRIPTERS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.export"})
EFFECTS = frozenset({"graphmend.effect", "graphmend.runtime.effect"})
_CALLED = frozenset({"forward", "__call__", "__init__"})
"""The methods that are disabled together with their class."""
RUNTIME_MARK = "graphmend runtime"
"""The docstring of a vendored runtime module starts with this."""


@dataclass(frozen=True)
class Entry:
    """A function with which a compiled region may start.

    Args:
        function: the function as written.
        cls: for a method, the class whose instances it is called on.
    """

    function: Function
    cls: Class | None


def decorator_names(index: Index, decorated: Function | Class) -> set[str]:
    """The dotted names of the decorators of a function or class (of the called object, for one with arguments)."""
    decorators = decorated.decorators if isinstance(decorated, Function) else decorated.node.decorator_list
    return {name for decorator in decorators for name in _names(index, decorated, decorator)}


def _names(index: Index, decorated: Function | Class, decorator: ast.expr) -> Iterator[str]:
    """The dotted names that one decorator may have."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    found = index.dotted_in(decorated.parent, decorated.module, called)
    if any(isinstance(definition, ModuleValue) for definition in found):
        found = tuple(index.alternatives(decorated.module, called))
    for definition in found:
        if isinstance(definition, External):
            yield definition.name
        elif isinstance(definition, (Function, Class)) and is_runtime(definition.module):
            yield f"graphmend.{definition.name}"


def is_disabler(index: Index, decorated: Function, decorator: ast.expr) -> bool:
    """Whether a decorator keeps a function from being compiled."""
    return not DISABLERS.isdisjoint(_names(index, decorated, decorator))


def is_runtime(module: Module) -> bool:
    """Whether a file is a vendored copy of the graphmend runtime."""
    return RUNTIME_MARK in (ast.get_docstring(module.tree) or "")[:80]


def is_cut(index: Index, function: Function) -> bool:
    """Whether the function is outside every region: disabled, or the body of an effect or of an operator.

    Dynamo traces what TorchScript compiles, too, and what TorchScript leaves alone (measured with torch 2.13).
    """
    if decorator_names(index, function) & (DISABLERS | EFFECTS | OPAQUE):
        return True
    owner = function.owner
    if owner is not None and function.name in _CALLED and decorator_names(index, owner) & DISABLERS:
        return True
    return _is_replaced(index, function)


def _is_replaced(index: Index, function: Function) -> bool:
    """Whether the name of a function is given to the function disabled (``f = torch.compiler.disable(f)``)."""
    if function.owner is not None:
        values: list[ast.expr | None] = [function.owner.values.get(function.name)]
    else:
        bindings = function.module.bindings.get(function.name, ()) if function.parent is None else ()
        values = [binding.value for binding in bindings if isinstance(binding, ValueBinding)]
    return any(
        isinstance(found, External) and found.name in DISABLERS
        for value in values
        if isinstance(value, ast.Call)
        and any(isinstance(each, ast.Name) and each.id == function.name for each in value.args)
        for found in index.dotted_in(function.parent, function.module, value.func)
    )


def is_module_class(index: Index, cls: Class) -> bool:
    """Whether a class derives from ``torch.nn.Module``, through other files or well-known libraries."""
    return any(isinstance(base, External) and torch().is_module_class(base.name) for base in index.mro(cls))


def entries(index: Index, module: Module) -> Iterator[Entry]:
    """The module classes of a file, each with the ``forward`` that its instances run when they are called."""
    for cls in module.classes:
        if is_module_class(index, cls):
            forward = index.method(cls, "forward")
            if forward is not None and not is_cut(index, forward):
                yield Entry(forward, cls)
