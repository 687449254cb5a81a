"""Where new code goes in a file: the runtime's import among the others, functions in front of what calls them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphmend.findings import Edit
from graphmend.fixes.identifiers import binds, names_of
from graphmend.fixes.site import RuntimeImport, Site
from graphmend.fixes.style import Style, reindent
from graphmend.model.module import Module
from graphmend.source.edits import make_edit
from graphmend.source.text import SourceText

Import = ast.Import | ast.ImportFrom
_BLANK_LINES = 2


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
    if binds(module, runtime.name):
        name = names_of(module).fresh(f"_{runtime.name.strip('_')}", "runtime").given
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
        start = _line_start(source, _first_line(module.tree.body[0]))
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
    for before, statement in pairwise(imports):
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
    mixed = any(isinstance(a, ast.ImportFrom) and isinstance(b, ast.Import) for a, b in pairwise(group))

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


def insert_function(site: Site, text: str) -> tuple[Edit, ...]:
    """The insertion of a module-level function in front of the top-level statement that holds a site.

    Two blank lines are around it. What the gap above lacks or has too much is an edit of its own, which all functions
    that are inserted at the place share.
    """
    source, newline = site.source, site.source.newline
    line = _attached(source, _first_line(top_statement(site)))
    start = _line_start(source, line)
    function = make_edit(source, start, start, f"{text}{newline}{newline}")
    return (*_gap(source, line), function)


def _gap(source: SourceText, line: int) -> tuple[Edit, ...]:
    """What makes the blank lines above a line two; nothing at the top of the file."""
    above = line - 1
    while above and not source.line(above).strip():
        above -= 1
    start, surplus = _line_start(source, line), line - 1 - above - _BLANK_LINES
    if not above or not surplus:
        return ()
    if surplus < 0:
        return (make_edit(source, start, start, source.newline * -surplus),)
    first = _line_start(source, line - surplus)
    # A form feed parts the pages of a file, and stays.
    return () if "\f" in source.text[first:start] else (make_edit(source, first, start, ""),)


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


__all__ = [
    "RuntimeName",
    "Style",
    "import_external",
    "insert_function",
    "reindent",
    "runtime_name",
    "top_statement",
]
