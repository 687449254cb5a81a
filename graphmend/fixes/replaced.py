"""Methods, functions and attributes that are set from elsewhere: ``Model.check = safely(Model.check)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.flow.program import Program
from graphmend.model.module import Class, Function, Module

_STORE = re.compile(r"\.(\w+)[ \t]*=(?!=)")
_STORE_OF_ANOTHER = re.compile(r"(?<!\bself)\.(\w+)[ \t]*=(?!=)")


@dataclass(frozen=True)
class _Places:
    """What in one file may replace a function.

    Args:
        stored: attributes that are stored, by name.
        set_by_name: calls of ``setattr``, other than those of an object on itself.
        nested: classes inside functions.
    """

    stored: dict[str, list[ast.Attribute]]
    set_by_name: list[ast.Call]
    nested: list[ast.ClassDef]


class Replacements:
    """What may put something else in the place of a function, as far as the linted files show it.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[Function, tuple[tuple[int, str], ...]] = {}
        self._places: dict[Module, _Places] = {}
        self._own: dict[Module, frozenset[str]] = {}
        """The attributes that each file stores, as its text has it."""
        self._storing: dict[str, list[str]] = {}
        """The files that store an attribute of something else than ``self``, by its name."""
        modules = program.index.modules().values()
        functions = {function.name for module in modules for function in module.functions}
        for path, text in program.index.linted(()):
            for name in functions.intersection(_STORE_OF_ANOTHER.findall(text)):
                self._storing.setdefault(name, []).append(path)
        self._values: dict[str, list[Class]] = {}
        """The classes whose body gives a name a value, by the name."""
        for module in modules:
            for cls in module.classes:
                for name in cls.values:
                    self._values.setdefault(name, []).append(cls)

    def of(self, function: Function) -> tuple[tuple[int, str], ...]:
        """Line and description of what may replace a function."""
        if function not in self._known:
            self._known[function] = tuple(self._find(function)) if function.parent is None or function.owner else ()
        return self._known[function]

    def by_name(self, function: Function) -> Iterator[tuple[int, str]]:
        """The calls of ``setattr`` in a method's file that may set it: not those on what is known to be another.

        Apart from the rest, since nearly all of them set settings: that keeps exceptions in their place, not messages.
        """
        module = function.module
        if function.owner is None or "setattr" not in module.source.text:
            return
        for call in self._in(module).set_by_name:
            holder, name = call.args[:2]
            named = {each.id for each in ast.walk(holder) if isinstance(each, ast.Name)}
            if isinstance(name, ast.Constant) and name.value != function.name:
                continue
            if not named <= set(module.bindings) or function.owner in self.program.index.dotted(module, holder):
                yield call.lineno, f"`{ast.unparse(call)}`"

    def _find(self, function: Function) -> Iterator[tuple[int, str]]:
        for module, target in self._stored(function):
            if self._may_be_of(function, module, target):
                yield target.lineno, f"`{ast.unparse(target)} = …`"
        if function.owner is None:
            module = function.module
            if len(module.bindings.get(function.name, ())) > 1 or function.name in module.rebound:
                yield function.line, f"another value of the name `{function.name}`"
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
        """Where an attribute of a function's name is stored: in its file, and in those that know its class or file."""
        name, own = function.name, function.module
        if own not in self._own:
            self._own[own] = frozenset(_STORE.findall(own.source.text))
        if name in self._own[own]:
            yield from ((own, target) for target in self._in(own).stored.get(name, ()))
        around = [own.name.rpartition(".")[2], *([function.owner.name] if function.owner else ())]
        for path in self._storing.get(name, ()):
            module = self.program.index.load_if(path, lambda text: any(word in text for word in around))
            if module is not None and module is not own:
                yield from ((module, target) for target in self._in(module).stored.get(name, ()))

    def _overridden(self, function: Function, owner: Class) -> Iterator[tuple[int, str]]:
        """The classes that give something else than a method the method's name, or are made where none is followed."""
        for cls in self._values.get(function.name, ()):
            if cls is not owner and owner in self.program.index.mro(cls):
                yield cls.values[function.name].lineno, f"`{cls.name}.{function.name}`"
        for node in self._in(function.module).nested:
            if any(isinstance(base, ast.Name) and base.id == owner.name for base in node.bases):
                yield node.lineno, f"the class `{node.name}` inside a function"

    def _in(self, module: Module) -> _Places:
        if module not in self._places:
            self._places[module] = _look_through(module)
        return self._places[module]


def _look_through(module: Module) -> _Places:
    known = {id(cls.node) for cls in module.classes}
    places = _Places({}, [], [])
    for node in module.nodes:
        match node:
            case ast.Attribute(attr=attr, ctx=ast.Store()):
                places.stored.setdefault(attr, []).append(node)
            case ast.Call(func=ast.Name(id="setattr"), args=[holder, _, *_]):
                if not (isinstance(holder, ast.Name) and holder.id == "self"):
                    places.set_by_name.append(node)
            case ast.ClassDef() if id(node) not in known:
                places.nested.append(node)
    return places
