"""The two sides of a branch, brought into one shape: statements that run, and the values that come out.

A *choice* is a test with two sides; a side is an *arm* or, for ``elif`` and nested conditional expressions, another
choice. All arms of a choice give values for the same targets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from graphmend.fixes.site import Refused, Site
from graphmend.flow.aliasing import matching_part
from graphmend.flow.effects import IMPURE, effects_of
from graphmend.flow.frames import Frame
from graphmend.flow.names import accessed
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.obligations import Obligation


class Outcome(Enum):
    """What becomes of the chosen values."""

    VALUE = "value"
    """They are the value of the expression that the choice is."""
    ASSIGN = "assign"
    """They are assigned."""
    RETURN = "return"
    """They are returned."""
    CALL = "call"
    """They are an argument of a call that both sides end in."""


@dataclass(frozen=True)
class Arm:
    """One side of a branch.

    Args:
        statements: what the side runs, the statements that ``results`` are taken from included.
        results: for each target the expression that gives its value; ``None`` for the value that the target has at the
            end of the statements.
        folded: statements at the end that become part of the result instead of being run.
        anchor: the statement of the branch, for names that the arm leaves as they are.
    """

    statements: tuple[ast.stmt, ...]
    results: tuple[ast.expr | None, ...]
    folded: tuple[ast.stmt, ...]
    anchor: ast.stmt

    @property
    def kept(self) -> tuple[ast.stmt, ...]:
        """The statements that stay statements."""
        return self.statements[: len(self.statements) - len(self.folded)]

    @property
    def nodes(self) -> list[ast.AST]:
        """Everything that the arm evaluates."""
        return list(self.statements) or [result for result in self.results if result is not None]


@dataclass(frozen=True)
class Choice:
    """A test with two sides."""

    test: ast.expr
    true: Side
    false: Side

    def arms(self) -> Iterator[Arm]:
        """All arms, from first to last."""
        for side in (self.true, self.false):
            if isinstance(side, Arm):
                yield side
            else:
                yield from side.arms()

    def tests(self) -> Iterator[ast.expr]:
        """All tests, the outermost first."""
        yield self.test
        for side in (self.true, self.false):
            if isinstance(side, Choice):
                yield from side.tests()


Side = Arm | Choice


@dataclass(frozen=True)
class Target:
    """Where a chosen value goes: a name, or an attribute as written."""

    text: str
    name: str = ""
    attribute: ast.Attribute | None = None


@dataclass(frozen=True)
class Branch:
    """A branch of the source in its normal shape.

    Args:
        choice: the tests and arms.
        outcome: what becomes of the values.
        targets: for an assignment, where they go.
        call: for a common call, the first side's call.
        argument: for a common call, the argument of it that differs.
        first: the first statement of the source that the branch takes in, or the conditional expression.
        last: the last one.
        has_else: whether the source says what happens when the test is false.
    """

    choice: Choice
    outcome: Outcome
    targets: tuple[Target, ...]
    first: ast.stmt | ast.expr
    last: ast.stmt | ast.expr
    has_else: bool
    call: ast.Call | None = None
    argument: ast.expr | None = None

    def value(self, arm: Arm, position: int) -> ast.expr | None:
        """The expression behind an arm's result; ``None`` if the arm leaves the target as it was.

        Raises:
            Refused: the value is assigned in a way that says nothing about it.
        """
        value = arm.results[position]
        if value is not None:
            return value
        name = self.targets[position].name
        written = [statement for statement in arm.statements if name in accessed([statement]).writes]
        if not written:
            return None
        last = written[-1]
        if isinstance(last, ast.Assign) and len(last.targets) == 1:
            part = matching_part(last.targets[0], last.value, name)
            if part is not None:
                return part
        raise Refused(Obligation.AGREEING_ARMS, f"what `{name}` is at the end of a side is not known", last.lineno)


def read_branch(site: Site, frame: Frame) -> Branch:
    """The normal shape of the branch at a site.

    Raises:
        Refused: it has a form that the selection cannot take.
    """
    return _Reader(site, frame).read()


class _Reader:
    def __init__(self, site: Site, frame: Frame) -> None:
        self.site = site
        self.frame = frame

    def read(self) -> Branch:
        node, statement = self.site.node, self.site.statement
        parent = self.site.parents.get(id(node))
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return Branch(self.expression(parent), Outcome.VALUE, (), parent, parent, True)
        if not (isinstance(statement, ast.If) and statement.test is node):
            raise Refused(
                Obligation.SUPPORTED_FORM,
                "only `if` statements and conditional expressions become selections",
                statement.lineno,
            )
        self.refuse_jumps(statement)
        if any(isinstance(each, ast.Return) for each in walk_scope([statement])):
            return self.returning(statement)
        return self.calling(statement) or self.assigning(statement)

    # ---------------------------------------------------------------- forms

    def expression(self, node: ast.IfExp) -> Choice:
        def side(part: ast.expr) -> Side:
            if isinstance(part, ast.IfExp) and self.on_tensor(part.test):
                return self.expression(part)
            return Arm((), (part,), (), self.site.statement)

        return Choice(node.test, side(node.body), side(node.orelse))

    def returning(self, statement: ast.If) -> Branch:
        rest = self.after(statement)
        used: list[ast.stmt] = []

        def side(block: Sequence[ast.stmt], following: Sequence[ast.stmt]) -> Side:
            first = block[0] if block else following[0] if following else None
            if isinstance(first, ast.If) and self.on_tensor(first.test):
                after = [*block[1:], *following] if block else following[1:]
                return Choice(first.test, side(first.body, after), side(first.orelse, after))
            return self.returning_arm(block or following, statement, used)

        choice = Choice(statement.test, side(statement.body, rest), side(statement.orelse, rest))
        if len(used) != len({id(each) for each in used}):
            raise Refused(Obligation.SUPPORTED_FORM, "what follows the branch would be written twice", statement.lineno)
        last = max(used, key=lambda each: each.end_lineno or each.lineno)
        inside = {id(node) for node in walk(statement)}
        return Branch(choice, Outcome.RETURN, (), statement, statement if id(last) in inside else last, True)

    def returning_arm(self, block: Sequence[ast.stmt], statement: ast.If, used: list[ast.stmt]) -> Arm:
        last = block[-1] if block else None
        if not isinstance(last, ast.Return):
            reason = "a side of the branch returns, but the other one does not end in a `return` directly after it"
            raise Refused(Obligation.SUPPORTED_FORM, reason, (last or statement).lineno)
        inner = [each for each in walk_scope(block) if isinstance(each, ast.Return) and each is not last]
        if inner:
            raise Refused(Obligation.SUPPORTED_FORM, "a side of the branch returns in several places", inner[0].lineno)
        if last.value is None:
            raise Refused(Obligation.SUPPORTED_FORM, "a side of the branch returns nothing", last.lineno)
        used.append(last)
        return Arm(tuple(block), (last.value,), (last,), statement)

    def calling(self, statement: ast.If) -> Branch | None:
        """Both sides end in the same call, with one argument that differs."""
        if not statement.orelse:
            return None
        ends = [block[-1] for block in (statement.body, statement.orelse)]
        calls = [end.value for end in ends if isinstance(end, ast.Expr) and isinstance(end.value, ast.Call)]
        if len(calls) != 2 or ast.dump(calls[0].func) != ast.dump(calls[1].func):
            return None
        pairs = list(_paired(calls[0], calls[1]))
        differing = [pair for pair in pairs if ast.dump(pair[0]) != ast.dump(pair[1])]
        if not pairs or len(differing) != 1 or any(isinstance(each, ast.Starred) for each in differing[0]):
            return None
        for value in (calls[0].func, *(a for a, _ in pairs if a is not differing[0][0])):
            if not all(isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) for node in walk(value)):
                return None
        arms = [
            Arm(tuple(block), (value,), (block[-1],), statement)
            for block, value in zip((statement.body, statement.orelse), differing[0])
        ]
        written = accessed(arms[0].kept).writes | accessed(arms[1].kept).writes
        if written & accessed([calls[0]]).reads - accessed([differing[0][0]]).reads:
            return None
        if any(self.frame.names.read_after(name, statement) for name in written):
            return None
        choice = Choice(statement.test, arms[0], arms[1])
        return Branch(choice, Outcome.CALL, (), statement, statement, True, calls[0], differing[0][0])

    def assigning(self, statement: ast.If) -> Branch:
        blocks = list(self.blocks(statement))
        attributes = self.trailing_attributes(blocks)
        written = [name for block, _ in blocks for name in _written_names(block)]
        names = [name for name in dict.fromkeys(written) if self.frame.names.read_after(name, statement)]
        targets = [Target(name, name) for name in names]
        targets += [Target(self.site.source.segment(each), attribute=each) for each in attributes]
        if not targets:
            self.refuse_effects(statement)
            reason = "the branch computes nothing that is used after it; what it does instead cannot be selected"
            raise Refused(Obligation.SUPPORTED_FORM, reason, statement.lineno)
        choice = self.choice(statement, names, [ast.dump(each) for each in attributes])
        return Branch(choice, Outcome.ASSIGN, tuple(targets), statement, statement, bool(statement.orelse))

    def refuse_effects(self, statement: ast.If) -> None:
        """Refuse with what a branch does, where that is why nothing comes out of it."""
        for doing in effects_of(self.site.program).doings(statement.body + statement.orelse, self.frame):
            if doing.effect in IMPURE:
                reason = f"a side of the branch {doing.what}; a selection runs both sides"
                raise Refused(Obligation.PURE_ARMS, reason, doing.line)

    def choice(self, statement: ast.If, names: Sequence[str], attributes: Sequence[str]) -> Choice:
        false: Side
        if self.is_chain(statement):
            inner = statement.orelse[0]
            assert isinstance(inner, ast.If)
            false = self.choice(inner, names, attributes)
        else:
            false = self.arm(statement.orelse, names, attributes)
        return Choice(statement.test, self.arm(statement.body, names, attributes), false)

    def arm(self, block: Sequence[ast.stmt], names: Sequence[str], attributes: Sequence[str]) -> Arm:
        """The arm of a block that assigns some names, and ends by assigning some attributes."""
        assert isinstance(self.site.statement, ast.If)
        kept = len(block)
        values: dict[str, ast.expr] = {}
        while kept and isinstance(last := block[kept - 1], ast.Assign) and len(last.targets) == 1:
            target = last.targets[0]
            key = target.id if isinstance(target, ast.Name) else ast.dump(target)
            if key not in (*names, *attributes) or key in values or self.reads_later(last, block[kept:]):
                break
            values[key] = last.value
            kept -= 1
        written = set(_written_names(block))
        for name in names:
            if name not in written and not self.frame.names.is_bound(name, self.site.statement):
                reason = f"`{name}` gets a value on one side only, and may have none before the branch"
                raise Refused(Obligation.BOUND_NAMES, reason, self.site.statement.lineno)
        results = tuple(values.get(key) for key in (*names, *attributes))
        return Arm(tuple(block), results, tuple(block[kept:]), self.site.statement)

    @staticmethod
    def reads_later(statement: ast.Assign, later: Sequence[ast.stmt]) -> bool:
        """Whether statements after an assignment read what it assigns, so that it cannot wait for the end."""
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            return target.id in accessed(later).reads
        name = target.attr if isinstance(target, ast.Attribute) else ""
        nodes = [node for each in later for node in walk(each)]
        return any(
            isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr == name) for node in nodes
        )

    def trailing_attributes(self, blocks: Sequence[tuple[Sequence[ast.stmt], bool]]) -> list[ast.Attribute]:
        """The attributes that every block assigns at its end, of objects that are the same in all of them."""
        own = {name for block, _ in blocks for name in _written_names(block)}
        found: list[dict[str, ast.Attribute]] = []
        for block, _ in blocks:
            ends: dict[str, ast.Attribute] = {}
            for statement in reversed(block):
                if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
                    break
                target = statement.targets[0]
                if isinstance(target, ast.Attribute) and _is_path(target):
                    ends.setdefault(ast.dump(target), target)
                elif not isinstance(target, ast.Name):
                    break
            found.append(ends)
        first = found[0]
        shared = [first[key] for key in reversed(first) if all(key in each for each in found)]
        return [each for each in shared if own.isdisjoint(accessed([each]).reads)]

    # ---------------------------------------------------------------- structure

    def blocks(self, statement: ast.If) -> Iterator[tuple[Sequence[ast.stmt], bool]]:
        """The blocks of a chain, each with whether it is written in the source."""
        yield statement.body, True
        if self.is_chain(statement):
            inner = statement.orelse[0]
            assert isinstance(inner, ast.If)
            yield from self.blocks(inner)
        else:
            yield statement.orelse, bool(statement.orelse)

    def is_chain(self, statement: ast.If) -> bool:
        """Whether the other side is another branch on a tensor and nothing else."""
        other = statement.orelse
        return len(other) == 1 and isinstance(other[0], ast.If) and self.on_tensor(other[0].test)

    def on_tensor(self, test: ast.expr) -> bool:
        return self.site.facts.value(test).depends_on_data

    def after(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements that follow in the same block."""
        parent = self.site.parents.get(id(statement), self.site.function.node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if isinstance(block, list) and any(each is statement for each in block):
                position = next(index for index, each in enumerate(block) if each is statement)
                return block[position + 1 :]
        return []

    def refuse_jumps(self, statement: ast.If) -> None:
        for node in walk_scope(statement.body + statement.orelse):
            match node:
                case ast.Raise():
                    raise Refused(Obligation.TOTAL_ARMS, "a side of the branch raises", node.lineno)
                case ast.Break() | ast.Continue() if not _inside_loop(node, statement, self.frame):
                    word = type(node).__name__.lower()
                    raise Refused(
                        Obligation.SUPPORTED_FORM, f"a side of the branch leaves it with `{word}`", node.lineno
                    )


def _inside_loop(node: ast.AST, statement: ast.If, frame: Frame) -> bool:
    """Whether a jump stays inside a loop of the branch itself."""
    current = frame.parents.get(id(node))
    while current is not None and current is not statement:
        if isinstance(current, (ast.For, ast.AsyncFor, ast.While)):
            return True
        current = frame.parents.get(id(current))
    return False


def _written_names(block: Iterable[ast.stmt]) -> list[str]:
    """The names that statements bind, in order of the text."""
    found = accessed(block)
    names = found.writes | found.deletes
    order = [node.id for each in block for node in walk(each) if isinstance(node, ast.Name) and node.id in names]
    return [*dict.fromkeys(order), *sorted(names - set(order))]


def _paired(first: ast.Call, second: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The arguments of two calls side by side; nothing if the calls are not built alike."""
    words = [[keyword.arg for keyword in call.keywords] for call in (first, second)]
    if len(first.args) == len(second.args) and words[0] == words[1]:
        yield from zip(first.args, second.args)
        yield from zip((each.value for each in first.keywords), (each.value for each in second.keywords))


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
