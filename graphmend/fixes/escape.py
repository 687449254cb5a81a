"""What happens to an exception on its way out of the region: who could catch it, and what was changed before it.

A raise that becomes an operator of the graph leaves the whole graph. In the known frames of the region, from the
function of the site through all its traced callers, nothing may catch it, and no visible state may change before it.
"""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from graphmend.fixes.changes import Change, callees_of, changes_of
from graphmend.fixes.site import Refused, Site
from graphmend.flow.cfg import Block, Case, Catch, Enter, Item, Iterate, Test
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import Bound, ExternalName, Kind
from graphmend.model.index import External
from graphmend.model.module import Class, Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.signatures.behaviour import behaviour

_CALLING = ("__call__", "_call_impl", "_wrapped_call_impl")
_ACCESSORS = frozenset({"setter", "getter", "deleter"})
_BROAD = frozenset({"Exception", "BaseException"})
_WITH = (ast.With, ast.AsyncWith)
_SUPPRESSORS = frozenset({"contextlib.suppress"})


@dataclass(frozen=True)
class Place:
    """A node of one function's own code through which the exception passes.

    Args:
        frame: the function.
        node: the statement or call; ``None`` if it is not known where in the function.
        unknown: whether it is a call of which it is not known what it runs.
    """

    frame: Frame
    node: ast.AST | None
    unknown: bool = False


def places(site: Site, concerns: Callable[[Function], bool] = lambda _: True) -> Iterator[Place]:
    """The places through which an exception of a site passes, from the site outwards.

    Args:
        site: where the exception is raised.
        concerns: which functions are of interest; the others are passed through, without a closer look.
    """
    frames = frames_of(site.program)
    yield Place(frames.frame(site.function, site.facts), site.statement)
    seen: set[Function] = set()
    pending = [site.function]
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        state = site.program.states.get(function)
        for caller, lines in state.callers.items() if state is not None else ():
            if site.program.cut(caller):
                continue
            pending.append(caller)
            if concerns(caller):
                frame = frames.frame(caller)
                for node in _calls(function, frame, lines, site):
                    yield Place(frame, node)


def _calls(function: Function, frame: Frame, lines: set[int], site: Site) -> Iterator[ast.AST | None]:
    """The nodes in some lines of a caller that call a function."""
    for line in sorted(lines):
        at = frame.calls.get(line, [])
        calls = [node for node in at if isinstance(node, ast.Call)]
        exact: list[ast.AST | None] = list(calls)
        if len(calls) > 1:
            exact = [node for node in calls if function in callees_of(node, frame, site.program)]
        yield from exact or calls or [node for node in at if isinstance(node, ast.Attribute)] or [None]


class _Guarded:
    """Remembers which functions hold a ``try`` or a ``with``, or are decorated."""

    def __init__(self, _program: Program) -> None:
        self._known: dict[Function, bool] = {}

    def __call__(self, function: Function) -> bool:
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = bool(function.decorators) or any(_guarding(function))
        return found


def _guarding(function: Function) -> Iterator[ast.stmt]:
    """The ``try`` and ``with`` statements of a function's own code."""
    lines = function.module.guarding_lines
    last = function.node.end_lineno
    if bisect_left(lines, function.line) < (len(lines) if last is None else bisect_right(lines, last)):
        for node in walk_scope(function.body):
            if isinstance(node, ast.stmt) and (hasattr(node, "handlers") or isinstance(node, _WITH)):
                yield node


class _Open:
    """The calls inside a ``try`` or a ``with`` that may run any module that somebody has handed in."""

    def __init__(self, program: Program) -> None:
        self.places: list[Place] = []
        for function in program.traced():
            inside = [statement for node in _guarding(function) for statement in getattr(node, "body", ())]
            if not inside:
                continue
            calls = {id(node): node for node in walk_scope(inside) if isinstance(node, ast.Call)}
            frame = frames_of(program).frame(function)
            self.places += [Place(frame, call, unknown=True) for call in calls.values() if _is_open(call.func, frame)]


def _is_open(callee: ast.expr, frame: Frame) -> bool:
    """Whether it is not known what is called, and it may be a module."""
    value = frame.facts.value
    if isinstance(callee, ast.Name) and callee.id not in frame.function.locals:
        return False  # what a decorator wraps is known where it is applied
    if isinstance(callee, ast.Attribute) and not value(callee.value).only(Kind.OBJECT):
        return False  # a method of something, rather than something that a module holds
    return value(callee).may(Kind.UNKNOWN | Kind.STATIC)  # what a constructor is given counts as static, whatever it is


