"""Where compiled regions start, and what lies outside every region."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.model.index import External, Index
from graphmend.model.module import Class, Function, Module
from graphmend.signatures import torch

COMPILERS = frozenset({"torch.compile", "torch._dynamo.optimize", "graphmend.compile", "graphmend.runtime.compile"})
DISABLERS = frozenset(
    {"torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.skip", "torch.jit.ignore", "torch.jit.unused"}
)
DISABLED = "torch.compiler.disable.disabled"
"""Stands for the function that ``torch.compiler.disable(function)`` gives."""
OPAQUE = frozenset(
    {"torch.library.custom_op", "torch.library.triton_op", "torch.library.impl", "torch.library.register_kernel"}
)
"""What they decorate is behind an operator, which Dynamo takes as a whole."""
SCRIPTERS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.export"})
EFFECTS = frozenset({"graphmend.effect", "graphmend.runtime.effect"})
_COMPILE = re.compile(r"(?<![^\w.]re\.)\b(?:compile|optimize)\b")
RUNTIME_MARK = "graphmend runtime"
"""The docstring of a vendored runtime module starts with this."""


@dataclass(frozen=True)
class Entry:
    """A function with which a compiled region may start.

    Args:
        function: the function as written.
        cls: for a method, the class whose instances it is called on.
        compiled: whether a visible ``torch.compile`` names it; otherwise it is a module's ``forward``.
    """

    function: Function
    cls: Class | None
    compiled: bool


def decorator_names(index: Index, function: Function) -> set[str]:
    """The dotted names of a function's decorators (of the called object, for a decorator with arguments)."""
    names: set[str] = set()
    for decorator in function.decorators:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        for definition in index.dotted(function.module, called):
            if isinstance(definition, External):
                names.add(definition.name)
            elif isinstance(definition, Function) and is_runtime(definition.module):
                names.add(f"graphmend.{definition.name}")
            elif isinstance(definition, Class) and is_runtime(definition.module):
                names.add(f"graphmend.{definition.name}")
    return names


def is_runtime(module: Module) -> bool:
    """Whether a file is a vendored copy of the graphmend runtime."""
    return RUNTIME_MARK in (ast.get_docstring(module.tree) or "")[:80]


def is_cut(index: Index, function: Function) -> bool:
    """Whether the function is outside every region: disabled, scripted, or the body of an effect or of an operator."""
    return bool(decorator_names(index, function) & (DISABLERS | SCRIPTERS | EFFECTS | OPAQUE))


def is_module_class(index: Index, cls: Class) -> bool:
    """Whether a class derives from ``torch.nn.Module``, through other files or well-known libraries."""
    return any(isinstance(base, External) and torch().is_module_class(base.name) for base in index.mro(cls))


def entries(index: Index, module: Module) -> Iterator[Entry]:
    """The entries that a file defines: ``forward`` of module classes, and what ``torch.compile`` is applied to."""
    compiled = {id(function): function for function in _compiled(index, module)}
    for cls in module.classes:
        if is_module_class(index, cls):
            forward = index.method(cls, "forward")
            if forward is not None and not is_cut(index, forward):
                yield Entry(forward, cls, id(forward) in compiled)
    for function in compiled.values():
        if not (function.owner and function.name == "forward") and not is_cut(index, function):
            yield Entry(function, function.owner, True)


def _compiled(index: Index, module: Module) -> Iterator[Function]:
    text = module.source.text
    if not ("compile" in text or "optimize" in text) or not _COMPILE.search(text):  # plain words are found faster
        return
    for function in module.functions:
        if decorator_names(index, function) & COMPILERS:
            yield function
    for node in module.nodes:
        if isinstance(node, ast.Call) and node.args and _names(index, module, node.func) & COMPILERS:
            yield from _functions(index, module, node.args[0])


def _names(index: Index, module: Module, expression: ast.expr) -> set[str]:
    return {found.name for found in index.dotted(module, expression) if isinstance(found, External)}


def _functions(index: Index, module: Module, expression: ast.expr) -> Iterator[Function]:
    for definition in index.dotted(module, expression):
        if isinstance(definition, Function):
            yield definition
