"""Whether two expressions are likely to have the same shape and dtype, from how they are computed.

A *form* is a symbolic description of a value: where its shape comes from and where its dtype does. Equal forms have
equal shapes and dtypes as far as the source tells; tracing checks it.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from graphmend.flow.aliasing import bind_arguments
from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.gradients import path_of
from graphmend.flow.mutation import mutations_of
from graphmend.flow.program import Program
from graphmend.flow.values import MISSING, ExternalName, Kind, TensorMethod
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import children, walk
from graphmend.signatures import Signature
from graphmend.signatures.behaviour import behaviour

_DEPTH = 16
_NUMBERS = Kind.STATIC | Kind.SIZE | Kind.SCALAR

Key = Hashable


@dataclass(frozen=True)
class Form:
    """What is known of one value.

    Args:
        kind: ``tensor``, ``number``, ``none`` or ``other``.
        shape: where the shape comes from; several keys broadcast.
        dtype: where the dtype comes from; several keys promote.
    """

    kind: str
    shape: frozenset[Key] = frozenset()
    dtype: frozenset[Key] = frozenset()


class Forms:
    """The forms of the expressions of one function.

    Args:
        program: the program under analysis.
        frame: the function.
        parameters: the forms of its parameters, where it is looked at for one call.
    """

    def __init__(self, program: Program, frame: Frame, parameters: Mapping[str, Form] | None = None) -> None:
        self.program = program
        self.frame = frame
        self.parameters = parameters or {}
        self.above: frozenset[Function] = frozenset()
        self.outer: tuple[Forms, ast.AST] | None = None
        """For a nested function, the forms around it and the statement at which it is called."""
        self._open: set[tuple[int, str]] = set()
        self._known: dict[int, Form] = {}

    def form(self, node: ast.expr, depth: int = 0) -> Form:
        """The form of an expression; the same each time, also where the way to it is too long to follow."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = _opaque(node)
            known = self._known[id(node)] = self._form(node, depth)
        return known

    def _form(self, node: ast.expr, depth: int) -> Form:
        value = self.frame.facts.value(node)
        if value.kinds and value.only(Kind.NONE):
            return Form("none")
        if value.kinds and value.only(_NUMBERS) and not (value.items or value.element):
            known = ("number", repr(value.constant)) if value.constant is not MISSING else ("text", ast.dump(node))
            return Form("number", frozenset((known,)))
        if depth > _DEPTH:
            return _opaque(node)
        match node:
            case ast.Name(id=name):
                statement = self.frame.statement(node)
                return self.current(name, statement, depth) if statement is not None else _opaque(node)
            case ast.Attribute(value=owner, attr=attr):
                if self.frame.facts.value(owner).is_tensor and attr in ("data", "grad"):
                    return self.form(owner, depth + 1)
                return _atom(("path", path_of(node) or ast.dump(node)))
            case ast.BinOp(op=op, left=left, right=right) if not isinstance(op, ast.MatMult):
                return _broadcast([self.form(left, depth + 1), self.form(right, depth + 1)])
            case ast.UnaryOp(op=ast.Not()):
                return Form("other")
            case ast.UnaryOp(operand=operand):
                return self.form(operand, depth + 1)
            case ast.Compare(left=left, comparators=[right]):
                joined = _broadcast([self.form(left, depth + 1), self.form(right, depth + 1)])
                return Form(joined.kind, joined.shape, frozenset(("bool",)))
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript(value=owner) if self.frame.facts.value(owner).may(Kind.CONTAINER) and not path_of(owner):
                return _opaque(node)
            case ast.List() | ast.Dict() | ast.Set():
                return _opaque(node)  # what it holds may change later
        return self._applied(type(node).__name__, node, children(node), depth)

    def current(self, name: str, statement: ast.AST, depth: int = 0) -> Form:
        """The form of what a name stands for where a statement begins."""
        if name not in self.frame.function.locals and self.outer is not None:
            return self.outer[0].current(name, self.outer[1], depth)
        definitions = self.frame.names.definitions(name, statement) or []
        found: set[Form] = set()
        for item in definitions:
            key = (id(item), name)
            if key in self._open:
                continue  # in a loop a name may be made of itself
            self._open.add(key)
            form = self._defined(name, item, depth)
            self._open.discard(key)
            if form is None:
                found.clear()
                break
            found.add(form)
        return found.pop() if len(found) == 1 else _atom(("name", name, frozenset(map(id, definitions))))

    def _defined(self, name: str, item: object, depth: int) -> Form | None:
        """The form that one definition gives a name; ``None``: the name itself says as much."""
        match item:
            case None:
                return self.parameters.get(name)
            case ast.AugAssign(value=value):
                # In place on a tensor: the shape and the dtype stay.
                before = self.current(name, item, depth + 1)
                return before if before.kind == "tensor" else _broadcast([before, self.form(value, depth + 1)])
            case ast.Assign(targets=targets, value=value):
                if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                    return self.form(value, depth + 1)
                return self._unpacked(name, targets, value, depth)
        return None

    def _unpacked(self, name: str, targets: list[ast.expr], value: ast.expr, depth: int) -> Form | None:
        if len(targets) != 1 or not isinstance(targets[0], ast.Tuple):
            return None
        names = [each.id if isinstance(each, ast.Name) else "" for each in targets[0].elts]
        if name not in names:
            return None
        at = names.index(name)
        if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            return self.form(value.elts[at], depth + 1)
        whole = self.form(value, depth + 1)
        return Form("tensor", frozenset((("item", at, whole.shape),)), frozenset((("item", at, whole.dtype),)))

    def _call(self, node: ast.Call, depth: int) -> Form:
        callee = self.frame.facts.value(node.func)
        targets = callee.targets
        if len(targets) == 1 and not callee.may(Kind.UNKNOWN | Kind.OBJECT):
            (target,) = targets
            if isinstance(target, TensorMethod) and isinstance(node.func, ast.Attribute):
                return self._operation(
                    self.program.torch.method(target.name), target.name, [node.func.value, *node.args], node, depth
                )
            if isinstance(target, ExternalName) and target.name in self.program.torch.selections and len(node.args) > 2:
                chosen = [self._arm(arm, node, depth) for arm in node.args[1:3]]
                return chosen[0] if agreement(*chosen) is None else _opaque(node)
            if isinstance(target, ExternalName):
                return self._operation(
                    self.program.torch.function(target.name), target.name, list(node.args), node, depth
                )
            if isinstance(target, Function):
                returned = self._returned(target, node, depth)
                if returned is not None:
                    return returned
        if callee.kinds == Kind.OBJECT and callee.classes and node.args:
            names = {cls.name for cls in callee.classes if isinstance(cls, ExternalName)}
            if len(names) == len(callee.classes) and names <= behaviour().modules_like_argument:
                return self.form(node.args[0], depth + 1)
            if names == {"torch.nn.Linear"} and self._square(node.func):
                return self.form(node.args[0], depth + 1)
        return self._applied(
            ast.dump(node.func), node, [*node.args, *(keyword.value for keyword in node.keywords)], depth
        )

    def _arm(self, arm: ast.expr, node: ast.Call, depth: int) -> Form:
        """The form of what an arm of a selection gives."""
        statement = self.frame.statement(node)
        functions = [target for target in self.frame.facts.value(arm).targets if isinstance(target, Function)]
        if len(functions) != 1 or statement is None or functions[0].parameters:
            return _opaque(arm)
        inner = Forms(self.program, frames_of(self.program).frame(functions[0]))
        inner.outer = (self, statement)
        found = {inner.form(value, depth + 1) for value in _returns(inner.frame)}
        return found.pop() if len(found) == 1 else _opaque(arm)

    def _returned(self, function: Function, node: ast.Call, depth: int) -> Form | None:
        """The form of what a called function returns for these arguments, if it is the same at all its returns."""
        arguments = bind_arguments(function, None, node)
        state = self.program.states.get(function)
        if arguments is None or state is None or not state.passes or function in self.above:
            return None
        frame = frames_of(self.program).frame(function)
        forms = {name: self.form(argument, depth + 1) for name, argument in arguments.items()}
        inner = Forms(self.program, frame, forms)
        inner.above = self.above | {self.frame.function}
        found = {inner.form(value, depth + 1) for value in _returns(frame)}
        return next(iter(found)) if len(found) == 1 else None

    def _square(self, func: ast.expr) -> bool:
        """Whether a linear layer was made with as many outputs as inputs."""
        calls = mutations_of(self.program).made_by(func, self.frame)
        return bool(calls) and all(
            len(call.args) > 1 and ast.dump(call.args[0]) == ast.dump(call.args[1]) for call in calls
        )

    def _operation(
        self, signature: Signature | None, name: str, operands: list[ast.expr], node: ast.Call, depth: int
    ) -> Form:
        last = name.rpartition(".")[2]
        keywords = [keyword.value for keyword in node.keywords]
        casts = any(keyword.arg in ("dtype", "device", "memory_format") for keyword in node.keywords)
        if (
            signature is not None
            and operands
            and last in behaviour().elementwise
            and not any(keyword.arg == "dtype" for keyword in node.keywords)
        ):
            form = _broadcast([self.form(operand, depth + 1) for operand in operands])
            return Form(form.kind, form.shape, frozenset(("bool",))) if signature.dtype == "bool" else form
        if signature is not None and operands and last in behaviour().like_first:
            form = self.form(operands[0], depth + 1)
            if last in behaviour().conversions or casts:
                cast = frozenset((("cast", last, *map(ast.dump, [*operands[1:], *keywords])),))
                return Form(form.kind, form.shape, cast)
            return form
        if signature is not None and signature.single and len(operands) == 1 and not node.keywords:
            inner = self.form(operands[0], depth + 1)
            return Form(
                "tensor", frozenset(("one",)), frozenset(("bool",)) if signature.dtype == "bool" else inner.dtype
            )
        return self._applied(last, node, [*operands, *keywords], depth)

    def _applied(self, name: str, node: ast.expr, parts: Iterable[ast.AST], depth: int) -> Form:
        """An operation about which nothing is known but that it gives the same for the same operands."""
        keys: list[Key] = [name]
        words = [keyword.arg for keyword in node.keywords] if isinstance(node, ast.Call) else []
        for part in parts:
            if not isinstance(part, ast.expr):
                continue
            form = self.form(part, depth + 1)
            keys.append((form.shape, form.dtype) if form.kind == "tensor" else ast.dump(part))
        key = ("applied", tuple(keys), tuple(words))
        return Form("tensor", frozenset((key,)), frozenset((key,)))

    # ---------------------------------------------------------------- attributes

    def origins(self, node: ast.expr, depth: int = 0) -> frozenset[Key]:
        """The functions that make what an attribute of an object may hold, with the position in what they return.

        A place that assigns the attribute from itself (a conversion) says nothing and is left out. Empty: not known.
        """
        if not isinstance(node, ast.Attribute) or depth > 4:
            return frozenset()
        found: set[Key] = set()
        for frame in self._frames_around(node.value):
            for value, position in _assigned(frame, node.attr):
                if not _mentions(value, node.attr):
                    made = Forms(self.program, frame)._origin(value, position, depth)
                    if not made:
                        return frozenset()
                    found |= made
        return frozenset(found)

    def _frames_around(self, owner: ast.expr) -> list[Frame]:
        """The function itself and the methods of the classes that an expression may be an instance of."""
        frames = {self.frame.function: self.frame}
        for cls in self.frame.facts.value(owner).classes:
            for base in self.program.index.mro(cls) if isinstance(cls, Class) else ():
                for method in base.methods.values() if isinstance(base, Class) else ():
                    if method in self.program.states and self.program.states[method].passes:
                        frames[method] = frames_of(self.program).frame(method)
        return list(frames.values())

    def _origin(self, value: ast.expr, position: int | None, depth: int) -> frozenset[Key]:
        match value:
            case ast.Name(id=name):
                statement = self.frame.statement(value)
                definitions = self.frame.names.definitions(name, statement) if statement is not None else None
                if definitions is None or len(definitions) != 1 or not isinstance(definitions[0], ast.Assign):
                    return frozenset()
                target = definitions[0].targets[0]
                at = None
                if isinstance(target, ast.Tuple):
                    at = [isinstance(each, ast.Name) and each.id == name for each in target.elts].index(True)
                return self._origin(definitions[0].value, at, depth)
            case ast.Attribute(attr=attr, lineno=line):
                # The nearest assignment in the same function says it best.
                here = [
                    (each, at)
                    for each, at in _assigned(self.frame, attr)
                    if each.lineno < line and not _mentions(each, attr)
                ]
                return self._origin(*here[0], depth + 1) if len(here) == 1 else self.origins(value, depth + 1)
            case ast.Call(func=func):
                functions = [target for target in self.frame.facts.value(func).targets if isinstance(target, Function)]
                return frozenset(("made by", function, position) for function in functions)
        return frozenset()