# -------------------------------------------------------------------- handlers


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
        return
    known = list(places(site, site.program.derived(_Guarded, lasting=False)))
    if raised:
        # Of what calls the module without being seen to, what stands beside the known frames is the likeliest.
        files = {place.frame.function.module for place in known}
        found = site.program.derived(_Open).places
        known += [each for each in found if each.frame.function.module in files]
    known += [place for each in known for place in _around_calls(each, site)] if raised else []
    for place in known:
        if place.unknown and place.frame.function is site.function:
            continue
        for line, what, caught in _guards(place, site, raised):
            if caught:
                where = "" if place.frame.function is site.function else f" of `{place.frame.function.qualname}`"
                where += f" (line {line})"
                where += f", around `{brief(place.node)}`, which may run any module," if place.unknown else ""
                reason = f"{what}{where} may act on the exception, which would leave the whole graph"
                if not raised:
                    reason = f"{risks[0][1]}, and {reason}"
                own = place.frame.function.module is site.module
                raise Refused(Obligation.NO_CATCHING_HANDLER, reason, line if own else None)


def _guards(place: Place, site: Site, raised: Sequence[ast.expr]) -> Iterator[tuple[int, str, bool]]:
    """What surrounds a place and could see the exception: line, description, and whether it could catch it."""
    module = place.frame.function.module
    if raised:
        for line, what in _wrappers(place.frame.function, site.program):
            yield line, what, True
    for parent, inside in _around(place):
        if isinstance(parent, _WITH):
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


def _wrappers(function: Function, program: Program) -> Iterator[tuple[int, str]]:
    """What is wrapped around a function and could see its exceptions: contexts of torch, and what is not understood."""
    for decorator in function.decorators:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = program.index.dotted(function.module, called)
        if found and all(isinstance(each, External) for each in found):
            if any(isinstance(each, External) and each.name in behaviour().contexts for each in found):
                yield decorator.lineno, f"`@{brief(decorator)}`"
        elif not isinstance(called, ast.Attribute) or called.attr not in _ACCESSORS:
            applied = program.bindings.value_of(decorator, function.module)
            if not any(isinstance(each, (Function, Bound)) for each in applied.targets):
                yield decorator.lineno, f"`@{brief(decorator)}`, which is not understood,"
    owner = function.owner
    if owner is None:
        return
    if function.name in owner.values:
        yield function.line, f"what `{owner.name}` makes of `{function.name}`"
    for decorator in owner.node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found = program.index.dotted(owner.module, called)
        if any(not isinstance(each, External) and _may_wrap(each, owner) for each in found):
            yield decorator.lineno, f"`@{brief(decorator)}` of the class"
    for keyword in owner.node.keywords:
        found = program.index.dotted(owner.module, keyword.value)
        if not found or not all(isinstance(each, External) for each in found):  # `abc.ABCMeta` wraps nothing
            yield keyword.value.lineno, f"the {keyword.arg} of `{owner.name}`"


def _may_wrap(decorator: object, owner: Class) -> bool:
    """Whether a decorator of a class may put something around its methods."""
    if not isinstance(decorator, Function):
        return True
    for node in walk(decorator.node):
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.Name) and node.id in ("setattr", "vars")):
            return True
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and node.attr in owner.methods:
            return True
    return False


class _Calling:
    """The methods of module classes inside which ``forward`` runs, where a class has its own."""

    def __init__(self, program: Program) -> None:
        self.methods = [
            (cls, cls.methods[name])
            for module in program.index.modules().values()
            for cls in module.classes
            for name in _CALLING
            if name in cls.methods and program.is_module(cls)
        ]


def _around_calls(place: Place, site: Site) -> Iterator[Place]:
    """The places in methods inside which a ``forward`` runs."""
    function, program = place.frame.function, site.program
    owner = function.owner
    if owner is None or function.name != "forward":
        return
    for cls, method in program.derived(_Calling).methods:
        if cls in program.index.mro(owner) or owner in program.index.mro(cls):
            if program.state(method).passes == 0:
                program.look_into(method)
            yield Place(frames_of(program).frame(method), None)


def _around(place: Place) -> Iterator[tuple[ast.AST, str]]:
    """The ``try`` and ``with`` statements around a place, with the part of a ``try`` that holds it."""
    if place.node is None:
        for node in _guarding(place.frame.function):
            yield node, "body" if hasattr(node, "handlers") else ""
        return
    child: ast.AST = place.node
    parent = place.frame.parents.get(id(child))
    while parent is not None:
        if isinstance(parent, _WITH) and child in parent.body:
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


