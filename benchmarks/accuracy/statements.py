"""Whatever is matched against Dynamo is matched by statement: where the statements of a file begin and end.

A compound statement counts with its header only, as in the records of Dynamo; its body is made of other statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Lines = tuple[int, int]
"""A first and a last line."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def meets(one: Lines, other: Lines) -> bool:
    """Whether two stretches of lines share a line."""
    return one[0] <= other[1] and other[0] <= one[1]


def headers(statement: ast.stmt) -> Iterator[Lines]:
    """The lines of a statement; of a compound one those of its header, and of each `except` or `case` with it."""
    first = min([statement.lineno, *(item.lineno for item in getattr(statement, "decorator_list", ()))])
    if not hasattr(statement, "body") and not isinstance(statement, ast.Match):
        yield first, _end(statement)
        return
    yield first, _header_end(statement)
    for handler in getattr(statement, "handlers", ()):
        yield handler.lineno, _end(handler.type) if handler.type else handler.lineno
    for case in getattr(statement, "cases", ()):
        yield case.pattern.lineno, _end(case.guard or case.pattern)


def _header_end(statement: ast.stmt) -> int:
    """The last line of what stands between a compound statement's keyword and its body."""
    parts: list[ast.AST | None]
    if isinstance(statement, (ast.If, ast.While)):
        parts = [statement.test]
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        parts = [statement.iter]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        parts = [child for item in statement.items for child in (item.context_expr, item.optional_vars)]
    elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [*ast.walk(statement.args), statement.returns]
    elif isinstance(statement, ast.ClassDef):
        parts = [*statement.bases, *statement.keywords]
    elif isinstance(statement, ast.Match):
        parts = [statement.subject]
    else:
        parts = []
    return max([statement.lineno, *(_end(part) for part in parts if hasattr(part, "end_lineno"))])


def _end(node: ast.AST | None) -> int:
    end: int = node.end_lineno  # type: ignore[union-attr]
    return end


class Source:
    """A file, and its statements by line."""

    def __init__(self, text: str) -> None:
        """Parses the text.

        Raises:
            SyntaxError: it is not Python.
        """
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self._headers: dict[int, list[Lines]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt):
                for header in headers(node):
                    for line in range(header[0], header[1] + 1):
                        self._headers.setdefault(line, []).append(header)

    def line(self, number: int) -> str:
        """The text of one line, without the white space around it."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def statements(self, lines: Lines) -> list[Lines]:
        """The statements of which something lies on these lines; the lines themselves where there is none."""
        found = {header for line in range(lines[0], lines[1] + 1) for header in self._headers.get(line, ())}
        return sorted(found) or [lines]

    def functions(self, line: int) -> list[Function]:
        """The functions around a line, from outside to inside."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= _end(node)
        ]
