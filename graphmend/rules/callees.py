"""What a call may call, by its dotted names, and whether a call rule takes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend.findings import Confidence
from graphmend.flow.interpreter import Facts
from graphmend.flow.library import ARRAY
from graphmend.flow.program import Program
from graphmend.flow.values import Bound, ExternalName, Kind, ObjectMethod, Target, TensorMethod, Value, ordered
from graphmend.model.module import Class, Function, Module
from graphmend.regions.entries import DISABLED, DISABLERS, decorator_names
from graphmend.rules.holds import holds, least, surest
from graphmend.rules.model import Argument, CallMatch, Rule
from graphmend.signatures import torch

_TENSOR = "torch.Tensor"
_FACTS_OF = {
    _TENSOR: {"tensor", "leaf-tensor", "attribute-tensor", "computed-tensor", "data"},
    ARRAY: {"numpy-number", "numpy-unknown", "data"},
    "list": {"container", "holds-tensor"},
}
"""The facts that hold of what has the methods of a class."""
_NARROW = frozenset({"leaf-tensor", "attribute-tensor", "computed-tensor", "numpy-unknown", "holds-tensor"})
"""Facts that hold of some of those values only."""
_NO_FACTS: frozenset[str] = frozenset()
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.UninitializedParameter"})


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
            yield f"{_TENSOR}.{name}"
        case Function():
            yield f"{called.module.name}.{called.qualname}"
        case Bound(function=function):
            yield f"{function.module.name}.{function.qualname}"
        case Class():
            yield called.qualified
        case Module():
            yield called.name


def called_by(value: Value) -> list[Target]:
    """What may be called: the targets of a value, and ``__call__`` of the instances that it may be."""
    instances: list[Target] = []
    if value.may(Kind.OBJECT):
        for cls in ordered(value.classes):
            owner = cls.name if isinstance(cls, ExternalName) else cls.qualified
            instances.append(ObjectMethod(owner, "__call__", value))
    return [*ordered(value.targets), *instances]


def takes_name(match: CallMatch, name: str) -> bool:
    """Whether a rule is about what has a dotted name."""
    if match.takes_function(name):
        return True
    owner, _, method = name.rpartition(".")
    return bool(match.methods) and match.takes_method(method) and _owns(match, owner)


def _owns(match: CallMatch, owner: str) -> bool:
    """Whether a class is one of those whose methods a rule is about."""
    if owner in match.receivers or not _FACTS_OF.get(owner, _NO_FACTS).isdisjoint(match.receivers):
        return True
    return "module" in match.receivers and torch().is_module_class(owner)


def _is_of_module(called: Target) -> bool:
    return isinstance(called, ObjectMethod) and torch().is_module_class(called.owner)


class CallRules:
    """Call rules, found by the names of what is called.

    Args:
        rules: the rules with what they match.
    """

    def __init__(self, rules: Sequence[tuple[Rule, CallMatch]]) -> None:
        self._all = rules
        self._by_name: dict[str, list[tuple[Rule, CallMatch]]] = {}
        self._kinds = [pair for pair in rules if pair[1].makes or pair[1].disabled]

    def __bool__(self) -> bool:
        return bool(self._all)

    def about(self, program: Program, called: Target) -> list[tuple[Rule, CallMatch]]:
        """The rules about something that is called, whatever its arguments are."""
        found = [pair for name in target_names(called) for pair in self._named(name)]
        return [*found, *(pair for pair in self._kinds if _is_of_kind(pair[1], program, called) and pair not in found)]

    def _named(self, name: str) -> list[tuple[Rule, CallMatch]]:
        known = self._by_name.get(name)
        if known is None:
            known = self._by_name[name] = [pair for pair in self._all if takes_name(pair[1], name)]
        return known


def _is_of_kind(match: CallMatch, program: Program, called: Target) -> bool:
    return match.disabled and _is_disabled(program, called) or bool(match.makes) and _makes(match, program, called)


def _is_disabled(program: Program, called: Target) -> bool:
    match called:
        case ExternalName(name=name):
            return name == DISABLED
        case ObjectMethod(name="__call__", receiver=receiver):
            forwards = (program.forward(cls) for cls in receiver.classes)
            return any(forward is not None and _has_disabler(program, forward) for forward in forwards)
        case Bound(function=function) | (Function() as function):
            return _has_disabler(program, function)
    return False


def _has_disabler(program: Program, function: Function) -> bool:
    return bool(decorator_names(program.index, function) & DISABLERS)


def _makes(match: CallMatch, program: Program, called: Target) -> bool:
    if isinstance(called, ExternalName) and called.name in _PARAMETERS:
        return "parameter" in match.makes
    return "module" in match.makes and isinstance(called, (Class, ExternalName)) and program.is_module(called)


def certainty_of_call(
    match: CallMatch, program: Program, facts: Facts, call: ast.Call, taken: Sequence[Target]
) -> Confidence | None:
    """How certain it is that a call is one of those that a rule reports; ``None`` if nothing says so.

    Args:
        match: what the rule asks for.
        program: the program under analysis.
        facts: of the function that holds the call.
        call: the call.
        taken: what may be called, as far as the rule is about it.
    """
    value = facts.value(call.func)
    sure = len(taken) == len(called_by(value)) and not value.may(Kind.UNKNOWN) and not value.inferred
    certainty = Confidence.HIGH if sure else Confidence.MEDIUM
    narrow = [each for each in match.receivers if each in _NARROW]
    if narrow and isinstance(call.func, ast.Attribute) and not any(_is_of_module(each) for each in taken):
        is_whole = len(narrow) == len(set(match.receivers) - {"module"})
        if is_whole and holds(facts, call.func.value, narrow) is None:
            return None
    shift = 1 if all(isinstance(each, TensorMethod) for each in taken) else 0
    for argument in match.given:
        meant = _integers(argument, program, taken) if argument.integers else [argument]
        found = surest(_given(each, facts, call, shift) for each in meant)
        if found is None:
            return None
        certainty = least(certainty, found)
    if any(_nodes(argument, call, shift) for argument in match.without):
        return None
    if any(_given(argument, facts, call, shift) for argument in match.unless):
        return None
    twice = _given_twice(match, facts, call) if match.twice else certainty
    return None if twice is None else least(certainty, twice)


def _given_twice(match: CallMatch, facts: Facts, call: ast.Call) -> Confidence | None:
    """How certain it is that a name that is given twice is what it has to be."""
    names = [each for each in call.args if isinstance(each, (ast.Name, ast.Attribute))]
    texts = [ast.dump(each) for each in names]
    return surest(holds(facts, each, match.twice) for each, text in zip(names, texts) if texts.count(text) > 1)


def _given(argument: Argument, facts: Facts, call: ast.Call, shift: int) -> Confidence | None:
    """How certain it is that one of the arguments that are meant is what it has to be."""
    return surest(holds(facts, node, argument.facts) for node in _nodes(argument, call, shift))


def _integers(argument: Argument, program: Program, called: Sequence[Target]) -> list[Argument]:
    """The arguments that torch takes as whole numbers, one by one."""
    names = {name.rpartition(".")[2] for each in called for name in target_names(each)}
    return [
        Argument(
            argument.facts, parameter.position if parameter.position >= 0 else None, parameter.onwards, parameter.name
        )
        for name in sorted(names)
        for parameter in program.torch.integers.get(name, ())
    ]


def held_arguments(match: CallMatch, program: Program, facts: Facts, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call for which what a rule asks of them holds."""
    called = called_by(facts.value(call.func))
    shift = 1 if all(isinstance(each, TensorMethod) for each in called) else 0
    meant = [
        each
        for argument in match.given
        for each in (_integers(argument, program, called) if argument.integers else [argument])
    ]
    return [node for each in meant for node in _nodes(each, call, shift) if holds(facts, node, each.facts) is not None]


