"""Expressions that may be evaluated where the original would not have: they cannot fail, whatever the data.

The fixes use this for what moves from inside a branch, or from behind an ``and``, to a call in front of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from graphmend.fixes.names import Scope, is_bound, scope_of
from graphmend.fixes.site import Site
from graphmend.flow.values import ExternalName, Kind, TensorMethod, Value, ordered
from graphmend.model.module import Class, Function
from graphmend.model.scopes import bound_names, walk_scope
from graphmend.model.tree import children, walk

_UNARY = frozenset(
    {"isnan", "isinf", "isfinite", "isneginf", "isposinf", "logical_not", "detach", "clone", "contiguous"}
)
_COMPARING = frozenset({
    "eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal", "logical_and",
    "logical_or", "logical_xor",
})  # fmt: skip
_REDUCING = frozenset({"any", "all", "sum", "count_nonzero"})
_METADATA = frozenset({"shape", "dtype", "device", "ndim"})
_METADATA_CALLS = frozenset({"size", "dim", "numel", "ndimension", "nelement", "is_floating_point", "is_complex"})
_MODULE_ATTRIBUTES = frozenset({"training"})
_SCALAR_SHAPE = ""


class Totality:
    """What can be evaluated at a site without any risk.

    Args:
        site: the place.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.facts = site.facts
        self.certain: Sequence[ast.expr] = ()
        """Expressions that are evaluated at the site before anything else, in addition to what its statement shows."""

    def is_total(self, node: ast.expr) -> bool:
        """Whether evaluating ``node`` where the site's statement begins cannot fail."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return scope_of(self.site, name) is Scope.GLOBAL or is_bound(self.site, name)
            case ast.Attribute(value=owner, attr=attr):
                if attr == "__class__" or (attr in _METADATA and self.is_tensor(owner)):
                    return self.is_total(owner)
                if attr in ("__name__", "__qualname__") and self._is_class(owner):
                    return True
                return self.is_total(owner) and self._surely_has(owner, attr)
            case ast.Call() if self._metadata_call(node) is not None:
                return True
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return all(self.is_total(element) for element in elements)
            case ast.Compare(ops=ops, left=left, comparators=comparators) if all(
                isinstance(op, (ast.Is, ast.IsNot)) for op in ops
            ):
                return all(self.is_total(each) for each in (left, *comparators))
        return self._shape(node) is not None

    def _is_class(self, node: ast.expr) -> bool:
        """Whether an expression is the class of something and can be evaluated without risk."""
        match node:
            case ast.Attribute(value=owner, attr="__class__"):
                return self.is_total(owner)
            case ast.Call(func=func, args=[operand], keywords=[]):
                return ExternalName("builtins.type") in self.facts.value(func).targets and self.is_total(operand)
        return False

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is certainly a tensor where the site's statement begins."""
        value = self.facts.value(node)
        if value.is_tensor and not value.inferred:
            return True
        return value.may(Kind.TENSOR | Kind.UNKNOWN) and ast.dump(node) in self.evidence

    # ---------------------------------------------------------------- tensors that agree

    def _shape(self, node: ast.expr) -> str | None:
        """A key for the shape of a total tensor expression, empty for one element; ``None``: not total.

        Two tensors can be combined for certain if their keys are the same, or one of them has a single element.
        """
        match node:
            case ast.Constant(value=value):
                return _SCALAR_SHAPE if isinstance(value, (int, float)) else None
            case ast.Name() | ast.Attribute():
                return self._leaf_shape(node)
            case ast.Compare(
                left=left,
                ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()],
                comparators=[right],
            ):
                return self._agreeing(left, right)
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
                logical = all(self.facts.value(each).dtype == "bool" for each in (left, right))
                return self._agreeing(left, right) if logical else None
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._shape(operand) if self.facts.value(operand).dtype == "bool" else None
            case ast.Call(func=func, args=arguments, keywords=[]):
                name, operands = self._operation(func, arguments)
                if name in _UNARY and len(operands) == 1:
                    return self._shape(operands[0])
                if name in _REDUCING and len(operands) == 1:
                    return _SCALAR_SHAPE if self._shape(operands[0]) is not None else None
                if name in _COMPARING and len(operands) == 2:
                    return self._agreeing(*operands)
        return None

    def _leaf_shape(self, node: ast.Name | ast.Attribute) -> str | None:
        if not self.is_total(node):
            return None
        value = self.facts.value(node)
        if self.is_tensor(node):
            return _SCALAR_SHAPE if value.single else ast.dump(node)
        number = value.kinds == Kind.SIZE or (value.kinds == Kind.STATIC and isinstance(value.constant, (int, float)))
        return _SCALAR_SHAPE if number else None

    def _agreeing(self, left: ast.expr, right: ast.expr) -> str | None:
        first, second = self._shape(left), self._shape(right)
        if first is None or second is None:
            return None
        return first if second in (first, _SCALAR_SHAPE) else second if first == _SCALAR_SHAPE else None

    def _operation(self, func: ast.expr, arguments: list[ast.expr]) -> tuple[str, list[ast.expr]]:
        """The name and operands of a torch operation; no name for any other call."""
        targets = self.facts.value(func).targets
        if len(targets) != 1:
            return "", []
        target = next(iter(targets))
        if isinstance(target, TensorMethod) and isinstance(func, ast.Attribute):
            return target.name, [func.value, *arguments]
        if isinstance(target, ExternalName) and self.site.program.torch.function(target.name):
            return target.name.rpartition(".")[2], arguments
        return "", []

    def _metadata_call(self, node: ast.Call) -> ast.expr | None:
        """The tensor whose metadata a call without arguments asks for."""
        func = node.func
        if node.args or node.keywords or not isinstance(func, ast.Attribute) or func.attr not in _METADATA_CALLS:
            return None
        return func.value if self.is_tensor(func.value) and self.is_total(func.value) else None

    # ---------------------------------------------------------------- what was evaluated before

    @cached_property
    def evidence(self) -> frozenset[str]:
        """Dumps of the expressions that code certainly run before, without a change since, used as tensors."""
        return frozenset(self._used(self._uses_as_tensor))

    @cached_property
    def read_before(self) -> frozenset[str]:
        """Dumps of the attribute paths that code certainly run before has read."""
        return frozenset(self._used(self._paths))

    def _used(self, look: Callable[[ast.expr], set[str]]) -> set[str]:
        found: set[str] = set()
        steps = list(self.site.ancestors(self.site.statement))
        for child, parent in reversed(steps):
            if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
                found = _without(found, bound_names([parent]))
            for before in _preceding(parent, child):
                for expression in _certain(before):
                    found |= look(expression)
                found = _without(found, bound_names([before]))
                if _may_write_attributes(before):
                    found = {each for each in found if "Attribute" not in each}
        for expression in (*_certain(self.site.statement), *self.certain):
            found |= look(expression)
        return found

    def _uses_as_tensor(self, expression: ast.expr) -> set[str]:
        found: set[str] = set()
        for node in unconditional(expression):
            if not isinstance(node, ast.Call):
                continue
            for target in ordered(self.facts.value(node.func).targets):
                if (
                    isinstance(target, TensorMethod)
                    and isinstance(node.func, ast.Attribute)
                    and self._tells(target.name)
                ):
                    # Where `(x < 0).any()` works, `x` is a tensor too.
                    parts = (each for each in unconditional(node.func.value) if isinstance(each, ast.expr))
                    found.update(
                        ast.dump(each) for each in parts if each is node.func.value or self.facts.value(each).is_tensor
                    )
                elif isinstance(target, ExternalName) and self.site.program.torch.function(target.name) and node.args:
                    if self.facts.value(node.args[0]).may(Kind.TENSOR):
                        found.add(ast.dump(node.args[0]))
        return found

    def _tells(self, method: str) -> bool:
        """Whether only tensors, and what behaves like them, have a method."""
        program = self.site.program
        return (
            program.torch.method(method) is not None and method not in program.python.readers | program.python.writers
        )

    def _paths(self, expression: ast.expr) -> set[str]:
        return {ast.dump(node) for node in unconditional(expression) if isinstance(node, ast.Attribute)}

    # ---------------------------------------------------------------- attributes

    def _surely_has(self, owner: ast.expr, attr: str) -> bool:
        """Whether an object certainly has an attribute, and reading it runs no code of its own."""
        value = self.facts.value(owner)
        if ast.dump(ast.Attribute(owner, attr, ast.Load())) in self.read_before:
            return not self._is_property(value, attr)
        if not value.classes or not value.only(Kind.OBJECT):
            return False
        return all(isinstance(cls, Class) and self._sets(cls, attr) for cls in value.classes)

    def _is_property(self, value: Value, attr: str) -> bool:
        methods = [self.site.program.index.method(cls, attr) for cls in value.classes if isinstance(cls, Class)]
        return any(method is not None for method in methods)

    def _sets(self, cls: Class, attr: str) -> bool:
        index = self.site.program.index
        if index.method(cls, attr) is not None or self._deletes(cls, attr):
            return False
        if attr in _MODULE_ATTRIBUTES and self.site.program.is_module(cls):
            return True
        for base in index.mro(cls):
            if not isinstance(base, Class):
                return False
            if attr in base.values:
                return True
            method = base.methods.get("__init__")
            if method is None:
                continue
            if _assigns(method, attr):
                return True
            if not _calls_super(method):
                return False
        return False

    @staticmethod
    def _deletes(owner: Class, attr: str) -> bool:
        return any(
            isinstance(node, ast.Attribute) and node.attr == attr and isinstance(node.ctx, ast.Del)
            for node in owner.module.nodes
        )


