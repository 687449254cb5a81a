"""Matches rules against a traced function: constructs and the facts that hold of their parts, never spelling."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphmend.findings import Confidence
from graphmend.flow.interpreter import Facts
from graphmend.flow.program import Program
from graphmend.flow.values import Bound, ExternalName, Kind, ObjectMethod, Target, TensorMethod, Value
from graphmend.model.module import Class, Function, Module
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import children
from graphmend.regions.entries import EFFECTS, decorator_names
from graphmend.rules.model import BranchMatch, CallMatch, PatternMatch, Rule
from graphmend.rules.pattern import Metavariable, Pattern, metavariable, parse_pattern

_KINDS = {
    "tensor": Kind.TENSOR,
    "scalar-read": Kind.SCALAR,
    "size": Kind.SIZE,
    "static": Kind.STATIC,
    "module": Kind.OBJECT,
    "none": Kind.NONE,
    "container": Kind.CONTAINER,
}


@dataclass(frozen=True)
class Match:
    """A place at which a rule's construct stands and its facts hold.

    Args:
        rule: the rule.
        node: the test of a branch, the call, or the root of what a pattern matched.
        statement: the innermost statement around ``node``.
        confidence: how certain the facts are.
        callee: what is called, as reports name it.
        captures: what the metavariables of a pattern stand for.
        gb: identifiers of the graph breaks of what was matched.
    """

    rule: Rule
    node: ast.expr | ast.stmt
    statement: ast.stmt
    confidence: Confidence
    callee: str = ""
    captures: Mapping[str, ast.expr | tuple[ast.expr, ...]] = field(default_factory=dict)
    gb: tuple[str, ...] = ()


class Matcher:
    """The rules of a run, indexed by what they look for.

    Args:
        rules: the rules that are on.
        observers: call rules, on or off, whose calls only observe: what a branch that "only observes" may hold.
    """

    def __init__(self, rules: Sequence[Rule], observers: Sequence[Rule]) -> None:
        self.branches = [(rule, rule.match) for rule in rules if isinstance(rule.match, BranchMatch)]
        self.calls = [(rule, rule.match) for rule in rules if isinstance(rule.match, CallMatch)]
        self.patterns = [
            (rule, rule.match, parse_pattern(rule.match.pattern))
            for rule in rules
            if isinstance(rule.match, PatternMatch)
        ]
        self.observers = [rule.match for rule in observers if isinstance(rule.match, CallMatch)]

    def concerns(self, program: Program, function: Function) -> bool:
        """Whether a function can hold a match, from what was noted of it while it was interpreted."""
        if self.patterns or self.branches and function in program.tests_data:
            return True
        return any(
            any(_takes(match, name) for _, match in self.calls)
            for called in program.noted.get(function, ())
            for name in target_names(called)
        )

    def matches(self, program: Program, facts: Facts) -> list[Match]:
        """All matches in one function, in the order of the source; each statement once a rule."""
        found: list[Match] = []
        for statement, node in _places(facts.function):
            if id(node) not in facts.values and not (isinstance(node, ast.stmt) and id(node) in facts.reached):
                continue
            found += self._at(program, facts, statement, node)
        return sorted(found, key=lambda match: (match.node.lineno, match.node.col_offset, match.rule.code))

    def _at(self, program: Program, facts: Facts, statement: ast.stmt, node: ast.AST) -> Iterator[Match]:
        if isinstance(node, ast.If):
            yield from self._branch(program, facts, node, node.test, _form(facts.function.module, node))
        elif isinstance(node, ast.IfExp):
            yield from self._branch(program, facts, statement, node.test, "conditional-expression", inside=node)
        elif isinstance(node, ast.While):
            yield from self._branch(program, facts, node, node.test, "while")
        elif isinstance(node, ast.Assert):
            yield from self._branch(program, facts, node, node.test, "assert")
        elif isinstance(node, ast.Call):
            yield from self._call(program, facts, statement, node)
        for rule, match, pattern in self.patterns:
            captures = match_pattern(pattern, node, facts)
            if captures is not None and isinstance(node, (ast.expr, ast.stmt)):
                certainty = _facts_hold(match, captures, facts)
                if certainty is not None:
                    yield Match(rule, node, statement, certainty, captures=captures, gb=rule.gb)

    def _branch(
        self,
        program: Program,
        facts: Facts,
        statement: ast.stmt,
        test: ast.expr,
        form: str,
        inside: ast.IfExp | None = None,
    ) -> Iterator[Match]:
        body = "other" if inside is not None else self._body(program, facts, statement)
        for rule, match in self.branches:
            if form not in match.forms or (match.body is not None and body not in match.body):
                continue
            certainty = _test_holds(test, match.test, facts)
            if certainty is not None:
                yield Match(rule, test, statement, certainty, gb=rule.gb)

    def _body(self, program: Program, facts: Facts, statement: ast.stmt) -> str:
        """What a branch does: ``raises``, ``observes``, ``returns`` or ``other``."""
        if not isinstance(statement, ast.If):
            return "other"
        kinds = self._kinds(program, facts, statement.body)
        if statement.orelse and not _is_elif(statement) and "raise" not in kinds:
            kinds |= self._kinds(program, facts, statement.orelse)
        if kinds and kinds <= {"raise", "observe"}:
            return "raises" if "raise" in kinds else "observes"
        parts = [*statement.body, *statement.orelse]
        return "returns" if any(isinstance(node, ast.Return) for node in walk_scope(parts)) else "other"

    def _kinds(self, program: Program, facts: Facts, body: Sequence[ast.stmt]) -> set[str]:
        """What the statements of a branch do; a message that is put together before it is raised does nothing."""
        kinds: set[str] = set()
        raises = bool(body) and isinstance(body[-1], ast.Raise)
        for statement in body:
            match statement:
                case ast.Raise():
                    kinds.add("raise")
                case ast.Expr(value=ast.Call() as call) if self.observes(program, facts, call):
                    kinds.add("observe")
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case ast.Assign(targets=[ast.Name()]) if raises:
                    continue
                case ast.If():
                    kinds |= self._kinds(program, facts, statement.body) | self._kinds(program, facts, statement.orelse)
                case _:
                    kinds.add("other")
        return kinds

    def observes(self, program: Program, facts: Facts, call: ast.Call) -> bool:
        """Whether a call only prints, logs or warns, be it as an effect of the runtime."""
        targets = facts.value(call.func).targets
        return bool(targets) and all(self._only_observes(program, each) for each in targets)

    def _only_observes(self, program: Program, called: Target) -> bool:
        if isinstance(called, Function) and decorator_names(program.index, called) & EFFECTS:
            return True
        return any(_takes(match, name) for name in target_names(called) for match in self.observers)

    def _call(self, program: Program, facts: Facts, statement: ast.stmt, call: ast.Call) -> Iterator[Match]:
        value = facts.value(call.func)
        names = list(callee_names(value))
        for rule, match in self.calls:
            taken = [name for name in names if _takes(match, name)]
            if taken:
                sure = len(taken) == len(value.targets) and not value.may(Kind.UNKNOWN) and not value.inferred
                confidence = Confidence.HIGH if sure else Confidence.MEDIUM
                yield Match(rule, call, statement, confidence, _spelled(call), gb=_ids(rule, match, taken))


def callee_names(value: Value) -> Iterator[str]:
    """The dotted names of what a called value may be: functions, and methods as ``class.method``."""
    for each in value.targets:
        yield from target_names(each)


def target_names(called: Target) -> Iterator[str]:
    """The dotted name of one thing that may be called."""
    match called:
        case ExternalName(name=name):
            yield name
        case ObjectMethod(owner=owner, name=name):
            yield f"{owner}.{name}"
        case TensorMethod(name=name):
            yield f"torch.Tensor.{name}"
        case Function():
            yield f"{called.module.name}.{called.qualname}"
        case Bound(function=function):
            yield f"{function.module.name}.{function.qualname}"
        case Class():
            yield called.qualified
        case Module():
            yield called.name


def _takes(match: CallMatch, name: str) -> bool:
    if match.takes_function(name):
        return True
    owner, _, method = name.rpartition(".")
    receiver = "tensor" if owner == "torch.Tensor" and "tensor" in match.receivers else owner
    return bool(match.methods) and receiver in match.receivers and match.takes_method(method)


def _ids(rule: Rule, match: CallMatch, names: Sequence[str]) -> tuple[str, ...]:
    """The graph breaks of a call of one of some functions and methods, in the order of the rule's."""
    found: set[str] = set()
    for name in names:
        found.update(match.function_gb if match.takes_function(name) else match.method_gb)
    return tuple(each for each in rule.gb if each in found)


