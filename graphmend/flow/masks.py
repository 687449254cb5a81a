"""Names that say of a tensor that it is a mask: where nothing else tells its dtype, this infers that it is boolean."""

from __future__ import annotations

import ast
import re

_LAST_WORD = re.compile(r"(?:^|_)masks?(?:_?\d+)?_?$", re.IGNORECASE)


def is_called_a_mask(node: ast.expr) -> bool:
    """Whether an expression is called a mask by the last word of its name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _LAST_WORD.search(name) is not None
        case ast.Subscript(value=holder):
            return is_called_a_mask(holder)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return is_called_a_mask(operand)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return is_called_a_mask(left) and is_called_a_mask(right)
        case ast.Call(func=ast.Attribute(value=holder, attr="to" | "squeeze" | "unsqueeze" | "flatten" | "reshape")):
            return is_called_a_mask(holder)
    return False
