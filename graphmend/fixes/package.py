"""Questions about all files of the package that a fix lies in: who names an attribute, who changes one in place."""

from __future__ import annotations

import ast
import os
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from graphmend.files import file_bytes
from graphmend.flow.aliasing import is_in_place_name
from graphmend.flow.program import Program
from graphmend.flow.values import UNKNOWN, Kind, Target
from graphmend.model.module import Module
from graphmend.model.tree import walk

_DEFINITION = re.compile(r"\s*(?:async\s+)?def\s")


@dataclass(frozen=True)
class Place:
    """A line of some file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Package:
    """The files around one module: its whole package, or for a script the files that the run has read."""

    def __init__(self, program: Program, module: Module) -> None:
        self.program = program
        self.module = module

    def _files(self) -> tuple[str, ...]:
        path = os.path.abspath(self.module.path)
        parts = self.module.name.split(".")
        folder = os.path.dirname(path)
        if not self.module.is_package:
            parts = parts[:-1]
        if not parts:
            return (path,)
        for _ in parts[1:]:
            folder = os.path.dirname(folder)
        return python_files(folder)

    def texts(self, words: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The paths and texts of the files in which one of some words occurs; the module's own file is the last."""
        names = sorted(words)
        pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")
        loaded = self.program.index.modules()
        own = os.path.abspath(self.module.path)
        for path in self._files():
            if path == own:
                continue
            module = loaded.get(path)
            if module is not None:
                text = module.source.text
            else:
                data = file_bytes(path)
                text = data.decode("utf-8", "replace") if any(name.encode() in data for name in names) else ""
            # Looking for a plain word first is many times faster.
            if any(name in text for name in names) and pattern.search(text):
                yield path, text
        yield own, self.module.source.text

    def mentions(self, attribute: str, allowed: Iterable[ast.AST] = ()) -> Place | None:
        """A place that may observe whether an attribute exists: its name as an attribute or in a string.

        Args:
            attribute: the attribute's name.
            allowed: nodes below which it may be named.
        """
        skipped = {id(node) for root in allowed for node in walk(root)}
        word = re.compile(rf"\b{re.escape(attribute)}\b")
        for path, _ in self.texts([attribute]):
            module = self.program.index.load(path)
            if module is None:
                continue
            for node in module.nodes:
                if id(node) in skipped:
                    continue
                match node:
                    case ast.Attribute(attr=name) if name == attribute:
                        return Place(module.path, node.lineno)
                    case ast.Constant(value=str(text)) if word.search(text) and not _is_docstring(text):
                        return Place(module.path, node.lineno)
        return None

    def assigned_functions(self, attribute: str) -> frozenset[Target]:
        """The functions that an attribute of this name may hold, from all that the package assigns to it.

        Empty if something else is assigned to it, or in a way that is not understood.
        """
        found: set[Target] = set()
        for path, _ in self.texts([attribute]):
            module = self.program.index.load(path)
            for node in module.nodes if module is not None else ():
                for given in _given(node, attribute):
                    value = self.program.bindings.value_of(given, module) if given and module else UNKNOWN
                    if value.kinds != Kind.CALLABLE:
                        return frozenset()
                    found |= value.targets
        return frozenset(found)

    def changed_in_place(self, attributes: Iterable[str]) -> Place | None:
        """A place that writes into what one of some attributes holds, directly or through a local name."""
        names = frozenset(attributes)
        pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(names))) + r")\b")
        for path, text in self.texts(names):
            line = _first_change(text, pattern, names)
            if line is not None:
                module = self.program.index.load(path)
                return Place(module.path if module is not None else path, line)
        return None


