"""Fixes of user packs: a template over the metavariables of a pattern, built as a tree."""

from __future__ import annotations

import ast
import builtins
import copy
import io
import tokenize
from collections.abc import Mapping, Sequence
from typing import TypeVar

from graphmend.findings import Applicability, Edit, Fix, Proof
from graphmend.fixes.emit import import_external
from graphmend.fixes.site import Refused, Site
from graphmend.model.index import External
from graphmend.obligations import Obligation
from graphmend.rules.pattern import metavariable, parse_pattern

Captured = Mapping[str, "ast.expr | tuple[ast.expr, ...]"]
Node = TypeVar("Node", ast.expr, ast.stmt)


def plan_template(site: Site, template: str, captures: Captured) -> Fix:
    """The replacement of what a pattern matched by a template.

    Such a fix is unsafe: nothing about the new code is proven.

    Args:
        site: the match; ``site.node`` is what is replaced.
        template: Python code in which ``$X`` and ``$...ARGS`` stand for what the pattern's metavariables matched.
        captures: what they matched.

    Raises:
        Refused: a comment would be lost, or a name of the template means something else in the file.
    """
    start, end = site.source.span(site.node)  # type: ignore[arg-type]
    if _has_comment(site.source.text[start:end]):
        raise Refused(Obligation.MOVABLE_TEXT, "a comment inside the matched code would be lost")
    pattern = parse_pattern(template).node
    statement = isinstance(site.node, ast.stmt)
    if isinstance(pattern, ast.stmt) and not statement:
        raise Refused(Obligation.SUPPORTED_FORM, "the replacement is a statement, but an expression was matched")
    builder = _Builder(site, captures)
    text = ast.unparse(ast.fix_missing_locations(builder.visit(copy.deepcopy(pattern))))
    if statement:
        newline, indentation = site.source.newline, site.source.indentation(site.statement.lineno)
        text = (newline + indentation).join(text.split("\n"))
    elif not isinstance(pattern, (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)):
        parent = site.parents.get(id(site.node))
        if isinstance(parent, ast.expr):
            text = f"({text})"
    edit = Edit(site.module.path, start, end, text, site.source.range(start, end))
    return Fix(
        "replace",
        Applicability.UNSAFE,
        (Proof(Obligation.SUPPORTED_FORM.value, "statically", "the code has the shape of the rule's pattern"),),
        (*builder.imports, edit),
        "the code does what the rule's template says, which is not proven to be the same",
    )


class _Builder(ast.NodeTransformer):
    """Puts captured code in the place of metavariables, and the file's own names in the place of qualified ones."""

    def __init__(self, site: Site, captures: Captured) -> None:
        self.site = site
        self.captures = captures
        self.imports: list[Edit] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        variable = metavariable(node.id)
        if variable is None:
            return self.named(node)
        captured = self.captures[variable.name]
        if isinstance(captured, tuple):
            raise Refused(Obligation.SUPPORTED_FORM, f"`$...{variable.name}` stands where only one expression can")
        return copy.deepcopy(captured)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = self.expanded(node.args)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        node.elts = self.expanded(node.elts)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_List(self, node: ast.List) -> ast.expr:
        node.elts = self.expanded(node.elts)
        return self.generic_visit(node)  # type: ignore[return-value]

    def expanded(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """The nodes with every ``$...X`` replaced by what it stands for."""
        result: list[ast.expr] = []
        for node in nodes:
            variable = metavariable(node.id) if isinstance(node, ast.Name) else None
            captured = self.captures[variable.name] if variable is not None and variable.rest else None
            if isinstance(captured, tuple):
                result += copy.deepcopy(captured)
            else:
                result.append(node)
        return result

    def named(self, node: ast.Name) -> ast.expr:
        """A name of the template as the file spells it; imported if the file does not know it."""
        module, index = self.site.module, self.site.program.index
        if node.id in self.site.function.locals:
            raise Refused(Obligation.BOUND_NAMES, f"`{node.id}` of the replacement is a local name here")
        found = index.global_name(module, node.id)
        if found == (External(node.id),) or (not found and node.id in _BUILTINS):
            return node
        for name in module.bindings:
            if index.global_name(module, name) == (External(node.id),):
                return ast.Name(name, ast.Load())
        if found:
            raise Refused(Obligation.BOUND_NAMES, f"`{node.id}` of the replacement means something else in this file")
        self.imports.append(import_external(self.site.module, f"import {node.id}"))
        return node


_BUILTINS = frozenset(dir(builtins))


def _has_comment(text: str) -> bool:
    try:
        return any(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return "#" in text
