"""Facts that rules ask of values, and how certain they are."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from graphmend.findings import Confidence
from graphmend.flow.interpreter import Facts
from graphmend.flow.values import Kind, Value
from graphmend.flow.wording import is_called_a_mask

_KINDS = {
    "tensor": Kind.TENSOR,
    "scalar-read": Kind.SCALAR,
    "drawn-number": Kind.DRAWN,
    "numpy-number": Kind.NUMPY,
    "data": Kind.TENSOR | Kind.SCALAR | Kind.NUMPY,
    "size": Kind.SIZE,
    "static": Kind.STATIC,
    "none": Kind.NONE,
    "unknown": Kind.UNKNOWN,
}


def holds(facts: Facts, node: ast.expr, wanted: Iterable[str], without: int = 0) -> Confidence | None:
    """How certain it is that one of some facts holds of an expression; ``None`` if nothing says that one does.

    Args:
        facts: of the function.
        node: the expression.
        wanted: the facts.
        without: kinds that the value is not, whatever is known of it.
    """
    value = facts.value(node).without(without)
    return surest(_is_module(facts, value) if fact == "module" else _holds(value, fact, node) for fact in wanted)


def _is_module(facts: Facts, value: Value) -> Confidence | None:
    return is_of(value, Kind.OBJECT) if any(map(facts.is_module, value.classes)) else None


def surest(certainties: Iterable[Confidence | None]) -> Confidence | None:
    """The highest of some certainties; ``None`` if there is none."""
    known = [certainty for certainty in certainties if certainty is not None]
    return min(known, key=lambda each: each.rank) if known else None


def least(*certainties: Confidence) -> Confidence:
    """The lowest of some certainties: how certain it is that all hold."""
    return max(certainties, key=lambda each: each.rank)


def _holds(value: Value, fact: str, node: ast.expr) -> Confidence | None:
    special = _SPECIAL.get(fact)
    return special(value, node) if special is not None else is_of(value, _KINDS[fact])


def is_of(value: Value, kinds: int) -> Confidence | None:
    """How certain it is that a value is of one of some kinds."""
    if not value.may(kinds):
        return None
    rest = value.kinds & ~(kinds | (Kind.NONE if not kinds & Kind.NONE else 0))
    if not rest:
        return Confidence.MEDIUM if value.inferred else Confidence.HIGH
    return Confidence.LOW if value.inferred or rest & Kind.UNKNOWN else Confidence.MEDIUM


Test = Callable[[Value, ast.expr], "Confidence | None"]


def _is_tensor(value: Value, _: ast.expr) -> Confidence | None:
    return is_of(value, Kind.TENSOR)


def _is_mask(value: Value, node: ast.expr) -> Confidence | None:
    """A boolean tensor: by what computed it, or else by its name."""
    certainty = is_of(value, Kind.TENSOR)
    if certainty is None or value.dtype == "bool":
        return certainty
    return least(certainty, Confidence.MEDIUM) if not value.dtype and is_called_a_mask(node) else None


def _is_computed(value: Value, _: ast.expr) -> Confidence | None:
    """A tensor that is no argument or attribute itself: of those, tracing may know the value (measured)."""
    return None if value.leaf or value.fixed else _surely(is_of(value, Kind.TENSOR), value, Kind.TENSOR)


def _surely(certainty: Confidence | None, value: Value, kinds: int) -> Confidence | None:
    """The certainty that a value is no plain number, where either may stand: a plain number is no break."""
    return certainty if certainty is None or value.only(kinds | Kind.NONE) else Confidence.LOW


def _is_leaf(value: Value, _: ast.expr) -> Confidence | None:
    """A parameter, an argument or an attribute itself."""
    return is_of(value, Kind.TENSOR) if value.leaf else None


def _is_attribute(value: Value, _: ast.expr) -> Confidence | None:
    """A parameter or buffer of a module."""
    return is_of(value, Kind.TENSOR) if value.leaf and not value.inferred else None


def _is_position(value: Value, _: ast.expr) -> Confidence | None:
    """A computed tensor of one element that is no mask; as an index it is read."""
    single = value.single and not value.leaf and value.dtype not in ("bool", "float")
    return is_of(value, Kind.TENSOR) if single else None


def _holds_tensors(value: Value, node: ast.expr, of: Test = _is_tensor) -> Confidence | None:
    if value.element is None or not value.may(Kind.CONTAINER) or value.is_keyed:
        return None
    certainty = surest(of(each, node) for each in value.items or (value.element,))
    return certainty if certainty is None or value.only(Kind.CONTAINER | Kind.NONE) else Confidence.LOW


def _is_container(value: Value, _: ast.expr) -> Confidence | None:
    certainty = is_of(value, Kind.CONTAINER)
    return Confidence.LOW if certainty is not None and value.may(Kind.OBJECT) else certainty


def _is_sequence(value: Value, _: ast.expr) -> Confidence | None:
    return None if value.is_keyed else is_of(value, Kind.CONTAINER)


def _is_text(value: Value, node: ast.expr) -> Confidence | None:
    return Confidence.HIGH if isinstance(value.constant, str) or isinstance(node, ast.JoinedStr) else None


def _is_false(value: Value, _: ast.expr) -> Confidence | None:
    return Confidence.HIGH if value.constant is False else None


def _is_not_true(value: Value, _: ast.expr) -> Confidence | None:
    """Anything but the literal."""
    return None if value.constant is True else Confidence.HIGH


def _is_given(value: Value, _: ast.expr) -> Confidence | None:
    """Anything but ``None``."""
    if value.only(Kind.NONE):
        return None
    return Confidence.LOW if value.may(Kind.NONE) else Confidence.HIGH


def _is_unknown_number(value: Value, _: ast.expr) -> Confidence | None:
    """A NumPy number that tracing does not know."""
    return None if value.fixed else is_of(value, Kind.NUMPY)


_SPECIAL: Mapping[str, Test] = {
    "boolean-tensor": _is_mask,
    "leaf-tensor": _is_leaf,
    "attribute-tensor": _is_attribute,
    "computed-tensor": _is_computed,
    "position-tensor": _is_position,
    "holds-tensor": _holds_tensors,
    "holds-computed": lambda value, node: _holds_tensors(value, node, _is_computed),
    "container": _is_container,
    "sequence": _is_sequence,
    "text": _is_text,
    "false": _is_false,
    "not-true": _is_not_true,
    "given": _is_given,
    "numpy-unknown": _is_unknown_number,
}

FACTS = (*_KINDS, *_SPECIAL, "module")
"""The names of all facts."""
