"""What a function does with its parameters: what only tensors take, or what none does. All of it is inference."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.flow.masks import compared_to_index
from graphmend.flow.wording import is_called_a_number
from graphmend.model.index import External
from graphmend.model.module import Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import asked, children, walk
from graphmend.signatures import torch

if TYPE_CHECKING:
    from graphmend.flow.program import Program

_OF_SIZES = frozenset(
    {"view", "reshape", "expand", "repeat", "transpose", "permute", "zeros", "ones", "rand", "randn", "empty"}
)
"""Operations whose first argument, as a method or a function, is a size."""
_OF_NUMBERS = frozenset({"tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "is_tensor"})
"""Functions that are given numbers, arrays or sizes first."""
_HOPS = 3
"""How many calls a parameter is followed through."""


class Uses:
    """The uses of the parameters of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.torch = torch()
        self._tensor_uses: dict[Function, set[str]] = {}
        self._nodes: dict[Function, list[ast.AST]] = {}
        self._masks: dict[Function, Mapping[int, list[ast.expr]]] = {}
        self._escaping: dict[Function, frozenset[str]] = {}

    def as_tensor(self, function: Function) -> set[str]:
        """The names that a function uses in a way that only tensors are used."""
        if function in self._tensor_uses:
            return self._tensor_uses[function]
        names = self._tensor_uses[function] = set()
        masks = self.masks(function)
        for node in self.nodes(function):
            match node:
                case ast.Compare(left=ast.Name(id=name)) if id(node) in masks:
                    if not is_choice(masks[id(node)]):
                        names.add(name)
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=parts)) if any(map(is_cut, parts)):
                    names.add(name)
                case ast.IfExp(test=test, body=body, orelse=orelse):
                    name, replaced = _replaced(test, body, orelse)
                    if name and self._makes_tensor(replaced, function):
                        names.add(name)
                case ast.If(test=test, body=[ast.Assign(targets=[ast.Name(id=name)], value=value)], orelse=[]):
                    if _none_of(test) == (name, True) and self._makes_tensor(value, function):
                        names.add(name)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.attr in self.torch.telling or node.attr in ("shape", "size", "device", "dtype"):
                    names.add(node.value.id)
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                dotted = self.program.index.dotted(function.module, node.func)
                if any(isinstance(d, External) and self._takes_tensor_first(d.name) for d in dotted):
                    names.add(node.args[0].id)
        return names

    def as_plain(self, function: Function, name: str, hops: int = 0) -> bool:
        """Whether what is done with a parameter, also by functions that it is handed to, says that it is no tensor.

        One that is only handed on is a tensor if it is used as one there; but the first one, which a module computes
        with, is one anyway.
        """
        if self._used_otherwise(function, name) or _is_flag(self.nodes(function), function, name):
            return True
        if hops > _HOPS or name == function.first_argument:
            return False
        handed = list(self._handed(function, name))
        if any(name_there in self.as_tensor(called) for called, name_there in handed):
            return False
        if any(self.as_plain(called, there, hops + 1) for called, there in handed):
            return True
        reads = sum(isinstance(node, ast.Name) and node.id == name for node in self.nodes(function))
        return bool(handed) and reads == len(handed)

    def _used_otherwise(self, function: Function, name: str) -> bool:
        """Whether a parameter without annotation or default is used in a way that tensors are not."""
        if is_called_a_number(name) or self._used_as_number(function, name):
            return True
        for node in self.nodes(function):
            match node:
                case ast.Call(func=ast.Name(id=called)) if called == name:
                    return True
                case ast.Attribute(value=ast.Name(id=owner), attr=attr) if owner == name:
                    tables = self.torch
                    if attr not in tables.operations and attr not in tables.attributes and attr not in tables.telling:
                        return True
                case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str())) if owner == name:
                    return True
                case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[holder]):
                    # A key and what it is looked up in; the first argument of a module is what it computes with.
                    if _is_name(holder, name) and _is_indexed_by(self.nodes(function), name, left):
                        return True
                    if name != function.first_argument and any(_is_name(each, name) for each in (left, holder)):
                        return not (isinstance(left, ast.Constant) and isinstance(left.value, (int, float)))
        return False

    def _used_as_number(self, function: Function, name: str) -> bool:
        """Whether a parameter is used where whole numbers, or tuples of such, are.

        The first one of a module, which computes with it, may be taken apart as well.
        """
        first = name == function.first_argument
        masks = self.masks(function)
        for node in self.nodes(function):
            match node:
                case ast.Compare(left=left, comparators=[right]) if not first and is_choice(masks.get(id(node), ())):
                    used = [left, right]
                case ast.BinOp(left=left, op=ast.Mod() | ast.FloorDiv(), right=right) if not first:
                    used = [left, right]
                case ast.Assign(targets=[ast.Tuple()], value=value) if not first:
                    used = [value]
                case ast.For(target=target, iter=iterable) | ast.comprehension(target=target, iter=iterable):
                    used = [] if first else list(_taken_in_pairs(target, iterable))
                case ast.Subscript(value=ast.Attribute(), slice=index) if not first:
                    used = [index]  # of a layer, a setting
                case ast.Slice(lower=lower, upper=upper, step=step):
                    used = [each for each in (lower, upper, step) if each is not None]
                case ast.Call():
                    used = list(self._whole_numbers(node))
                case _:
                    continue
            if any(_is_name(part, name) for each in used for part in _operands(each)):
                return True
        return False

    def _whole_numbers(self, call: ast.Call) -> Iterator[ast.expr]:
        """The arguments of a call that torch, going by the name of the function, takes as whole numbers."""
        match call.func:
            case ast.Name(id=called):
                least = 0
            case ast.Attribute(value=owner, attr=called):
                # Whether another owner is a tensor or a module of torch is not looked for.
                least = 0 if _is_name(owner, "torch") else 1
            case _:
                return
        if called == "range":
            yield from call.args
        for parameter in self.torch.integers.get(called, ()):
            yield from call.args[max(parameter.position, least) : None if parameter.onwards else parameter.position + 1]
            if parameter.onwards:
                yield from call.args[:1] if called in _OF_SIZES else ()
            yield from (keyword.value for keyword in call.keywords if keyword.arg == parameter.name)

    def _handed(self, function: Function, name: str) -> Iterator[tuple[Function, str]]:
        """The functions that are given a parameter as it is, with what they call it."""
        for node in self.nodes(function):
            if isinstance(node, ast.Call):
                called = self._called(function, node.func)
                if called is not None and not any(isinstance(each, ast.Starred) for each in node.args):
                    own = called.parameters[1:] if called.owner is not None else called.parameters
                    yield from (
                        (called, parameter.arg)
                        for each, parameter in [
                            *zip(node.args, own),
                            *((word.value, each) for word in node.keywords for each in own if each.arg == word.arg),
                        ]
                        if _is_name(each, name) and parameter.annotation is None
                    )

    def _called(self, function: Function, node: ast.expr) -> Function | None:
        """The function or method of the linted files that a name or an attribute of ``self`` stands for."""
        match node:
            case ast.Name():
                found = self.program.index.dotted(function.module, node)
                return found[0] if len(found) == 1 and isinstance(found[0], Function) else None
            case ast.Attribute(value=ast.Name(id=owner), attr=attr) if (
                function.owner is not None and function.parameters
            ):
                return self.program.index.method(function.owner, attr) if owner == function.parameters[0].arg else None
        return None

    def _takes_tensor_first(self, name: str) -> bool:
        """Whether a dotted name is an operation of torch whose first argument is a tensor, no size and no number."""
        last = name.rpartition(".")[2]
        sizes = any(parameter.position == 0 for parameter in self.torch.integers.get(last, ()))
        return last not in _OF_NUMBERS and not sizes and self.torch.function(name) is not None

    def _makes_tensor(self, node: ast.expr, function: Function) -> bool:
        """Whether an expression is a call that gives a tensor, going by the name of what is called."""
        if not isinstance(node, ast.Call):
            return False
        dotted = self.program.index.dotted(function.module, node.func)
        known = [self.torch.function(found.name) for found in dotted if isinstance(found, External)]
        if isinstance(node.func, ast.Attribute) and node.func.attr in self.torch.telling:
            known.append(self.torch.method(node.func.attr))
        return any(signature is not None and signature.returns == "tensor" for signature in known)

    def masks(self, function: Function) -> Mapping[int, list[ast.expr]]:
        """What a function indexes with a comparison, by the identity of the comparison."""
        known = self._masks.get(function)
        if known is None:
            known = self._masks[function] = compared_to_index(function)
        return known

    def escaping(self, function: Function) -> frozenset[str]:
        """The names whose object something else may get hold of, and change: all that are not only looked into."""
        known = self._escaping.get(function)
        if known is None:
            known = self._escaping[function] = frozenset(_escaping(function))
        return known

    def nodes(self, function: Function) -> list[ast.AST]:
        """The nodes of a function's own scope."""
        known = self._nodes.get(function)
        if known is None:
            known = self._nodes[function] = list(walk_scope(function.body))
        return known


