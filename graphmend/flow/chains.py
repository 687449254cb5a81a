"""How functions get into regions: the shortest chains of calls from where regions start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphmend.flow.state import State
from graphmend.model.module import Function

Step = tuple[Function, int]
"""A function with the line of its call of the next one."""


class Chains:
    """What some entries reach, and how.

    Args:
        states: what is known of each function, with the calls of it.
        entries: the functions with which regions start; of equally short chains, that of the earlier one counts.
    """

    def __init__(self, states: Mapping[Function, State], entries: Iterable[Function]) -> None:
        called: dict[Function, list[tuple[Function, int]]] = {}
        for function, state in states.items():
            for caller, lines in state.callers.items():
                called.setdefault(caller, []).append((function, min(lines)))
        for callees in called.values():
            callees.sort(key=lambda each: (each[1], each[0].module.path, each[0].line))
        self._parents: dict[Function, Step | None] = dict.fromkeys(entries)
        pending = list(self._parents)
        for function in pending:
            for callee, line in called.get(function, ()):
                if callee not in self._parents:
                    self._parents[callee] = (function, line)
                    pending.append(callee)

    def __contains__(self, function: Function) -> bool:
        return function in self._parents

    def chain(self, function: Function) -> list[Step]:
        """The frames from an entry to ``function``: each with the line of its call, the last with its own line."""
        frames = [(function, function.line)]
        step = self._parents.get(function)
        while step is not None:
            frames.insert(0, step)
            step = self._parents.get(step[0])
        return frames
