"""What was changed before an exception: a raise that becomes an operator of the graph takes such changes along."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NoReturn

from graphmend.fixes.changes import Change, changes_of
from graphmend.fixes.route import Place, places
from graphmend.fixes.site import Refused, Site
from graphmend.flow.cfg import Block, Case, Catch, Enter, Item, Iterate, Test
from graphmend.flow.frames import frames_of
from graphmend.model.module import Function
from graphmend.model.tree import walk
from graphmend.obligations import Obligation


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