def is_cut(index: ast.expr) -> bool:
    """Whether an index among several is one that only arrays take: a slice, ``...`` or ``None``."""
    return isinstance(index, ast.Slice) or isinstance(index, ast.Constant) and index.value in (..., None)


def _none_of(test: ast.expr) -> tuple[str, bool]:
    """The name that a condition compares with ``None``, and whether for being it."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(None)]):
            return name, isinstance(op, ast.Is)
    return "", False


def _replaced(test: ast.expr, body: ast.expr, orelse: ast.expr) -> tuple[str, ast.expr]:
    """The name for which a conditional expression gives something else where it is ``None``, and what it gives."""
    name, is_none = _none_of(test)
    given, kept = (body, orelse) if is_none else (orelse, body)
    return (name if _is_name(kept, name) else ""), given


def _is_indexed_by(nodes: Iterable[ast.AST], name: str, key: ast.expr) -> bool:
    """Whether a parameter is indexed by the very thing that is looked for in it, as a mapping is."""
    wanted = ast.dump(key)
    return any(
        isinstance(node, ast.Subscript) and _is_name(node.value, name) and ast.dump(node.slice) == wanted
        for node in nodes
    )


def _is_flag(nodes: Sequence[ast.AST], function: Function, name: str) -> bool:
    """Whether a parameter's own truth is asked for, or it decides a condition by being compared, as a setting does.

    Not the first one: what a module is given to compute with is a tensor.
    """
    first = name == function.first_argument
    names = {name} if first else {name, *_answers(nodes, name)}
    for node in nodes:
        if isinstance(node, ast.Match) and _is_name(node.subject, name):
            return True
        # Its bare truth is asked of a list, a dict or a flag: that of a tensor fails if it has several elements.
        for each in asked(node):
            if any(_is_name(each, known) for known in names) or not first and _asks(each, name):
                return True
        match node:
            case ast.Call(func=ast.Name(id="int" | "float"), args=[ast.Compare() as test]) if _asks(test, name):
                return True
    return False


def _answers(nodes: Iterable[ast.AST], name: str) -> Iterator[str]:
    """The names that are given the answer of comparing a parameter."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=answer)], value=ast.Compare() as test) if _asks(test, name):
                yield answer


