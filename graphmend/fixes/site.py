"""The place that a transform is asked to rewrite."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphmend.findings import Refusal
from graphmend.flow.interpreter import Facts
from graphmend.flow.program import Program
from graphmend.model.module import Function, Module
from graphmend.obligations import Obligation
from graphmend.source.text import SourceText


@dataclass(frozen=True)
class RuntimeImport:
    """How a mended file gets at the runtime.

    Args:
        statement: the import statement, without a newline.
        name: the name that it binds.
    """

    statement: str = "import graphmend"
    name: str = "graphmend"


@dataclass(frozen=True, eq=False)
class Site:
    """One match of a rule, with everything that is known of its surroundings.

    Args:
        program: the program under analysis.
        function: the function that holds the match.
        facts: its values.
        statement: the innermost statement that holds the match.
        node: the matched test, call or pattern.
        parents: the parent of every node below the function, by the node's identity.
        runtime: how the file imports the runtime.
        torchscript: qualified names of packages and modules whose functions TorchScript may compile.
    """

    program: Program
    function: Function
    facts: Facts
    statement: ast.stmt
    node: ast.AST
    parents: Mapping[int, ast.AST]
    runtime: RuntimeImport = RuntimeImport()
    torchscript: tuple[str, ...] = ()

    @property
    def module(self) -> Module:
        """The file."""
        return self.function.module

    @property
    def source(self) -> SourceText:
        """The text of the file."""
        return self.function.module.source

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Pairs of a node and its parent, from ``node`` up to the function."""
        parent = self.parents.get(id(node))
        while parent is not None and node is not self.function.node:
            yield node, parent
            node, parent = parent, self.parents.get(id(parent))


class Refused(Exception):  # noqa: N818 - a refusal is an outcome, not an error
    """Raised inside a plan when an obligation does not hold."""

    def __init__(self, obligation: Obligation, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.obligation = obligation
        self.reason = reason
        self.line = line

    def refusal(self, transform: str) -> Refusal:
        """The refusal to report."""
        return Refusal(transform, self.obligation.value, self.reason, self.line)
