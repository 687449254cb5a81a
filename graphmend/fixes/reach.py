"""Functions that must stay as they are because of who runs them: arms of a selection, caches, TorchScript."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import TypeGuard

from graphmend.fixes.site import Refused, Site
from graphmend.flow.program import Program
from graphmend.model.index import External
from graphmend.model.module import Class, Function, ImportBinding, Module
from graphmend.model.tree import walk
from graphmend.obligations import Obligation
from graphmend.regions.entries import COMPILERS, SCRIPTERS, is_runtime

_ARMS_BY_NAME = frozenset({
    "cond", "while_loop", "scan", "associative_scan", "flex_attention", "create_block_mask", "create_mask",
    "create_nested_block_mask", "vmap", "select", "switch", "map_impl", "invoke_subgraph", "nested_compile_region",
})  # fmt: skip
_ARMS_BY_PREFIX = ("torch._higher_order_ops.", "torch.func.", "functorch.", "torch._functorch.")
_NOT_ARMS = frozenset({"torch.func.functional_call", "torch.func.stack_module_state"})
_SCRIPT_CALLS = frozenset(name.rpartition(".")[2] for name in SCRIPTERS)
# A file without any of these words is not looked at: plain substrings, since there may be thousands of files.
_PREFIX_WORDS = ("_higher_order_ops", "functorch", "torch.func", "import func")
_ARM_WORDS = (
    *_PREFIX_WORDS,
    *(
        "while_loop",
        "associative_scan",
        "flex_attention",
        "create_block_mask",
        "create_nested_block_mask",
        "create_mask(",
    ),
    *("vmap", "invoke_subgraph", "nested_compile_region", "torch.cond", "import cond", "torch.scan"),
    *(
        "graphmend.select",
        "graphmend import",
        "graphmend as",
        "torch.switch",
        "map_impl",
        "autograd.Function",
        "import Function",
    ),
)
_SCRIPT_WORDS = tuple(f"jit.{name}" for name in (*_SCRIPT_CALLS, "is_scripting", "unused", "ignore", "Script"))
_SCRIPT_IMPORTS = ("from torch.jit import", "from torch import jit", "torch.jit as ")
_SCRIPT_MARKS = frozenset({"torch.jit.unused", "torch.jit.ignore", "torch.jit.export"})
_AUTOGRAD_FUNCTION = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})

_CACHES = frozenset({"functools.lru_cache", "functools.cache", "functools.cached_property"})
_CACHE_WORDS = ("lru_cache", "functools.cache", "import cache", "cached_property")

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEF = (*_NAMED, ast.Lambda)


class Reach:
    """Which functions are reached from arms and from TorchScript, found once a program.

    Args:
        program: the program under analysis.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._callees: dict[int, list[Function]] = {}
        self._classes: dict[Module, list[tuple[int, int, Class]]] = {}
        for function, state in program.states.items():
            for caller in state.callers:
                self._callees.setdefault(id(caller.node), []).append(function)
        self._with_prefixes: set[Module] = set()
        self._arms: dict[int, str] = {}
        self._scripted: dict[int, str] = {}
        self._cached: dict[int, str] = {}
        program.index.load_where(_may_run)
        for module in program.index.modules().values():
            if program.is_runtime(module):
                continue
            text = module.source.text
            if any(word in text for word in _PREFIX_WORDS):
                self._with_prefixes.add(module)
            if any(word in text for word in _ARM_WORDS):
                self._find_arms(module)
            if any(word in text for word in _CACHE_WORDS):
                self._find_cached(module)
            if _may_script(text):
                self._find_scripted(module)

    def arm(self, function: Function) -> str | None:
        """Why a function may run as an arm, or inside a transform; ``None`` if it does not."""
        return self._look_up(self._arms, function)

    def cached(self, function: Function) -> str | None:
        """Why Python runs a function only for new arguments; ``None`` if it does not."""
        return self._look_up(self._cached, function)

    def scripted(self, function: Function) -> str | None:
        """Why TorchScript may compile a function; ``None`` if nothing says so."""
        return self._look_up(self._scripted, function)

    @staticmethod
    def _look_up(found: dict[int, str], function: Function) -> str | None:
        scope: Function | None = function
        while scope is not None:
            if id(scope.node) in found:
                return found[id(scope.node)]
            scope = scope.parent
        return None

    # ---------------------------------------------------------------- arms

    def _find_arms(self, module: Module) -> None:
        for node in module.nodes:
            if isinstance(node, ast.Call):
                taker = self._takes_arms(module, node.func)
                if taker:
                    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                        for owner, arm in self._functions(module, argument):
                            self._mark(
                                self._arms,
                                owner,
                                arm,
                                f"it is reached from a function that `{taker}` runs ({module.path}:{node.lineno})",
                            )
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for decorator in node.decorator_list:
                    parts = [decorator.func, *decorator.args] if isinstance(decorator, ast.Call) else [decorator]
                    taker = next(filter(None, (self._takes_arms(module, part) for part in parts)), "")
                    if taker:
                        self._mark(self._arms, module, node, f"`{node.name}` is run by `{taker}`")
            elif isinstance(node, ast.ClassDef) and self._is_autograd(module, node):
                for statement in node.body:
                    if isinstance(statement, _DEF):
                        self._mark(
                            self._arms, module, statement, f"it is reached from the autograd function `{node.name}`"
                        )

    def _find_cached(self, module: Module) -> None:
        for node in module.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                made = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
                for name in sorted({name for each in made for name in self._names(module, each)} & _CACHES):
                    self._mark(self._cached, module, node, f"`{name}` keeps the result of `{node.name}`")
            elif isinstance(node, ast.Call) and node.args and self._names(module, node.func) & _CACHES:
                for owner, function in self._functions(module, node.args[0]):
                    self._mark(self._cached, owner, function, f"its result is kept ({module.path}:{node.lineno})")

    def _takes_arms(self, module: Module, callee: ast.expr) -> str:
        name = _last(callee)
        if not name or (name not in _ARMS_BY_NAME and module not in self._with_prefixes):
            return ""
        found = self.program.index.dotted(module, callee)
        for definition in found:
            if isinstance(definition, External):
                dotted = definition.name
                torch_like = dotted.startswith(("torch.", "graphmend.", "functorch."))
                if (
                    torch_like
                    and (name in _ARMS_BY_NAME or dotted.startswith(_ARMS_BY_PREFIX))
                    and dotted not in _NOT_ARMS
                ):
                    return dotted if dotted not in ("torch.select", "torch.Tensor.select") else ""
            elif isinstance(definition, Function) and is_runtime(definition.module) and name in _ARMS_BY_NAME:
                return name
        # Imported inside a function: only the name tells.
        return name if name in _ARMS_BY_NAME - {"select", "map_impl", "switch", "scan"} and not found else ""

    def _is_autograd(self, module: Module, node: ast.ClassDef) -> bool:
        return any(
            isinstance(definition, External) and definition.name in _AUTOGRAD_FUNCTION
            for base in node.bases
            for definition in self.program.index.dotted(module, base)
        )

    # ---------------------------------------------------------------- TorchScript

    def _find_scripted(self, module: Module) -> None:
        calls = _script_calls(module)
        for node in module.nodes:
            if (
                isinstance(node, ast.Call)
                and node.args
                and _last(node.func) in calls
                and self._names(module, node.func) & SCRIPTERS
            ):
                reason = f"`torch.jit.script` compiles what calls it ({module.path}:{node.lineno})"
                found = self._made(module, node.args[0])
                for owner, scripted in found:
                    self._mark(self._scripted, owner, scripted, reason)
                if not found:
                    self._mark_file(module, node.lineno)
            elif (
                isinstance(node, ast.expr)
                and _last(node) == "is_scripting"
                and "torch.jit.is_scripting" in self._names(module, node)
            ):
                self._mark_around(module, node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
                names = {name for each in decorators for name in self._names(module, each)}
                if names & SCRIPTERS:
                    self._mark(self._scripted, module, node, f"it is reached from the scripted function `{node.name}`")
                elif names & _SCRIPT_MARKS:
                    self._mark_class(module, node.lineno, "its class has parts that are marked for TorchScript")
        self._find_scripters(module)
        for cls in module.classes:
            if any(
                isinstance(base, External) and base.name.startswith("torch.jit.Script")
                for base in self.program.index.mro(cls)
            ):
                for method in cls.methods.values():
                    self._mark(self._scripted, module, method.node, f"its class `{cls.name}` is a script module")

    def _find_scripters(self, module: Module) -> None:
        """The places where ``torch.jit.script`` is given another name, or is passed on."""
        calls, used = _script_calls(module), set[int]()
        for node in module.nodes:
            used.add(id(getattr(node, "func", None)))
            for decorator in getattr(node, "decorator_list", ()):
                used.add(id(decorator))
        for node in module.nodes:
            if (
                isinstance(node, (ast.Name, ast.Attribute))
                and isinstance(node.ctx, ast.Load)
                and _last(node) in calls
                and id(node) not in used
                and self._names(module, node) & SCRIPTERS
            ):
                self._mark_file(module, node.lineno)

    def _mark_file(self, module: Module, line: int) -> None:
        """Mark all of a file in which something is scripted that is not known, and all of what it imports."""
        place = f"{module.path}:{line}"
        reason = f"`torch.jit.script` compiles something that is not known ({place})"
        for each in {module, *self._imported(module)}:
            for function in each.functions:
                self._scripted.setdefault(id(function.node), reason)

    def _imported(self, module: Module) -> Iterator[Module]:
        """The linted files from which a file imports something."""
        for bindings in module.bindings.values():
            for binding in bindings:
                for found in self.program.index.resolve(binding.target) if isinstance(binding, ImportBinding) else ():
                    if isinstance(found, (Function, Class)):
                        yield found.module
                    elif isinstance(found, Module):
                        yield found

    def _mark_around(self, module: Module, node: ast.expr) -> None:
        reason = "code that calls it asks `torch.jit.is_scripting()`, so TorchScript compiles it at times"
        for function in module.functions:
            if function.node.lineno <= node.lineno <= (function.node.end_lineno or 0):
                self._mark(self._scripted, module, function.node, reason)
        self._mark_class(module, node.lineno, reason)

    def _mark_class(self, module: Module, line: int, reason: str) -> None:
        cls = self._class_at(module, line)
        for method in cls.methods.values() if cls is not None else ():
            self._scripted.setdefault(id(method.node), reason)

    def _names(self, module: Module, expression: ast.expr) -> set[str]:
        return {found.name for found in self.program.index.dotted(module, expression) if isinstance(found, External)}

    # ---------------------------------------------------------------- following calls

    def _mark(self, found: dict[int, str], module: Module, start: ast.AST, reason: str) -> None:
        """Mark a function and everything that it calls."""
        stack: list[tuple[Module, ast.AST]] = [(module, start)]
        while stack:
            owner, node = stack.pop()
            if id(node) in found:
                continue
            found[id(node)] = reason
            stack += [(callee.module, callee.node) for callee in self._callees.get(id(node), ())]
            for call in walk(node):
                if isinstance(call, ast.Call):
                    stack += [(callee.module, callee.node) for callee in self._called(owner, call.func)]
                elif isinstance(call, _DEF) and call is not node:
                    stack.append((owner, call))

    def _functions(self, module: Module, expression: ast.expr) -> Iterator[tuple[Module, ast.AST]]:
        """The functions that an expression names, itself or in its parts, each with its file."""
        yield from self._named(module, expression)
        match expression:
            case ast.Call(args=arguments):  # functools.partial, a constructor
                for each in (*arguments, expression.func):
                    yield from self._functions(module, each)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                for element in elements:
                    yield from self._functions(module, element)

    def _named(self, module: Module, node: ast.expr) -> Iterator[tuple[Module, ast.AST]]:
        """The functions that a lambda, a name or an attribute stands for, each with its file."""
        match node:
            case ast.Lambda():
                yield module, node
            case ast.Name(id=name):
                yield from ((function.module, function.node) for function in self._called(module, node))
                for each in module.nodes:
                    if isinstance(each, _NAMED) and each.name == name:
                        yield module, each
                    elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Lambda) and _binds(each, name):
                        yield module, each.value
            case ast.Attribute():
                yield from ((function.module, function.node) for function in self._called(module, node))

    def _made(self, module: Module, expression: ast.expr) -> list[tuple[Module, ast.AST]]:
        """The functions that run if what an expression stands for is called, each with its file.

        They are followed through assignments, calls of methods (``Net().eval()``), what functions return, and the
        arguments that callers give.
        """
        found: list[tuple[Module, ast.AST]] = []
        seen: set[int] = set()
        pending = [(module, expression)]
        while pending:
            owner, node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            found += self._named(owner, node)
            pending += self._sources(owner, node)
        return found

    def _sources(self, module: Module, node: ast.expr) -> Iterator[tuple[Module, ast.expr]]:
        """The expressions from which a value may come."""
        match node:
            case ast.Call(func=func, args=arguments, keywords=keywords):
                yield from ((module, each) for each in (func, *arguments, *(keyword.value for keyword in keywords)))
                for function in self._called(module, func):
                    returns = (each.value for each in walk(function.node) if isinstance(each, ast.Return))
                    yield from ((function.module, value) for value in returns if value is not None)
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                yield module, value
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                yield from ((module, each) for each in elements)
            case ast.Name(id=name):
                yield from ((module, each.value) for each in module.nodes if _binds(each, name) and each.value)
                yield from self._given(module, name, node.lineno)

    def _given(self, module: Module, name: str, line: int) -> Iterator[tuple[Module, ast.expr]]:
        """What the linted files give the functions around a line for a parameter."""
        for function in module.functions:
            names = [parameter.arg for parameter in function.parameters]
            if name not in names or not function.line <= line <= (function.node.end_lineno or 0):
                continue
            at = names.index(name) - (function.owner is not None)
            calls = re.compile(rf"\b{function.name}\s*\(")
            self.program.index.load_where(partial(_holds, calls))
            for other in self.program.index.modules().values():
                for node in other.nodes if _holds(calls, other.source.text) else ():
                    if isinstance(node, ast.Call) and _last(node.func) == function.name:
                        yield from ((other, each) for each in node.args[at : at + 1])
                        yield from ((other, each.value) for each in node.keywords if each.arg == name)

    def _called(self, module: Module, callee: ast.expr) -> Iterator[Function]:
        for definition in self.program.index.dotted(module, callee):
            if isinstance(definition, Function):
                yield definition
            elif isinstance(definition, Class):
                forward = self.program.index.method(
                    definition, "forward" if self.program.is_module(definition) else "__init__"
                )
                if forward is not None:
                    yield forward
        match callee:
            case (
                ast.Attribute(value=ast.Name(), attr=attr)
                | ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr)
            ):
                cls = self._class_at(module, callee.lineno)
                if cls is not None:
                    yield from self._member(cls, attr)

    def _member(self, cls: Class, attr: str) -> Iterator[Function]:
        method = self.program.index.method(cls, attr)
        if method is not None:
            yield method
        for base in self.program.index.mro(cls):
            value = self.program.heap.attributes.get((base, attr)) if isinstance(base, Class) else None
            for held in value.classes if value is not None else ():
                forward = self.program.index.method(held, "forward") if isinstance(held, Class) else None
                if forward is not None:
                    yield forward

    def _class_at(self, module: Module, line: int) -> Class | None:
        """The innermost class whose text holds a line."""
        spans = self._classes.get(module)
        if spans is None:
            spans = [(cls.node.lineno, cls.node.end_lineno or cls.node.lineno, cls) for cls in module.classes]
            self._classes[module] = spans
        around = [(end - start, cls) for start, end, cls in spans if start <= line <= end]
        return min(around, key=lambda each: each[0])[1] if around else None


