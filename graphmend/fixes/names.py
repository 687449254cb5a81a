"""Where the names in moved text come from, and whether a module-level one may be read later than it was."""

from __future__ import annotations

import ast
from enum import Enum

from graphmend.fixes.site import Refused, Site
from graphmend.flow.frames import frames_of
from graphmend.flow.values import ExternalName, Kind
from graphmend.model.index import External, ModuleValue
from graphmend.model.module import Class, Function, Module
from graphmend.model.tree import walk
from graphmend.obligations import Obligation

_MODULE_NAMES = frozenset({"__name__", "__file__", "__doc__", "__package__", "__debug__"})


class Scope(Enum):
    """Whose name a name is."""

    LOCAL = "local"
    ENCLOSING = "enclosing"
    GLOBAL = "global"


def scope_of(site: Site, name: str) -> Scope:
    """Where the function of a site finds a name."""
    if name in site.function.locals:
        return Scope.LOCAL
    scope = site.function.parent
    while scope is not None:
        if name in scope.locals:
            return Scope.ENCLOSING
        scope = scope.parent
    return Scope.GLOBAL


def is_bound(site: Site, name: str) -> bool:
    """Whether reading a local or enclosing name at a site certainly finds a value."""
    function, statement = site.function, site.statement
    if name in function.locals:
        return frames_of(site.program).frame(function, site.facts).names.is_bound(name, statement)
    scope = function.parent
    while scope is not None and name not in scope.locals:
        scope = scope.parent
    if scope is None:
        return True
    # A name of an enclosing function must be bound before the nested function is made, and not be unbound again.
    deleted = any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del) for node in walk(scope.node)
    )
    if deleted:
        return False
    if any(parameter.arg == name for parameter in scope.parameters):
        return True
    return isinstance(function.node, ast.stmt) and frames_of(site.program).frame(scope).names.is_bound(
        name, function.node
    )


def check_fresh(site: Site, expression: ast.expr) -> None:
    """Refuse an expression rooted in a module-level name whose value a region may change.

    Raises:
        Refused: the moved text might see another value than the statement did.
    """
    root = expression
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    assert isinstance(root, ast.Name)
    module, program = site.module, site.program
    if root.id in _MODULE_NAMES:
        return
    definitions = program.index.dotted(module, expression if isinstance(expression, ast.Attribute) else root)
    if not definitions:
        raise _stale(expression, "what it stands for is not known")
    for definition in definitions:
        match definition:
            case External() | Function() | Class() | Module():
                continue
            case ModuleValue(module=owner, value=value):
                reason = _changeable(site, owner, value)
                if reason:
                    raise _stale(expression, reason)


def _stale(expression: ast.expr, reason: str) -> Refused:
    text = ast.unparse(expression)
    return Refused(
        Obligation.FRESH_STATE,
        f"the message reads `{text}` of the module, and {reason}: compiled code would read it when the graph runs; "
        "put its value into a local name first",
        expression.lineno,
    )


def _changeable(site: Site, owner: Module, value: ast.expr | None) -> str:
    """Why a module-level value may be another one later; empty if it may not."""
    if value is None:
        return "how it is bound is not known"
    name = next(
        (
            name
            for name, bindings in owner.bindings.items()
            if any(getattr(b, "value", None) is value for b in bindings)
        ),
        "",
    )
    if name and name in owner.rebound:
        return f"a function of `{owner.name}` binds it again"
    found = site.program.bindings.value_of(value, owner)
    if found.may(Kind.CONTAINER) or isinstance(
        value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    ):
        return f"`{owner.name}` changes it" if _is_mutated(site, owner, name) else ""
    if found.only(Kind.STATIC | Kind.SIZE | Kind.NONE) and _is_immutable(value):
        return ""
    if found.kinds == Kind.OBJECT and found.classes <= {
        ExternalName("logging.Logger"),
        ExternalName("logging.LoggerAdapter"),
    }:
        return ""
    if found.only(Kind.CALLABLE):
        return ""
    return "it may be an object that the compiled code changes"


def _is_immutable(value: ast.expr) -> bool:
    """Whether an expression gives a value that nothing can change: numbers, strings, and what is computed from them."""
    match value:
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Tuple(elts=elements):
            return all(_is_immutable(element) for element in elements)
        case ast.UnaryOp(operand=operand):
            return _is_immutable(operand)
        case ast.BinOp(left=left, right=right):
            return _is_immutable(left) and _is_immutable(right)
        case ast.Compare() | ast.BoolOp():
            return True
        case ast.Attribute() | ast.Name():
            return True  # of an imported module or another constant: the kind of its value is known
        case ast.Call(func=ast.Attribute(attr=called)) | ast.Call(func=ast.Name(id=called)):
            return called in (
                "float",
                "int",
                "bool",
                "str",
                "getenv",
                "get",
                "compile",
                "finfo",
                "iinfo",
                "device",
                "frozenset",
                "find_spec",
            )
        case ast.IfExp(body=body, orelse=orelse):
            return _is_immutable(body) and _is_immutable(orelse)
    return False


def _is_mutated(site: Site, module: Module, name: str) -> bool:
    """Whether the text of a file changes a module-level container inside some function."""
    writers = site.program.python.writers
    for function in module.functions:
        for node in walk(function.node):
            match node:
                case ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()) if owner == name:
                    return True
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=called)) if (
                    owner == name and called in writers
                ):
                    return True
                case ast.AugAssign(target=ast.Name(id=owner)) if owner == name:
                    return True
    return not name
