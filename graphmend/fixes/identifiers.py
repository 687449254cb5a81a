"""Names for new functions: like the file's own, and meaning nothing else in it."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from graphmend.model.module import Function, Module

_RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class NameTable:
    """The identifiers of one file and those that fixes have been given so far.

    All fixes of a file that are planned against one text share a table, so they can be applied together. The same
    place always gets the same name.
    """

    def __init__(self, module: Module) -> None:
        # Every word of the text, also of strings and comments: too many are no harm, and a tree takes longer to walk.
        self.used = {*_RESERVED, *_IDENTIFIER.findall(module.source.text)}
        self._global = {*_RESERVED, *module.bindings}
        self._local: dict[str, set[str]] = {}
        self._given: dict[tuple[str, object], str] = {}

    def fresh(self, wanted: str, place: object) -> str:
        """A name like ``wanted`` that means nothing else in the file, for the use at ``place``."""
        return self._fresh(wanted, place, self.used)

    def fresh_local(self, wanted: str, function: Function, place: object) -> str:
        """A name like ``wanted`` that means nothing else in a function."""
        used = self._local.get(function.qualname)
        if used is None:
            words = _IDENTIFIER.findall(function.module.source.segment(function.node))
            used = self._local[function.qualname] = {*self._global, *words}
        return self._fresh(wanted, place, used)

    def _fresh(self, wanted: str, place: object, used: set[str]) -> str:
        known = self._given.get((wanted, place))
        if known is None:
            known = wanted
            number = 2
            while known in used:
                known = f"{wanted}_{number}"
                number += 1
            used.add(known)
            self._given[wanted, place] = known
        return known


_TABLES: WeakKeyDictionary[Module, NameTable] = WeakKeyDictionary()


def names_of(module: Module) -> NameTable:
    """The name table of a file."""
    table = _TABLES.get(module)
    if table is None:
        table = _TABLES[module] = NameTable(module)
    return table


def binds(module: Module, name: str) -> bool:
    """Whether some scope of a file binds a name."""
    return name in names_of(module).used and name in _bound(module.nodes)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names


def snake_case(name: str) -> str:
    """``MyHTTPLayer`` as ``my_http_layer``."""
    return _WORDS.sub("_", name).lower().strip("_")


def subject_of(function: Function) -> str:
    """What a function is about, in snake case: its class for ``forward`` and the like, else its own name."""
    name = function.name
    if function.owner is not None and (name == "forward" or name.startswith("__")):
        name = function.owner.name
    return snake_case(name) or "module"
