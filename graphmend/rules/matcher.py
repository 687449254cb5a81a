"""Matches rules against a traced function: constructs and the facts that hold of their parts, never spelling."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from graphmend.findings import Confidence
from graphmend.flow.interpreter import Facts, is_of_array
from graphmend.flow.program import Program
from graphmend.flow.values import ExternalName, Kind, Target
from graphmend.model.module import Function
from graphmend.model.tree import children, walk
from graphmend.regions.entries import EFFECTS, decorator_names
from graphmend.rules.callees import CallRules, called_by, certainty_of_call, ids_of, observes, target_names
from graphmend.rules.conditions import Question, is_elif, questions, returns, tested_parts
from graphmend.rules.holds import holds, least, surest
from graphmend.rules.model import (
    ArithmeticMatch,
    AttributeMatch,
    BranchMatch,
    CallMatch,
    ContextMatch,
    PatternMatch,
    Rule,
    StatementMatch,
    SubscriptMatch,
)
from graphmend.rules.pattern import Pattern, parse_pattern
from graphmend.rules.structure import match_pattern

_ON_DATA = frozenset(
    {
        *("tensor", "computed-tensor", "boolean-tensor", "holds-tensor", "data", "drawn-number"),
        *("numpy-number", "numpy-unknown"),
    }
)
_ALWAYS_THERE = sys.stdlib_module_names | {"torch", "numpy"}
_WORDS = {
    "class": re.compile(r"^[ \t]+class[ \t]", re.MULTILINE),
    "guarded-import": re.compile(r"\btry\b(?s:.)*\bimport\b(?s:.)*\bexcept\b"),
}
"""Finds the texts in which there may be such a statement."""
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


_LISTED = Kind.CONTAINER | Kind.SIZE


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
        calls = [(rule, rule.match) for rule in rules if isinstance(rule.match, CallMatch)]
        # Rules about arguments that depend on data are about calls that stand everywhere; those that are given such
        # arguments are noted in another way.
        noted = [pair for pair in calls if not _is_noted_by_data(pair[1])]
        self._of_numbers = len(noted) < len(calls)
        self.calls, self._noted_calls = CallRules(calls), CallRules(noted)
        self.attributes = [(rule, rule.match) for rule in rules if isinstance(rule.match, AttributeMatch)]
        self.subscripts = [(rule, rule.match) for rule in rules if isinstance(rule.match, SubscriptMatch)]
        self.contexts = [(rule, rule.match) for rule in rules if isinstance(rule.match, ContextMatch)]
        self.arithmetic = [(rule, rule.match) for rule in rules if isinstance(rule.match, ArithmeticMatch)]
        self.statements = [(rule, rule.match) for rule in rules if isinstance(rule.match, StatementMatch)]
        self.patterns = [
            (rule, rule.match, parse_pattern(rule.match.pattern))
            for rule in rules
            if isinstance(rule.match, PatternMatch)
        ]
        self.observers = [rule.match for rule in observers if isinstance(rule.match, CallMatch)]
        self._attribute_names = frozenset(name for _, match in self.attributes for name in match.names)
        self._taken: dict[Target, bool] = {}

    def concerns(self, program: Program, function: Function) -> bool:
        """Whether a function can hold a match, from what was noted of it while it was interpreted, and its text."""
        on_data = self.branches or self.subscripts or self.arithmetic or self._of_numbers
        if on_data and function in program.tests_data:
            return True
        if self._attribute_names and not self._attribute_names.isdisjoint(program.attributes.get(function, ())):
            return True
        if any(self._may_call(program, called) for called in program.noted.get(function, ())):
            return True
        if not self.patterns and not self.statements:
            return False
        text = function.text
        return bool(self._patterns_for(function, text)) or any(
            _WORDS[kind].search(text) for _, match in self.statements for kind in match.kinds
        )

    def _patterns_for(self, function: Function, text: str) -> list[tuple[Rule, PatternMatch, Pattern]]:
        """The patterns that may match in a function, by its text and that of its file."""
        whole = function.module.source.text
        return [
            each
            for each in self.patterns
            if all(word in text for word in each[2].words) and all(word in whole for word in each[2].imported)
        ]

    def _may_call(self, program: Program, called: Target) -> bool:
        key = called if isinstance(called, ExternalName) else None  # the others are many, and asked about once
        known = self._taken.get(key) if key is not None else None
        if known is None:
            known = bool(self._noted_calls.about(program, called)) or any(
                name in match.managers or name.rpartition(".")[0] in match.managers
                for _, match in self.contexts
                for name in target_names(called)
            )
            if key is not None:
                self._taken[key] = known
        return known

    def matches(self, program: Program, facts: Facts) -> list[Match]:
        """All matches in one function, in the order of the source; each statement once a rule."""
        found: list[Match] = []
        tested = tested_parts(facts.function)
        patterns = self._patterns_for(facts.function, facts.function.text) if self.patterns else []
        for statement, node in _places(facts.function):
            if id(node) not in facts.values and id(node) not in facts.reached and not isinstance(node, ast.Try):
                continue
            found += self._at(program, facts, statement, node, tested)
            found += self._patterns(facts, statement, node, patterns) if patterns else ()
        return sorted(found, key=lambda match: (match.node.lineno, match.node.col_offset, match.rule.code))

    def _at(
        self, program: Program, facts: Facts, statement: ast.stmt, node: ast.AST, tested: frozenset[int]
    ) -> Iterator[Match]:
        if self.branches:
            for question in questions(node, facts.function.module, tested):
                yield from self._branch(program, facts, statement, question)
        if isinstance(node, ast.stmt):
            yield from self._statement(program, facts, node)
        elif isinstance(node, ast.Call):
            yield from self._call(program, facts, statement, node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from self._attribute(facts, statement, node, "read")
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from self._subscript(facts, statement, node, "read")
        elif isinstance(node, ast.BinOp):
            yield from self._arithmetic(facts, statement, node, [node.left, node.right])
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            yield from self._arithmetic(facts, statement, node, [node.operand])

    def _patterns(
        self,
        facts: Facts,
        statement: ast.stmt,
        node: ast.AST,
        patterns: Sequence[tuple[Rule, PatternMatch, Pattern]],
    ) -> Iterator[Match]:
        for rule, pattern_match, pattern in patterns:
            captures = match_pattern(pattern, node, facts)
            if captures is not None and isinstance(node, (ast.expr, ast.stmt)):
                certainty = _facts_hold(pattern_match, captures, facts)
                if certainty is not None:
                    yield Match(rule, node, statement, certainty, captures=captures, gb=rule.gb)

    def _statement(self, program: Program, facts: Facts, node: ast.stmt) -> Iterator[Match]:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from self._written(facts, node, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from self._written(facts, node, target, value)
            case ast.AugAssign(target=target, value=value):
                yield from self._written(facts, node, target, value)
                yield from self._arithmetic(facts, node, node, [target, value])
                if isinstance(target, ast.Subscript):
                    yield from self._subscript(facts, node, target, "read")
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    yield from self._context(program, facts, node, item.context_expr)
        for rule, match in self.statements:
            if isinstance(node, ast.ClassDef) and "class" in match.kinds:
                yield Match(rule, node, node, Confidence.HIGH, gb=rule.gb)
            elif isinstance(node, ast.Try) and "guarded-import" in match.kinds and _catches_import_errors(node):
                for statement in node.body:
                    if id(statement) in facts.reached and _may_be_missing(program, statement):
                        yield Match(rule, statement, statement, Confidence.MEDIUM, gb=rule.gb)

    # ---------------------------------------------------------------- branches

    def _branch(self, program: Program, facts: Facts, statement: ast.stmt, question: Question) -> Iterator[Match]:
        body = ""
        for rule, match in self.branches:
            if question.form not in match.forms:
                continue
            if match.captured is not None and match.captured is not question.captured:
                continue
            certainty = surest(_asked_holds(facts, question, asked, match.tests) for asked in question.asked)
            if certainty is None:
                continue
            if match.body is not None:
                body = body or self._body(program, facts, question, statement)
                if body not in match.body:
                    continue
            yield Match(rule, question.node, statement, certainty, gb=rule.gb)

    def _body(self, program: Program, facts: Facts, question: Question, statement: ast.stmt) -> str:
        """What a branch does: ``raises``, ``observes``, ``returns`` or ``other``."""
        if not isinstance(statement, ast.If) or question.form not in ("if", "elif"):
            return "other"
        kinds = self._kinds(program, facts, statement.body)
        if statement.orelse and not is_elif(statement) and "raise" not in kinds:
            kinds |= self._kinds(program, facts, statement.orelse)
        if kinds and kinds <= {"raise", "observe"}:
            return "raises" if "raise" in kinds else "observes"
        return "returns" if returns([*statement.body, *statement.orelse]) else "other"

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
        return any(observes(self.observers, name) for name in target_names(called))

    # ---------------------------------------------------------------- other constructs

    def _call(self, program: Program, facts: Facts, statement: ast.stmt, call: ast.Call) -> Iterator[Match]:
        if not self.calls:
            return
        taken: dict[str, tuple[Rule, CallMatch, list[Target]]] = {}
        for called in called_by(facts.value(call.func)):
            for rule, match in self.calls.about(program, called):
                taken.setdefault(rule.code, (rule, match, []))[2].append(called)
        for rule, match, targets in taken.values():
            certainty = certainty_of_call(match, program, facts, call, targets)
            if certainty is not None:
                yield Match(rule, call, statement, certainty, _spelled(call), gb=ids_of(rule, match, targets))

    def _written(self, facts: Facts, statement: ast.stmt, target: ast.expr, value: ast.expr) -> Iterator[Match]:
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                yield from self._written(facts, statement, each, value)
        elif isinstance(target, ast.Attribute):
            yield from self._attribute(facts, statement, target, "write")
        elif isinstance(target, ast.Subscript):
            yield from self._subscript(facts, statement, target, "write", value)

    def _attribute(self, facts: Facts, statement: ast.stmt, node: ast.Attribute, access: str) -> Iterator[Match]:
        for rule, match in self.attributes:
            if node.attr in match.names and access in match.access:
                certainty = _owner_holds(facts, node.value, match.owners)
                if certainty is not None:
                    yield Match(rule, node, statement, certainty, gb=rule.gb)

    def _subscript(
        self, facts: Facts, statement: ast.stmt, node: ast.Subscript, access: str, value: ast.expr | None = None
    ) -> Iterator[Match]:
        for rule, match in self.subscripts:
            if access not in match.access:
                continue
            parts = [
                _owner_holds(facts, node.value, match.owners, without=_LISTED if _takes_arrays(facts, node) else 0),
                surest(holds(facts, each, match.index) for each in _indices(node)) if match.index else Confidence.HIGH,
                surest(_bound_holds(facts, each, match.bound) for each in _bounds(node))
                if match.bound
                else Confidence.HIGH,
                holds(facts, value, match.value) if match.value and value is not None else Confidence.HIGH,
            ]
            known = [each for each in parts if each is not None]
            if len(known) == len(parts):
                yield Match(rule, node, statement, least(*known), gb=rule.gb)

    def _arithmetic(
        self, facts: Facts, statement: ast.stmt, node: ast.expr | ast.stmt, operands: Sequence[ast.expr]
    ) -> Iterator[Match]:
        for rule, match in self.arithmetic:
            certainty = surest(holds(facts, each, match.operands) for each in operands)
            if certainty is not None and not any(holds(facts, each, match.without) for each in operands):
                yield Match(rule, node, statement, certainty, gb=rule.gb)

    def _context(self, program: Program, facts: Facts, statement: ast.stmt, manager: ast.expr) -> Iterator[Match]:
        made = manager.func if isinstance(manager, ast.Call) else None
        value = facts.value(made if made is not None else manager)
        names = {name for each in value.targets for name in target_names(each)} if made is not None else set()
        instance = facts.value(manager)
        if instance.may(Kind.OBJECT):
            names |= {cls.name if isinstance(cls, ExternalName) else cls.qualified for cls in instance.classes}
        for rule, match in self.contexts:
            if not names.isdisjoint(match.managers):
                sure = names <= match.managers and not value.may(Kind.UNKNOWN)
                certainty = Confidence.HIGH if sure else Confidence.MEDIUM
                yield Match(rule, manager, statement, certainty, ast.unparse(made or manager), gb=rule.gb)


def _is_noted_by_data(match: CallMatch) -> bool:
    """Whether functions that call what a rule is about, with what it asks for, are in ``tests_data``."""
    if any(each.integers for each in match.given):
        return True
    on_data = any(_ON_DATA.issuperset(argument.facts) for argument in match.given)
    return on_data and not match.methods and not any(name.startswith("torch.") for name in match.functions)


def functions_given_data(rules: Iterable[Rule]) -> frozenset[str]:
    """The functions that rules report where they are given something that depends on data."""
    matches = [rule.match for rule in rules if isinstance(rule.match, CallMatch)]
    return frozenset(name for match in matches if _is_noted_by_data(match) for name in match.functions)


def _catches_import_errors(statement: ast.Try) -> bool:
    caught = [node for handler in statement.handlers for node in walk(handler.type or ast.Name("Exception"))]
    return any(isinstance(node, ast.Name) and node.id in _IMPORT_ERRORS for node in caught)


def _may_be_missing(program: Program, statement: ast.stmt) -> bool:
    """Whether a statement imports a module that is neither Python's nor one of the linted files."""
    match statement:
        case ast.Import(names=aliases):
            names = [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module), level=0):
            names = [module]
        case _:
            return False
    tops = {name.partition(".")[0] for name in names}
    return any(top not in _ALWAYS_THERE and program.index.find_module(top) is None for top in tops)


