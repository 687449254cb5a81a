"""What names say of values: that a tensor is a mask, or that an object is a configuration.

Where nothing else tells the dtype of a mask, it is inferred to be boolean; where nothing else tells what a
configuration holds, it is inferred not to depend on data.
"""

from __future__ import annotations

import ast
import re

_LAST_WORD = re.compile(r"(?:^|_)(?:masks?|valid|invalid|active|inactive)(?:_?\d+)?_?$|^(?:is|has)_", re.IGNORECASE)

_CONFIGURATION = re.compile(r"(?:^|_)(?:config|cfg|configuration|hparams|hyperparameters)$", re.IGNORECASE)

_NUMBER = re.compile(
    r"(?:h|w|hw|height|width|depth|dims?|axis|axes|size|stride|(?:num|n)_\w+|\w+_(?:sizes?|dims?|len|length|heads|count))"
)


def is_called_a_number(name: str) -> bool:
    """Whether a parameter is called like the sizes, dimensions and counts that a function is given as plain numbers."""
    return _NUMBER.fullmatch(name) is not None


def is_called_a_configuration(node: ast.expr) -> bool:
    """Whether an expression is called a configuration by the last word of its name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _CONFIGURATION.search(name) is not None
    return False


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
