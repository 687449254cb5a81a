"""What is ``None`` or off for good, and the code that tracing does not get to for it.

Attributes are ``None``, by what is written to them, and arguments, by what the calls give; switches of a module are off
(``DEBUG = False``).

Anybody may set an attribute from outside of the files, so this only serves to leave findings out, never as a proof. It
holds for ``None`` alone: that a buffer or a bias is not there is how a class says that it has none, while a number or a
name in an attribute is what a user of the class sets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from graphmend.flow.interpreter import Facts
from graphmend.flow.values import NOTHING, Kind, Value
from graphmend.model.module import Class, Module, ValueBinding
from graphmend.model.scopes import walk_scope

if TYPE_CHECKING:
    from graphmend.flow.program import Program

_NONE = r"(?!\s*None[ \t]*(?:[#;\r\n]|\Z))"
_CLASS = r"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^)]*)\)"
_SET_BY_NAME = re.compile(r"""\b(?:setattr|__setattr__)\s*\(\s*(?!self\b)[^,()]*,\s*(?!["'])""")
_SET_ON_SELF = re.compile(r"""\b(?:setattr|__setattr__)\s*\([^,()]*,\s*(?!["'])|__dict__|\bvars\s*\(""")


class Absent:
    """The attributes of a program that are ``None`` for good."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[tuple[Class, str], bool] = {}
        self._families: dict[Class, re.Pattern[str]] = {}
        self._off: dict[tuple[Module, str], bool] = {}

    def facts(self, facts: Facts) -> Facts:
        """What is known of a function once what is ``None`` or off for good decides its conditions."""
        absent = frozenset((*self._reads(facts), *self._switches(facts)))
        arguments = frozenset(self._arguments(facts))
        return self.program.facts(facts.function, absent, arguments) if absent or arguments else facts

    def _arguments(self, facts: Facts) -> Iterator[str]:
        """The parameters for which every call that tracing gets to gives ``None``, where it has to give something."""
        function = facts.function
        if function in self.program.entries:
            return
        values = self.program.state(function).parameters
        for parameter in function.parameters:
            if parameter.arg not in function.defaults and values.get(parameter.arg, NOTHING).kinds == Kind.NONE:
                yield parameter.arg

    def _reads(self, facts: Facts) -> Iterator[int]:
        """The expressions that read such an attribute."""
        reads = [node for node in walk_scope(facts.function.body) if isinstance(node, ast.Attribute)]
        names = {node.attr for node in reads if facts.value(node).kinds == Kind.NONE}
        for node in reads:
            if node.attr in names and isinstance(node.ctx, ast.Load) and self._is_absent(facts, node):
                yield id(node)

    def _switches(self, facts: Facts) -> Iterator[int]:
        """The names that read a switch which is off."""
        function = facts.function
        for node in walk_scope(function.body):
            if isinstance(node, ast.Name) and facts.value(node).constant is False and node.id not in function.locals:
                if self._is_off(function.module, node.id):
                    yield id(node)

    def _is_off(self, module: Module, name: str) -> bool:
        """Whether a module gives a name ``False``, and no file anything else."""
        key = (module, name)
        if key not in self._off:
            match module.bindings.get(name):
                case [ValueBinding(value=ast.Constant(value=False))]:
                    switched = re.compile(rf"\bglobal\b[^\n]*\b{name}\b")
                    written = re.compile(rf"\.{name}\b\s*(?::[^=\n]*)?=(?!=)|[\"']{name}[\"']")
                    self._off[key] = not switched.search(module.source.text) and not any(
                        name in text and written.search(text) for text in self._texts
                    )
                case _:
                    self._off[key] = False
        return self._off[key]

    def _is_absent(self, facts: Facts, node: ast.Attribute) -> bool:
        holder = facts.value(node.value)
        if holder.kinds != Kind.OBJECT or not holder.classes:
            return False
        return all(isinstance(cls, Class) and self.holds(cls, node.attr) for cls in holder.classes)

    def holds(self, cls: Class, name: str) -> bool:
        """Whether all that is ever written to an attribute of the instances of a class is ``None``."""
        key = (cls, name)
        if key not in self._known:
            self._known[key] = (
                self._is_none(cls, name)
                and not self._by_any_name
                and not any(self._may_set(text, cls, name) for text in self._texts)
            )
        return self._known[key]

    @cached_property
    def _texts(self) -> list[str]:
        """The texts of the files."""
        return list(self.program.index.texts())

    @cached_property
    def _by_any_name(self) -> bool:
        """Whether a file sets attributes, of objects of which nothing is known, by names that it computes."""
        return any("setattr" in text and _SET_BY_NAME.search(text) is not None for text in self._texts)

    @cached_property
    def _bases(self) -> list[tuple[str, frozenset[str]]]:
        """The name of each class of the files with the names that its bases hold."""
        found = (each for text in self._texts for each in re.findall(_CLASS, text, re.MULTILINE))
        return [(name, frozenset(re.findall(r"\w+", bases))) for name, bases in found]

    def _is_none(self, cls: Class, name: str) -> bool:
        """Whether the classes themselves write nothing else."""
        value: Value | None = self.program.heap.written(cls, name)
        if value is None or not value.kinds:
            value = self.program.heap.class_value(cls, name)
        return value is not None and value.kinds == Kind.NONE

    def _may_set(self, text: str, cls: Class, name: str) -> bool:
        """Whether a file may write something else, by its text."""
        dynamic = _SET_ON_SELF.search(text) is not None
        if not dynamic and name not in text:
            return False
        family = self._family(cls).search(text) is not None
        return family and dynamic or _writes(name, family).search(text) is not None

    def _family(self, cls: Class) -> re.Pattern[str]:
        """Finds the names of the class, of its bases in the files, and of all that derives from any of them."""
        known = self._families.get(cls)
        if known is None:
            names = {each.name for each in self.program.index.mro(cls) if isinstance(each, Class)}
            size = 0
            while size < len(names):
                size = len(names)
                names.update(name for name, bases in self._bases if bases & names)
            known = self._families[cls] = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
        return known


@lru_cache(maxsize=64)
def _writes(name: str, family: bool) -> re.Pattern[str]:
    """What may write an attribute; in files that do not know the class, what ``self`` is given is another one's."""
    owner = r"\." if family else r"(?<!\bself)\."
    attribute = rf"{owner}{re.escape(name)}\b\s*"
    forms = [
        rf"{attribute}(?::[^=\n]*)?[-+*/%&|^@<>]{{0,3}}=(?!=){_NONE}",
        rf"{attribute}[,)\]][^\n]*(?<![=!<>])=(?!=)",
        rf"{attribute},[ \t]*$",
        rf"\bfor\b[^\n]*{attribute}[^\n]*\bin\b",
        rf"\b(?:as|del)\b[^\n]*{attribute}",
        # Its name in a string, but for a question or for saying that it is not there.
        rf"""(?<!==)(?<!== )["']{re.escape(name)}["'](?!\s*(?:not\s+)?in\b)(?!\s*,\s*None\s*[,)])""",
    ]
    if family:
        forms.append(rf"^[ \t]+{re.escape(name)}[ \t]*(?::[^=\n]*)?=(?!=){_NONE}")
        forms.append(rf"\bdef[ \t]+{re.escape(name)}\b")
    return re.compile("|".join(forms), re.MULTILINE)


def facts_of_tracing(program: Program, facts: Facts) -> Facts:
    """The facts with which findings are looked for: without the code behind attributes that are ``None`` for good."""
    return program.derived(Absent).facts(facts)