def _builtin(definition: object) -> type[BaseException] | None:
    if isinstance(definition, External) and definition.name.startswith("builtins."):
        found = getattr(builtins, definition.name.rpartition(".")[2], None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return None


# -------------------------------------------------------------------- earlier changes


def check_earlier_changes(site: Site, risks: Sequence[tuple[ast.AST, str]] = ()) -> None:
    """Refuse an exception before which a known frame of the region changes something that outlives it.

    Args:
        site: where it is raised.
        risks: for a message, what in it may fail.

    Raises:
        Refused: such a change was found.
    """
    exception = "the exception" if not risks else f"the message, in which {risks[0][1]},"
    for place in places(site):
        function = place.frame.function
        where = "the function" if function is site.function else f"`{function.qualname}`"
        for change in (*_before(place, site), *_around_forward(place, site)):
            lost = f"(line {change.line}) before {exception} and compiled code would lose that change"
            _refuse_change(site, function, change, f"{where} {change.what} {lost}")
        for change in changes_of(site.program).of(function.body, place.frame):
            if change.memory:
                # Nothing orders an operator that raises against a write that does not depend on it (Inductor fuses the
                # write with what the condition reads).
                moved = f"compiled code may do that before {exception}"
                _refuse_change(site, function, change, f"{where} {change.what} (line {change.line}); {moved}")


def _refuse_change(site: Site, function: Function, change: Change, reason: str) -> NoReturn:
    raise Refused(Obligation.NO_EARLIER_MUTATION, reason, change.line if function.module is site.module else None)


def _around_forward(place: Place, site: Site) -> Iterator[Change]:
    """What a class's own ``__call__`` changes, inside which its ``forward`` runs."""
    function = place.frame.function
    around = site.program.index.method(function.owner, "__call__") if function.owner is not None else None
    if around is not None and function.name == "forward":
        if site.program.state(around).passes == 0:
            site.program.look_into(around)
        yield from changes_of(site.program).of(around.body, frames_of(site.program).frame(around))


def _before(place: Place, site: Site) -> Iterator[Change]:
    """What a function may change before it gets to a place in it."""
    frame, changes = place.frame, changes_of(site.program)
    body = frame.function.body
    statement = frame.statement(place.node) if place.node is not None else None
    position = frame.names.position(statement) if statement is not None else None
    if position is None or statement is None:
        yield from changes.of(body, frame)
        return
    graph = frame.facts.graph
    earlier = _ancestors(graph.blocks, graph.blocks[position[0]])
    number = position[0]
    roots: list[ast.AST] = []
    for block in graph.blocks:
        items = block.items if block.number in earlier else block.items[: position[1]] if block.number == number else []
        for item in items:
            roots += _roots(item)
    if place.node is statement and isinstance(statement, (ast.If, ast.Assert)):
        roots.append(statement.test)
    # Of its own statement, unless a loop comes back to it, a call sees what is evaluated before the end.
    last = [] if number in earlier or place.node is statement else _roots(graph.blocks[number].items[position[1]])
    inside = {id(node) for root in last for node in walk(root)}
    for change in changes.of([*roots, *last], frame):
        if id(change.node) not in inside or not (change.node is place.node or _stores(change.node)):
            yield change


def _stores(node: ast.AST | None) -> bool:
    """Whether a node is what a statement does in the end: it stores its value."""
    return isinstance(node, ast.AugAssign) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _ancestors(blocks: Sequence[Block], start: Block) -> set[int]:
    """The numbers of the blocks from which ``start`` can be reached by at least one step."""
    predecessors: dict[int, list[int]] = {}
    for block in blocks:
        for successor in block.successors():
            predecessors.setdefault(successor.number, []).append(block.number)
    found: set[int] = set()
    pending = [start.number]
    while pending:
        for number in predecessors.get(pending.pop(), ()):
            if number not in found:
                found.add(number)
                pending.append(number)
    return found


def _roots(item: Item) -> list[ast.AST]:
    match item:
        case Test(expression=expression):
            return [expression]
        case Iterate(statement=loop):
            return [loop.target]
        case Enter(item=entered):
            return [entered.context_expr, *([entered.optional_vars] if entered.optional_vars else [])]
        case Catch() | Case():
            return []
    return [item]
