"""Writing new code into a file in the file's own style: names, imports, module-level functions, indentation."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import os
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

from graphmend.findings import Edit
from graphmend.fixes.site import RuntimeImport, Site
from graphmend.model.module import Function, Module
from graphmend.source.edits import make_edit
from graphmend.source.text import SourceText

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DEFAULT_LENGTH = 88
_LONGEST_LENGTH = 120

Import = ast.Import | ast.ImportFrom


# -------------------------------------------------------------------- style


@dataclass(frozen=True)
class Style:
    """How a file is written.

    Args:
        source: the file's text.
        tree: its syntax tree.
    """

    source: SourceText
    tree: ast.Module

    @cached_property
    def unit(self) -> str:
        """One step of indentation: that of the first indented block."""
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
                outer, inner = self.source.indentation(node.lineno), self.source.indentation(body[0].lineno)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    @cached_property
    def length(self) -> int:
        """The line length that is configured for the file, or else the one that the file keeps to."""
        configured = _configured_length(os.path.dirname(os.path.abspath(self.source.path)))
        if configured is not None:
            return configured
        lengths = (len(line.rstrip()) for line in self.source.text.splitlines())
        return max((length for length in lengths if _DEFAULT_LENGTH < length <= _LONGEST_LENGTH), default=_DEFAULT_LENGTH)

    def call(self, callee: str, arguments: Sequence[str], indentation: str) -> str:
        """A call at the end of ``indentation``, on as many lines as it needs."""
        return self._list(f"{callee}(", arguments, ")", indentation)

    def function(self, decorator: str, name: str, parameters: Sequence[str], body: str) -> str:
        """A module-level function whose body is indented text without a last newline."""
        newline = self.source.newline
        head = self._list(f"def {name}(", parameters, "):", "")
        return f"@{decorator}{newline}{head}{newline}{body}{newline}"

    def _list(self, opening: str, items: Sequence[str], closing: str, indentation: str) -> str:
        newline, inner = self.source.newline, indentation + self.unit
        line = f"{opening}{', '.join(items)}{closing}"
        several = any("\n" in item or "\r" in item for item in items)
        if not items or not several and len(indentation + line) <= self.length:
            return line
        line = ", ".join(items)
        if not several and len(inner + line) <= self.length:
            return f"{opening}{newline}{inner}{line}{newline}{indentation}{closing}"
        lines = "".join(f"{inner}{item},{newline}" for item in items)
        return f"{opening}{newline}{lines}{indentation}{closing}"


@lru_cache(maxsize=1024)
def _configured_length(folder: str) -> int | None:
    """The ``line-length`` of ruff or black that applies to a folder."""
    path = os.path.join(folder, "pyproject.toml")
    if os.path.isfile(path):
        return _read_length(path)
    parent = os.path.dirname(folder)
    return _configured_length(parent) if parent != folder else None


def _read_length(path: str) -> int | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            tools = tomllib.load(file).get("tool", {})
    except (OSError, ValueError):
        return None
    for tool in ("ruff", "black"):
        length = tools.get(tool, {}).get("line-length")
        if isinstance(length, int):
            return length
    return None


# -------------------------------------------------------------------- names


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


# -------------------------------------------------------------------- the runtime's import


@dataclass(frozen=True)
class RuntimeName:
    """The name of the runtime in a file, and the edits that bind it.

    Args:
        name: the name.
        edits: the import to be inserted; empty if the file has it.
    """

    name: str
    edits: tuple[Edit, ...] = ()


def runtime_name(site: Site) -> RuntimeName:
    """How code at and above the top-level statement of a site names the runtime."""
    module, runtime = site.module, site.runtime
    wanted = _import(runtime.statement)
    target = next(iter(module.import_bindings(wanted).values())).target
    for statement in module.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and statement.lineno < top_statement(site).lineno:
            for name, binding in module.import_bindings(statement).items():
                if binding.target == target and len(module.bindings.get(name, ())) == 1:
                    return RuntimeName(name)
    table = names_of(module)
    if runtime.name in table.bound:
        name = table.fresh(f"_{runtime.name.strip('_')}", "runtime")
        runtime = RuntimeImport(_renamed(wanted, name), name)
        wanted = _import(runtime.statement)
    return RuntimeName(runtime.name, (_import_edit(module, runtime.statement, wanted),))


def import_external(module: Module, statement: str) -> Edit:
    """The insertion of an import statement that the file does not have."""
    return _import_edit(module, statement, _import(statement))


def _import(statement: str) -> Import:
    node = ast.parse(statement).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    return node


def _renamed(node: Import, name: str) -> str:
    imported = node.names[0].name
    if isinstance(node, ast.Import):
        return f"import {imported} as {name}"
    return f"from {'.' * node.level}{node.module or ''} import {imported} as {name}"


def _import_edit(module: Module, text: str, node: Import) -> Edit:
    """The insertion of an import where a person would write it: sorted into the group of its like at the top."""
    source, newline = module.source, module.source.newline
    head, imports = _leading(module.tree)
    if not imports:
        if head is not None:
            end = _line_end(source, head)
            gap = "" if end >= len(source.text) or not source.line(source.position(end)[0] + 1).strip() else newline
            return make_edit(source, end, end, f"{newline}{newline}{text}{gap}")
        first = module.tree.body[0]
        start = _line_start(source, _first_line(first))
        return make_edit(source, start, start, f"{text}{newline}{newline}")
    groups = _groups(source, imports)
    own = [group for group in groups if any(_kind(each) == _kind(node) for each in group)]
    if own:
        # Rather beside its own form than among imports that stand apart.
        group = next((group for group in own if any(_is_like(each, node) for each in group)), own[-1])
        place = _place_in_group(group, node)
        if place is not None:
            first = place.lineno if place is imports[0] else _attached(source, place.lineno)
            start = _line_start(source, first)
            return make_edit(source, start, start, text + newline)
        end = _line_end(source, group[-1])
        return make_edit(source, end, end, newline + text)
    before = [group for group in groups if _kind(group[-1]) < _kind(node)]
    if before:
        end = _line_end(source, before[-1][-1])
        return make_edit(source, end, end, f"{newline}{newline}{text}")
    start = _line_start(source, imports[0].lineno)
    return make_edit(source, start, start, f"{text}{newline}{newline}")


def _leading(tree: ast.Module) -> tuple[ast.stmt | None, list[Import]]:
    """What must stay in front (docstring, ``__future__``) and the imports that follow it without a break."""
    head: ast.stmt | None = None
    imports: list[Import] = []
    for position, statement in enumerate(tree.body):
        if position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            head = statement
        elif isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            head = statement
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            imports.append(statement)
        else:
            break
    return head, imports


def _groups(source: SourceText, imports: Sequence[Import]) -> list[list[Import]]:
    """Imports that no blank line parts."""
    groups: list[list[Import]] = [[imports[0]]]
    for before, statement in zip(imports, imports[1:]):
        between = range((before.end_lineno or before.lineno) + 1, statement.lineno)
        if any(not source.line(number).strip() for number in between):
            groups.append([])
        groups[-1].append(statement)
    return groups


def _kind(node: Import) -> int:
    """The section of an import: the standard library, other packages, the file's own package."""
    if isinstance(node, ast.ImportFrom) and node.level:
        return 2
    name = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return 0 if name.partition(".")[0] in sys.stdlib_module_names else 1