def _escaping(function: Function) -> Iterator[str]:
    own = {id(node) for node in walk_scope(function.body)}
    inside = {
        id(child)
        for node in walk(function.node)
        if isinstance(node, (ast.Subscript, ast.Attribute, ast.Return))
        or isinstance(node, ast.keyword)
        and node.arg is None
        for child in children(node)
        if id(child) in own and child is node.value
    }
    for node in walk(function.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside:
            yield node.id


def is_choice(indexed: Sequence[ast.expr]) -> bool:
    """Whether a comparison picks from attributes alone, as a setting picks a layer."""
    return bool(indexed) and all(isinstance(holder, ast.Attribute) for holder in indexed)


def _taken_in_pairs(target: ast.expr, iterable: ast.expr) -> Iterator[ast.expr]:
    """What a loop takes each element of apart, through ``enumerate`` and ``zip``."""
    if not isinstance(target, ast.Tuple):
        return
    match iterable:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]) if len(target.elts) == 2:
            yield from _taken_in_pairs(target.elts[1], inner)
        case ast.Call(func=ast.Name(id="zip"), args=parts) if len(target.elts) == len(parts):
            for each, part in zip(target.elts, parts):
                yield from _taken_in_pairs(each, part)
        case _:
            yield iterable


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, or what its arithmetic is done with."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _operands(operand)
        case _:
            yield node


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _asks(test: ast.expr, name: str) -> bool:
    """Whether a condition asks for a name's own truth, or compares the name, or a sum with it, with something else."""
    match test:
        case ast.Name(id=asked):
            return asked == name
        case ast.Compare(left=left, ops=operators, comparators=comparators):
            if any(isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for operator in operators):
                return False
            return any(_is_name(part, name) for side in (left, *comparators) for part in _operands(side))
    return False
