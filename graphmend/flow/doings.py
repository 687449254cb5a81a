"""What code may do besides computing a value, in words for a person."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum


class Effect(str, Enum):
    """Kinds of things that code may do."""

    RANDOM = "random"
    MESSAGE = "message"
    WRITES = "writes"
    MUTATES = "mutates"
    STATEFUL = "stateful"
    UNKNOWN = "unknown"
    SUSPENDS = "suspends"
    FAILS = "fails"
    READS = "reads"


PARTIAL = frozenset({Effect.FAILS, Effect.READS})
"""Data decides how the code goes on: it fails, or Python asks for a tensor's value."""
IMPURE = frozenset(Effect) - PARTIAL
"""Something is different after the code has run."""


@dataclass(frozen=True)
class Doing:
    """One effect.

    Args:
        effect: its kind.
        what: what has it, as the predicate of a sentence about the code.
        node: the node that has it, in the code that was asked about.
        attribute: for a write to an attribute, its name.
        receiver: for a write to an attribute, the expression of the object.
    """

    effect: Effect
    what: str
    node: ast.AST
    attribute: str = ""
    receiver: ast.expr | None = None

    @property
    def line(self) -> int:
        """The line of the node."""
        return int(getattr(self.node, "lineno", 0))