def _spelled(call: ast.Call) -> str:
    return ast.unparse(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else "the call"


def _places(function: Function) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """Every node of the function's own scope with the innermost statement around it."""
    for statement in function.body:
        yield from _inside(statement)


def _inside(statement: ast.stmt) -> Iterator[tuple[ast.stmt, ast.AST]]:
    yield statement, statement
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    stack: list[ast.AST] = children(statement)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield from _inside(node)
        elif isinstance(node, ast.Lambda):
            continue
        else:
            if isinstance(node, ast.expr):
                yield statement, node
            stack += children(node)


def _form(module: Module, statement: ast.If) -> str:
    start = module.source.offset(statement.lineno, statement.col_offset)
    return "elif" if module.source.text.startswith("elif", start) else "if"


def _is_elif(statement: ast.If) -> bool:
    return len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)


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


def _test_holds(test: ast.expr, fact: str, facts: Facts) -> Confidence | None:
    certainties = [_holds(facts.value(leaf), fact) for leaf in test_leaves(test)]
    known = [certainty for certainty in certainties if certainty is not None]
    return min(known, key=lambda certainty: certainty.rank) if known else None


def _holds(value: Value, fact: str) -> Confidence | None:
    """How certain it is that a fact holds of a value; ``None`` if nothing says that it does."""
    kind = _KINDS[fact]
    if not value.may(kind):
        return None
    rest = value.kinds & ~(kind | (Kind.NONE if kind != Kind.NONE else 0))
    if not rest:
        return Confidence.MEDIUM if value.inferred else Confidence.HIGH
    return Confidence.LOW if value.inferred or rest & Kind.UNKNOWN else Confidence.MEDIUM


