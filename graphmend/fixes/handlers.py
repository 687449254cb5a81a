"""Who could catch an exception on its way out of the region: handlers, contexts, and wrappers around functions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from graphmend.fixes.replaced import Replacements
from graphmend.fixes.route import WITH, Guarded, Open, Place, around_calls, guarding, places
from graphmend.fixes.site import Refused, Site
from graphmend.fixes.wrappers import contexts, wrappers
from graphmend.flow.frames import frames_of
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName
from graphmend.model.index import External
from graphmend.model.module import Class, Module
from graphmend.obligations import Obligation

_PROTOCOLS = frozenset({"AttributeError", "StopIteration", "StopAsyncIteration", "GeneratorExit"})
"""Exceptions that Python itself catches, or makes others of, where it reads attributes and iterates."""
_BROAD = frozenset({"Exception", "BaseException"})
_OF_MESSAGES = (OSError, UnicodeError, Warning)
"""What a message fails with: a stream that is closed or cannot encode the text, a warning that a filter raises."""
_SUPPRESSORS = frozenset({"contextlib.suppress"})


def check_handlers(site: Site, raised: Sequence[ast.expr], risks: Sequence[tuple[ast.AST, str]]) -> None:
    """Refuse a raise, or text that may fail, inside something that could catch it.

    Args:
        site: the place.
        raised: the exception classes that the moved text names.
        risks: what else in it may fail.

    Raises:
        Refused: a known frame of the region may catch an exception of the text.
    """
    if not raised and not risks:
        _check_emission(site)
        return
    for each in raised:
        for definition in site.program.index.dotted(site.module, each):
            if any(base is not None and base.__name__ in _PROTOCOLS for base in _bases(definition, site)):
                reason = f"Python itself may act on `{brief(each)}`, in a read of an attribute or an iteration"
                raise Refused(Obligation.NO_CATCHING_HANDLER, reason, each.lineno)
    known = list(places(site, site.program.derived(Guarded, lasting=False)))
    if raised:
        # Of what calls the module without being seen to, what stands beside the known frames is the likeliest.
        files = {place.frame.function.module for place in known}
        found = site.program.derived(Open).places
        known += [each for each in found if each.frame.function.module in files]
    known += [place for each in known for place in around_calls(each, site)] if raised else []
    for place in known:
        if place.unknown and place.frame.function is site.function:
            continue
        for line, what, caught in _guards(place, site, raised):
            if raised and not caught and place.frame.function is site.function:
                # In other regions, without the handler of a caller, the fix is worth something.
                reason = f"{what} stands around the exception, and the runtime leaves it to Python there"
                raise Refused(Obligation.NO_CATCHING_HANDLER, reason, line)
            if caught:
                where = "" if place.frame.function is site.function else f" of `{place.frame.function.qualname}`"
                where += f" (line {line})"
                where += f", around `{brief(place.node)}`, which may run any module," if place.unknown else ""
                reason = f"{what}{where} may act on the exception, which would leave the whole graph"
                if not raised:
                    reason = f"{risks[0][1]}, and {reason}"
                own = place.frame.function.module is site.module
                raise Refused(Obligation.NO_CATCHING_HANDLER, reason, line if own else None)


def _check_emission(site: Site) -> None:
    """Refuse a message around which its own function handles what a message fails with."""
    for parent, inside in _around(Place(frames_of(site.program).frame(site.function, site.facts), site.statement)):
        for handler in getattr(parent, "handlers", []) if inside == "body" else []:
            types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            for each in types:
                found = site.program.index.dotted(site.module, each) if each is not None else ()
                if any(map(_is_of_messages, found)):
                    reason = f"`except {brief(handler.type)}` may be there for a message that fails"
                    raise Refused(Obligation.NO_CATCHING_HANDLER, reason, handler.lineno)


def _is_of_messages(definition: object) -> bool:
    known = _builtin(definition)
    return known is not None and (issubclass(known, _OF_MESSAGES) or known is ValueError)


def _guards(place: Place, site: Site, raised: Sequence[ast.expr]) -> Iterator[tuple[int, str, bool]]:
    """What surrounds a place and could see the exception: line, description, and whether it could catch it."""
    module = place.frame.function.module
    if raised:
        function, program = place.frame.function, site.program
        for line, what in (*contexts(function, program), *wrappers(function, program)):
            yield line, what, True
        for line, what in program.derived(Replacements).by_name(function):
            yield line, f"{what}, which may replace `{function.name}`,", True
    for parent, inside in _around(place):
        if isinstance(parent, WITH):
            for item in parent.items:
                yield (
                    item.context_expr.lineno,
                    f"`with {brief(item.context_expr)}`",
                    _context_catches(item.context_expr, place, site, raised),
                )
        elif inside == "body":
            handlers: list[ast.ExceptHandler] = getattr(parent, "handlers", [])
            for handler in handlers:
                name = f"`except {brief(handler.type)}`" if handler.type is not None else "`except`"
                yield handler.lineno, name, _may_match(handler.type, module, site, raised)
        if inside and raised and getattr(parent, "finalbody", []):
            line = parent.finalbody[0].lineno  # type: ignore[attr-defined]
            yield line, "the `finally`", inside != "finalbody"
        if inside in ("handlers", "finalbody") and raised:
            yield getattr(parent, "lineno", 0), "the `try`, whose exception would be this one's context,", True


def _around(place: Place) -> Iterator[tuple[ast.AST, str]]:
    """The ``try`` and ``with`` statements around a place, with the part of a ``try`` that holds it."""
    if place.node is None:
        for node in guarding(place.frame.function):
            yield node, "body" if hasattr(node, "handlers") else ""
        return
    child: ast.AST = place.node
    parent = place.frame.parents.get(id(child))
    while parent is not None:
        if isinstance(parent, WITH) and child in parent.body:
            yield parent, ""
        elif hasattr(parent, "handlers"):
            parts = ("body", "handlers", "orelse", "finalbody")
            yield parent, next((part for part in parts if child in getattr(parent, part)), "")
        child, parent = parent, place.frame.parents.get(id(parent))


def _context_catches(node: ast.expr, place: Place, site: Site, raised: Sequence[ast.expr]) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    names = {target.name for target in place.frame.facts.value(called).targets if isinstance(target, ExternalName)}
    if names & _SUPPRESSORS:
        types = node.args if isinstance(node, ast.Call) else []
        return any(_may_match(each, place.frame.function.module, site, raised) for each in types)
    # A graph that raises does not leave the contexts of torch that it entered (measured with torch 2.13); another one
    # runs code of its own when the exception passes.
    return bool(raised) and names != {"contextlib.nullcontext"}


def _may_match(types: ast.expr | None, module: Module, site: Site, raised: Sequence[ast.expr]) -> bool:
    """Whether a handler for ``types`` may catch one of the exceptions (without any: whatever fails)."""
    if types is None or not raised:
        return True
    parts = types.elts if isinstance(types, ast.Tuple) else [types]
    index = site.program.index
    for part in parts:
        caught = index.dotted(module, part)
        for each in raised:
            for definition in index.dotted(site.module, each):
                if not caught or any(_is_caught(definition, handler, site) for handler in caught):
                    return True
    return False


def _is_caught(raised: object, handler: object, site: Site) -> bool:
    known = _builtin(handler)
    if known is not None and known.__name__ in _BROAD:
        return True
    if isinstance(raised, Class):
        chain = site.program.index.mro(raised)
        return any(
            base is handler or _is_caught(base, handler, site)
            for base in chain
            if base is not raised or base is handler
        )
    mine = _builtin(raised)
    if mine is not None:
        return known is None and not isinstance(handler, Class) or known is not None and issubclass(mine, known)
    # An exception class of a library: nothing is known of its bases.
    return not (isinstance(raised, External) and raised.name == "builtins.object")


def _bases(definition: object, site: Site) -> Iterator[type[BaseException] | None]:
    """The exceptions of Python that a class is or derives from."""
    chain = site.program.index.mro(definition) if isinstance(definition, Class) else (definition,)
    for base in chain:
        known = _builtin(base)
        yield from (each for each in (known.__mro__ if known is not None else ()) if issubclass(each, BaseException))


def _builtin(definition: object) -> type[BaseException] | None:
    if isinstance(definition, External) and definition.name.startswith("builtins."):
        found = getattr(builtins, definition.name.rpartition(".")[2], None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return None
