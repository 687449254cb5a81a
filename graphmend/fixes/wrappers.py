"""What is put around a function, or in its place: decorators, metaclasses, assignments after its definition."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.fixes.replaced import Replacements
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import Bound
from graphmend.model.index import External
from graphmend.model.module import Class, Function
from graphmend.model.tree import walk
from graphmend.signatures.behaviour import behaviour

_ACCESSORS = frozenset({"setter", "getter", "deleter"})


def contexts(function: Function, program: Program) -> Iterator[tuple[int, str]]:
    """The contexts of torch that a function has as decorators, with their lines."""
    for decorator in function.decorators:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = program.index.dotted(function.module, called)
        if any(isinstance(each, External) and each.name in behaviour().contexts for each in found):
            yield decorator.lineno, f"`@{brief(decorator)}`"


def wrappers(function: Function, program: Program) -> Iterator[tuple[int, str]]:
    """What is wrapped around a function and not understood: it may do anything before, after and instead.

    Args:
        function: the function.
        program: the program under analysis.

    Yields:
        Line and description of each.
    """
    for decorator in function.decorators:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = program.index.dotted(function.module, called)
        if found and all(isinstance(each, External) for each in found):
            continue
        if not isinstance(called, ast.Attribute) or called.attr not in _ACCESSORS:
            applied = program.bindings.value_of(decorator, function.module)
            if not any(isinstance(each, (Function, Bound)) for each in applied.targets):
                yield decorator.lineno, f"`@{brief(decorator)}`, which is not understood,"
    for line, what in program.derived(Replacements).of(function):
        yield line, f"{what}, which may put something else in the place of `{function.name}`,"
    owner = function.owner
    if owner is None:
        return
    if function.name in owner.values:
        yield function.line, f"what `{owner.name}` makes of `{function.name}`"
    for decorator in owner.node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = program.index.dotted(owner.module, called)
        if any(not isinstance(each, External) and _may_wrap(each, owner) for each in found):
            yield decorator.lineno, f"`@{brief(decorator)}` of the class"
    for keyword in owner.node.keywords:
        found = program.index.dotted(owner.module, keyword.value)
        if not found or not all(isinstance(each, External) for each in found):  # `abc.ABCMeta` wraps nothing
            yield keyword.value.lineno, f"the {keyword.arg} of `{owner.name}`"


def _may_wrap(decorator: object, owner: Class) -> bool:
    """Whether a decorator of a class may put something around its methods."""
    if not isinstance(decorator, Function):
        return True
    for node in walk(decorator.node):
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.Name) and node.id in ("setattr", "vars")):
            return True
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and node.attr in owner.methods:
            return True
    return False
