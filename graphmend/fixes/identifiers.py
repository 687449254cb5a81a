"""Names for new functions: like the file's own, and meaning nothing else in it."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from graphmend.model.module import Function, Module

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class NameTable:
    """The identifiers of one file and those that fixes have been given so far.

    All fixes of a file that are planned against one text share a table, so they can be applied together. The same
    place always gets the same name.
    """

    def __init__(self, module: Module) -> None:
        self.bound = set(_bound(module.nodes))
        """Names that some scope of the file binds."""
        self.used = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *_identifiers(module.nodes), *self.bound}
        self._given: dict[tuple[str, object], str] = {}

    def fresh(self, wanted: str, place: object) -> str:
        """A name like ``wanted`` that means nothing else in the file, for the use at ``place``."""
        known = self._given.get((wanted, place))
        if known is None:
            known = wanted
            number = 2
            while known in self.used:
                known = f"{wanted}_{number}"
                number += 1
            self.used.add(known)
            self._given[wanted, place] = known
        return known


_TABLES: WeakKeyDictionary[Module, NameTable] = WeakKeyDictionary()


def names_of(module: Module) -> NameTable:
    """The name table of a file."""
    table = _TABLES.get(module)
    if table is None:
        table = _TABLES[module] = NameTable(module)
    return table


def _identifiers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text  # `__all__`, `getattr`
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Name(id=name):
                yield name


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