def reach_of(program: Program) -> Reach:
    """The reach of a program, computed when it is first asked for; it lives as long as the program does."""
    return program.derived(Reach)


def _binds(node: ast.AST, name: str) -> TypeGuard[ast.Assign | ast.AnnAssign | ast.NamedExpr]:
    """Whether a node gives a name the value of an expression."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    bound = isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
    return bound and any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _script_calls(module: Module) -> set[str]:
    """The names by which a file may call what scripts."""
    imported = {
        name
        for name, bindings in module.bindings.items()
        if any(isinstance(binding, ImportBinding) and binding.target in SCRIPTERS for binding in bindings)
    }
    return imported | _SCRIPT_CALLS


def _holds(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


def _last(node: ast.AST) -> str:
    """The last part of a name or attribute chain."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def check_scripted(site: Site, emitted: str, line: int | None = None) -> None:
    """Refuse code that TorchScript may compile.

    Args:
        site: the place.
        emitted: what it could not compile.
        line: the line that the refusal points at.

    Raises:
        Refused: it may.
    """
    reason = reach_of(site.program).scripted(site.function)
    if any(f"{site.module.name}.".startswith(f"{name}.") for name in site.torchscript):
        reason = "the configuration says that it may compile this file"
    if reason:
        raise Refused(Obligation.NOT_SCRIPTED, f"TorchScript cannot compile {emitted}, and {reason}", line)


