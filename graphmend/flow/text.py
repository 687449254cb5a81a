"""Code in sentences for people."""

from __future__ import annotations

import ast


def brief(node: ast.AST | None, width: int = 60) -> str:
    """A node on one line, cut off where it is long."""
    text = " ".join(ast.unparse(node).split()) if node is not None else ""
    return text if len(text) <= width else text[: width - 1] + "…"
