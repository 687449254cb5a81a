"""Attribute writes inside an arm that may happen although the arm is not taken.

Two kinds are known (design, section 5). A *lazy cache*: an attribute that is created only where it is missing, by code
that gives the same whenever it runs. A *conversion*: an attribute that is replaced by itself in another place or
dtype, which changes nothing if it is there already; that is checked while tracing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend.findings import Proof
from graphmend.fixes.arms import Arm
from graphmend.fixes.package import Package
from graphmend.fixes.site import Refused, Site
from graphmend.flow.effects import IMPURE, PARTIAL, Effects, effects_of
from graphmend.flow.frames import Frame
from graphmend.flow.interpreter import Facts
from graphmend.flow.names import accessed
from graphmend.flow.text import brief
from graphmend.flow.values import STATIC, Bound, ExternalName, Kind, Value, ordered
from graphmend.model.module import Class, Function
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.signatures.behaviour import behaviour

_FIXED = Kind.STATIC | Kind.NONE | Kind.OBJECT | Kind.CALLABLE
_CHANGING = Kind.TENSOR | Kind.SCALAR | Kind.SIZE


@dataclass(frozen=True)
class Licence:
    """An attribute write that does not count as an effect of its arm.

    Args:
        statement: the statement that writes.
        attribute: the name of the attribute.
        check: an expression that must be true while tracing; empty if nothing is left to check.
        proofs: why the write is harmless.
    """

    statement: ast.stmt
    attribute: str
    check: str
    proofs: tuple[Proof, ...]


def find_licences(site: Site, frame: Frame, arm: Arm) -> list[Licence]:
    """The lazy caches and conversions among the statements of an arm.

    Raises:
        Refused: a statement has the form of a lazy cache, but its conditions do not hold.
    """
    found: list[Licence] = []
    for position, statement in enumerate(arm.kept):
        licence = _conversion(site, statement, arm.kept[:position]) or _lazy_cache(site, frame, statement)
        if licence is not None:
            found.append(licence)
    return found


# -------------------------------------------------------------------- conversions


def _conversion(site: Site, statement: ast.stmt, before: tuple[ast.stmt, ...]) -> Licence | None:
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(), attr=attr) as target],
            value=ast.Call(func=ast.Attribute(value=ast.Attribute() as source, attr=name)) as call,
        ) if name in behaviour().conversions and site.source.segment(target) == site.source.segment(source):
            pass
        case _:
            return None
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    read = accessed([call]).reads
    if accessed(before).writes & read or not all(_is_plain(argument) for argument in arguments):
        return None
    text = " ".join(site.source.segment(call).split())
    check = f"{text} is {site.source.segment(source)}"
    detail = f"`{text}` gives the tensor itself, so that the assignment changes nothing: compared while tracing"
    return Licence(statement, attr, check, (Proof(Obligation.PURE_ARMS.value, "checked at trace time", detail),))


def _is_plain(node: ast.expr) -> bool:
    return all(isinstance(each, (ast.Name, ast.Attribute, ast.Constant)) for each in walk(node))


# -------------------------------------------------------------------- lazy caches


def _lazy_cache(site: Site, frame: Frame, statement: ast.stmt) -> Licence | None:
    match statement:
        case ast.If(
            test=ast.UnaryOp(op=ast.Not(), operand=ast.Call() as asked), body=[ast.Assign() as made], orelse=[]
        ):
            pass
        case _:
            return None
    name = _asked_attribute(site, asked)
    if name is None:
        return None
    owner, attribute = name
    written = [node for target in made.targets for node in _leaves(target)]
    attributes = [node for node in written if isinstance(node, ast.Attribute)]
    if len(attributes) != 1 or attributes[0].attr != attribute or ast.dump(attributes[0].value) != ast.dump(owner):
        return None
    if not all(isinstance(node, (ast.Name, ast.Attribute)) for node in written):
        return None
    line = statement.lineno
    assumed = _require_constant(site, frame, made.value, attribute)
    place = Package(site.program, site.module).mentions(
        attribute, [statement, *_later_reads(frame, attribute, statement)]
    )
    if place is not None:
        reason = f"`{attribute}` is created where it is missing, and {place} may observe whether it exists"
        raise Refused(Obligation.LAZY_CACHE, reason, line)
    detail = (
        f"`{attribute}` is created only where it is missing, by `{brief(made.value)}`, which is pure, cannot fail on "
        "data (other failures show while tracing) and does not depend on the tensors of the call; nothing else in the "
        "package names the attribute. Compiled code may create it earlier"
    )
    proofs = [Proof(Obligation.LAZY_CACHE.value, "statically", detail)]
    if assumed:
        detail = f"{', '.join(assumed)} holds no tensors in classes that are not followed either"
        proofs.append(Proof(Obligation.LAZY_CACHE.value, "assumed", detail))
    return Licence(statement, attribute, "", tuple(proofs))


def _asked_attribute(site: Site, asked: ast.Call) -> tuple[ast.expr, str] | None:
    """The object and the attribute whose existence a call asks for."""
    names = site.facts.value(asked.func).targets
    match asked.args:
        case [ast.Name() as owner, ast.Constant(value=str(attribute))] if names == {ExternalName("builtins.hasattr")}:
            return owner, attribute
    return None


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target


def _later_reads(frame: Frame, attribute: str, statement: ast.stmt) -> Iterator[ast.AST]:
    """The reads of the attribute in the block of the lazy creation, which come after it."""
    parent = frame.parents.get(id(statement))
    block: list[ast.stmt] = []
    for field in ("body", "orelse"):
        statements = getattr(parent, field, None)
        if isinstance(statements, list) and any(each is statement for each in statements):
            block = statements
    start = next((index for index, each in enumerate(block) if each is statement), len(block))
    for each in block[start + 1 :]:
        yield from (
            node
            for node in walk(each)
            if isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)
        )


def _require_constant(site: Site, frame: Frame, value: ast.expr, attribute: str) -> list[str]:
    """Refuse an initialiser that does not give the same whenever it runs; returns what had to be assumed."""
    effects = effects_of(site.program)
    known, assumed = _sharpened(site, frame, value)
    for doing in effects.doings([value], known):
        if doing.effect in IMPURE or doing.effect in PARTIAL:
            reason = f"`{attribute}` is created where it is missing, but its initialiser {doing.what}"
            raise Refused(Obligation.LAZY_CACHE, reason, doing.line)
    for node in walk(value):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not known.facts.value(node).only(_FIXED) and node.id in site.function.locals:
                reason = f"`{attribute}` is created from `{node.id}`, which may be another one at each call"
                raise Refused(Obligation.LAZY_CACHE, reason, node.lineno)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not known.facts.value(node).only(_FIXED):
            reason = f"`{attribute}` is created from `{brief(node)}`, which may change between calls"
            raise Refused(Obligation.LAZY_CACHE, reason, node.lineno)
        elif isinstance(node, ast.Call):
            for function in _called(known.facts.value(node.func)):
                _require_closed(effects, function, attribute, node.lineno)
    return assumed


def _sharpened(site: Site, frame: Frame, value: ast.expr) -> tuple[Frame, list[str]]:
    """The frame with more exact values for the parts of an initialiser, and what is assumed for that.

    Where many classes meet, the facts say of their attributes that they may be anything else as well. What the package
    assigns to an attribute says more of functions, and what is known of a configuration is taken to hold of all.
    """
    values, assumed = dict(frame.facts.values), []
    for node in walk(value):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        found = frame.facts.value(node)
        if not found.may(Kind.UNKNOWN) or found.may(_CHANGING):
            continue
        if isinstance(node, ast.Attribute) and found.targets:
            functions = Package(site.program, site.module).assigned_functions(node.attr)
            if functions:
                values[id(node)] = Value(Kind.CALLABLE, targets=functions)
        elif found.kinds != Kind.UNKNOWN and _is_configuration(frame, node):
            values[id(node)] = found.without(Kind.UNKNOWN)
            if isinstance(node, ast.Attribute):
                assumed.append(f"`{brief(node)}`")
    for node in walk(value):
        if isinstance(node, ast.BinOp) and _is_configuration(frame, node):
            values[id(node)] = STATIC
    facts = Facts(frame.function, frame.facts.graph, values, frame.facts.reached, frame.facts.kept)
    return Frame(frame.function, lambda: facts, frame, frame.depth), list(dict.fromkeys(assumed))


def _is_configuration(frame: Frame, node: ast.expr) -> bool:
    """Whether a value comes from attributes of the object whose method runs, and not from the call's arguments."""
    if isinstance(node, ast.Attribute):
        return _is_configuration(frame, node.value)
    match node:
        case ast.Constant():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_configuration(frame, left) and _is_configuration(frame, right)
        case ast.BoolOp(values=parts):
            return all(_is_configuration(frame, part) for part in parts)
        case ast.Call(func=ast.Attribute(value=owner, attr="get")):
            return _is_configuration(frame, owner)
        case ast.Name(id=name):
            statement = frame.statement(node)
            definitions = frame.names.definitions(name, statement) if statement is not None else None
            if definitions == [None]:
                return name == frame.function.parameters[0].arg if frame.function.parameters else False
            return bool(definitions) and all(
                isinstance(item, ast.Assign) and _is_configuration(frame, item.value) for item in definitions or ()
            )
    return False


def _called(callee: Value) -> Iterator[Function]:
    for target in ordered(callee.targets):
        match target:
            case Function():
                yield target
            case Bound(function=function):
                yield function
            case Class():
                yield from (method for name in ("__init__", "__new__") if (method := target.methods.get(name)))


def _require_closed(effects: Effects, function: Function, attribute: str, line: int) -> None:
    """Refuse an initialiser that reads tensors of the module: they may have other values later."""
    frame = effects.frames.frame(function)
    for node in walk(function.node):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) in frame.facts.values:
            holder, value = frame.facts.value(node.value), frame.facts.value(node)
            if holder.may(Kind.OBJECT) and value.depends_on_data:
                reason = (
                    f"`{attribute}` is created by `{function.name}`, which reads `{brief(node)}` "
                    f"({function.module.path}:{node.lineno}): a tensor that may change between calls"
                )
                raise Refused(Obligation.LAZY_CACHE, reason, line)
