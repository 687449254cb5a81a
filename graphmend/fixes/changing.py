"""Plain data that changes from call to call, for each value of which a graph that holds it is compiled again.

The original may never have looked at it, or only in a part without a graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.fixes.site import Refused, Site
from graphmend.flow.program import Program
from graphmend.flow.values import Kind, ordered
from graphmend.model.module import Class, Module
from graphmend.model.tree import children, walk
from graphmend.obligations import Obligation

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "__setstate__"})
_CARRIED_AS_THEY_ARE = Kind.TENSOR | Kind.OBJECT | Kind.CALLABLE | Kind.NONE


class _Changing:
    """The attributes and module-level names that the functions of a file change step by step, by file."""

    def __init__(self, program: Program) -> None:
        self._writers = program.python.writers
        self._places: dict[Module, dict[str, str]] = {}

    def place(self, name: str, modules: Iterable[Module]) -> str:
        """Where some function of these files does so with this name; empty if none does."""
        return next((places[name] for module in modules if name in (places := self._of(module))), "")

    def _of(self, module: Module) -> dict[str, str]:
        places = self._places.get(module)
        if places is None:
            places = self._places[module] = {}
            for function in module.functions:
                for node in walk(function.node) if function.name not in _CONSTRUCTORS else ():
                    for holder in _stepped(node, self._writers):
                        for name in _name_of(holder, function.locals):
                            places.setdefault(name, f"{module.path}:{holder.lineno}")
        return places


def check_settled(site: Site, expression: ast.expr) -> None:
    """Refuse to carry plain data that some function changes step by step.

    Looked into are the function's own file, and the files of the classes that an attribute may belong to.

    Raises:
        Refused: the graph would be compiled again for each value, and the original may not be.
    """
    changing = site.program.derived(_Changing)
    for node in _read(expression):
        for name in _name_of(node, site.function.locals):
            settled = site.facts.value(node).only(_CARRIED_AS_THEY_ARE)
            place = "" if settled else changing.place(name, _owners(site, node))
            if place:
                reason = f"`{ast.unparse(node)}` changes between calls ({place}), and the graph would be compiled again"
                raise Refused(Obligation.CARRIABLE_ARGUMENTS, f"{reason} for each of its values", node.lineno)


def _owners(site: Site, node: ast.expr) -> list[Module]:
    """The files whose functions may change what a name or an attribute stands for."""
    classes = site.facts.value(node.value).classes if isinstance(node, ast.Attribute) else ()
    index = site.program.index
    bases = (base for cls in ordered(classes) if isinstance(cls, Class) for base in index.mro(cls))
    return list(dict.fromkeys([site.function.module, *(base.module for base in bases if isinstance(base, Class))]))


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
        case ast.Call(
            func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"),
            args=[*_, ast.Constant(value=str(name)), value],
        ):
            if any(getattr(each, "attr", getattr(each, "value", None)) == name for each in walk(value)):
                yield ast.copy_location(ast.Attribute(node.func, name, ast.Store()), node)
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
            stack += children(node)
