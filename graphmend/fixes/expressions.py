"""Expressions of the source as text at another place."""

from __future__ import annotations

import ast

from graphmend.fixes.layout import Argument, breaks, closed, one_line
from graphmend.fixes.parentheses import in_parentheses
from graphmend.source.text import SourceText


def expression_text(source: SourceText, node: ast.expr) -> str:
    """An expression as written, on one line if it can be; in parentheses if its line breaks need some."""
    text = source.segment(node)
    flat = one_line(text)
    return closed(text) if flat is None else flat


def argument_of(source: SourceText, node: ast.expr, prefix: str = "") -> Argument:
    """An expression as an argument of a new call, behind a prefix."""
    text = source.segment(node)
    if isinstance(node, ast.Tuple) and not text.startswith("("):
        text = f"({text})"
    if not breaks(text):
        return Argument(text, prefix)
    start, end = copied_span(source, node)
    lines, indentation = source.text[start:end], source.indentation(source.position(start)[0])
    # Comments between the parentheses need the lines as well.
    flat = one_line(text) if one_line(lines) is not None else None
    return Argument(closed(lines) if flat is None else flat, prefix, closed(lines), indentation)


def copied_span(source: SourceText, node: ast.expr) -> tuple[int, int]:
    """The range of an expression that is copied with it: with its parentheses, if it has several lines."""
    span = source.span(node)
    return (in_parentheses(source, *span) or span) if breaks(source.segment(node)) else span