def _nodes(argument: Argument, call: ast.Call, shift: int) -> list[ast.expr]:
    """The arguments that a selector means; ``shift`` is 1 where the receiver, a tensor, is the first of them."""
    positional: list[ast.expr] = list(call.args)
    if shift and isinstance(call.func, ast.Attribute):
        positional.insert(0, call.func.value)
    positional = [each.value if isinstance(each, ast.Starred) else each for each in positional]
    if argument.any:
        return [*positional[shift:], *(keyword.value for keyword in call.keywords)]
    nodes = [keyword.value for keyword in call.keywords if argument.name and keyword.arg == argument.name]
    if argument.position is not None:
        end = None if argument.onwards else argument.position + 1
        nodes += positional[argument.position : end]
    return nodes


def ids_of(rule: Rule, match: CallMatch, taken: Sequence[Target]) -> tuple[str, ...]:
    """The graph breaks of a call of one of some functions and methods, in the order of the rule's."""
    if match.function_gb == match.method_gb:
        return match.function_gb
    found: set[str] = set()
    for name in (name for each in taken for name in target_names(each)):
        found.update(match.function_gb if match.takes_function(name) else match.method_gb)
    return tuple(each for each in rule.gb if each in found)


def observes(observers: Sequence[CallMatch], name: str) -> bool:
    """Whether one of some rules about messages is about what has a dotted name."""
    return any(takes_name(match, name) for match in observers)