def _returns(frame: Frame) -> list[ast.expr]:
    """The expressions that a function returns, of those returns that tracing reaches; a lambda's body."""
    node = frame.function.node
    if isinstance(node, ast.Lambda):
        return [node.body]
    found = [each for each in walk_scope(node.body) if isinstance(each, ast.Return) and id(each) in frame.facts.reached]
    return [each.value or ast.copy_location(ast.Constant(None), each) for each in found]


def _assigned(frame: Frame, attr: str) -> list[tuple[ast.expr, int | None]]:
    """The values that a function gives to an attribute, with the position for an element of an unpacked value."""
    found: list[tuple[ast.expr, int | None]] = []
    for node in walk_scope(frame.function.body):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Attribute) and target.attr == attr:
                        found.append((value, None))
                    elif isinstance(target, ast.Tuple):
                        for position, each in enumerate(target.elts):
                            if isinstance(each, ast.Attribute) and each.attr == attr:
                                found.append((value, position))
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=name), value, *_]) if (
                name == attr
            ):
                found.append((value, None))
    return found


def _mentions(node: ast.expr, attr: str) -> bool:
    return any(isinstance(child, ast.Attribute) and child.attr == attr for child in walk(node))


def _atom(key: Key) -> Form:
    return Form("tensor", frozenset((key,)), frozenset((key,)))


