"""State outside of a message that decides how it looks and where it goes: print options, filters, levels, streams.

A graph runs its messages when it is run, and what the traced code around them changes of such state may take effect
earlier or later than that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend.fixes.site import Refused, Site
from graphmend.fixes.wrappers import wrappers
from graphmend.flow.frames import frames_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName, ObjectMethod, Target
from graphmend.model.index import External
from graphmend.model.module import Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.obligations import Obligation
from graphmend.signatures.behaviour import behaviour


class _Changes:
    """The places in traced functions that change such state, each with whether it concerns how values are formatted."""

    def __init__(self, program: Program) -> None:
        self.program = program
        tables = behaviour()
        changing = tables.formatting | tables.emission
        self.last_words = {name.rpartition(".")[2] for name in changing}
        self._named: dict[Module, bool] = {}
        self._wrappers: dict[Function, tuple[tuple[int, str], ...]] = {}
        self.places = [
            (function, node, bool(names & tables.formatting))
            for function in program.traced()
            if self._is_named(function.module) or not changing.isdisjoint(map(_name, program.noted.get(function, ())))
            for node in self._candidates(function)
            if (names := self._names(node, function) & changing)
        ]

    def wrappers(self, function: Function) -> tuple[tuple[int, str], ...]:
        """What is wrapped around a function, not understood, and in a file that has one of the words."""
        if function not in self._wrappers:
            found = wrappers(function, self.program) if self._is_named(function.module) else ()
            self._wrappers[function] = tuple(found)
        return self._wrappers[function]

    def _is_named(self, module: Module) -> bool:
        """Whether a file has one of the words; what is called under another name is noted with the call."""
        known = self._named.get(module)
        if known is None:
            known = self._named[module] = any(word in module.source.text for word in self.last_words)
        return known

    def _candidates(self, function: Function) -> Iterator[ast.expr]:
        """What a function calls or assigns under a name that may be one of those looked for."""
        for node in walk_scope(function.body):
            if isinstance(node, ast.Call):
                match node.func:
                    case ast.Attribute(attr=word) | ast.Name(id=word) if word in self.last_words:
                        yield node.func
                    case ast.Name(id=name) if name not in function.locals:
                        yield node.func  # imported under another name
            elif isinstance(node, ast.Attribute) and node.attr in self.last_words:
                if not isinstance(node.ctx, ast.Load):
                    yield node

    def _names(self, node: ast.expr, function: Function) -> set[str]:
        """The dotted names of what an expression stands for; of a method or an attribute with its class."""
        found = self.program.index.dotted(function.module, node)
        names = {definition.name for definition in found if isinstance(definition, External)}
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in self.last_words):
            # Also by what a local name stands for; to ask for that takes time.
            facts = frames_of(self.program).frame(function).facts
            names |= {target.name for target in facts.value(node).targets if isinstance(target, ExternalName)}
            if isinstance(node, ast.Attribute):
                owners = facts.value(node.value).classes
                names |= {f"{owner.name}.{node.attr}" for owner in owners if isinstance(owner, ExternalName)}
        return names


def _name(called: Target) -> str:
    return f"{called.owner}.{called.name}" if isinstance(called, ObjectMethod) else getattr(called, "name", "")


def check_surroundings(site: Site, *, emits: bool) -> None:
    """Refuse a message in a region that changes how it is formatted or where it goes, or is wrapped in what may.

    Args:
        site: the place of the message.
        emits: whether it prints, logs or warns, and does not only raise.

    Raises:
        Refused: some function of the region does or is.
    """
    changes = site.program.derived(_Changes)
    around = _callers(site.program, site.function)
    for function in around if emits else ():
        for line, what in changes.wrappers(function):
            reason = f"{what} may change whether and where the message appears"
            raise Refused(Obligation.FRESH_STATE, reason, line if function.module is site.module else None)
    for function, node, formatting in changes.places:
        if (formatting or emits) and around & _callers(site.program, function):
            own = function is site.function
            where = "" if own else f" (`{function.qualname}`, {function.module.path}:{node.lineno})"
            effect = "how the message looks" if formatting else "whether and where the message appears"
            reason = f"`{brief(node)}`{where} changes {effect}, and the graph may run it under other settings"
            raise Refused(Obligation.FRESH_STATE, reason, node.lineno if own else None)


def _callers(program: Program, function: Function) -> set[Function]:
    """A function with all that call it, directly or not, inside regions."""
    found: set[Function] = set()
    pending = [function]
    while pending:
        each = pending.pop()
        if each not in found:
            found.add(each)
            state = program.states.get(each)
            pending += [caller for caller in (state.callers if state is not None else ()) if not program.cut(caller)]
    return found