def _owner_holds(facts: Facts, owner: ast.expr, wanted: Sequence[str], without: int = 0) -> Confidence | None:
    """How certain it is that an object is what a rule asks for: by a fact, or as an instance of a class.

    Args:
        facts: of the function.
        owner: the object.
        wanted: facts and classes.
        without: kinds that it is not, by what is done with it.
    """
    by_fact = holds(facts, owner, [each for each in wanted if "." not in each], without)
    value = facts.value(owner)
    names = {cls.name for cls in value.classes if isinstance(cls, ExternalName)} if value.may(Kind.OBJECT) else set()
    by_class = None
    if not names.isdisjoint(wanted):
        sure = names <= set(wanted) and value.only(Kind.OBJECT | Kind.NONE)
        by_class = Confidence.HIGH if sure else Confidence.MEDIUM
    return surest([by_fact, by_class])


def _asked_holds(facts: Facts, question: Question, asked: ast.expr, wanted: Sequence[str]) -> Confidence | None:
    """How certain it is that a value whose truth is asked for is what a rule asks for."""
    certainty = holds(facts, asked, wanted)
    if question.element is not None and isinstance(facts.value(question.element).constant, str):
        return None  # a tensor holds no strings
    if certainty is None or asked is not question.element:
        return certainty
    holder = facts.value(question.asked[-1])
    if holder.is_keyed or not holder.may(Kind.CONTAINER | Kind.SIZE | Kind.STATIC | Kind.UNKNOWN):
        return None  # a key of a mapping is hashed
    is_sequence = holder.may(Kind.CONTAINER | Kind.SIZE) or not facts.value(asked).inferred
    return certainty if is_sequence and not holder.may(Kind.UNKNOWN) else Confidence.LOW


