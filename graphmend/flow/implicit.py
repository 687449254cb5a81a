"""Code that runs without being called by its name: attributes that compute, and the methods behind operators."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from graphmend.flow.frames import Frame
from graphmend.flow.program import Program
from graphmend.flow.values import ExternalName, Kind, ObjectMethod, Value
from graphmend.model.index import External
from graphmend.model.module import Class, Function
from graphmend.model.scopes import walk_scope
from graphmend.regions.entries import decorator_names
from graphmend.signatures.behaviour import behaviour

_PROPERTIES = frozenset({"builtins.property", "functools.cached_property"})
_LOOKUPS = frozenset({"builtins.getattr", "builtins.hasattr"})
_GET, _SET, _DELETE = "__get__", "__set__", "__delete__"
_ACCESS = {ast.Load: _GET, ast.Store: _SET, ast.Del: _DELETE}
_HOOKS = {_GET: "__getattribute__", _SET: "__setattr__", _DELETE: "__delattr__"}
_PARTS = {_SET: "setter", _DELETE: "deleter"}
_TRUTH = ("__bool__", "__len__")
_ITERATION = ("__iter__", "__next__", "__getitem__", "__len__")
_TEXT = ("__format__", "__str__", "__repr__")
_MEMBER = ("__contains__", "__iter__", "__getitem__")
_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.USub: ("__neg__",),
    ast.UAdd: ("__pos__",),
    ast.Invert: ("__invert__",),
    ast.Not: _TRUTH,
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__le__", "__ge__"),
    ast.In: _MEMBER,
    ast.NotIn: _MEMBER,
}
_ITEM = {ast.Load: ("__getitem__",), ast.Store: ("__setitem__",), ast.Del: ("__delitem__",)}
_OF_BUILTINS = (*_ITERATION, *_TRUTH, *_TEXT, "__float__", "__int__", "__index__", "__abs__", "__round__", "__hash__")

Run = Function | str
"""A function that runs, or, of code that is not a function of the linted files, what runs it, for a person."""


class Implicit:
    """What the nodes of a program run besides the calls that are written.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._attributes: dict[tuple[Class, str, str], tuple[Run, ...]] = {}

    def run_by(self, node: ast.AST, frame: Frame) -> Iterator[Run]:
        """The code that a node runs itself, without that of its children."""
        match node:
            case ast.Attribute(value=owner, attr=attr, ctx=context):
                yield from self._access(frame.facts.value(owner), attr, _ACCESS[type(context)])
            case ast.Call():
                yield from self._called(node, frame)
            case _:
                for operand, names in _operands(node):
                    yield from self._methods(frame.facts.value(operand), names)

    # ---------------------------------------------------------------- operators

    def _methods(self, value: Value, names: Iterable[str]) -> Iterator[Function]:
        for cls in _linted_classes(value):
            methods = (self.program.index.method(cls, name) for name in names)
            yield from (method for method in methods if method is not None)

    def _called(self, node: ast.Call, frame: Frame) -> Iterator[Run]:
        """What Python's own functions run of the objects that they are given."""
        targets = frame.facts.value(node.func).targets
        names = {target.name for target in targets if isinstance(target, ExternalName)}
        for target in targets:
            if isinstance(target, ObjectMethod) and target.name == _HOOKS[_GET] and node.args:
                yield from self._looked_up(target.receiver, frame.facts.value(node.args[0]).constant)
        if names & _LOOKUPS and len(node.args) > 1:
            constant = frame.facts.value(node.args[1]).constant
            yield from self._looked_up(frame.facts.value(node.args[0]), constant)
        elif any(name.startswith("builtins.") for name in names - behaviour().untouching):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from self._methods(frame.facts.value(argument), _OF_BUILTINS)

    def _looked_up(self, value: Value, name: object) -> Iterator[Run]:
        if isinstance(name, str):
            yield from self._access(value, name, _GET)
            return
        for cls in _linted_classes(value):
            held = {name for base in self._linted(cls) for name in (*base.methods, *base.values)}
            yield from (run for each in ("", *sorted(held)) for run in self._of_class(cls, each, _GET))

    # ---------------------------------------------------------------- attributes

    def _access(self, value: Value, attr: str, access: str) -> Iterator[Run]:
        for cls in _linted_classes(value):
            yield from self._of_class(cls, attr, access)
        for target in value.targets:
            if isinstance(target, Class) and access == _GET:
                yield from (run for base in self._linted(target) for run in self._descriptor(base, attr, access))

    def _linted(self, cls: Class) -> list[Class]:
        return [base for base in self.program.index.mro(cls) if isinstance(base, Class)]

    def _of_class(self, cls: Class, attr: str, access: str) -> tuple[Run, ...]:
        key = (cls, attr, access)
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = tuple(self._find(cls, attr, access))
        return known

    def _find(self, cls: Class, attr: str, access: str) -> Iterator[Run]:
        hook = self.program.index.method(cls, _HOOKS[access])
        if hook is not None:
            yield hook
        holder = next((base for base in self._linted(cls) if attr in base.methods or attr in base.values), None)
        if holder is not None:
            yield from self._property(holder, attr, access)
            yield from self._descriptor(holder, attr, access)
        elif access == _GET and not self._is_set(cls, attr):
            answering = self.program.index.method(cls, "__getattr__")
            if answering is not None:
                yield answering

    def _is_set(self, cls: Class, attr: str) -> bool:
        """Whether a constructor sets an attribute as the first thing that a look-up finds.

        A module keeps parameters and modules elsewhere, where only its own ``__getattr__`` finds them.
        """
        if self.program.is_module(cls):
            return False
        constructor = self.program.index.method(cls, "__init__")
        return constructor is not None and any(
            _sets(statement, attr, constructor.parameters[0].arg if constructor.parameters else "")
            for statement in constructor.body
        )

    def _property(self, cls: Class, attr: str, access: str) -> Iterator[Run]:
        """The functions of a property; of several functions of one name each may be the one that runs."""
        functions = [each for each in cls.module.functions if each.owner is cls and each.name == attr]
        for function in functions:
            names = {ast.unparse(decorator) for decorator in function.decorators}
            reads = bool(decorator_names(self.program.index, function) & _PROPERTIES) or f"{attr}.getter" in names
            if reads if access == _GET else f"{attr}.{_PARTS[access]}" in names:
                yield function

    def _descriptor(self, cls: Class, attr: str, access: str) -> Iterator[Run]:
        """What an object that the class holds under a name does when the name is read or written."""
        value = cls.values.get(attr)
        method = cls.methods.get(attr)
        made_by = [value] if value is not None else list(method.decorators) if method is not None else []
        for expression in made_by:
            called = expression.func if isinstance(expression, ast.Call) else expression
            definitions = self.program.index.dotted(cls.module, called)
            for definition in definitions:
                if isinstance(definition, External) and definition.name in _PROPERTIES and value is not None:
                    yield f"reads `{attr}`, a property made of a function that is not looked into"
            classes = {each for each in definitions if isinstance(each, Class)}
            classes |= {each for each in self._classes(expression, cls) if isinstance(each, Class)}
            for found in classes:
                run = self.program.index.method(found, access)
                if run is not None:
                    yield run

    def _classes(self, expression: ast.expr, cls: Class) -> Iterable[object]:
        return self.program.bindings.value_of(expression, cls.module).classes