def _opaque(node: ast.expr) -> Form:
    return _atom(("opaque", id(node)))


def _broadcast(forms: list[Form]) -> Form:
    tensors = [form for form in forms if form.kind == "tensor"]
    if not tensors:
        return Form("number", frozenset(key for form in forms for key in form.shape)) if forms else Form("other")
    shapes = [form.shape for form in tensors]
    one = frozenset(("one",))
    shape = frozenset(key for each in shapes for key in each if key != "one" or all(other == one for other in shapes))
    return Form(
        "tensor", shape, frozenset(key for form in tensors for key in form.dtype if key != "bool" or len(tensors) == 1)
    )


def agreement(a: Form, b: Form) -> str | None:
    """Why two values are not likely to have the same shape and dtype; ``None`` if they are."""
    if a.kind != b.kind:
        return f"one arm gives a {_word(a)}, the other one a {_word(b)}"
    if a == b:
        return None
    if a.kind == "number":
        return "the arms give Python numbers, which a graph cannot select between"
    if a.kind != "tensor":
        return "the arms do not give tensors"
    if not (a.shape <= b.shape or b.shape <= a.shape):
        return "nothing says that the two arms give tensors of the same shape"
    if not (a.dtype <= b.dtype or b.dtype <= a.dtype):
        return "nothing says that the two arms give tensors of the same dtype"
    return None


def _word(form: Form) -> str:
    return {"tensor": "tensor", "number": "Python number", "none": "`None`"}.get(form.kind, "value of another kind")
