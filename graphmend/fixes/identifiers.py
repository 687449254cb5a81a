"""Names for new functions: like the file's own, and meaning nothing else in it."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, count
from weakref import WeakKeyDictionary

from graphmend.findings import Fix, NewName
from graphmend.model.module import Function, Module

_RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")


class NameTable:
    """The identifiers of one file and those that fixes have been given so far.

    All fixes of a file that are planned against one text share a table, so any of them can be applied together. The
    same place always gets the same name.
    """

    def __init__(self, module: Module) -> None:
        self._text = module.source.text
        self._bindings = frozenset(module.bindings)
        self._words: dict[str, Container[str]] = {"": self.used}
        self._taken: dict[str, set[str]] = {}
        self._given: dict[tuple[str, object], NewName] = {}

    @cached_property
    def used(self) -> Container[str]:
        """Every word of the text, also of strings and comments: too many are no harm, and found faster."""
        return _Words(self._text)

    def fresh(self, wanted: str, place: object) -> NewName:
        """A name like ``wanted`` that means nothing else in the file, for the use at ``place``."""
        return self._fresh(wanted, "", place)

    def fresh_local(self, wanted: str, function: Function, place: object) -> NewName:
        """A name like ``wanted`` that means nothing else in a function."""
        scope = function.qualname
        if scope not in self._words:
            words = _IDENTIFIER.findall(function.module.source.segment(function.node))
            self._words[scope] = frozenset({*_RESERVED, *self._bindings, *words})
        return self._fresh(wanted, scope, place)

    def _fresh(self, wanted: str, scope: str, place: object) -> NewName:
        known = self._given.get((wanted, place))
        if known is None:
            taken = self._taken.setdefault(scope, set())
            known = NewName(wanted, _first_free(wanted, self._words[scope], taken), scope)
            taken.add(known.given)
            self._given[wanted, place] = known
        return known

    def settle(self, fixes: Iterable[Fix]) -> list[Fix]:
        """The fixes that are applied, with their names numbered as if no others had been planned."""
        final: dict[NewName, str] = {}
        taken: dict[str, set[str]] = {}
        for name in dict.fromkeys(name for fix in fixes for name in fix.names):
            others = taken.setdefault(name.scope, set())
            final[name] = _first_free(name.wanted, self._words[name.scope], others)
            others.add(final[name])
        return [_renamed(fix, {name.given: final[name] for name in fix.names}) for fix in fixes]


class _Words:
    """The words of a text with those that Python reserves; few are asked for, so it is searched and not taken apart."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __contains__(self, name: object) -> bool:
        text, word = self._text, str(name)
        return word in _RESERVED or (word in text and re.search(rf"\b{re.escape(word)}\b", text) is not None)


def _first_free(wanted: str, *used: Container[str]) -> str:
    """``wanted``, or with the first number from 2 on under which it is free."""
    names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    return next(name for name in names if not any(name in each for each in used))


def _renamed(fix: Fix, names: Mapping[str, str]) -> Fix:
    if all(old == new for old, new in names.items()):
        return fix
    edits = (
        replace(edit, replacement=_IDENTIFIER.sub(lambda word: names.get(word[0], word[0]), edit.replacement))
        for edit in fix.edits
    )
    return replace(fix, edits=tuple(edits))


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
    """``MyHTTPLayer`` as ``my_http_layer``, ``Conv2DBlock`` as ``conv2d_block``."""
    return _WORDS.sub("_", name).lower().strip("_")


def subject_of(function: Function) -> str:
    """What a function is about, in snake case: its class for ``forward`` and the like, else its own name."""
    name = function.name
    if function.owner is not None and (name == "forward" or name.startswith("__")):
        name = function.owner.name
    return snake_case(name) or "module"
