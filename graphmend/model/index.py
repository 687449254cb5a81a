"""The package index: module names to files, dotted names to definitions, classes to their bases.

Files are parsed when a name first leads to them. Nothing is imported, and installed packages are not searched: what
lies outside the linted packages stays an external dotted name such as ``torch.nn.Linear``.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Union

from graphmend.files import file_bytes
from graphmend.model.module import Class, Function, ImportBinding, Module, ValueBinding
from graphmend.model.scopes import walk_scope
from graphmend.source.text import DecodeError, SourceText


@dataclass(frozen=True)
class External:
    """Something outside the linted files, by its dotted name."""

    name: str


@dataclass(frozen=True)
class ModuleValue:
    """A module-level name bound to the value of an expression (``None``: not a plain expression)."""

    module: Module
    value: ast.expr | None


Definition = Union[External, Module, Function, Class, ModuleValue]

ANY = "*"
RUNTIME_COPY = "_graphmend"
"""The name of the module that holds a vendored runtime."""
_DEFINED = rb"(?m)^[ \t]*(?:class|def|async def)?[ \t]*%b[ \t]*[:=(]"
_MAX_HOPS = 12


class Index:
    """Modules by path and by dotted name, and the definitions behind dotted names.

    Args:
        overlay: texts by absolute path that stand in for what is on disk; their paths are the reported ones.
        parsed: modules by absolute path that another index parsed from the same text.
        display: the path under which a file that is read from disk is reported.
    """

    def __init__(
        self,
        overlay: dict[str, SourceText] | None = None,
        parsed: dict[str, Module] | None = None,
        display: Callable[[str], str] = str,
    ) -> None:
        self._overlay = overlay or {}
        self._display = display
        self._parsed = parsed or {}
        self._by_path: dict[str, Module | None] = {}
        self._roots: dict[str, set[str]] = {}
        self._paths: dict[str, str | None] = {}
        self._definitions: dict[tuple[str, str], tuple[Definition, ...]] = {}
        self._mro: dict[Class, tuple[Class | External, ...]] = {}
        self.errors: dict[str, Exception] = {}
        """Why a file could not be read or parsed, by absolute path."""

    def add_root(self, path: str) -> str:
        """Make a file's own package (for a script, its neighbours) importable; returns the file's module name."""
        directory, base = os.path.split(os.path.abspath(path))
        is_package = base == "__init__.py"
        parts = [] if is_package else [base.removesuffix(".py")]
        while os.path.exists(os.path.join(directory, "__init__.py")) and os.path.dirname(directory) != directory:
            directory, package = os.path.split(directory)
            parts.insert(0, package)
        # Only the linted package itself: its neighbours in a site-packages directory are external.
        self._roots.setdefault(directory, set()).add(parts[0] if len(parts) > 1 or is_package else ANY)
        return ".".join(parts)

    def load(self, path: str) -> Module | None:
        """The module of a file, parsed once; ``None`` (and an entry in ``errors``) if that is not possible."""
        path = os.path.abspath(path)
        if path not in self._by_path:
            self._by_path[path] = self._parse(path)
        return self._by_path[path]

    def load_where(self, matters: Callable[[str], bool]) -> None:
        """Load the linted files whose text may matter although no import has led to them."""
        for path, source in self._overlay.items():
            if path not in self._by_path and matters(source.text):
                self.load(path)

    def load_if(self, path: str, matters: Callable[[str], bool]) -> Module | None:
        """A linted file, if its text matters."""
        return self.load(path) if matters(self._overlay[path].text) else None

    def linted(self, but: Container[str]) -> Iterator[tuple[str, str]]:
        """The absolute paths and the texts of the linted files but for some."""
        yield from ((path, source.text) for path, source in self._overlay.items() if path not in but)

    def is_loaded(self, path: str) -> bool:
        """Whether a file was parsed."""
        return self._by_path.get(os.path.abspath(path)) is not None

    def _parse(self, path: str) -> Module | None:
        name = self.add_root(path)
        known = self._parsed.get(path)
        if known is not None:
            return known
        try:
            source = self._overlay.get(path)
            if source is None:
                with open(path, "rb") as file:
                    source = SourceText.decode(self._display(path), file.read())
            return Module(source, name, os.path.basename(path) == "__init__.py")
        except (OSError, DecodeError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.errors[path] = error
            return None

    def path_of(self, path: str) -> str:
        """The path under which a file is reported."""
        return self._display(path)

    def find_module(self, name: str) -> Module | None:
        """The module of a dotted name if one of the roots holds it."""
        if name not in self._paths:
            self._paths[name] = self._find_path(name)
        path = self._paths[name]
        return self.load(path) if path else None

    def _find_path(self, name: str) -> str | None:
        parts = name.split(".")
        if not all(parts):
            return None
        for root, packages in self._roots.items():
            if ANY not in packages and parts[0] not in packages:
                continue
            base = os.path.join(root, *parts)
            for candidate in (os.path.join(base, "__init__.py"), base + ".py"):
                if os.path.isfile(candidate):
                    return candidate
        return None

    def resolve(self, dotted: str) -> tuple[Definition, ...]:
        """Everything that an absolute dotted name may stand for (several, where a module binds a name twice)."""
        module = self.find_module(dotted)
        if module is not None:
            return (module,)
        missing = self._missing_runtime(dotted)
        if missing is not None:
            return (External(missing),)
        head, _, tail = dotted.rpartition(".")
        if not head:
            return (External(dotted),)
        found: list[Definition] = []
        for owner in self.resolve(head):
            found += self.member(owner, tail)
        return tuple(dict.fromkeys(found))

    def _missing_runtime(self, dotted: str) -> str | None:
        """The name that something of a vendored runtime has in ``graphmend``, if the copy is not among the files."""
        copy, found, name = f".{dotted}.".partition(f".{RUNTIME_COPY}.")
        if not found or self.find_module(f"{copy}.{RUNTIME_COPY}".lstrip(".")) is not None:
            return None
        return f"graphmend.{name}".rstrip(".")

    def member(self, owner: Definition, name: str) -> tuple[Definition, ...]:
        """What the attribute ``name`` of a module or external object stands for."""
        match owner:
            case External(name=base):
                return (External(f"{base}.{name}"),)
            case Module():
                return self.global_name(owner, name)
            case Class() if name in owner.methods:
                return (owner.methods[name],)
            case Class() if name in owner.values:
                return (ModuleValue(owner.module, owner.values[name]),)
        return ()

    def global_name(self, module: Module, name: str, hops: int = 0) -> tuple[Definition, ...]:
        """What a module-level name of ``module`` stands for; empty if the module does not bind it."""
        key = (module.name, name)
        if key in self._definitions:
            return self._definitions[key]
        if hops > _MAX_HOPS:
            return ()
        self._definitions[key] = ()  # cuts import cycles
        found: list[Definition] = []
        for binding in module.bindings.get(name, ()):
            if isinstance(binding, ImportBinding):
                found += self.resolve(binding.target)
            elif isinstance(binding, ValueBinding):
                found.append(ModuleValue(module, binding.value))
            else:
                found.append(binding)
        if not found and module.is_package:
            child = self.find_module(f"{module.name}.{name}")
            found += [child] if child else []
        if not found:
            found = self._starred(module, name, hops)
        result = tuple(dict.fromkeys(found))
        self._definitions[key] = result
        return result

    def _starred(self, module: Module, name: str, hops: int) -> list[Definition]:
        """What ``from m import *`` brings in under ``name``: from the first module that defines it."""
        for star in module.stars:
            source = self.find_module(star) if self._may_define(star, name) else None
            if source is not None and source is not module:
                found = self.global_name(source, name, hops + 1)
                if found:
                    return list(found)
        return []

    def _may_define(self, dotted: str, name: str) -> bool:
        """Whether the module could define ``name``: a look at the bytes that saves parsing a whole package's stars."""
        path = self._paths.setdefault(dotted, self._find_path(dotted))
        if path is None:
            return False
        if os.path.basename(path) == "__init__.py":
            return True
        data = file_bytes(path)
        return name.encode() in data and re.search(_DEFINED % re.escape(name.encode()), data) is not None

    def dotted(self, module: Module, expression: ast.expr) -> tuple[Definition, ...]:
        """What a name or attribute chain written at module or class level stands for."""
        match expression:
            case ast.Name(id=name):
                return self.global_name(module, name) or (External(f"builtins.{name}"),)
            case ast.Attribute(value=value, attr=attr):
                found: list[Definition] = []
                for owner in self.dotted(module, value):
                    found += self.member(owner, attr)
                return tuple(dict.fromkeys(found))
            case ast.Subscript(value=value):
                return self.dotted(module, value)
        return ()

    def alternatives(self, module: Module, expression: ast.expr, hops: int = 0) -> Iterator[Definition]:
        """What an expression of module level may stand for, where it picks one of some names.

        Followed are ``getattr(torch, "compiler", None)``, ``x or y`` and conditional expressions, and names that are
        given such a value.
        """
        if hops > _MAX_HOPS:
            return
        match expression:
            case ast.BoolOp(values=parts):
                pass
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name)), *parts]):
                for each in self.alternatives(module, owner, hops + 1):
                    yield from self.member(each, name)
            case _:
                parts = []
                for definition in self.dotted(module, expression):
                    if isinstance(definition, ModuleValue) and definition.value is not None:
                        yield from self.alternatives(definition.module, definition.value, hops + 1)
                    else:
                        yield definition
        for part in parts:
            yield from self.alternatives(module, part, hops + 1)

    def dotted_in(self, scope: Function | None, module: Module, expression: ast.expr) -> tuple[Definition, ...]:
        """What a name or attribute chain stands for in a function, as far as it imports or defines it as a class.

        Args:
            scope: the function; ``None`` for module level.
            module: its file.
            expression: the name or attribute chain.
        """
        match expression if scope is not None else None:
            case ast.Name(id=name):
                while scope is not None:
                    if name in scope.locals:
                        return tuple(self._made_in(scope, name))
                    scope = scope.parent
            case ast.Attribute(value=value, attr=attr):
                owners = self.dotted_in(scope, module, value)
                return tuple(dict.fromkeys(found for owner in owners for found in self.member(owner, attr)))
            case ast.Subscript(value=value):
                return self.dotted_in(scope, module, value)
        return self.dotted(module, expression)

    def _made_in(self, scope: Function, name: str) -> Iterator[Definition]:
        yield from (cls for cls in scope.classes.values() if cls.name == name)
        for node in walk_scope(scope.body):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                binding = scope.module.import_bindings(node).get(name)
                if binding is not None:
                    yield from self.resolve(binding.target)

    def bases(self, cls: Class) -> Iterator[Class | External]:
        """The direct bases of a class as far as they resolve."""
        for base in cls.node.bases:
            for definition in self.dotted_in(cls.parent, cls.module, base):
                if isinstance(definition, (Class, External)):
                    yield definition

    def mro(self, cls: Class) -> tuple[Class | External, ...]:
        """The class and all its bases, nearest first (depth first, each once, at its last place)."""
        known = self._mro.get(cls)
        if known is None:
            self._mro[cls] = (cls,)  # cuts inheritance cycles
            chain: list[Class | External] = [cls]
            for base in self.bases(cls):
                chain += self.mro(base) if isinstance(base, Class) else (base,)
            known = tuple(reversed(dict.fromkeys(reversed(chain))))
            self._mro[cls] = known
        return known

    def method(self, cls: Class, name: str) -> Function | None:
        """The method that an attribute read on an instance finds."""
        for base in self.mro(cls):
            if isinstance(base, Class):
                if name in base.methods:
                    return base.methods[name]
                if name in base.values and (function := self._assigned(base, base.values[name])) is not None:
                    return function
        return None

    def _assigned(self, cls: Class, value: ast.expr) -> Function | None:
        """The function that a name of a class body is given (``forward = run``)."""
        if not isinstance(value, (ast.Name, ast.Attribute)):
            return None
        if isinstance(value, ast.Name) and value.id in cls.methods:
            return cls.methods[value.id]
        found = self.dotted_in(cls.parent, cls.module, value)
        return next((definition for definition in found if isinstance(definition, Function)), None)

    def texts(self) -> Iterator[str]:
        """The texts of the linted files and of all that was parsed."""
        yield from (source.text for source in self._overlay.values())
        for path, module in self.modules().items():
            if path not in self._overlay:
                yield module.source.text

    def modules(self) -> dict[str, Module]:
        """All modules parsed so far, by absolute path."""
        return {path: module for path, module in self._by_path.items() if module is not None}
