"""Statements that only observe: they print, log, warn or raise, and change nothing that the graph reads."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from graphmend.fixes.capture import Capturer, Context
from graphmend.fixes.carry import is_path, root_of
from graphmend.fixes.names import Scope, check_fresh, scope_of
from graphmend.fixes.site import Refused
from graphmend.flow.values import ExternalName, Kind, ObjectMethod
from graphmend.model.index import External
from graphmend.model.module import Class, Function
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log"})
_LOGGERS = frozenset({"logging.Logger", "logging.LoggerAdapter"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"})
_FRAMES = 2
"""How many frames lie between the body of an effect and the function that the message stood in: see docs/runtime.md."""
_LOGGER = frozenset({ExternalName(name) for name in _LOGGERS})


@dataclass
class Observation:
    """What moved statements do.

    Args:
        kinds: ``print``, ``log``, ``warn``, ``raise``, or ``call`` for what a rule declares to observe.
        raised: the exception classes that the statements raise, as written.
        assigned: names that the statements bind for themselves.
        replaced: expressions of the text (loggers, stack levels), with what stands for them in the effect.
    """

    kinds: list[str] = field(default_factory=list)
    raised: list[ast.expr] = field(default_factory=list)
    assigned: set[str] = field(default_factory=set)
    replaced: list[tuple[ast.expr, str]] = field(default_factory=list)


class Observer:
    """Looks at each statement that is to move, and has its expressions captured.

    Args:
        capturer: what collects the arguments.
        declared: a call that its rule declares to observe, whatever it calls.
    """

    def __init__(self, capturer: Capturer, declared: ast.AST | None = None) -> None:
        self.capturer = capturer
        self.site = capturer.site
        self.facts = capturer.facts
        self.declared = declared
        self.found = Observation()

    def block(self, statements: Iterable[ast.stmt], context: Context) -> None:
        """Take the statements of a block along.

        Raises:
            Refused: one of them does more than observe.
        """
        for statement in statements:
            context = self.statement(statement, context)

    def statement(self, statement: ast.stmt, context: Context, chained: bool = False) -> Context:
        """Take one statement along; returns the context of those that follow it in the same block."""
        later = replace(context, early=False)
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return context
            case ast.Expr(value=ast.Call() as call):
                self.message(call, context)
            case ast.Raise():
                self._raise(statement, later)
            case ast.Assert(test=test, msg=message):
                self.found.kinds.append("raise")
                self.found.raised.append(ast.copy_location(ast.Name("AssertionError", ast.Load()), statement))
                self.capturer.expression(test, context)
                if message is not None:
                    self.capturer.expression(message, later.inside())
            case ast.If(test=test, body=body, orelse=orelse):
                self.capturer.expression(test, context)
                self.block(body, later.inside())
                if _is_elif(statement):
                    # The conditions of a chain are what is usually evaluated, unlike what its branches hold.
                    self.statement(orelse[0], context.inside(), chained=True)
                else:
                    self.block(orelse, later.inside())
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self._assign(statement, name, value, context)
            case _:
                raise self.capturer.refuse(
                    Obligation.ONLY_OBSERVES,
                    f"`{_first_line(statement)}` does more than print, log, warn or raise",
                    statement,
                )
        return context

    def _assign(self, statement: ast.stmt, name: str, value: ast.expr, context: Context) -> Context:
        if scope_of(self.site, name) is not Scope.LOCAL:
            raise self.capturer.refuse(
                Obligation.ONLY_OBSERVES, f"`{name}` is a name of the module and is bound here", statement
            )
        self.capturer.expression(value, context)
        self.found.assigned.add(name)
        return replace(context, bound=context.bound | {name})

    # ---------------------------------------------------------------- messages

    def message(self, call: ast.Call, context: Context) -> None:
        """Take a call that prints, logs or warns along."""
        kind = "call" if call is self.declared else self._kind(call)
        self.found.kinds.append(kind)
        self._callee(call, kind, context)
        later = replace(context, early=context.early and not context.conditional)
        for keyword in call.keywords:
            self._check_keyword(call, keyword, kind)
        if kind in ("warn", "log"):
            self._check_level(call, kind)
        if kind == "log" and self._is_cached(call):
            self._check_hashed(call)
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        for argument in arguments:
            if kind == "warn" and isinstance(argument, ast.Call) and self._exception(argument.func) is not None:
                for part in (*argument.args, *(keyword.value for keyword in argument.keywords)):
                    self.capturer.expression(part, later)
            else:
                self.capturer.expression(argument, later)

    def _kind(self, call: ast.Call) -> str:
        value = self.facts.value(call.func)
        kinds: set[str] = set()
        for target in value.targets:
            match target:
                case ExternalName(name="builtins.print"):
                    kinds.add("print")
                case ExternalName(name="warnings.warn"):
                    kinds.add("warn")
                case ExternalName(name=name) if (
                    name.rpartition(".")[0] == "logging" and name.rpartition(".")[2] in _LEVELS
                ):
                    kinds.add("log")
                case ObjectMethod(owner=owner, name=name) if owner in _LOGGERS and name.partition("_")[0] in _LEVELS:
                    kinds.add("log")
                case _:
                    kinds.add("")
        if len(kinds) != 1 or "" in kinds or value.may(Kind.UNKNOWN | Kind.OBJECT):
            raise self.capturer.refuse(
                Obligation.ONLY_OBSERVES, f"`{ast.unparse(call.func)}` is not known to only print, log or warn", call
            )
        return kinds.pop()

    def _callee(self, call: ast.Call, kind: str, context: Context) -> None:
        func = call.func
        root = root_of(func)
        if isinstance(root, ast.Name) and is_path(func):
            if scope_of(self.site, root.id) is Scope.GLOBAL and root.id not in context.bound:
                check_fresh(self.site, func.value if kind == "log" and isinstance(func, ast.Attribute) else func)
                return
        elif kind == "log" and isinstance(func, ast.Attribute) and self._is_lookup(func.value):
            return
        if kind == "log" and isinstance(func, ast.Attribute) and self.capturer.carrier.is_logger(func.value):
            self.capturer.expression(func.value, context)
            return
        what = ast.unparse(func.value if isinstance(func, ast.Attribute) else func)
        raise self.capturer.refuse(
            Obligation.CARRIABLE_ARGUMENTS,
            f"`{what}` belongs to the function or its object, and the message would have to take it along; "
            "use a name of the module",
            call,
        )

    def _is_lookup(self, node: ast.expr) -> bool:
        """Whether an expression fetches a logger by names of the module only: ``get_logger(__name__)``."""
        if (
            not isinstance(node, ast.Call)
            or not self.facts.value(node).classes <= _LOGGER
            or not self.facts.value(node).classes
        ):
            return False
        for part in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(part, ast.Constant):
                continue
            root = root_of(part)
            if not is_path(part) or not isinstance(root, ast.Name) or scope_of(self.site, root.id) is not Scope.GLOBAL:
                return False
        return True

    # ---------------------------------------------------------------- what a message may be given

    def _check_keyword(self, call: ast.Call, keyword: ast.keyword, kind: str) -> None:
        value, name = keyword.value, keyword.arg
        if name is None:
            raise self.capturer.refuse(
                Obligation.SUPPORTED_FORM, "the keyword arguments of the message are not written out", call
            )
        constant = value.value if isinstance(value, ast.Constant) else self
        if kind == "print" and name == "file" and constant is not None:
            names = {target.name for target in self.facts.value(value).targets if isinstance(target, ExternalName)}
            if not names or not names <= _STREAMS:
                raise self.capturer.refuse(
                    Obligation.CARRIABLE_ARGUMENTS,
                    f"`{ast.unparse(value)}` is a file that no operator in a graph can carry",
                    call,
                )
        if kind == "log" and name == "exc_info" and constant not in (None, False, 0):
            raise self._exception_only_here(call)
        if kind == "log" and name == "stack_info" and constant not in (None, False, 0):
            raise self.capturer.refuse(
                Obligation.CALLER_LOCATION, "`stack_info` records the calling functions, which would be others", call
            )
        if kind == "warn" and name in ("skip_file_prefixes", "source"):
            raise self.capturer.refuse(
                Obligation.CALLER_LOCATION, f"`{name}` depends on the calling functions, which would be others", call
            )

    def _exception_only_here(self, call: ast.Call) -> Refused:
        return self.capturer.refuse(
            Obligation.CALLER_LOCATION,
            "the record holds the exception that is being handled, which exists only here",
            call,
        )

    def _check_level(self, call: ast.Call, kind: str) -> None:
        """Have the line of the message reported where its `stacklevel` asks for it."""
        named = next((keyword.value for keyword in call.keywords if keyword.arg == "stacklevel"), None)
        level = call.args[2] if named is None and kind == "warn" and len(call.args) > 2 else named
        if level is None:
            return
        if not isinstance(level, ast.Constant) or level.value != 1 or len(call.args) > 3:
            raise self.capturer.refuse(
                Obligation.CALLER_LOCATION,
                "`stacklevel` asks for the line of a caller, which a graph does not know",
                call,
            )
        if kind == "warn" or not self._is_cached(call):
            text = str(1 + _FRAMES)
            # Written with its name: that is how the runtime sees that the line is asked for.
            self.found.replaced.append((level, text if level is named else f"stacklevel={text}"))

    def _is_cached(self, call: ast.Call) -> bool:
        """Whether what logs is a method that a library added, which may remember its arguments."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if not name:  # imported: `from logging import info`
            named = {each.name for each in self.facts.value(call.func).targets if isinstance(each, ExternalName)}
            name = named.pop().rpartition(".")[2] if len(named) == 1 else ""
        if name == "exception":
            raise self._exception_only_here(call)
        return name not in _LEVELS

    def _check_hashed(self, call: ast.Call) -> None:
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            if self.facts.value(argument).may(Kind.TENSOR | Kind.UNKNOWN | Kind.OBJECT):
                raise self.capturer.refuse(
                    Obligation.CARRIABLE_ARGUMENTS,
                    f"`{ast.unparse(call.func)}` may remember the object `{ast.unparse(argument)}`, which is "
                    "another one each time in compiled code",
                    call,
                )

    # ---------------------------------------------------------------- raising

    def _raise(self, statement: ast.Raise, context: Context) -> None:
        self.found.kinds.append("raise")
        exception, cause = statement.exc, statement.cause
        if exception is None:
            raise self.capturer.refuse(
                Obligation.SUPPORTED_FORM, "a bare `raise` needs the exception that is being handled", statement
            )
        if cause is not None and not (isinstance(cause, ast.Constant) and cause.value is None):
            raise self.capturer.refuse(
                Obligation.CARRIABLE_ARGUMENTS,
                "an exception is no value that an operator in a graph can carry",
                statement,
            )
        called = exception.func if isinstance(exception, ast.Call) else exception
        if self._exception(called) is None:
            raise self.capturer.refuse(
                Obligation.CARRIABLE_ARGUMENTS if not isinstance(exception, ast.Call) else Obligation.ONLY_OBSERVES,
                f"`{ast.unparse(called)}` is not known to be an exception class of the module",
                statement,
            )
        self.found.raised.append(called)
        if isinstance(exception, ast.Call):
            for argument in (*exception.args, *(keyword.value for keyword in exception.keywords)):
                self.capturer.expression(argument, context)

    def _exception(self, node: ast.expr) -> ast.expr | None:
        """The node itself if it names an exception class whose constructor does nothing but make the exception."""
        root = root_of(node)
        if not is_path(node) or not isinstance(root, ast.Name) or scope_of(self.site, root.id) is not Scope.GLOBAL:
            return None
        definitions = self.site.program.index.dotted(self.site.module, node)
        return node if definitions and all(self._makes_exception(definition) for definition in definitions) else None

    def _makes_exception(self, definition: object) -> bool:
        if isinstance(definition, External):
            owner, _, name = definition.name.rpartition(".")
            if owner == "builtins":
                known = getattr(builtins, name, None)
                return isinstance(known, type) and issubclass(known, BaseException)
            return name[:1].isupper()
        if not isinstance(definition, Class):
            return False
        chain = self.site.program.index.mro(definition)
        based = any(
            isinstance(base, External) and self._makes_exception(base) and base.name != "builtins.object"
            for base in chain
        )
        methods = [
            base.methods[name]
            for base in chain
            if isinstance(base, Class)
            for name in ("__init__", "__new__")
            if name in base.methods
        ]
        return based and all(_only_fills(method) for method in methods)


def _only_fills(method: Function) -> bool:
    """Whether a constructor does nothing but set attributes of its object and call the next constructor."""
    own = method.parameters[0].arg if method.parameters else ""
    for node in walk(method.node):
        match node:
            case (
                ast.Global() | ast.Nonlocal() | ast.Import() | ast.ImportFrom() | ast.With() | ast.Yield() | ast.Await()
            ):
                return False
            case ast.Attribute(value=value, ctx=ast.Store() | ast.Del()) if not _is_name(value, own):
                return False
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                return False
            case ast.Call(func=func):
                plain = isinstance(func, ast.Name) and func.id in (
                    "super",
                    "str",
                    "repr",
                    "len",
                    "type",
                    "isinstance",
                    "format",
                )
                chained = isinstance(func, ast.Attribute) and func.attr in ("__init__", "__new__", "format", "join")
                if not plain and not chained:
                    return False
    return True


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_elif(statement: ast.If) -> bool:
    return len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)


def _first_line(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]
