"""What is handed to ``torch.compile``, found by following the code that does so: it runs outside of every region.

Only functions whose text may launch something are followed, with the functions that they call, in a program of their
own: what code outside of regions passes around says nothing certain of what runs inside. The ``forward`` of modules is
not followed there.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.flow.interpreter import Interpreter
from graphmend.flow.values import (
    TENSOR_GUESS,
    UNKNOWN,
    Bound,
    ClassRef,
    ExternalName,
    ObjectMethod,
    Target,
    Value,
    container,
    external,
    instance,
    ordered,
)
from graphmend.model.module import Class, Function
from graphmend.model.tree import walk
from graphmend.regions.entries import COMPILERS, DISABLED, DISABLERS

if TYPE_CHECKING:
    from graphmend.flow.operations import Keywords
    from graphmend.flow.program import Program

COMPILE = external("torch.compile")
HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})
"""The methods of a module that register what is traced together with its ``forward``."""
LAUNCHING = COMPILERS | DISABLERS | {"functools.partial"}
_TAKE_BACKEND = frozenset({"torch._dynamo.optimize"})
"""What is called with settings and gives something that compiles."""


@dataclass(frozen=True, eq=False)
class Launch:
    """One function with which compiled code starts.

    Args:
        function: the function.
        cls: for a method, the class whose instances it is called on.
        path: the file that launches it, as reported to people.
        line: the line of the call or decorator.
        where: the qualified name of the function that holds the line.
        root: the file in which following the code began, as reported to people.
        given: the values of parameters that are bound beforehand.
        hooked: for a hook of a module, the function with which it is called; otherwise it is compiled.
        is_hook: whether it is a hook.
    """

    function: Function
    cls: Class | None
    path: str
    line: int
    where: str
    root: str
    given: Mapping[str, Value] = field(default_factory=dict)
    hooked: Function | None = None
    is_hook: bool = False


class Launches:
    """The launches that are seen while a program outside of every region is interpreted.

    Args:
        program: that program.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[tuple[Function, Class | None, bool], Launch] = {}
        self._bound: dict[Function, dict[str, Value]] = {}
        self.passing: dict[Function | Class, None] = {}
        """The functions that launch what they are given, and the classes whose instances do, in the order found."""

    def found(self) -> list[Launch]:
        """The launches, each function and class once, in the order of their places."""
        return sorted(self._found.values(), key=lambda each: (each.path, each.line, each.function.qualname))

    def compiled(self, subject: Value, line: int, holder: Function) -> None:
        """Note that something is compiled.

        Args:
            subject: what.
            line: the line that does.
            holder: the function that holds the line.
        """
        for function, cls in self._functions(subject):
            key = (function, cls, False)
            if key not in self._found:
                given = self._bound.get(function, {})
                self._found[key] = self._launch(function, cls, line, holder, given)

    def passes_on(self, call: ast.Call, holder: Function) -> None:
        """Note whether a call that launches something takes it from what its function, or its object, was given.

        Args:
            call: the call.
            holder: the function that holds it.
        """
        names = {each.id for each in walk(call) if isinstance(each, ast.Name)}
        given = any(parameter.arg in names for parameter in holder.parameters if parameter.arg != "self")
        while holder.parent is not None and holder.owner is None:
            holder = holder.parent
            given = given or any(parameter.arg in names for parameter in holder.parameters if parameter.arg != "self")
        if holder.owner is None:
            if given:
                self.passing[holder] = None
        elif holder.name == "__init__" and given or _reads_given(call, holder.owner):
            self.passing[holder.owner] = None

    def hooked(self, module: Value, hook: Value, line: int, holder: Function) -> None:
        """Note that a hook is registered in a module, with the function whose calls it belongs to as far as known."""
        index = self.program.index
        owners = [*(cls for cls in ordered(module.classes) if isinstance(cls, Class)), holder.owner]
        methods = (index.method(owner, "forward") for owner in owners if owner is not None)
        caller = next((method for method in methods if method is not None), None)
        for function, cls in self._functions(hook):
            names = [parameter.arg for parameter in function.parameters][1 if cls is not None else 0 :]
            given: dict[str, Value] = dict(zip(names[:1], [module if module.kinds else UNKNOWN]))
            given.update(zip(names[1:2], [container(TENSOR_GUESS)]))
            launch = self._launch(function, cls, line, holder, given, caller, is_hook=True)
            self._found.setdefault((function, cls, True), launch)

    def bind(self, function: Value, arguments: Sequence[Value], keywords: Keywords) -> None:
        """Note the arguments that ``functools.partial`` binds."""
        for each in function.targets:
            called = each.function if isinstance(each, Bound) else each
            if isinstance(called, Function):
                names = [parameter.arg for parameter in called.parameters]
                given = dict(zip(names[1 if isinstance(each, Bound) else 0 :], arguments))
                given.update((name, value) for name, value in keywords if name in names)
                self._bound.setdefault(called, {}).update(given)

    def _launch(
        self,
        function: Function,
        cls: Class | None,
        line: int,
        holder: Function,
        given: Mapping[str, Value],
        hooked: Function | None = None,
        is_hook: bool = False,
    ) -> Launch:
        path, where = holder.module.path, holder.qualname
        root = self.program.active[0].module.path if self.program.active else path
        return Launch(self._own(function), cls, path, line, where, root, given, hooked, is_hook)

    def _own(self, function: Function) -> Function:
        """The one function that stands for a lambda of module level, whoever came across it."""
        return self.program.bindings.stand_in(function.module).nested.get(id(function.node), function)

    def _functions(self, subject: Value) -> Iterator[tuple[Function, Class | None]]:
        for each in ordered(subject.targets):
            yield from self._of_target(each)
        for cls in ordered(subject.classes):
            yield from self._of_instance(cls, subject)

    def _of_target(self, each: Target) -> Iterator[tuple[Function, Class | None]]:
        match each:
            case Function():
                yield each, None if has_decorator(each, "staticmethod") else each.owner
            case Bound(function=function, receiver=receiver):
                classes = [cls for cls in ordered(receiver.classes) if isinstance(cls, Class)]
                yield from ((function, cls) for cls in classes or (function.owner,))
            case Class():
                yield from self._of_instance(each, instance(each))
            case ObjectMethod(name="forward" | "__call__", receiver=receiver):
                for owner in ordered(receiver.classes):
                    yield from self._of_instance(owner, receiver)

    def _of_instance(self, cls: ClassRef, subject: Value) -> Iterator[tuple[Function, Class | None]]:
        if isinstance(cls, Class):
            name = "forward" if self.program.is_module(cls) else "__call__"
            method = self.program.index.method(cls, name)
            if method is not None:
                yield method, cls
        elif subject.element is not None:  # the stages of a Sequential, what a wrapper of modules holds
            for stage in subject.items or (subject.element,):
                yield from self._functions(stage)


