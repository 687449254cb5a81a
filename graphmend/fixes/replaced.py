"""Methods and functions that are replaced after they were defined: ``Model.check = safely(Model.check)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend.flow.program import Program
from graphmend.model.module import Function, Module


class Replacements:
    """The statements that store an attribute under a name, by the name.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._stores: dict[str, list[tuple[Module, ast.Attribute]]] = {}

    def of(self, function: Function) -> Iterator[tuple[int, str]]:
        """Line and description of what may replace a function.

        In its own file that is whatever stores an attribute of its name, or one whose name is not known; in other
        files, what stores it where the function itself is found.
        """
        for module, target in self._stored(function.name):
            own = module is function.module and function.owner is not None
            if own or function in self.program.index.dotted(module, target):
                yield target.lineno, f"`{ast.unparse(target)} = …`"
        if function.owner is not None:
            yield from _set_by_name(function)

    def _stored(self, name: str) -> list[tuple[Module, ast.Attribute]]:
        if name not in self._stores:
            text = re.compile(rf"\.{re.escape(name)}\s*=(?!=)")
            self._stores[name] = [
                (module, node)
                for module in self.program.index.modules().values()
                if f".{name}" in module.source.text and text.search(module.source.text)
                for node in module.nodes
                if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
            ]
        return self._stores[name]


def _set_by_name(function: Function) -> Iterator[tuple[int, str]]:
    """The calls of ``setattr`` in a function's file that may set it, other than those of an object on itself."""
    if "setattr" not in function.module.source.text:
        return
    for node in function.module.nodes:
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), *_]):
                pass
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), *_]) if name != function.name:
                pass
            case ast.Call(func=ast.Name(id="setattr")):
                yield node.lineno, f"`{ast.unparse(node)}`"
