"""The control-flow graph of one function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union


@dataclass(frozen=True, slots=True)
class Test:
    """The condition of an ``if``, ``while`` or ``assert``; its block has a true and a false edge."""

    expression: ast.expr
    statement: ast.stmt


@dataclass(frozen=True, slots=True)
class Iterate:
    """One step of a ``for`` loop: binds the target to an element of the iterable."""

    statement: ast.For | ast.AsyncFor


@dataclass(frozen=True, slots=True)
class Enter:
    """Entering one item of a ``with`` statement."""

    item: ast.withitem
    statement: ast.With | ast.AsyncWith


@dataclass(frozen=True, slots=True)
class Catch:
    """Entering an exception handler, which binds its name."""

    handler: ast.ExceptHandler


@dataclass(frozen=True, slots=True)
class Case:
    """A ``match`` arm: binds the names of its pattern."""

    case: ast.match_case
    statement: ast.Match


Item = Union[ast.stmt, Test, Iterate, Enter, Catch, Case]


@dataclass(slots=True, eq=False)
class Edge:
    """A possible step from one block to another; ``sense`` is the outcome of the source's last test, if it has one."""

    target: Block
    sense: bool | None = None


@dataclass(slots=True, eq=False)
class Block:
    """Items that run one after the other."""

    number: int
    items: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    exceptional: list[Block] = field(default_factory=list)
    """Where an exception of any item may continue inside the function."""

    @property
    def test(self) -> ast.expr | None:
        """The condition that decides between the edges."""
        last = self.items[-1] if self.items else None
        return last.expression if isinstance(last, Test) else None

    def successors(self) -> Iterator[Block]:
        """All blocks that may come next, by a step or an exception."""
        yield from (edge.target for edge in self.edges)
        yield from self.exceptional


@dataclass(slots=True, eq=False)
class Graph:
    """Blocks in a forward order (a block's number is larger than those of the blocks before it, loops aside)."""

    blocks: list[Block]
    entry: Block
    exit: Block


@dataclass(slots=True)
class _Loop:
    head: Block
    after: Block


class _Builder:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.exit = Block(-1)
        self.loops: list[_Loop] = []
        self.handlers: list[list[Block]] = []
        self.entry = self.current = self.new()

    def new(self) -> Block:
        block = Block(len(self.blocks), exceptional=list(self.handlers[-1]) if self.handlers else [])
        self.blocks.append(block)
        return block

    def link(self, source: Block, target: Block, sense: bool | None = None) -> None:
        source.edges.append(Edge(target, sense))

    def start(self, *sources: Block) -> Block:
        block = self.new()
        for source in sources:
            self.link(source, block)
        self.current = block
        return block

    def jump(self, target: Block) -> None:
        self.link(self.current, target)
        self.current = self.new()  # what follows a jump is unreachable

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.If():
                self.branch(statement, statement.test, statement.body, statement.orelse)
            case ast.While():
                self.while_loop(statement)
            case ast.For() | ast.AsyncFor():
                self.for_loop(statement)
            case ast.With() | ast.AsyncWith():
                self.current.items += [Enter(item, statement) for item in statement.items]
                self.body(statement.body)
            case ast.Try():
                self.try_block(statement)
            case ast.Match():
                self.match(statement)
            case ast.Assert():
                self.current.items.append(Test(statement.test, statement))
                failed, after = self.new(), self.new()
                self.link(self.current, failed, False)
                self.link(self.current, after, True)
                if statement.msg is not None:
                    failed.items.append(ast.copy_location(ast.Expr(statement.msg), statement.msg))
                self.current = after
            case ast.Return() | ast.Raise():
                self.current.items.append(statement)
                if isinstance(statement, ast.Raise) and self.current.exceptional:
                    self.current = self.new()
                else:
                    self.jump(self.exit)
            case ast.Break() if self.loops:
                self.jump(self.loops[-1].after)
            case ast.Continue() if self.loops:
                self.jump(self.loops[-1].head)
            case _:
                if type(statement).__name__ == "TryStar":
                    self.try_block(statement)  # type: ignore[arg-type]
                else:
                    self.current.items.append(statement)

    def branch(self, statement: ast.stmt, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        self.current.items.append(Test(test, statement))
        head = self.current
        taken = self.new()
        self.link(head, taken, True)
        self.current = taken
        self.body(body)
        ends = [self.current]
        other = self.new()
        self.link(head, other, False)
        self.current = other
        self.body(orelse)
        ends.append(self.current)
        self.start(*ends)

    def while_loop(self, statement: ast.While) -> None:
        head = self.start(self.current)
        head.items.append(Test(statement.test, statement))
        inside, orelse, after = self.new(), self.new(), self.new()
        self.link(head, inside, True)
        self.link(head, orelse, False)
        self.loop(head, inside, orelse, after, statement)

    def for_loop(self, statement: ast.For | ast.AsyncFor) -> None:
        self.current.items.append(ast.copy_location(ast.Expr(statement.iter), statement.iter))
        head = self.start(self.current)
        inside, orelse, after = self.new(), self.new(), self.new()
        inside.items.append(Iterate(statement))
        self.link(head, inside)
        self.link(head, orelse)
        self.loop(head, inside, orelse, after, statement)

    def loop(
        self, head: Block, inside: Block, orelse: Block, after: Block, statement: ast.While | ast.For | ast.AsyncFor
    ) -> None:
        self.loops.append(_Loop(head, after))
        self.current = inside
        self.body(statement.body)
        self.link(self.current, head)
        self.loops.pop()
        self.current = orelse
        self.body(statement.orelse)
        self.link(self.current, after)
        self.current = after

    def try_block(self, statement: ast.Try) -> None:
        handlers = [self.new() for _ in statement.handlers]
        final = self.new() if statement.finalbody else None
        after = self.new()
        ends: list[Block] = []
        self.handlers.append([*handlers, *([final] if final else [])])
        inside = self.new()
        self.link(self.current, inside)
        self.current = inside
        self.body(statement.body)
        self.handlers.pop()
        self.start(self.current)
        self.body(statement.orelse)
        ends.append(self.current)
        for block, handler in zip(handlers, statement.handlers):
            block.items.append(Catch(handler))
            block.exceptional = [*block.exceptional, *([final] if final else [])]
            self.current = block
            self.body(handler.body)
            ends.append(self.current)
        for end in ends:
            self.link(end, final or after)
        if final is not None:
            self.current = final
            self.body(statement.finalbody)
            self.link(self.current, after)
        self.current = after

    def match(self, statement: ast.Match) -> None:
        self.current.items.append(ast.copy_location(ast.Expr(statement.subject), statement.subject))
        head = self.current
        ends = [head]
        for case in statement.cases:
            self.start(head).items.append(Case(case, statement))
            if case.guard is not None:
                self.current.items.append(ast.copy_location(ast.Expr(case.guard), case.guard))
            self.body(case.body)
            ends.append(self.current)
        self.start(*ends)


def build(body: Sequence[ast.stmt]) -> Graph:
    """The control-flow graph of a function body.

    An exception inside ``try`` may reach each of its handlers and its ``finally``; other exceptions leave the
    function. ``finally`` is one block, passed on the way on and after an exception alike.
    """
    builder = _Builder()
    builder.body(body)
    builder.link(builder.current, builder.exit)
    builder.exit.number = len(builder.blocks)
    builder.blocks.append(builder.exit)
    return Graph(builder.blocks, builder.entry, builder.exit)
