"""Methods and functions that are replaced after they were defined: ``Model.check = safely(Model.check)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend.flow.program import Program
from graphmend.model.module import Class, Function, Module


class Replacements:
    """What may put something else in the place of a function, as far as the linted files show it.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[Function, tuple[tuple[int, str], ...]] = {}
        self._stores: dict[str, list[tuple[str, str]]] = {}

    def of(self, function: Function) -> tuple[tuple[int, str], ...]:
        """Line and description of what may replace a function."""
        if function not in self._known:
            self._known[function] = tuple(self._find(function))
        return self._known[function]

    def _find(self, function: Function) -> Iterator[tuple[int, str]]:
        if function.parent is not None:
            return
        for module, target in self._stored(function):
            if self._may_be_of(function, module, target):
                yield target.lineno, f"`{ast.unparse(target)} = …`"
        if function.owner is None:
            yield from _rebound(function)
        else:
            yield from self._overridden(function, function.owner)

    def _may_be_of(self, function: Function, module: Module, target: ast.Attribute) -> bool:
        """Whether an attribute that is stored may be the function.

        In its own file it may be whatever has its name. In others it is what leads to the function, or what nothing is
        known of; but everything has a ``forward``, and an object that sets an attribute of its own is another one.
        """
        if function in self.program.index.dotted(module, target):
            return True
        if function.owner is None:
            return False
        if module is function.module:
            return True
        holder = target.value
        local = isinstance(holder, ast.Name) and holder.id != "self" and holder.id not in module.bindings
        return local and function.name != "forward"

    def _stored(self, function: Function) -> Iterator[tuple[Module, ast.Attribute]]:
        """Where an attribute of a function's name is stored, in linted files that know its class or its file."""
        name = function.name
        text = re.compile(rf"\.{re.escape(name)}\s*=(?!=)")
        around = [function.module.name.rpartition(".")[2], *([function.owner.name] if function.owner else ())]
        index = self.program.index
        if name not in self._stores:
            contents = ((path, content) for path, content in index.linted(()) if f".{name}" in content)
            self._stores[name] = [(path, content) for path, content in contents if text.search(content)]
        for path, content in self._stores[name]:
            module = index.load(path) if any(word in content for word in around) else None
            if module is None:
                continue
            for node in module.nodes:
                if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                    yield module, node

    def _overridden(self, function: Function, owner: Class) -> Iterator[tuple[int, str]]:
        """The class bodies that give a derived class something else, under the name of the method, than a method."""
        index = self.program.index
        for module in index.modules().values():
            if module is function.module or owner.name in module.source.text:
                for cls in module.classes:
                    if function.name in cls.values and cls is not owner and owner in index.mro(cls):
                        yield cls.values[function.name].lineno, f"`{cls.name}.{function.name}`"
        known = {id(cls.node) for cls in function.module.classes}
        for node in function.module.nodes:
            if isinstance(node, ast.ClassDef) and id(node) not in known:
                if any(isinstance(base, ast.Name) and base.id == owner.name for base in node.bases):
                    yield node.lineno, f"the class `{node.name}` inside a function"

    def by_name(self, function: Function) -> Iterator[tuple[int, str]]:
        """The calls of ``setattr`` in a method's file that may set it: not those on what is known to be another."""
        if function.owner is None or "setattr" not in function.module.source.text:
            return
        for node in function.module.nodes:
            match node:
                case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), *_]):
                    continue
                case ast.Call(func=ast.Name(id="setattr"), args=[holder, name, *_]):
                    known = self.program.index.dotted(function.module, holder)
                    named = {each.id for each in ast.walk(holder) if isinstance(each, ast.Name)}
                    if isinstance(name, ast.Constant) and name.value != function.name:
                        continue
                    if function.owner in known or not named <= set(function.module.bindings):
                        yield node.lineno, f"`{ast.unparse(node)}`"


def _rebound(function: Function) -> Iterator[tuple[int, str]]:
    """Other things that the name of a module's function stands for."""
    module = function.module
    if len(module.bindings.get(function.name, ())) > 1 or function.name in module.rebound:
        yield function.line, f"another value of the name `{function.name}`"