def _facts_hold(
    match: PatternMatch, captures: Mapping[str, ast.expr | tuple[ast.expr, ...]], facts: Facts
) -> Confidence | None:
    certainty = Confidence.HIGH
    for name, fact in match.where:
        captured = captures.get(name)
        for node in captured if isinstance(captured, tuple) else [captured]:
            holds = _holds(facts.value(node), fact) if node is not None else None
            if holds is None:
                return None
            certainty = max(certainty, holds, key=lambda each: each.rank)
    return certainty


# -------------------------------------------------------------------- patterns

Captures = dict[str, "ast.expr | tuple[ast.expr, ...]"]


def match_pattern(pattern: Pattern, node: ast.AST, facts: Facts) -> Captures | None:
    """What the metavariables stand for if ``node`` has the pattern's shape, else ``None``.

    A dotted name in the pattern is a qualified name: it matches whatever resolves to it, however it is spelled.
    """
    captures: Captures = {}
    return captures if _match(pattern.node, node, facts, captures) else None


def _match(pattern: ast.AST, node: ast.AST, facts: Facts, captures: Captures) -> bool:
    if isinstance(pattern, ast.Name):
        variable = metavariable(pattern.id)
        if variable is not None:
            return isinstance(node, ast.expr) and _capture(variable, node, captures)
    dotted = _dotted(pattern)
    if dotted is not None and isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        names = set(callee_names(facts.value(node)))
        if dotted in names or f"builtins.{dotted}" in names:
            return True
        if isinstance(pattern, ast.Name):
            return isinstance(node, ast.Name) and node.id == pattern.id and not names
    if type(pattern) is not type(node):
        return False
    for name, expected in ast.iter_fields(pattern):
        if name in ("ctx", "type_comment", "kind"):
            continue
        actual = getattr(node, name)
        if isinstance(expected, list):
            if not _match_list(expected, actual, facts, captures):
                return False
        elif isinstance(expected, ast.AST):
            if not isinstance(actual, ast.AST) or not _match(expected, actual, facts, captures):
                return False
        elif expected != actual or type(expected) is not type(actual):
            return False
    return True


def _match_list(expected: list[object], actual: list[object], facts: Facts, captures: Captures) -> bool:
    if expected and isinstance(expected[0], ast.keyword):
        return _match_keywords(expected, actual, facts, captures)
    for position, each in enumerate(expected):
        variable = metavariable(each.id) if isinstance(each, ast.Name) else None
        if variable is not None and variable.rest:
            after = expected[position + 1 :]
            end = len(actual) - len(after)
            taken = tuple(node for node in actual[position:end] if isinstance(node, ast.expr))
            known = captures.setdefault(variable.name, taken)
            same = isinstance(known, tuple) and [ast.dump(x) for x in known] == [ast.dump(x) for x in taken]
            return end >= position and same and _match_list(after, actual[end:], facts, captures)
        if position >= len(actual) or not isinstance(each, ast.AST):
            return False
        node = actual[position]
        if not isinstance(node, ast.AST) or not _match(each, node, facts, captures):
            return False
    return len(expected) == len(actual)


def _match_keywords(expected: list[object], actual: list[object], facts: Facts, captures: Captures) -> bool:
    given = {node.arg: node.value for node in actual if isinstance(node, ast.keyword)}
    wanted = {node.arg: node.value for node in expected if isinstance(node, ast.keyword)}
    return given.keys() == wanted.keys() and all(
        _match(value, given[name], facts, captures) for name, value in wanted.items()
    )


def _capture(variable: Metavariable, node: ast.expr, captures: Captures) -> bool:
    known = captures.setdefault(variable.name, node)
    return isinstance(known, ast.expr) and (known is node or ast.dump(known) == ast.dump(node))


def _dotted(node: ast.AST) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or metavariable(node.id) is not None:
        return None
    return ".".join([node.id, *reversed(parts)])