def _bound_holds(facts: Facts, bound: ast.expr, wanted: Sequence[str]) -> Confidence | None:
    """How certain it is that a bound is what a rule asks for; where it may as well be a plain number, not at all."""
    certainty = holds(facts, bound, wanted)
    plain = facts.value(bound).may(Kind.STATIC | Kind.SIZE)
    return Confidence.LOW if plain and certainty is not None else certainty


def _takes_arrays(facts: Facts, node: ast.Subscript) -> bool:
    """Whether what is indexed is no list: it takes several indices, or a mask."""
    if is_of_array(node):
        return True
    masks = [each for each in _indices(node) if holds(facts, each, ("boolean-tensor",))]
    return any(not facts.value(each).single for each in masks)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    """The indices of a subscript that are no slices."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [each for each in parts if not isinstance(each, ast.Slice)]


def _bounds(node: ast.Subscript) -> list[ast.expr]:
    """The bounds of the slices of a subscript."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [each for each in parts if isinstance(each, ast.Slice)]
    return [bound for each in slices for bound in (each.lower, each.upper, each.step) if bound is not None]


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


def _facts_hold(
    match: PatternMatch, captures: Mapping[str, ast.expr | tuple[ast.expr, ...]], facts: Facts
) -> Confidence | None:
    certainty = Confidence.HIGH
    for name, wanted in match.where:
        captured = captures.get(name)
        for node in captured if isinstance(captured, tuple) else [captured]:
            found = holds(facts, node, wanted) if node is not None else None
            if found is None:
                return None
            certainty = least(certainty, found)
    return certainty
