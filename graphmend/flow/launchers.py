"""Finds the code that hands something to ``torch.compile``, by its words, and follows it for the values."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend.flow.interpreter import Interpreter
from graphmend.flow.launches import HOOKS, Launch, Launches, compiles, has_decorator
from graphmend.flow.values import UNKNOWN, Kind, instance, target
from graphmend.model.index import Definition, External
from graphmend.model.module import MODULE_CODE, Class, Code, Function, ImportBinding, Module, ValueBinding
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.regions.entries import COMPILERS

if TYPE_CHECKING:
    from graphmend.flow.environment import Environment
    from graphmend.flow.program import Program

_WORDS = ("compile", "_dynamo", *sorted(HOOKS))
"""A file without any of them launches nothing by itself."""
_LAST_WORDS = ("compile", "optimize", *sorted(HOOKS))
_CALLED = frozenset({"compile", *HOOKS})
"""The methods that may launch something although nothing is known of the object."""
_GIVING = r"(?<!def )(?<!class )\b(?:{0})[ \t]*\(\s*[^)\s]|@[\w. \t]*\b(?:{0})\b"
"""A call with arguments of one of some names, or its use as a decorator."""
_ROUNDS = 4
"""Over how many calls something is followed that a function only passes on to what launches it."""


class Launchers:
    """The functions that launch something, among those of some files.

    Args:
        program: a program of its own, outside of every region.
        launches: what it notes.
    """

    def __init__(self, program: Program, launches: Launches) -> None:
        self.program = program
        self.index = program.index
        self.launches = launches
        self._passing: set[Function | Class] = set()

    def find(self, modules: Iterable[Module]) -> list[Launch]:
        """What some files hand to ``torch.compile``, and the hooks that they register, in the order of their places."""
        for module in modules:
            for cls in module.classes:
                if cls.parent is not None and self.program.is_module(cls):
                    self._follow(cls.parent)  # for the names of the function around it
            if any(word in module.source.text for word in _WORDS):
                self._look_at(module, _LAST_WORDS)
        for _ in range(_ROUNDS):
            new = [each for each in self.launches.passing if each not in self._passing]
            if not new:
                break
            self._passing.update(new)
            words = sorted({each.name for each in new})
            found = re.compile(_GIVING.format("|".join(map(re.escape, words))))
            texts = self.index.linted(())
            for path in [path for path, text in texts if any(word in text for word in words) and found.search(text)]:
                giving = self.index.load(path)
                if giving is not None:
                    self._look_at(giving, words)
        return self.launches.found()

    def _look_at(self, module: Module, words: Sequence[str]) -> None:
        """Follow the code of a file that may launch something, by the words that it holds."""
        lines = _lines(module, words)
        aliases = frozenset(self._aliases(module, lines))
        if aliases:
            lines = _lines(module, (*words, *aliases))
        if not lines:
            return
        self._look_at_decorators(module, lines)
        pending = [function for function in module.functions if _holds(function.node, lines)]
        while pending:
            function = pending.pop(0)
            if self._launches_in(function, aliases):
                self._follow(function)
            pending += [each for each in function.nested.values() if _holds(each.node, lines)]
        for code in module.code:
            if self._launches_in(code, aliases):
                self._follow(code)
        self.program.settle()

    def _aliases(self, module: Module, lines: Collection[int]) -> Iterator[str]:
        """The names of module level that stand for something that compiles."""
        for name, bindings in module.bindings.items():
            for binding in bindings:
                match binding:
                    case ImportBinding(target=dotted):
                        if dotted in COMPILERS:
                            yield name
                    case ValueBinding(value=ast.Call(func=func, args=[_, *_])) if self._is_compiler_named(module, func):
                        pass  # what was compiled
                    case ValueBinding(value=ast.expr() as value) if _holds(value, lines):
                        if any(self._is_compiler_named(module, node) for node in walk(value)):
                            yield name

    def _is_compiler_named(self, module: Module, node: ast.AST) -> bool:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        return any(map(_is_compiler, self.index.dotted(module, node)))

    def _look_at_decorators(self, module: Module, lines: Collection[int]) -> None:
        """Apply the decorators of module level, which may compile what they decorate."""
        for function in module.functions:
            if function.parent is None and any(_holds(decorator, lines) for decorator in function.decorators):
                self.program.bindings.decorated(function)
        for cls in module.classes:
            for decorator in cls.node.decorator_list if cls.parent is None else ():
                applied = self.program.bindings.value_of(decorator, module) if _holds(decorator, lines) else UNKNOWN
                if compiles(self.program, applied):
                    holder = self.program.bindings.stand_in(module)
                    self.launches.compiled(target(cls), decorator.lineno, holder)

    def _launches_in(self, function: Function, aliases: frozenset[str]) -> bool:
        """Whether a function's own code may launch something; notes if it passes on what it is given."""
        found = False
        made = [statement for cls in function.classes.values() for statement in cls.node.body]
        for node in walk_scope([*function.body, *made]):
            if self._may_launch(function, node, aliases):
                found = True
            elif self._passing and isinstance(node, ast.Call) and self._passes_on(function, node):
                found = True
                self.launches.passes_on(node, function)
        return found

    def _may_launch(self, function: Function, node: ast.AST, aliases: frozenset[str]) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr=word) as called) if word in _CALLED:
                names = self.index.dotted_in(function, function.module, called)
                return all(_is_compiler(name) or not _is_of_library(name) for name in names)
            case ast.Attribute(attr="compile" | "optimize"):
                return any(map(_is_compiler, self.index.dotted_in(function, function.module, node)))
            case ast.Name(id=name):
                return name in aliases
            case ast.ImportFrom(module=str(base), names=imported):
                return any(f"{base}.{alias.name}" in COMPILERS for alias in imported)
        return False

    def _passes_on(self, function: Function, node: ast.Call) -> bool:
        """Whether a call is one of something that launches what it, or its object, is given."""
        for found in self.index.dotted_in(function, function.module, node.func):
            if isinstance(found, Class) and any(base in self._passing for base in self.index.mro(found)):
                return True
            if isinstance(found, Function) and found in self._passing:
                return True
        return False

    def _follow(self, function: Function) -> None:
        """Interpret a function that nobody may call, its parameters unknown but for what they are declared to be."""
        program = self.program
        if function.parent is not None and not program.state(function.parent).passes:
            self._follow(function.parent)
        if isinstance(function, Code):
            self._run_code(function)
            return
        values: Environment = {}
        for position, parameter in enumerate(function.parameters):
            if position == 0 and function.owner is not None and not has_decorator(function, "staticmethod"):
                is_class = has_decorator(function, "classmethod")
                values[parameter.arg] = target(function.owner) if is_class else instance(function.owner)
            else:
                declared = program.annotations.declared(function, parameter)
                default = function.defaults.get(parameter.arg)
                if declared.kinds == Kind.UNKNOWN and default is not None:
                    declared = program.bindings.value_of(default, function.module)
                values[parameter.arg] = declared
        program.calls.join_parameters(program.state(function), values)
        program.interpret(function)

    def _run_code(self, code: Code) -> None:
        """Interpret code of module level or of a class body, which finds the names of the class."""
        owner = next((cls for cls in code.module.classes if cls.qualname == code.qualname), None)
        names: Environment = {}
        if owner is not None and code.qualname != MODULE_CODE:
            names = {name: target(method) for name, method in owner.methods.items()}
        self.program.active.append(code)
        try:
            Interpreter(self.program, code, names, None).run(self.program.graph(code))
        finally:
            self.program.active.pop()


def _lines(module: Module, words: Iterable[str]) -> list[int]:
    """The lines of a file that hold some words, but for what compiles regular expressions."""
    found: list[int] = []
    text = module.source.text
    for word in words:
        start = text.find(word)
        while start >= 0:
            end = start + len(word)
            whole = not _is_part_of_word(text[start - 1 : start]) and not _is_part_of_word(text[end : end + 1])
            if whole and not text.endswith(("re.", "regex."), max(0, start - 6), start):
                found.append(module.source.position(start)[0])
            start = text.find(word, end)
    return found


def _is_part_of_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def _holds(node: ast.AST, lines: Collection[int]) -> bool:
    start, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return any(start <= line <= end for line in lines)


def _is_compiler(found: Definition) -> bool:
    return isinstance(found, External) and found.name in COMPILERS


def _is_of_library(found: Definition) -> bool:
    """Whether a dotted name leads into a library, rather than to an attribute of a variable."""
    return isinstance(found, External) and not found.name.startswith("builtins.")
