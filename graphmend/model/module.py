"""One parsed file: its functions, classes and module-level bindings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Union

from graphmend.model.scopes import FunctionNode, bound_names, defaults, local_names, parameters, walk_scope
from graphmend.model.tree import children, walk
from graphmend.source.text import SourceText

_GUARDING = re.compile(r"(?:^|[\r\n])[ \t\f]*(?:try|with|async)\b")
_INDENTED_CLASS = re.compile(r"^[ \t]+class[ \t]+\w+[ \t]*[(:]", re.MULTILINE)


@dataclass(frozen=True)
class ImportBinding:
    """A name bound by an import; ``target`` is the absolute dotted name of what it stands for."""

    target: str


@dataclass(frozen=True)
class ValueBinding:
    """A name bound by an assignment of ``value``; ``None`` where the value is not a plain expression."""

    value: ast.expr | None


@dataclass(eq=False)
class Function:
    """A function, method or lambda of a linted file."""

    node: FunctionNode
    module: Module
    qualname: str
    owner: Class | None = None
    """The class whose body holds the function."""
    parent: Function | None = None
    """The function that encloses it."""

    @property
    def name(self) -> str:
        """The bare name."""
        return self.qualname.rpartition(".")[2]

    @property
    def line(self) -> int:
        """The 1-based line of ``def``."""
        return self.node.lineno

    @property
    def body(self) -> list[ast.stmt]:
        """The statements; a lambda's expression becomes one return statement."""
        if isinstance(self.node, ast.Lambda):
            statement = ast.Return(self.node.body)
            return [ast.copy_location(statement, self.node.body)]
        return self.node.body

    @property
    def text(self) -> str:
        """The source of the function."""
        return self.module.source.segment(self.node)

    @cached_property
    def parameters(self) -> list[ast.arg]:
        """All parameters in order."""
        return parameters(self.node)

    @cached_property
    def first_argument(self) -> str:
        """The name of the first parameter behind ``self`` or ``cls``; empty if there is none."""
        return next((each.arg for each in self.parameters if each.arg not in ("self", "cls")), "")

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        """Default expressions by parameter."""
        return defaults(self.node)

    @cached_property
    def locals(self) -> set[str]:
        """Names that the function binds itself, parameters included."""
        return local_names(self.node)

    @cached_property
    def decorators(self) -> list[ast.expr]:
        """The decorator expressions, outermost first."""
        return [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list

    @cached_property
    def classes(self) -> dict[int, Class]:
        """The classes defined directly inside this one, by the identity of their node: its module enters them."""
        return {}

    @cached_property
    def nested(self) -> dict[int, Function]:
        """The functions defined directly inside this one, by the identity of their node."""
        found: dict[int, Function] = {}
        stack: list[ast.AST] = [self.node.body] if isinstance(self.node, ast.Lambda) else list(self.node.body)
        while stack:
            node = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
                found[id(node)] = Function(node, self.module, f"{self.qualname}.<locals>.{name}", None, self)
                if not isinstance(node, ast.Lambda):
                    stack += node.decorator_list
                stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
            elif not isinstance(node, ast.ClassDef):
                stack += children(node)
        return found

    def __repr__(self) -> str:
        return f"<function {self.module.name}.{self.qualname}>"


class Code(Function):
    """The statements of a module or of a class body, which run when the module is imported."""

    @property
    def text(self) -> str:
        """The source of the file."""
        return self.module.source.text

    @cached_property
    def locals(self) -> set[str]:
        """The names of a class body; those of a module are global."""
        return set() if self.qualname == MODULE_CODE else super().locals

    @cached_property
    def nested(self) -> dict[int, Function]:
        """The lambdas; functions and classes are those of the module."""
        return {key: each for key, each in super().nested.items() if isinstance(each.node, ast.Lambda)}


MODULE_CODE = "<module>"
"""The name of a module's own code."""


@dataclass(eq=False)
class Class:
    """A class of a linted file."""

    node: ast.ClassDef
    module: Module
    qualname: str
    methods: dict[str, Function] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    """Class-level assignments."""
    annotations: dict[str, ast.expr] = field(default_factory=dict)
    """Class-level annotations, as dataclass fields have."""
    parent: Function | None = None
    """The function in which it is made."""

    @property
    def name(self) -> str:
        """The bare name."""
        return self.node.name

    @property
    def qualified(self) -> str:
        """Module and class name."""
        return f"{self.module.name}.{self.qualname}"

    def __repr__(self) -> str:
        return f"<class {self.qualified}>"


Binding = Union[ImportBinding, ValueBinding, Function, Class]


class Module:
    """A parsed file and the names it binds at module level.

    Args:
        source: the file's text.
        name: the dotted module name, derived from the packages around the file.
        is_package: whether the file is an ``__init__.py``.

    Raises:
        SyntaxError: the text is not Python of the running interpreter's version.
    """

    def __init__(self, source: SourceText, name: str, is_package: bool) -> None:
        self.source = source
        self.name = name
        self.is_package = is_package
        self.tree = ast.parse(source.text, filename=source.path)
        self.bindings: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        """Modules whose names ``from m import *`` brings in."""
        self.functions: list[Function] = []
        """Functions, and the methods of all classes; not the functions that are nested in functions."""
        self.classes: list[Class] = []
        """All classes, also those that functions make."""
        self._bind(self.tree.body)
        if _INDENTED_CLASS.search(source.text):
            self._bind_inner_classes()

    def close(self) -> None:
        """End the use of the module: what it defines refers to it, and nobody collects cycles during a run."""
        for each in (*self.functions, *self.classes, self):
            vars(each).clear()

    @property
    def path(self) -> str:
        """The path as reported to people."""
        return self.source.path

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the file, a parent before its children."""
        return tuple(walk(self.tree))

    @cached_property
    def guarding_lines(self) -> list[int]:
        """The lines, in order, in which a ``try`` or ``with`` statement may start: found in the text, which is fast."""
        return [self.source.position(match.end())[0] for match in _GUARDING.finditer(self.source.text)]

    @cached_property
    def code(self) -> tuple[Code, ...]:
        """The code that runs when the module is imported: its own, then that of each class body."""
        outer = ((cls.qualname, cls.node.body) for cls in self.classes if cls.parent is None)
        return tuple(self._code(name, body) for name, body in ((MODULE_CODE, self.tree.body), *outer))

    def _code(self, name: str, body: Iterable[ast.stmt]) -> Code:
        """Statements as a function; definitions are left out, since their names stand for the module's."""
        statements = [
            each for each in body if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        line = statements[0].lineno if statements else 1
        node = ast.FunctionDef(name=name, args=arguments, body=statements, decorator_list=[], lineno=line, col_offset=0)
        return Code(node, self, name)

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The module-level names that some function declares ``global``."""
        return frozenset(name for node in self.nodes if isinstance(node, ast.Global) for name in node.names)

    def absolute(self, module: str | None, level: int) -> str:
        """The absolute name of what ``from <level dots><module> import`` names."""
        if not level:
            return module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - level + (1 if self.is_package else 0)]
        return ".".join([*parts, *([module] if module else [])])

    def import_bindings(self, node: ast.Import | ast.ImportFrom) -> dict[str, ImportBinding]:
        """The names that one import statement binds."""
        if isinstance(node, ast.Import):
            return {
                alias.asname or alias.name.partition(".")[0]: ImportBinding(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                for alias in node.names
            }
        base = self.absolute(node.module, node.level)
        return {alias.asname or alias.name: ImportBinding(f"{base}.{alias.name}") for alias in node.names}

    def _bind(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    function = Function(statement, self, statement.name)
                    self.functions.append(function)
                    self._add(statement.name, function)
                case ast.ClassDef():
                    self._add(statement.name, self._class(statement, ""))
                case ast.Import():
                    for name, binding in self.import_bindings(statement).items():
                        self._add(name, binding)
                case ast.ImportFrom():
                    if any(alias.name == "*" for alias in statement.names):
                        self.stars.append(self.absolute(statement.module, statement.level))
                        continue
                    for name, binding in self.import_bindings(statement).items():
                        self._add(name, binding)
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if isinstance(target, ast.Name):
                            self._add(target.id, ValueBinding(value))
                        else:
                            self._add_opaque([target])
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    self._add(name, ValueBinding(value))
                case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                    self._bind_compound(statement)
                case _:
                    self._add_opaque([statement])

    def _bind_compound(self, statement: ast.If | ast.Try | ast.With | ast.For | ast.While) -> None:
        if isinstance(statement, ast.For):
            self._add_opaque([statement.target])
        if isinstance(statement, ast.With):
            self._add_opaque([item.optional_vars for item in statement.items if item.optional_vars])
        self._bind(statement.body)
        self._bind(getattr(statement, "orelse", []))
        if isinstance(statement, ast.Try):
            for handler in statement.handlers:
                self._bind(handler.body)
            self._bind(statement.finalbody)

    def _add(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def _add_opaque(self, nodes: list[ast.AST] | list[ast.stmt] | list[ast.expr]) -> None:
        for name in bound_names(nodes):
            self._add(name, ValueBinding(None))

    def _bind_inner_classes(self) -> None:
        """Enter the classes that functions make, each with the function around it."""
        pending = list(self.functions)
        for function in pending:
            known = len(self.functions)
            inner = [node for node in walk_scope(function.body) if isinstance(node, ast.ClassDef)]
            for node in sorted(inner, key=lambda each: each.lineno):
                function.classes[id(node)] = self._class(node, f"{function.qualname}.<locals>.", function)
            pending += [*self.functions[known:], *function.nested.values()]

    def _class(self, node: ast.ClassDef, prefix: str, parent: Function | None = None) -> Class:
        cls = Class(node, self, prefix + node.name, parent=parent)
        self.classes.append(cls)
        self._class_body(cls, node.body)
        return cls

    def _class_body(self, cls: Class, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    method = Function(statement, self, f"{cls.qualname}.{statement.name}", cls, cls.parent)
                    self.functions.append(method)
                    # A property's setter has the name of its getter; the getter is what a read runs.
                    if not _is_accessor(statement):
                        cls.methods[statement.name] = method
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    cls.values[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                    cls.annotations[name] = annotation
                    if value is not None:
                        cls.values[name] = value
                case ast.ClassDef():
                    self._class(statement, f"{cls.qualname}.", cls.parent)
                case ast.If():
                    self._class_body(cls, statement.body)
                    self._class_body(cls, statement.orelse)


def _is_accessor(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in node.decorator_list)
