"""Which tensors receive a gradient through an expression, and whether its derivative is finite for every input.

Both are asked of an *arm*: local names that the arm itself assigns are looked through, all others are leaves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from graphmend.flow.frames import Frame
from graphmend.flow.mutation import mutations_of
from graphmend.flow.program import Program
from graphmend.flow.text import brief
from graphmend.flow.values import ExternalName, Kind, TensorMethod, Value
from graphmend.model.scopes import walk_scope
from graphmend.model.tree import walk
from graphmend.signatures import Signature
from graphmend.signatures.behaviour import behaviour

_NO_GRADIENT = Kind.STATIC | Kind.SIZE | Kind.NONE | Kind.CALLABLE | Kind.SCALAR
_CUTTING = frozenset({"detach", "data"})
_LARGEST = 65504.0
"""The largest number of float16, of whose dtypes with gradients it is the narrowest."""
_SCALING = frozenset({"mul", "multiply", "div", "divide", "true_divide"})
_PASSING = frozenset(f"builtins.{name}" for name in ("tuple", "list", "max", "min", "sum", "abs"))


class Unknown(Exception):  # noqa: N818 - an answer, not an error
    """Raised where the leaves of an expression cannot be told."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Gradients:
    """Leaves and boundedness of the expressions of one arm.

    Args:
        program: the program under analysis.
        frame: the function that holds the arm.
        region: the arm's statements or expressions.
    """

    def __init__(self, program: Program, frame: Frame, region: Iterable[ast.AST]) -> None:
        self.program = program
        self.frame = frame
        self.roots = list(region)
        self.region = {id(node) for root in self.roots for node in walk(root)}

    def value(self, node: ast.AST) -> Value:
        """What the facts say of an expression."""
        return self.frame.facts.value(node)

    @cached_property
    def obstacle(self) -> ast.AST | None:
        """What in the arm makes gradients go other ways than its expressions say: a context, a change in place."""
        contexts = (ast.With, ast.AsyncWith)
        inside = (node for root in self.roots for node in walk(root) if isinstance(node, contexts))
        changes = (mutation.node for mutation in mutations_of(self.program).below(self.roots, self.frame))
        return next(inside, None) or next(changes, None)

    # ---------------------------------------------------------------- names

    def inner(self, node: ast.Name) -> ast.expr | None:
        """The expression that the arm itself gave a name, if it is the only one.

        Raises:
            Unknown: the arm may or may not have assigned the name.
        """
        statement = self.frame.statement(node)
        definitions = self.frame.names.definitions(node.id, statement) if statement is not None else None
        if definitions is None:
            raise Unknown(f"where `{node.id}` comes from is not known", node.lineno)
        own = [item for item in definitions if id(item) in self.region]
        if not own:
            return None
        if len(definitions) == 1 and isinstance(own[0], ast.Assign) and len(own[0].targets) == 1:
            if isinstance(own[0].targets[0], ast.Name):
                return own[0].value
        raise Unknown(f"`{node.id}` is assigned in several ways", node.lineno)

    def behind(self, name: str, statement: ast.stmt) -> frozenset[str] | None:
        """The leaves of what a name was made of before a statement, where gradients pass on the way as they are.

        ``None``: that is not known, or a gradient of zero might not stay zero on the way.
        """
        definitions = self.frame.names.definitions(name, statement)
        made = definitions[0] if definitions is not None and len(definitions) == 1 else None
        if not isinstance(made, ast.Assign) or not all(isinstance(target, ast.Name) for target in made.targets):
            return None
        if self._contexts(made) != self._contexts(statement) or self._is_changed(name, statement):
            return None
        before = Gradients(self.program, self.frame, ())
        try:
            leaves = before.leaves(made.value)
            same = all(self._unchanged(leaf, made, statement) for leaf in leaves)
            return leaves if same and before.unbounded(made.value) is None else None
        except Unknown:
            return None

    def _contexts(self, statement: ast.stmt) -> list[int]:
        """The ``with`` statements around a statement."""
        found: list[int] = []
        node: ast.AST | None = statement
        while node is not None:
            found += [id(node)] if isinstance(node, (ast.With, ast.AsyncWith)) else []
            node = self.frame.parents.get(id(node))
        return found

    def _is_changed(self, name: str, statement: ast.stmt) -> bool:
        """Whether the function may change in place what a name stands for."""
        mutations = mutations_of(self.program)
        own = mutations.aliasing.name_sources(name, self.frame, statement)
        changes = mutations.below(self.frame.function.body, self.frame)
        return any(own & mutations.sources(each, self.frame) for each in changes)

    def _unchanged(self, leaf: str, first: ast.stmt, last: ast.stmt) -> bool:
        """Whether a name, or an attribute of one, stands for the same at two statements."""
        root, *attributes = leaf.split(".")
        names = self.frame.names
        if root in self.frame.function.locals and names.definitions(root, first) != names.definitions(root, last):
            return False
        body = walk_scope(self.frame.function.body)
        stored = {each.attr for each in body if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)}
        return not stored & set(attributes)

    # ---------------------------------------------------------------- leaves

    def leaves(self, node: ast.expr) -> frozenset[str]:
        """The names and attribute paths that receive a gradient when the expression's value does.

        Raises:
            Unknown: they cannot be told.
        """
        if self.obstacle is not None:
            line = int(getattr(self.obstacle, "lineno", node.lineno))
            raise Unknown("a side changes a tensor in place, or enters a context", line)
        value = self.value(node)
        if value.kinds and (value.only(_NO_GRADIENT) or (value.is_tensor and value.dtype in ("bool", "int"))):
            return frozenset()
        match node:
            case ast.Constant() | ast.Compare() | ast.JoinedStr():
                return frozenset()
            case ast.Name(id=name):
                inner = self.inner(node)
                return frozenset((name,)) if inner is None else self.leaves(inner)
            case ast.Attribute():
                return self._attribute_leaves(node)
            case ast.Subscript(value=holder):
                return self.leaves(holder)
            case ast.BinOp(left=left, right=right):
                return self.leaves(left) | self.leaves(right)
            case ast.UnaryOp(operand=operand):
                return self.leaves(operand)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return self._all_leaves(parts)
            case ast.Dict(values=parts):
                return self._all_leaves(parts)
            case ast.Call():
                return self._call_leaves(node)
        raise Unknown(f"which tensors `{brief(node)}` reads is not known", node.lineno)

    def _all_leaves(self, nodes: Iterable[ast.expr]) -> frozenset[str]:
        return frozenset(leaf for node in nodes for leaf in self.leaves(node))

    def _attribute_leaves(self, node: ast.Attribute) -> frozenset[str]:
        holder = self.value(node.value)
        if holder.is_tensor:
            return frozenset() if node.attr in _CUTTING else self.leaves(node.value)
        path = path_of(node)
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if not path or not isinstance(root, ast.Name) or self.inner(root) is not None:
            raise Unknown(f"which tensors `{brief(node)}` reads is not known", node.lineno)
        return frozenset((path,))

    def _call_leaves(self, node: ast.Call) -> frozenset[str]:
        operation = self.operation(node)
        if operation is not None:
            signature, operands = operation
            if (
                signature.has("constant")
                or signature.name in _CUTTING
                or signature.returns in ("static", "size", "scalar")
            ):
                return frozenset()
            skipped = behaviour().no_gradient.get(signature.name, frozenset())
            return self._all_leaves(operand for position, operand in enumerate(operands) if position not in skipped)
        classes = self.modules(node)
        if classes:
            own: frozenset[str] = frozenset()
            if not classes <= behaviour().modules_without_parameters:
                path = path_of(node.func)
                if not path:
                    raise Unknown(f"the parameters of `{brief(node.func)}` are not known", node.lineno)
                own = frozenset((path,))
            return own | self._all_leaves([*node.args, *(keyword.value for keyword in node.keywords)])
        names = {target.name for target in self.value(node.func).targets if isinstance(target, ExternalName)}
        if names and names <= _PASSING:
            return self._all_leaves(node.args)
        raise Unknown(f"which tensors `{brief(node.func)}` reads is not known", node.lineno)

    # ---------------------------------------------------------------- boundedness

    def unbounded(self, node: ast.expr) -> ast.expr | None:
        """The first part of an expression whose derivative is not proven to be finite for every input.

        Raises:
            Unknown: the leaves of a part cannot be told.
        """
        if not self.leaves(node):
            return None
        match node:
            case ast.Name():
                inner = self.inner(node)
                return None if inner is None else self.unbounded(inner)
            case ast.Attribute(value=holder):
                return self.unbounded(holder) if self.value(holder).is_tensor else None
            case ast.Subscript(value=holder):
                return self.unbounded(holder)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.unbounded(operand)
            case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
                return self.unbounded(left) or self.unbounded(right)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return self._scaled(node, left, right) if self.finite(right) else self._scaled(node, right, left)
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return self._scaled(node, left, right)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                return next((found for part in parts if (found := self.unbounded(part)) is not None), None)
            case ast.Call():
                return self._unbounded_call(node)
        return node

    def _scaled(self, node: ast.expr, operand: ast.expr, number: ast.expr) -> ast.expr | None:
        return self.unbounded(operand) if self.finite(number) else node

    def finite(self, node: ast.expr) -> bool:
        """Whether an expression is a known number that in no dtype is zero or infinite, and whose inverse is not."""
        constant = self.value(node).constant
        return isinstance(constant, (int, float)) and 1 / _LARGEST < abs(constant) < _LARGEST

    def _unbounded_call(self, node: ast.Call) -> ast.expr | None:
        operation = self.operation(node)
        operands: list[ast.expr]
        if operation is not None:
            signature, operands = operation
            numbers = [operand for operand in operands[1:] if not self.leaves(operand)]
            if signature.name in _SCALING:
                if len(operands) != 2 or not numbers or not self.finite(numbers[0]):
                    return node
            elif not signature.has("bounded"):
                return node
            elif signature.name == "lerp" and (len(operands) < 3 or not self.finite(operands[2])):
                return node
            elif any(keyword.arg == "alpha" and not self.finite(keyword.value) for keyword in node.keywords):
                return node
        elif self.modules(node) and self.modules(node) <= behaviour().bounded_modules:
            operands = list(node.args)
        else:
            return node
        return next((found for operand in operands if (found := self.unbounded(operand)) is not None), None)

    # ---------------------------------------------------------------- calls

    def operation(self, node: ast.Call) -> tuple[Signature, list[ast.expr]] | None:
        """The torch operation that a call certainly is, and its operands with the receiver first."""
        callee = self.value(node.func)
        if len(callee.targets) != 1 or callee.may(Kind.UNKNOWN | Kind.OBJECT):
            return None
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        (target,) = callee.targets
        if isinstance(target, TensorMethod) and isinstance(node.func, ast.Attribute):
            signature = self.program.torch.method(target.name)
            return (signature, [node.func.value, *arguments]) if signature is not None else None
        if isinstance(target, ExternalName):
            signature = self.program.torch.function(target.name)
            return (signature, arguments) if signature is not None else None
        return None

    def modules(self, node: ast.Call) -> frozenset[str]:
        """The classes of torch that the called module may be of; empty if it may be something else."""
        callee = self.value(node.func)
        if callee.kinds != Kind.OBJECT or not all(isinstance(cls, ExternalName) for cls in callee.classes):
            return frozenset()
        names = frozenset(cls.name for cls in callee.classes if isinstance(cls, ExternalName))
        tables = self.program.torch
        return (
            names
            if all(tables.is_module_class(name) and name not in tables.module_containers for name in names)
            else frozenset()
        )


def path_of(node: ast.expr) -> str:
    """The dotted path of a name or of an attribute of a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