def unconditional(expression: ast.expr) -> Iterator[ast.AST]:
    """The parts of an expression that are evaluated whenever the whole is."""
    stack: list[ast.AST] = [expression]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case ast.BoolOp(values=values):
                stack.append(values[0])
            case ast.IfExp(test=test):
                stack.append(test)
            case ast.Compare(left=left, comparators=comparators):
                stack += [left, comparators[0]]
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                stack.append(node.generators[0].iter)
            case ast.Lambda():
                continue
            case _:
                stack += children(node)


def _certain(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement that are evaluated whenever it is reached."""
    match statement:
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            yield test
        case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
            yield iterable
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)
            for inner in statement.body[:1]:
                yield from _certain(inner)
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return() | ast.Raise():
            yield from (child for child in children(statement) if isinstance(child, ast.expr))


def _preceding(parent: ast.AST, child: ast.AST) -> Iterable[ast.stmt]:
    """The statements of the same block before ``child``, and what its owner evaluates first."""
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(parent, block, None)
        if isinstance(statements, list) and any(each is child for each in statements):
            position = next(number for number, each in enumerate(statements) if each is child)
            if isinstance(parent, ast.If):
                yield ast.copy_location(ast.Expr(parent.test), parent)
            if not isinstance(parent, ast.Try) or block == "body":
                yield from statements[:position]


def _without(dumps: set[str], names: set[str]) -> set[str]:
    return {each for each in dumps if not any(f"Name(id='{name}'" in each for name in names)}


def _may_write_attributes(statement: ast.stmt) -> bool:
    """Whether a statement may give attributes other values: it writes one, or calls something."""
    return any(
        isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) or isinstance(node, ast.Delete)
        for node in walk(statement)
    )


def _assigns(method: Function, attr: str) -> bool:
    """Whether a constructor binds ``self.<attr>`` on its top level, whatever it is given."""
    own = method.parameters[0].arg if method.parameters else ""
    for statement in method.body:
        match statement:
            case ast.Assign(targets=targets):
                written = [node for target in targets for node in walk(target)]
            case ast.AnnAssign(target=target, value=value) if value is not None:
                written = [target]
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr=called), args=[ast.Constant(value=str(name)), *_]
                )
            ):
                if (
                    owner == own
                    and name == attr
                    and called in ("register_buffer", "register_parameter", "register_module", "add_module")
                ):
                    return True
                continue
            case ast.If(body=body, orelse=orelse) if orelse:
                if all(_block_assigns(block, own, attr) for block in (body, orelse)):
                    return True
                continue
            case _:
                continue
        if any(
            isinstance(node, ast.Attribute)
            and node.attr == attr
            and isinstance(node.value, ast.Name)
            and node.value.id == own
            for node in written
        ):
            return True
    return False


def _block_assigns(block: list[ast.stmt], own: str, attr: str) -> bool:
    return any(
        isinstance(target, ast.Attribute)
        and target.attr == attr
        and isinstance(target.value, ast.Name)
        and target.value.id == own
        for statement in block
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    )


def _calls_super(method: Function) -> bool:
    """Whether a constructor runs the next one on its top level."""
    for node in walk_scope(statement for statement in method.body if isinstance(statement, ast.Expr)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__init__")):
                return True
    return False