def launching_call(name: str, arguments: list[Value], keywords: Keywords, node: ast.Call, holder: Interpreter) -> Value:
    """The value of a call of one of ``LAUNCHING``: what is compiled, or what compiles, disables or is bound.

    Args:
        name: the dotted name of what is called.
        arguments: the positional arguments.
        keywords: the keyword arguments.
        node: the call.
        holder: interprets the function that holds it.
    """
    launches = holder.program.launches
    off = any(key == "disable" and value.constant is True for key, value in keywords)
    if name in COMPILERS:
        subject = None if name in _TAKE_BACKEND else next(iter(arguments), dict(keywords).get("model"))
        if launches is not None and subject is not None and not off:
            launches.compiled(subject, node.lineno, holder.function)
            launches.passes_on(node, holder.function)
        return subject or (UNKNOWN if off else COMPILE)
    if name in DISABLERS:
        return external(DISABLED if arguments else name)
    if not arguments or (off and compiles(holder.program, arguments[0])):
        return UNKNOWN
    if launches is not None:
        launches.bind(arguments[0], arguments[1:], keywords)
    return arguments[0] if arguments[0].targets else UNKNOWN


def compiles(program: Program, value: Value) -> bool:
    """Whether a value is ``torch.compile`` or its like, ready to be given what to compile."""
    return any(
        (isinstance(each, ExternalName) and each.name in COMPILERS - _TAKE_BACKEND)
        or (isinstance(each, Function) and each.name == "compile" and program.is_runtime(each.module))
        for each in value.targets
    )


def _reads_given(call: ast.Call, owner: Class) -> bool:
    """Whether a call reads an attribute that the constructor of a class sets to what it is given."""
    read = {each.attr for each in walk(call) if isinstance(each, ast.Attribute)}
    made = owner.methods.get("__init__")
    names = {parameter.arg for parameter in made.parameters[1:]} if made is not None else set()
    for node in walk(made.node) if names and made is not None else ():
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if attr in read:
                if any(isinstance(each, ast.Name) and each.id in names for each in walk(value)):
                    return True
    return False


def has_decorator(function: Function, word: str) -> bool:
    """Whether a function has a decorator of Python's own."""
    return any(isinstance(each, ast.Name) and each.id == word for each in function.decorators)


def launching_paths(launches: Iterable[Launch], functions: set[Function]) -> set[str]:
    """The absolute paths of the files without which some functions would not be launched."""
    mine = [launch for launch in launches if launch.function in functions]
    return {os.path.abspath(path) for launch in mine for path in (launch.path, launch.root)}