def _is_like(each: Import, node: Import) -> bool:
    return type(each) is type(node) and _kind(each) == _kind(node)


def _place_in_group(group: Sequence[Import], node: Import) -> Import | None:
    """The import before which a new one belongs; ``None`` for the end of the group."""
    mixed = any(isinstance(a, ast.ImportFrom) and isinstance(b, ast.Import) for a, b in zip(group, group[1:]))

    def rank(each: Import) -> tuple[object, ...]:
        level = each.level if isinstance(each, ast.ImportFrom) else 0
        name = each.names[0].name if isinstance(each, ast.Import) else each.module or ""
        style = 0 if mixed else int(isinstance(each, ast.ImportFrom))
        return (_kind(each), style, -level, name.lower())

    return next((each for each in group if rank(each) > rank(node)), None)


# -------------------------------------------------------------------- places


def top_statement(site: Site) -> ast.stmt:
    """The module-level statement that holds a site."""
    line = site.function.line
    return next(each for each in site.module.tree.body if _first_line(each) <= line <= (each.end_lineno or each.lineno))


def insert_function(site: Site, text: str) -> Edit:
    """The insertion of a module-level function in front of the top-level statement that holds a site."""
    source, newline = site.source, site.source.newline
    line = _attached(source, _first_line(top_statement(site)))
    blank = 0
    while blank < 2 and line - blank > 1 and not source.line(line - blank - 1).strip():
        blank += 1
    lead = newline * (2 - blank) if line - blank > 1 else ""
    start = _line_start(source, line)
    return make_edit(source, start, start, f"{lead}{text}{newline}{newline}")


def _attached(source: SourceText, line: int) -> int:
    """The first of the comment lines that stand directly above a line, or the line itself.

    Comments that reach up to the top of the file belong to the file.
    """
    first = line
    while line > 1 and source.line(line - 1).startswith("#"):
        line -= 1
    return line if line > 1 else first


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(statement.lineno, *(each.lineno for each in decorators)) if decorators else statement.lineno


def _line_start(source: SourceText, line: int) -> int:
    return source.line_starts[line - 1]


def _line_end(source: SourceText, statement: ast.stmt) -> int:
    """The end of the last line of a statement, in front of its newline."""
    line = statement.end_lineno or statement.lineno
    return _line_start(source, line) + len(source.line(line))


# -------------------------------------------------------------------- moved text


def reindent(text: str, old: str, new: str) -> str:
    """A statement's text with another indentation, down to the characters inside its strings.

    Args:
        text: the statement, from its first character on.
        old: the indentation of the line that it begins in.
        new: the indentation that it gets.
    """
    lines = _LINE.findall(text)
    if lines and not lines[-1]:
        lines.pop()
    inside = _string_lines(text, old)
    parts = [new + lines[0]]
    for number, line in enumerate(lines[1:], start=1):
        if number in inside:
            parts.append(line)
        elif not line.strip():
            parts.append(line.lstrip(" \t"))
        else:
            parts.append(new + (line[len(old) :] if line.startswith(old) else line.lstrip(" \t")))
    return "".join(parts)


def _string_lines(text: str, indentation: str) -> set[int]:
    """The lines of a statement, from 0, that begin inside a string."""
    code, offset = (f"if 1:\n{indentation}{text}\n", 2) if indentation else (f"{text}\n", 1)
    inside: set[int] = set()
    openings: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif kind in ("FSTRING_START", "TSTRING_START"):
            openings.append(token.start[0])
        elif kind in ("FSTRING_END", "TSTRING_END"):
            inside.update(range(openings.pop() + 1, token.end[0] + 1))
    return {line - offset for line in inside}
