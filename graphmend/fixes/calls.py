"""Calls in moved text: what only reads stays in the text or is evaluated at the call, everything else refuses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.fixes.carry import (
    AUTOGRAD_OBJECTS,
    BUILTINS,
    FORBIDDEN,
    MODES,
    SAFE_BUILTINS,
    SAME_ANYWHERE,
    SAME_FOR_INTEGERS,
    TEXT_METHODS,
    TORCH_CONSTANTS,
    is_private,
    root_of,
)
from graphmend.fixes.names import Scope, scope_of
from graphmend.fixes.site import Refused
from graphmend.flow.text import brief
from graphmend.flow.values import (
    Bound,
    ExternalName,
    Kind,
    ObjectMethod,
    TensorMethod,
    Value,
    external,
    join_all,
    ordered,
)
from graphmend.model.index import External
from graphmend.model.module import Function
from graphmend.obligations import Obligation
from graphmend.signatures import Signature

if TYPE_CHECKING:
    from graphmend.fixes.capture import Capturer, Context

_PLAIN_OWNERS = frozenset({"list", "dict", "str", "tuple", "set"})


class CallCapturer:
    """Takes calls along for a :class:`~graphmend.fixes.capture.Capturer`."""

    def __init__(self, capturer: Capturer) -> None:
        self.capturer = capturer
        self.site = capturer.site
        self.facts = capturer.facts
        self.torch = capturer.torch
        self.python = capturer.python

    def call(self, node: ast.Call, context: Context) -> None:
        """Take one call along.

        Raises:
            Refused: it may do more than read, or its parts can neither stay nor travel.
        """
        if any(keyword.arg is not None and is_private(keyword.arg) for keyword in node.keywords):
            reason = "a private name means something else outside the class"
            raise self.capturer.refuse(Obligation.MOVABLE_TEXT, reason, node)
        value = self._callee(node.func, context)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not value.targets or value.may(Kind.OBJECT):
            self._unresolved(node, value, arguments, context)
            return
        if any(isinstance(target, (Function, Bound)) for target in value.targets):
            self._evaluated(node, context)
            return
        for target in ordered(value.targets):
            match target:
                case TensorMethod(name=name) if isinstance(node.func, ast.Attribute):
                    self._operation(node, name, [node.func.value, *arguments], context)
                case ExternalName(name=name):
                    self._external(node, name, arguments, context)
                case ObjectMethod(owner=owner, name=name) if owner in _PLAIN_OWNERS and isinstance(
                    node.func, ast.Attribute
                ):
                    self._plain_method(node, name, [node.func.value, *arguments], context)
                case _:
                    raise self._unknown(node)

    def _callee(self, func: ast.expr, context: Context) -> Value:
        """What is called; inside a lambda, which the analysis does not interpret here, by the names of the module."""
        value, root = self.facts.value(func), root_of(func)
        if value.kinds or not isinstance(root, ast.Name) or root.id in context.bound:
            return value
        if scope_of(self.site, root.id) is not Scope.GLOBAL:
            return value
        found = self.site.program.index.dotted(self.site.module, func)
        names = [definition.name for definition in found if isinstance(definition, External)]
        return join_all(map(external, names)) if names and len(names) == len(found) else value

    def _unknown(self, node: ast.Call) -> Refused:
        does = self.capturer.impurity(node) or f"calls `{brief(node.func)}`, which is not known to only read"
        reason = f"the message {does}; put its result into a local name first"
        return self.capturer.refuse(Obligation.ONLY_OBSERVES, reason, node)

    def _evaluated(self, node: ast.Call, context: Context) -> None:
        """A call that cannot stay: the call of the effect evaluates it, as the original does, if it only computes."""
        certain = self.facts.value(node).only(Kind.TENSOR | Kind.SIZE | Kind.NONE)
        if context.conditional or not certain or not self.capturer.evaluate(node, context):
            raise self._unknown(node)

    def _unresolved(self, node: ast.Call, value: Value, arguments: list[ast.expr], context: Context) -> None:
        """A method of something that is not known: by its name, those that only read values stay in the text."""
        func = node.func
        if isinstance(func, ast.Attribute) and not value.may(Kind.OBJECT | Kind.CALLABLE):
            holder = self.facts.value(func.value)
            plain = Kind.STATIC | Kind.SIZE | Kind.CONTAINER | Kind.UNKNOWN
            if func.attr in self.python.readers and holder.may(plain):
                self._plain_method(node, func.attr, [func.value, *arguments], context)
                return
            if holder.may(Kind.UNKNOWN | Kind.SCALAR) and func.attr in SAME_ANYWHERE:
                self.capturer.stay(node, [func.value, *arguments], context)
                return
        self._evaluated(node, context)

    def _operation(self, node: ast.Call, name: str, operands: list[ast.expr], context: Context) -> None:
        """A torch operation, as a method or a function."""
        signature = self.torch.method(name)
        text = ast.unparse(node)
        if name in AUTOGRAD_OBJECTS:
            reason = f"`{text}` does not exist where the graph runs the message"
            raise self.capturer.refuse(Obligation.CARRIABLE_ARGUMENTS, reason, node)
        if (signature is not None and signature.has("mutates")) or name.endswith("_"):
            raise self.capturer.refuse(Obligation.ONLY_OBSERVES, f"`{text}` writes into a tensor", node)
        if signature is not None and signature.has("random"):
            raise self.capturer.refuse(Obligation.ONLY_OBSERVES, f"`{text}` draws random numbers", node)
        if name == "numpy" and operands and _is_detached(operands[0]):
            self.capturer.stay(node, operands, context)
            return
        if signature is None or signature.returns in ("scalar", "size", "static") or signature.has("dynamic"):
            if name not in SAME_ANYWHERE:
                raise self._unknown(node)
            self._reading(node, signature, operands, context)
            return
        integers = (
            name in SAME_FOR_INTEGERS and self.facts.value(operands[0]).dtype in ("int", "bool") if operands else False
        )
        self.capturer.computed(node, context, operands, integers or name in SAME_ANYWHERE)

    def _reading(self, node: ast.Call, signature: Signature | None, operands: list[ast.expr], context: Context) -> None:
        """An operation that gives Python values: the text reads them, from tensors that travel."""
        self.capturer.expressions(operands, context)
        holder = self.facts.value(operands[0]) if operands else None
        certain = holder is not None and holder.is_tensor and signature is not None
        if not certain or (signature is not None and signature.returns == "scalar" and not (holder and holder.single)):
            self.capturer.risk(node, f"`{ast.unparse(node)}` may fail")

    def _external(self, node: ast.Call, name: str, arguments: list[ast.expr], context: Context) -> None:
        owner, _, short = name.rpartition(".")
        root = root_of(node.func)
        if isinstance(root, ast.Name) and scope_of(self.site, root.id) is not Scope.GLOBAL:
            # Imported or bound inside the function: the moved text does not have it.
            raise self.capturer.not_carried(node.func)
        if name in MODES:
            if not self.capturer.evaluate(node, context):
                raise self.capturer.not_total(node)
        elif name in TORCH_CONSTANTS:
            self.capturer.attempt(lambda: self.capturer.expressions(arguments, context), node, context)
        elif self.torch.function(name) is not None:
            self._operation(node, short, arguments, context)
        elif owner == "builtins" and short in FORBIDDEN:
            reason = f"`{short}` means something else outside the function"
            raise self.capturer.refuse(Obligation.MOVABLE_TEXT, reason, node)
        elif owner == "math" or (owner == "builtins" and short in BUILTINS):
            self._function(node, short, arguments, context)
        else:
            raise self._unknown(node)

    def _function(self, node: ast.Call, name: str, arguments: list[ast.expr], context: Context) -> None:
        """A function of Python that only reads its arguments."""
        if self.facts.value(node).is_tensor:
            self.capturer.computed(node, context, arguments)
            return
        if name in SAFE_BUILTINS or not self.capturer.any_data(arguments):
            self.capturer.attempt(lambda: self.capturer.expressions(arguments, context), node, context)
        else:
            self.capturer.expressions(arguments, context)
        if name not in SAFE_BUILTINS and not self.capturer.is_captured(node):
            self.capturer.risk(node, f"`{ast.unparse(node)}` may fail")

    def _plain_method(self, node: ast.Call, name: str, parts: list[ast.expr], context: Context) -> None:
        """A method of a string, a number or a container that only reads it."""
        if name not in self.python.readers and name not in TEXT_METHODS and name != "numel":
            raise self._unknown(node)
        if name in TEXT_METHODS:
            self.capturer.expressions(parts, context)
        else:
            self.capturer.attempt(lambda: self.capturer.expressions(parts, context), node, context)
        if not self.capturer.is_captured(node):
            self.capturer.risk(node, f"`{ast.unparse(node)}` may fail")


def _is_detached(node: ast.expr) -> bool:
    """Whether an expression is a tensor without history, as ``numpy`` needs it; all that a message is given is so."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "detach":
            return True
        node = node.func.value
    return False
