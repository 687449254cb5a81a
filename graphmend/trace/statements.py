"""Which statement and function a line belongs to.

Dynamo names any line of a statement, several of one, and other ones in other Python versions.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections.abc import Iterator


class Statements:
    """The statements of one file, compound ones by their headers.

    Statements that share a line count as one.

    Arguments:
        text: the file. If it is no Python, each line is a statement.
    """

    def __init__(self, text: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Module([], [])
        self._stretches = _joined(sorted(_stretches(tree)))
        self._starts = [start for start, _ in self._stretches]
        self._functions = list(_functions(tree, ""))

    def around(self, line: int) -> tuple[int, int]:
        """The first and the last line of the statement at a 1-based line; of lines between statements, the line."""
        index = bisect_right(self._starts, line) - 1
        if index >= 0:
            start, end = self._stretches[index]
            if line <= end:
                return start, end
        return line, line

    def function(self, line: int) -> str:
        """The qualified name of the function around a 1-based line; empty if there is none."""
        around = [(end - start, name) for start, end, name in self._functions if start <= line <= end]
        return min(around, default=(0, ""))[1]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[int, int, str]]:
    """The lines of each function with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert child.end_lineno is not None
            yield _start(child), child.end_lineno, prefix + child.name
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _stretches(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The lines of each statement, handler and case, up to its body if it has one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            start, end = node.pattern.lineno, node.body[0].lineno - 1
        elif isinstance(node, (ast.stmt, ast.excepthandler)):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            start = _start(node)
            if not body:
                assert node.end_lineno is not None
                end = node.end_lineno
            elif isinstance(body[0], ast.match_case):
                end = body[0].pattern.lineno - 1
            else:
                end = _start(body[0]) - 1
        else:
            continue
        yield start, max(start, end)


def _start(node: ast.stmt | ast.excepthandler) -> int:
    """The first line, which decorators may begin."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted stretches, those that share a line joined."""
    joined: list[tuple[int, int]] = []
    for start, end in stretches:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
