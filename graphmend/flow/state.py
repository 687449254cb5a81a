"""What is known of one function while the program is interpreted."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphmend.flow.values import NOTHING, Value
from graphmend.model.module import Function

DEPTH = 60
"""How deep calls are followed at once; what lies deeper waits in the queue."""
PASSES = 8
"""How often a function is interpreted again before its parameters stop growing."""


@dataclass(eq=False)
class State:
    """What is known of one function."""

    function: Function
    parameters: dict[str, Value] = field(default_factory=dict)
    closure: dict[str, Value] = field(default_factory=dict)
    result: Value = NOTHING
    traced: bool = False
    callers: dict[Function, set[int]] = field(default_factory=dict)
    """Traced callers, with the lines of their calls."""
    dependents: dict[Function, None] = field(default_factory=dict)
    """The functions that call it, in the order in which they were seen to."""
    passes: int = 0