def check_runner(site: Site) -> None:
    """Refuse code that TorchScript compiles or that runs as an arm of a selection.

    Raises:
        Refused: the function is one of these, or is called from one.
    """
    check_scripted(site, "the call of an effect")
    reach = reach_of(site.program)
    reason = reach.arm(site.function)
    if reason:
        raise Refused(Obligation.NOT_IN_ARM, f"an effect would run whether or not its arm is taken: {reason}")
    reason = reach.cached(site.function)
    if reason:
        what = f"{reason}: Python runs it for new arguments only, and a graph would run the effect each time"
        raise Refused(Obligation.NOT_IN_ARM, what)
    parent, node = site.function.parent, site.function.node
    if parent is None:
        return
    if isinstance(node, ast.Lambda):
        raise Refused(Obligation.NOT_IN_ARM, "the code is a lambda, and who runs it is not known")
    calls = [each for each in walk(parent.node) if isinstance(each, ast.Call)]
    called = {id(each.func) for each in calls}
    called |= {id(argument) for each in calls if _compiles(site, parent, each) for argument in each.args[:1]}
    for each in walk(parent.node):
        if (
            isinstance(each, ast.Name)
            and each.id == node.name
            and isinstance(each.ctx, ast.Load)
            and id(each) not in called
        ):
            reason = f"the nested function `{node.name}` is handed on as a value, and who runs it is not known"
            raise Refused(Obligation.NOT_IN_ARM, reason, each.lineno)


def _compiles(site: Site, scope: Function, call: ast.Call) -> bool:
    """Whether a call only compiles the function that it is given."""
    found = site.program.index.dotted_in(scope, scope.module, call.func)
    return bool(found) and all(isinstance(each, External) and each.name in COMPILERS for each in found)


def _may_script(text: str) -> bool:
    return "jit" in text and any(word in text for word in (*_SCRIPT_WORDS, *_SCRIPT_IMPORTS))


def _may_run(text: str) -> bool:
    """Whether a file that is in no region may hand functions of others to something that runs them in its own way."""
    known = "torch" in text and any(word in text for word in (*_ARM_WORDS, *_CACHE_WORDS))
    return known or _may_script(text)
