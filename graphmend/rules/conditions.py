"""Where code asks for the truth of values: the forms of a branch, and what the branch does."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphmend.model.module import Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk


@dataclass(frozen=True)
class Question:
    """A place at which truth is asked for.

    Args:
        form: one of :data:`graphmend.rules.schema.FORMS`.
        node: what is reported.
        asked: the expressions, one of which has the value whose truth is asked for.
        captured: for an assertion, whether Dynamo makes an operator of it.
        element: for a membership, what is looked for: its truth is asked for only where elements are compared.
    """

    form: str
    node: ast.expr
    asked: tuple[ast.expr, ...]
    captured: bool = False
    element: ast.expr | None = None


def questions(node: ast.AST, module: Module, tested: frozenset[int]) -> Iterator[Question]:
    """The questions that one node asks, those of its children left out.

    Args:
        node: the node.
        module: the file that holds it.
        tested: what :func:`tested_parts` tells of the function.
    """
    match node:
        case ast.If(test=test):
            yield Question(_form(module, node), test, tuple(test_leaves(test)))
        case ast.IfExp(test=test):
            yield Question("conditional-expression", test, tuple(test_leaves(test)))
        case ast.While(test=test):
            yield Question("while", test, tuple(test_leaves(test)))
        case ast.Assert(test=test, msg=message):
            captured = _captured(test) if message is None or _is_constant_text(message) else None
            rest = tuple(leaf for leaf in test_leaves(test) if leaf is not captured)
            if rest:
                yield Question("assert", test, rest)
            if captured is not None:
                yield Question("assert", test, (captured,), captured=True)
        case ast.Match(subject=subject, cases=cases):
            if any(_compares(case.pattern) for case in cases):
                yield Question("match", subject, (subject,))
            for case in cases:
                if case.guard is not None:
                    yield Question("match", case.guard, tuple(test_leaves(case.guard)))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for generator in node.generators:
                for condition in generator.ifs:
                    yield Question("comprehension-filter", condition, tuple(test_leaves(condition)))
        case ast.expr():
            yield from _of_values(node, id(node) in tested)


def _of_values(node: ast.expr, is_tested: bool) -> Iterator[Question]:
    """The questions of operators; what is part of a condition is asked there."""
    match node:
        case ast.Compare(ops=ops, left=left, comparators=comparators):
            for operator, *pair in zip(ops, [left, *comparators], comparators):
                if isinstance(operator, (ast.In, ast.NotIn)):
                    yield Question("membership", node, tuple(pair), element=pair[0])
            if len(ops) > 1 and not is_tested:
                yield Question("value", node, (node,))
        case ast.BoolOp(values=values) if not is_tested:
            yield Question("value", node, tuple(leaf for value in values[:-1] for leaf in test_leaves(value)))
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not is_tested:
            yield Question("value", node, tuple(test_leaves(operand)))


def tested_parts(function: Function) -> frozenset[int]:
    """The parts of all conditions of a function that ask for truth themselves, by identity: they are no values."""
    found: set[int] = set()
    for node in walk_scope(function.body):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                _add_parts(test, found)
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    _add_parts(condition, found)
            case ast.match_case(guard=ast.expr() as guard):
                _add_parts(guard, found)
    return frozenset(found)


def _add_parts(test: ast.expr, found: set[int]) -> None:
    found.add(id(test))
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                _add_parts(value, found)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _add_parts(operand, found)
        case ast.NamedExpr(value=value):
            _add_parts(value, found)


def test_leaves(test: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose truth a condition asks for, through ``and``, ``or`` and ``not``."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from test_leaves(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from test_leaves(operand)
        case ast.NamedExpr(value=value):
            yield from test_leaves(value)
        case _:
            yield test


def _captured(test: ast.expr) -> ast.expr | None:
    """The part of an assertion's test that Dynamo makes an operator of (measured with torch 2.13).

    It rewrites the one conditional jump that stands right before the exception is made: the last operand's, if it goes
    on where that is true. The message has to be a constant.
    """
    while isinstance(test, ast.BoolOp):
        test = test.values[-1]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) or isinstance(test, ast.IfExp):
        return None
    return None if isinstance(test, ast.Compare) and len(test.ops) > 1 else test


def _is_constant_text(message: ast.expr) -> bool:
    match message:
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.BinOp(left=left, op=ast.Add(), right=right):  # the compiler folds it
            return _is_constant_text(left) and _is_constant_text(right)
        case ast.JoinedStr(values=values):
            return all(isinstance(value, ast.Constant) for value in values)
    return False


def _compares(pattern: ast.pattern) -> bool:
    """Whether a pattern compares its subject with a value."""
    return any(isinstance(node, ast.MatchValue) for node in walk(pattern))


def _form(module: Module, statement: ast.If) -> str:
    start = module.source.offset(statement.lineno, statement.col_offset)
    return "elif" if module.source.text.startswith("elif", start) else "if"


def is_elif(statement: ast.If) -> bool:
    """Whether what follows a branch is another one (``elif``, or ``else`` that holds nothing but an ``if``)."""
    return len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)


def returns(parts: Sequence[ast.stmt]) -> bool:
    """Whether some statements hold a ``return`` of the function around them."""
    return any(isinstance(node, ast.Return) for node in walk_scope(parts))
