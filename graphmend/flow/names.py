"""The names of a function on its control-flow graph: reads, writes, definitions, what is bound, what is live."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from graphmend.flow.cfg import Block, Case, Catch, Enter, Graph, Item, Iterate, Test
from graphmend.model.module import Function
from graphmend.model.scopes import local_names
from graphmend.model.tree import children, walk

Position = tuple[int, int]
"""A block's number and the index of an item in it."""


@dataclass
class Access:
    """The names of the function's own scope that one step touches."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    deletes: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    """Names that a nested function, lambda or generator reads, perhaps later; they are in ``reads`` too."""


def access(item: Item) -> Access:
    """What one item of a block reads and writes."""
    found = Access()
    match item:
        case Test(expression=expression):
            _visit([expression], found)
        case Iterate(statement=loop):
            _visit([loop.target], found)
        case Enter(item=entered):
            _visit([entered.context_expr, *([entered.optional_vars] if entered.optional_vars else [])], found)
        case Catch(handler=handler):
            _visit([handler.type] if handler.type else [], found)
            if handler.name:
                found.writes.add(handler.name)
        case Case(case=case):
            _visit([case.pattern], found)
        case _:
            _visit([item], found)
    return found


def accessed(roots: Iterable[ast.AST]) -> Access:
    """What whole statements or expressions, with the statements inside them, read and write."""
    found = Access()
    _visit(roots, found)
    return found


def free_reads(roots: Iterable[ast.AST]) -> set[str]:
    """The names of the surrounding scope that some nodes read, those read by nested scopes included."""
    return accessed(roots).reads


def _visit(roots: Iterable[ast.AST], found: Access) -> None:
    for node in roots:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                found.reads.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.writes.add(name)
            case ast.Name(id=name):
                found.deletes.add(name)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                _visit([value], found)
                found.reads.add(name)
                found.writes.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                _function(node, found)
            case ast.ClassDef():
                _visit([*node.decorator_list, *node.bases, *node.keywords], found)
                inner = accessed(node.body)
                _capture(inner.reads, found)
                found.writes.add(node.name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                _comprehension(node, found)
            case ast.Import() | ast.ImportFrom():
                found.writes.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.writes.add(name)
                _visit(children(node), found)
            case ast.ExceptHandler(name=str(name)):
                found.writes.add(name)
                _visit(children(node), found)
            case _:
                _visit(children(node), found)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, found: Access) -> None:
    _visit([*node.args.defaults, *(default for default in node.args.kw_defaults if default)], found)
    if isinstance(node, ast.Lambda):
        body: list[ast.AST] = [node.body]
    else:
        body = list(node.body)
        _visit(node.decorator_list, found)
        found.writes.add(node.name)
    outer = {name for child in walk(node) if isinstance(child, ast.Nonlocal) for name in child.names}
    inner = accessed(body)
    _capture((inner.reads - local_names(node)) | outer, found)


def _comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, found: Access) -> None:
    inner, bound = Access(), Access()
    for position, generator in enumerate(node.generators):
        # Only the first iterable is evaluated in the surrounding scope; a walrus inside binds there as well.
        _visit([generator.iter], inner if position else found)
        _visit(generator.ifs, inner)
        _visit([generator.target], bound)
    _visit([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)
    reads = (inner.reads | bound.reads) - bound.writes
    found.reads |= reads
    found.writes |= inner.writes
    found.captured |= inner.captured - bound.writes
    if isinstance(node, ast.GeneratorExp):
        found.captured |= reads


def _capture(names: set[str], found: Access) -> None:
    found.reads |= names
    found.captured |= names


class Names:
    """Reads, writes, certain bindings, definitions and liveness of the names of one function.

    Args:
        function: the function.
        graph: its control-flow graph.
    """

    def __init__(self, function: Function, graph: Graph) -> None:
        self.function = function
        self.graph = graph
        self._accesses = [[access(item) for item in block.items] for block in graph.blocks]
        self._positions: dict[int, Position] = {}
        self._last: tuple[ast.stmt, frozenset[int]] | None = None
        for block in graph.blocks:
            for index, item in enumerate(block.items):
                for node in _anchors(item):
                    self._positions.setdefault(id(node), (block.number, index))

    def position(self, node: ast.AST) -> Position | None:
        """Where a statement begins: for a loop or ``match`` its iterable or subject, for an ``if`` its test."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            return self._positions.get(id(node.iter))
        if isinstance(node, ast.Match):
            return self._positions.get(id(node.subject))
        return self._positions.get(id(node))

    @cached_property
    def captured(self) -> frozenset[str]:
        """Names that code which may run later, nested functions and generators, reads."""
        return frozenset(name for block in self._accesses for each in block for name in each.captured)

    @cached_property
    def declared_outside(self) -> frozenset[str]:
        """Names that the function declares ``global`` or ``nonlocal``."""
        nodes = (node for statement in self.function.body for node in walk(statement))
        return frozenset(name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names)

    # ---------------------------------------------------------------- certain bindings

    @cached_property
    def _bound_at_entry(self) -> list[frozenset[str] | None]:
        states: list[frozenset[str] | None] = [None] * len(self.graph.blocks)
        states[self.graph.entry.number] = frozenset(parameter.arg for parameter in self.function.parameters)
        pending = [self.graph.entry.number]
        while pending:
            number = pending.pop()
            before = states[number]
            assert before is not None
            block = self.graph.blocks[number]
            deleted = {name for each in self._accesses[number] for name in each.deletes}
            after = self._bound_through(number, len(block.items), before)
            for successor, state in (
                *((edge.target, after) for edge in block.edges),
                # An exception may leave the block before any of its items has bound a name.
                *((handler, before - deleted) for handler in block.exceptional),
            ):
                known = states[successor.number]
                merged = state if known is None else known & state
                if merged != known:
                    states[successor.number] = merged
                    pending.append(successor.number)
        return states

    def _bound_through(self, number: int, end: int, bound: frozenset[str]) -> frozenset[str]:
        items = self.graph.blocks[number].items
        for item, each in zip(items[:end], self._accesses[number]):
            # The name of a handler is unbound again where the handler ends, which the graph does not show.
            certain = set() if isinstance(item, Catch) else each.writes
            bound = (bound | certain) - each.deletes
        return bound

    def bound_before(self, node: ast.AST) -> frozenset[str]:
        """The local names that are certainly bound when a statement begins (none if the statement is not reached)."""
        position = self.position(node)
        state = self._bound_at_entry[position[0]] if position is not None else None
        return (
            self._bound_through(position[0], position[1], state)
            if position is not None and state is not None
            else frozenset()
        )

    def is_bound(self, name: str, node: ast.AST) -> bool:
        """Whether reading ``name`` where a statement begins cannot fail, or not differently in a nested function."""
        return name not in self.function.locals or name in self.declared_outside or name in self.bound_before(node)

    # ---------------------------------------------------------------- definitions

    @cached_property
    def _predecessors(self) -> list[list[tuple[Block, bool]]]:
        found: list[list[tuple[Block, bool]]] = [[] for _ in self.graph.blocks]
        for block in self.graph.blocks:
            for edge in block.edges:
                found[edge.target.number].append((block, False))
            for handler in block.exceptional:
                found[handler.number].append((block, True))
        return found

    def definitions(self, name: str, node: ast.AST) -> list[Item | None] | None:
        """The items that may have bound ``name`` when a statement begins; ``None`` in the list is the function's entry.

        ``None`` instead of a list means that this is not known.
        """
        position = self.position(node)
        if position is None or name in self.declared_outside:
            return None
        found: list[Item | None] = []
        seen: set[int] = set()
        stack: list[tuple[int, int, bool]] = [(*position, False)]
        while stack:
            number, end, exceptional = stack.pop()
            items = self.graph.blocks[number].items
            stopped = False
            for index in reversed(range(end)):
                if name in self._accesses[number][index].writes | self._accesses[number][index].deletes:
                    if items[index] not in found:
                        found.append(items[index])
                    if not exceptional:
                        stopped = True
                        break
            if stopped:
                continue
            if number == self.graph.entry.number and None not in found:
                found.append(None)
            for block, raised in self._predecessors[number]:
                if block.number not in seen:
                    seen.add(block.number)
                    stack.append((block.number, len(block.items), raised))
        return found

    # ---------------------------------------------------------------- liveness

    def read_after(self, name: str, statement: ast.stmt) -> bool:
        """Whether the value that ``name`` has when ``statement`` ends may be read."""
        if name in self.captured or name in self.declared_outside:
            return True
        start = self.position(statement)
        if start is None:
            return True
        inside = self._nodes(statement)
        # Once the statement was left, coming back to it (in a loop) counts like any other code.
        seen: set[tuple[int, int, bool]] = set()
        stack: list[tuple[int, int, bool]] = [(*start, False)]
        while stack:
            state = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            number, index, left = state
            block = self.graph.blocks[number]
            stopped = False
            for at in range(index, len(block.items)):
                left = left or not self._belongs(block.items[at], inside)
                if not left:
                    continue
                each = self._accesses[number][at]
                if name in each.reads:
                    return True
                if name in each.writes | each.deletes:
                    stopped = True
                    break
            stack += [(handler.number, 0, left) for handler in block.exceptional]
            if not stopped:
                stack += [(edge.target.number, 0, left) for edge in block.edges]
        return False

    def _nodes(self, statement: ast.stmt) -> frozenset[int]:
        """The identities of the nodes of a statement."""
        if self._last is None or self._last[0] is not statement:
            self._last = (statement, frozenset(id(node) for node in walk(statement)))
        return self._last[1]

    @staticmethod
    def _belongs(item: Item, inside: frozenset[int]) -> bool:
        return any(id(node) in inside for node in _anchors(item))


def _anchors(item: Item) -> Iterator[ast.AST]:
    """The nodes by which an item is found: the statement, or the expression of one that the graph made up."""
    match item:
        case Test(statement=statement):
            yield statement
        case Iterate(statement=statement):
            yield statement.target
        case Enter(item=entered, statement=statement):
            yield statement
            yield entered
        case Catch(handler=handler):
            yield handler
        case Case(case=case):
            yield case.pattern
        case ast.Expr(value=value):
            yield item
            yield value
        case _:
            assert isinstance(item, ast.stmt)
            yield item