def _given(node: ast.AST, attribute: str) -> Iterator[ast.expr | None]:
    """What a node gives to an attribute of some object; ``None`` where that is not understood."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Attribute):
                    if target.attr == attribute:
                        yield value
                elif not isinstance(target, ast.Name) and _names_attribute(target, attribute):
                    yield None
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.For(target=target):
            if _names_attribute(target, attribute):
                yield None
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=name), _]) if name == attribute:
            yield None


def _names_attribute(target: ast.expr, attribute: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == attribute for node in walk(target))


def _is_docstring(text: str) -> bool:
    """Whether a string is prose: code that looks an attribute up names it alone, or as part of a dotted path."""
    return any(character.isspace() for character in text.strip())


def _first_change(text: str, pattern: re.Pattern[str], names: frozenset[str]) -> int | None:
    """The first line of a file that writes into what one of the attributes holds.

    Only the functions that name one are parsed: a package may have many large files.
    """
    lines = text.splitlines(keepends=True)
    done = 0
    for number, line in enumerate(lines):
        if number < done or not pattern.search(line):
            continue
        start, done = _function_around(lines, number)
        if start is None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the parser's remarks on escapes
                # Comments may stand further left than the code around them.
                code = ["\n" if each.lstrip().startswith("#") else each for each in lines[start:done]]
                scope = ast.parse(textwrap.dedent("".join(code)))
        except SyntaxError:
            return number + 1  # not understood: taken for a change
        changed = _changes(scope, names)
        if changed is not None:
            return start + changed
    return None


def _function_around(lines: list[str], number: int) -> tuple[int | None, int]:
    """The first line of the outermost function around a line, if there is one, and the line after its last."""
    start, indentation = None, _indentation(lines[number])
    for above in range(number, -1, -1):
        line = lines[above]
        if not line.strip() or line.lstrip().startswith(("#", ")")):
            continue
        if _indentation(line) < indentation or above == number:
            indentation = _indentation(line)
            if _DEFINITION.match(line):
                start = above
        if indentation == 0:
            break
    if start is None:
        return None, number + 1
    end = start + 1
    while end < len(lines):
        line = lines[end]
        if (
            line.strip()
            and _indentation(line) <= _indentation(lines[start])
            and not line.lstrip().startswith((")", "#"))
        ):
            break
        end += 1
    return start, max(end, number + 1)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _changes(tree: ast.Module, names: frozenset[str]) -> int | None:
    nodes = list(walk(tree))
    aliases = _aliases(nodes, names)
    for node in nodes:
        if any(_rooted(target, names, aliases) for target in _written(node)):
            return getattr(node, "lineno", None)
    return None


def _aliases(nodes: Iterable[ast.AST], names: frozenset[str]) -> set[str]:
    """Local names that are assigned the attribute, or a view of it."""
    return {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _rooted(node.value, names, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose object a node writes into."""
    match node:
        case ast.AugAssign(target=ast.Subscript(value=target) | target):
            yield target
        case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
            yield target
        case ast.Attribute(value=target, attr="data", ctx=ast.Store()):
            yield target
        case ast.Call(func=ast.Attribute(value=target, attr=name), args=arguments, keywords=keywords):
            if is_in_place_name(name):
                yield target
                yield from arguments[:1]  # `torch.relu_(x)`, `init.zeros_(x)`
            yield from (keyword.value for keyword in keywords if keyword.arg == "out")
        case ast.Call(func=ast.Name(id=name), args=[target, *_]) if is_in_place_name(name):
            yield target


def _rooted(node: ast.expr, names: frozenset[str], aliases: set[str]) -> bool:
    """Whether an expression is one of the attributes, or may be a view of it."""
    while True:
        match node:
            case ast.Attribute(attr=attr) if attr in names:
                return True
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Name(id=name):
                return name in aliases
            case _:
                return False


@lru_cache(maxsize=4)
def python_files(folder: str) -> tuple[str, ...]:
    """All Python files below a folder."""
    found: list[str] = []
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "__pycache__" and not each.startswith("."))
        found += [os.path.join(directory, each) for each in sorted(files) if each.endswith(".py")]
    return tuple(found)
