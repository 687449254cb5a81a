"""The effects of one call: what is called, and what is known of it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator

from graphmend.flow.doings import Doing, Effect
from graphmend.flow.failures import operation_failures
from graphmend.flow.frames import Frame
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import (
    Bound,
    ClassRef,
    ExternalName,
    Kind,
    ObjectMethod,
    Target,
    TensorMethod,
    Value,
    ordered,
)
from graphmend.model.index import External
from graphmend.model.module import Class, Function, Module
from graphmend.signatures import Signature
from graphmend.signatures.behaviour import behaviour

Follow = Callable[
    [Function, "ast.expr | None", "ast.Call | None", ast.AST, Frame, "list[Frame] | None"], Iterator[Doing]
]
_PLAIN_BASES = frozenset({"builtins.object", "typing.NamedTuple", "typing.Generic", "abc.ABC"})
_WRITING = frozenset({"__setattr__", "__delattr__"})
_ATTRIBUTE_WRITERS = frozenset({"builtins.setattr", "builtins.delattr"})


class Callees:
    """The effects of calls.

    Args:
        program: the program under analysis.
        follow: tells the effects of a called function of the linted files.
        whole: everything that calling a function may do.
    """

    def __init__(
        self, program: Program, follow: Follow, whole: Callable[[Function], tuple[tuple[Doing, Function], ...]]
    ) -> None:
        self.program = program
        self.follow = follow
        self.whole = whole
        self._hooks: dict[Module, bool] = {}

    def doings(self, node: ast.Call, frame: Frame, callees: list[Frame] | None) -> Iterator[Doing]:
        """The effects of a call, those of evaluating its arguments left out."""
        callee = frame.facts.value(node.func)
        for target in ordered(callee.targets):
            yield from self._target(target, node, frame, callees)
        if callee.may(Kind.OBJECT):
            for cls in ordered(callee.classes):
                yield from self._object(cls, callee, node, frame, callees)
        if not self._is_known(callee, node, frame):
            if self._speaks_of_hooks(frame.function.module):
                yield Doing(Effect.STATEFUL, f"calls `{brief(node.func)}`, which may have hooks", node)
            yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known", node)
        # What is handed to a call may be called by it.
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            for target in ordered(frame.facts.value(argument).targets):
                if isinstance(target, ObjectMethod) and target.name in self.program.python.writers:
                    what = f"hands on `{brief(argument)}`, which changes what it belongs to"
                    yield Doing(Effect.WRITES, what, node)
                if isinstance(target, (Function, Bound)):
                    function = target if isinstance(target, Function) else target.function
                    yield from self.follow(function, None, None, node, frame, callees)

    def _is_known(self, callee: Value, node: ast.Call, frame: Frame) -> bool:
        """Whether nothing else can be called than what the facts name."""
        if not callee.targets and not callee.classes:
            # A method that only reads a plain Python value.
            plain = Kind.STATIC | Kind.SIZE | Kind.NONE
            method = isinstance(node.func, ast.Attribute) and node.func.attr in self.program.python.readers
            return method and isinstance(node.func, ast.Attribute) and frame.facts.value(node.func.value).only(plain)
        # What is known of a method does not hang on which of the possible objects it is read from.
        method = bool(callee.targets) and all(isinstance(each, (TensorMethod, ObjectMethod)) for each in callee.targets)
        return method or not callee.may(Kind.UNKNOWN | Kind.STATIC)

    def _target(self, target: Target, node: ast.Call, frame: Frame, callees: list[Frame] | None) -> Iterator[Doing]:
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        match target:
            case Function():
                yield from self.follow(target, None, node, node, frame, callees)
            case Bound(function=function):
                yield from self.follow(function, receiver, node, node, frame, callees)
            case Class():
                yield from self._construct(target, node)
            case ExternalName(name=name):
                yield from self._external(name, node, frame)
            case TensorMethod(name=name):
                signature = self.program.torch.method(name)
                if signature is not None:
                    yield from self._operation(signature, receiver, node, frame)
                else:
                    yield Doing(Effect.UNKNOWN, f"calls the tensor method `{name}`, which is not known", node)
            case ObjectMethod(owner=owner, name="forward" | "__call__") if self.program.torch.is_module_class(owner):
                yield from self._external_object(owner, target.receiver, node, frame, callees)
            case ObjectMethod(owner=owner, name=name):
                yield from self._object_method(owner, name, node)
            case _:
                yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known", node)

    # ---------------------------------------------------------------- functions of libraries

    def _external(self, name: str, node: ast.Call, frame: Frame) -> Iterator[Doing]:
        tables = behaviour()
        signature = self.program.torch.function(name)
        if name in tables.switches and not isinstance(frame.parents.get(id(node)), ast.withitem):
            yield Doing(Effect.WRITES, f"switches how what follows is computed (`{brief(node.func)}`)", node)
            return
        if name in self.program.torch.selections or name in tables.contexts or name in tables.pure:
            return
        if self._keeps_statistics(name, node, frame):
            yield Doing(Effect.STATEFUL, f"calls `{brief(node.func)}`, which updates what it is given", node)
        if name in tables.changing:
            yield Doing(Effect.WRITES, f"changes its argument (`{brief(node)}`)", node)
            return
        if name in tables.advancing:
            if not (node.args and isinstance(node.args[0], ast.Call)):
                yield Doing(Effect.MUTATES, f"takes the next element of an iterator (`{brief(node)}`)", node)
            return
        if name in tables.messages or name.startswith(("logging.", "warnings.")):
            yield Doing(Effect.MESSAGE, f"emits a message (`{brief(node.func)}`)", node)
        elif signature is not None:
            yield from self._operation(signature, None, node, frame)
        elif name in _ATTRIBUTE_WRITERS or name.endswith((".__setattr__", ".__delattr__")):
            attribute = _constant_text(node.args[1]) if len(node.args) > 1 else ""
            yield Doing(Effect.WRITES, "writes an attribute", node, attribute, node.args[0] if node.args else None)
        else:
            data = any(frame.facts.value(argument).depends_on_data for argument in node.args)
            if data and (name in tables.reading or name.startswith("math.")):
                yield Doing(Effect.READS, f"reads the value of a tensor (`{brief(node)}`)", node)
            if not self.program.python.is_pure(name) and not _is_exception(name):
                yield Doing(Effect.UNKNOWN, f"calls `{name}`, which is not known to be pure", node)

    def _operation(
        self, signature: Signature, receiver: ast.expr | None, node: ast.Call, frame: Frame
    ) -> Iterator[Doing]:
        if self._draws(signature, node, frame):
            yield Doing(Effect.RANDOM, f"draws random numbers (`{signature.name}`)", node)
        operands = [*([receiver] if receiver is not None else []), *node.args]
        operands += [keyword.value for keyword in node.keywords]
        yield from operation_failures(signature, operands, node, frame)

    def _draws(self, signature: Signature, node: ast.Call, frame: Frame) -> bool:
        asked = behaviour().draw_if.get(signature.name)
        if asked is None:
            return signature.has("random")
        given = [keyword.value for keyword in node.keywords if keyword.arg == asked.name]
        given += node.args[asked.position : asked.position + 1]
        if not given:
            return asked.missing
        constant = frame.facts.value(given[0]).constant
        return not (isinstance(constant, (int, float)) and not constant)

    def _keeps_statistics(self, called: str, node: ast.Call, frame: Frame) -> bool:
        """Whether a function of torch is handed something that it keeps up to date."""
        known = behaviour().keep_statistics if called.startswith("torch.") else {}
        name, position = known.get(called.rpartition(".")[2], ("", 0))
        given = [keyword.value for keyword in node.keywords if name and keyword.arg in (name, None)]
        given += node.args[position : position + 1] if name else []
        return any(not frame.facts.value(each).only(Kind.NONE) for each in given)

    def _construct(self, cls: Class, node: ast.Call) -> Iterator[Doing]:
        index = self.program.index
        if self.program.is_module(cls):
            what = f"makes a module (`{cls.name}`), whose parameters are drawn at random"
            yield Doing(Effect.RANDOM, what, node)
            return
        if {base.name for base in index.mro(cls) if isinstance(base, External)} - _PLAIN_BASES:
            yield Doing(Effect.UNKNOWN, f"makes a `{cls.name}`, which is not known to be pure", node)
            return
        for method in (index.method(cls, name) for name in ("__init__", "__post_init__", "__new__")):
            for doing, function in self.whole(method) if method is not None else ():
                # A constructor may write into the object that it makes.
                own = function.parameters[0].arg if function.parameters else ""
                made = function is method and isinstance(doing.receiver, ast.Name) and doing.receiver.id == own
                if not (doing.effect is Effect.WRITES and made):
                    place = f"{function.module.path}:{doing.line}"
                    what = f"makes a `{cls.name}`, whose `{function.name}` {doing.what} ({place})"
                    yield Doing(doing.effect, what, node)

    # ---------------------------------------------------------------- objects

    def _object(
        self, cls: ClassRef, callee: Value, node: ast.Call, frame: Frame, callees: list[Frame] | None
    ) -> Iterator[Doing]:
        if self.program.is_module(cls) and self._has_hooks(cls, frame):
            what = f"calls `{brief(node.func)}`, whose hooks or parametrizations may change it"
            yield Doing(Effect.STATEFUL, what, node)
        if isinstance(cls, ExternalName):
            yield from self._external_object(cls.name, callee, node, frame, callees)
            return
        if self.program.is_module(cls):
            around = self.program.index.method(cls, "__call__")
            if around is not None:
                yield from self.follow(around, node.func, node, node, frame, callees)
        method = self.program.index.method(cls, "forward" if self.program.is_module(cls) else "__call__")
        if method is None:
            yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known", node)
        else:
            yield from self.follow(method, node.func, node, node, frame, callees)

    def _has_hooks(self, cls: ClassRef, frame: Frame) -> bool:
        """Whether the files of a module's class and of its caller have a word for something that runs at its calls."""
        modules = {frame.function.module} | ({cls.module} if isinstance(cls, Class) else set())
        return any(map(self._speaks_of_hooks, modules))

    def _speaks_of_hooks(self, module: Module) -> bool:
        known = self._hooks.get(module)
        if known is None:
            known = self._hooks[module] = any(word in module.source.text for word in behaviour().hooking)
        return known

    def _external_object(
        self, name: str, callee: Value, node: ast.Call, frame: Frame, callees: list[Frame] | None
    ) -> Iterator[Doing]:
        text, torch, tables = f"`{brief(node.func)}` ({name.rpartition('.')[2]})", self.program.torch, behaviour()
        if name in torch.stateful:
            yield Doing(Effect.STATEFUL, f"calls {text}, which updates its statistics in training", node)
        elif name in torch.random_modules:
            yield Doing(Effect.RANDOM, f"calls {text}, which draws random numbers in training", node)
        elif name in tables.partial_modules:
            yield Doing(Effect.FAILS, f"calls {text}, which may fail for some values of its argument", node)
        elif name in torch.module_containers and callee.element is not None:
            for stage in callee.items or (callee.element,):
                if not stage.classes or not stage.only(Kind.OBJECT):
                    yield Doing(Effect.UNKNOWN, f"calls {text}, whose stages are not known", node)
                for cls in ordered(stage.classes):
                    yield from self._object(cls, stage, node, frame, callees)
        elif name not in tables.pure_modules:
            yield Doing(Effect.UNKNOWN, f"calls {text}, which is not known to be pure", node)

    def _object_method(self, owner: str, name: str, node: ast.Call) -> Iterator[Doing]:
        python, tables = self.program.python, behaviour()
        if owner in ("list", "dict"):
            if name not in python.readers and name not in python.writers:
                yield Doing(Effect.UNKNOWN, f"calls the method `{name}` of a container", node)
        elif owner == "builtins.object":
            if name in _WRITING:
                attribute = _constant_text(node.args[0]) if node.args else ""
                yield Doing(Effect.WRITES, "writes an attribute", node, attribute)
        elif owner.startswith("logging."):
            yield Doing(Effect.MESSAGE, f"logs a message (`{brief(node.func)}`)", node)
        elif self.program.torch.is_module_class(owner) and name in tables.registering:
            attribute = _constant_text(node.args[0]) if node.args else ""
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            yield Doing(Effect.WRITES, f"registers `{attribute}`", node, attribute, receiver)
        elif not (self.program.torch.is_module_class(owner) and name in tables.module_readers):
            yield Doing(Effect.UNKNOWN, f"calls `{brief(node.func)}`, which is not known to be pure", node)


def _constant_text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_exception(name: str) -> bool:
    """Whether a dotted name is one of Python's own exceptions, which are made without an effect."""
    module, _, short = name.rpartition(".")
    made = getattr(builtins, short, None)
    return module == "builtins" and isinstance(made, type) and issubclass(made, BaseException)