def _linted_classes(value: Value) -> list[Class]:
    """The classes of linted files that an object may be an instance of."""
    return [cls for cls in value.classes if isinstance(cls, Class)] if value.may(Kind.OBJECT) else []


def _operands(node: ast.AST) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """The operands of a node, each with the methods that the node may call on it."""
    match node:
        case ast.Subscript(value=value, ctx=context):
            yield value, _ITEM[type(context)]
        case ast.UnaryOp(op=operator, operand=operand):
            yield operand, _OPERATORS[type(operator)]
        case ast.Compare(ops=operators, left=left, comparators=comparators):
            for compared, *pair in zip(operators, (left, *comparators), comparators):
                yield from ((operand, _OPERATORS.get(type(compared), ())) for operand in pair)
        case ast.BoolOp(values=values):
            yield from ((value, _TRUTH) for value in values[:-1])
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield test, _TRUTH
        case ast.For(iter=iterable) | ast.Starred(value=iterable, ctx=ast.Load()):
            yield iterable, _ITERATION
        case ast.comprehension(iter=iterable, ifs=conditions):
            yield iterable, _ITERATION
            yield from ((condition, _TRUTH) for condition in conditions)
        case ast.Assign(targets=targets, value=value) if any(map(_is_unpacking, targets)):
            yield value, _ITERATION
        case ast.FormattedValue(value=value):
            yield value, _TEXT


def _is_unpacking(target: ast.expr) -> bool:
    return isinstance(target, (ast.Tuple, ast.List))


def _sets(statement: ast.stmt, attr: str, own: str) -> bool:
    """Whether a statement certainly gives an object an attribute."""
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr == attr
        and isinstance(node.value, ast.Name)
        and node.value.id == own
        for node in walk_scope([statement])
    )
