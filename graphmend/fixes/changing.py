"""Plain data that changes from call to call, for each value of which a graph that holds it is compiled again.

The original may never have looked at it, or only in a part without a graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend.fixes.site import Refused, Site
from graphmend.flow.program import Program
from graphmend.flow.values import Kind
from graphmend.model.module import Module
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})
_CARRIED_AS_THEY_ARE = Kind.TENSOR | Kind.OBJECT | Kind.CALLABLE | Kind.NONE


class _Changing:
    """The attributes and module-level names that functions change step by step."""

    def __init__(self, program: Program) -> None:
        self._modules = program.index.modules().values()
        self._writers = program.python.writers
        self._places: dict[str, str] = {}
        self._looked_into: set[Module] = set()

    def place(self, name: str) -> str:
        """Where some function of the files does so; empty if none does.

        Only files that look like it are looked into: there may be many large ones.
        """
        word = re.escape(name)
        called = "|".join(map(re.escape, sorted(self._writers)))
        again = rf"(?P<path>[\w.]*\b{word})\s*=(?!=)[^\n]*(?<![\w.])(?P=path)\b"
        steps = re.compile(rf"\b{word}\s*(?:\[|(?:[-+*/%&|^@]|//|\*\*|<<|>>)=|\.\s*(?:{called})\b)|{again}")
        for module in self._modules:
            if module not in self._looked_into and steps.search(module.source.text):
                self._looked_into.add(module)
                self._look_into(module)
        return self._places.get(name, "")

    def _look_into(self, module: Module) -> None:
        for function in module.functions:
            for node in walk(function.node) if function.name not in _CONSTRUCTORS else ():
                for holder in _stepped(node, self._writers):
                    for name in _name_of(holder, function.locals):
                        self._places.setdefault(name, f"{module.path}:{holder.lineno}")


def check_settled(site: Site, expression: ast.expr) -> None:
    """Refuse to carry plain data that some function changes step by step.

    Raises:
        Refused: the graph would be compiled again for each value, and the original may not be.
    """
    changing = site.program.derived(_Changing)
    for node in _read(expression):
        for name in _name_of(node, site.function.locals):
            place = "" if site.facts.value(node).only(_CARRIED_AS_THEY_ARE) else changing.place(name)
            if place:
                reason = f"`{ast.unparse(node)}` changes between calls ({place}), and the graph would be compiled again"
                raise Refused(Obligation.CARRIABLE_ARGUMENTS, f"{reason} for each of its values", node.lineno)


def _stepped(node: ast.AST, writers: frozenset[str]) -> Iterator[ast.expr]:
    """The expressions of what a node makes new values of out of the old ones."""
    match node:
        case ast.AugAssign():
            yield node.target
        case ast.Assign(targets=targets, value=value):
            read = {ast.unparse(each) for each in walk(value) if isinstance(each, (ast.Attribute, ast.Name))}
            for target in targets:
                if isinstance(target, ast.Subscript) or ast.unparse(target) in read:
                    yield target
        case ast.Call(func=ast.Attribute(value=holder, attr=method)) if method in writers:
            yield holder


def _name_of(node: ast.expr, own: set[str]) -> Iterator[str]:
    """The attribute, or the name from outside of the function, that holds what an expression stands for."""
    holder: ast.expr = node
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    if isinstance(holder, ast.Attribute):
        yield holder.attr
    elif isinstance(holder, ast.Name) and holder.id not in own:
        yield holder.id


def _read(expression: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes whose values an expression is made of."""
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
        else:
            stack += ast.iter_child_nodes(node)
