"""The value domain: what is known of a Python value without running anything.

A :class:`Value` is a set of possibilities. It is immutable and hashable, so environments can share values and the
fixed point is reached by comparing them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, TypeVar, Union

from graphmend.model.module import Class, Function, Module


class Kind:
    """What a value may be, one bit each. A value with several kinds may be any of them.

    Plain integers: an ``IntFlag`` costs a third of the whole analysis.
    """

    NOTHING: Final = 0
    TENSOR: Final = 1
    """A ``torch.Tensor``."""
    SCALAR: Final = 2
    """A Python number, boolean or list of such that was read out of a tensor: it depends on data."""
    SIZE: Final = 4
    """An integer or tuple of integers taken from a shape."""
    STATIC: Final = 8
    """A Python value that does not depend on tensor data: configuration, literals, dtypes, devices, strings."""
    NONE: Final = 16
    OBJECT: Final = 32
    """An instance of one of ``classes``; ``torch.nn.Module`` instances are objects too."""
    CALLABLE: Final = 64
    """One of ``targets``: a function, a class, a module or an external name."""
    CONTAINER: Final = 128
    """A list, tuple, dict or set; see ``items`` and ``element``."""
    UNKNOWN: Final = 256
    """Anything at all."""
    DRAWN: Final = 512
    """A Python number that ``random`` draws while the program runs, and that tracing carries on as a symbol."""
    NUMPY: Final = 1024
    """A NumPy array or number that tracing puts into the graph, as it does with whatever NumPy computes."""


DATA: Final = Kind.TENSOR | Kind.SCALAR | Kind.DRAWN | Kind.NUMPY
"""What only running the program tells."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A method together with the instance it was read from."""

    function: Function
    receiver: Value


@dataclass(frozen=True, slots=True)
class ExternalName:
    """Something outside the linted files, by dotted name: ``torch.where``, ``logging.Logger``."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorMethod:
    """The attribute ``name`` of a tensor (or of something used like one), not yet called."""

    name: str
    receiver: Value


@dataclass(frozen=True, slots=True)
class ObjectMethod:
    """The attribute ``name`` of an instance of an external class, not yet called."""

    owner: str
    name: str
    receiver: Value


@dataclass(frozen=True, slots=True)
class Super:
    """``super()`` inside a method of ``owner``, called on ``receiver``."""

    owner: Class
    receiver: Value


Target = Union[Function, Class, Module, Bound, ExternalName, TensorMethod, ObjectMethod, Super]
ClassRef = Union[Class, ExternalName]
Named = TypeVar("Named", bound=Target)


def ordered(found: Collection[Named]) -> Collection[Named]:
    """Targets or classes in an order that is the same in every run: what is followed first may leave traces."""
    return found if len(found) < 2 else sorted(found, key=_place)


def _place(named: Target) -> tuple[str, int, str]:
    if isinstance(named, Bound):
        return _place(named.function)
    if isinstance(named, Super):
        return _place(named.owner)
    if isinstance(named, (Function, Class)):
        return named.module.path, named.node.lineno, named.qualname
    if isinstance(named, Module):
        return named.path, 0, ""
    return "", 0, f"{named.owner}.{named.name}" if isinstance(named, ObjectMethod) else named.name


class _Missing:
    def __repr__(self) -> str:
        return "<no constant>"


MISSING: Final = _Missing()
Constant = Union[str, bytes, int, float, bool, None, _Missing]
Fields = tuple[tuple[str, "Value"], ...]


@dataclass(slots=True, eq=False)
class Value:
    """What is known of one value.

    Its fields are final rather than frozen: ``frozen`` sets each of them through a call, and values are made by the
    million.

    Args:
        kinds: what it may be.
        inferred: whether a kind rests on names, annotations, use or callers rather than on what computed it.
        dtype: for a tensor, ``bool``, ``int``, ``float`` or empty for not known.
        single: for a tensor, whether it is proven to have exactly one element.
        leaf: for a tensor, whether it is a parameter or argument itself rather than the result of an operation.
        classes: for an object, the classes it may be an instance of.
        targets: for a callable, what it may be.
        items: for a tuple or list of known length, its elements in order.
        element: for a container, the join of all its elements (for a dict, of its values).
        constant: the literal value if there is just one.
        low, high: bounds of a number or of a tensor's elements, inclusive.
        traced: whether ``constant`` is what tracing makes it (``torch.compiler.is_compiling()`` and wrappers of it).
        fixed: for a tensor or a NumPy number, whether it was computed from plain numbers, element by element: where a
            plain number is wanted, tracing knows it.
        fields: for a dict, the values under keys that it is known to have, in order of the keys.
    """

    kinds: Final[int]
    inferred: Final[bool] = False
    dtype: Final[str] = ""
    single: Final[bool] = False
    leaf: Final[bool] = False
    classes: Final[frozenset[ClassRef]] = frozenset()
    targets: Final[frozenset[Target]] = frozenset()
    items: Final[tuple[Value, ...] | None] = None
    element: Final[Value | None] = None
    constant: Final[Constant] = MISSING
    low: Final[float | None] = None
    high: Final[float | None] = None
    traced: Final[bool] = False
    fixed: Final[bool] = False
    fields: Final[Fields | None] = None

    def __eq__(self, other: object) -> bool:
        # Written out, cheapest first: the fixed point compares values millions of times.
        if self is other:
            return True
        if not isinstance(other, Value):
            return NotImplemented
        return (
            self.kinds == other.kinds
            and self.inferred == other.inferred
            and self.dtype == other.dtype
            and self.single == other.single
            and self.leaf == other.leaf
            and type(self.constant) is type(other.constant)
            and self.constant == other.constant
            and self.low == other.low
            and self.high == other.high
            and self.traced == other.traced
            and self.fixed == other.fixed
            and self.classes == other.classes
            and self.targets == other.targets
            and self.element == other.element
            and self.items == other.items
            and self.fields == other.fields
        )

    def __hash__(self) -> int:
        return hash((self.kinds, self.dtype, self.classes, self.items))

    def may(self, kinds: int) -> bool:
        """Whether the value may be one of ``kinds``."""
        return bool(self.kinds & kinds)

    def only(self, kinds: int) -> bool:
        """Whether the value is certainly one of ``kinds``."""
        return bool(self.kinds) and not self.kinds & ~kinds

    @property
    def is_keyed(self) -> bool:
        """Whether it may be a dict, as far as the containers go."""
        return bool(self.kinds & Kind.CONTAINER) and not _DICT.isdisjoint(self.classes)

    @property
    def is_tensor(self) -> bool:
        """Certainly a tensor, as far as the kinds go."""
        return self.kinds == Kind.TENSOR

    @property
    def depends_on_data(self) -> bool:
        """Whether only running the program tells what it is: a tensor, or a number read from one or drawn."""
        return bool(self.kinds & DATA)

    def without(self, kinds: int) -> Value:
        """The value narrowed by the knowledge that it is none of ``kinds``."""
        return replace(self, kinds=self.kinds & ~kinds) if self.kinds & kinds else self

    def guess(self) -> Value:
        """The same value, marked as inferred."""
        return self if self.inferred else replace(self, inferred=True)


NOTHING = Value(Kind.NOTHING)
UNKNOWN = Value(Kind.UNKNOWN)
NONE = Value(Kind.NONE, constant=None)
ABSENT = Value(Kind.NONE, constant=None, traced=True)
"""A ``None`` that tracing decides conditions by."""
STATIC = Value(Kind.STATIC)
SIZE = Value(Kind.SIZE)
SCALAR = Value(Kind.SCALAR)
TENSOR = Value(Kind.TENSOR)
DRAWN = Value(Kind.DRAWN)
NUMPY = Value(Kind.NUMPY)
TENSOR_GUESS = Value(Kind.TENSOR, inferred=True)
MASK_GUESS = Value(Kind.TENSOR, inferred=True, dtype="bool")
SIZES = Value(Kind.CONTAINER | Kind.SIZE, element=SIZE)


_DICT: Final[frozenset[ClassRef]] = frozenset((ExternalName("builtins.dict"),))
_DEPTH = 3
_MANY = 24


def constant(value: Constant) -> Value:
    """The value of a literal."""
    if value is None:
        return NONE
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Value(Kind.STATIC, constant=value, low=value, high=value)
    return Value(Kind.STATIC, constant=value)


def instance(*classes: ClassRef) -> Value:
    """An instance of one of ``classes``."""
    return Value(Kind.OBJECT, classes=frozenset(classes))


def external(name: str) -> Value:
    """An external function, class or module by its dotted name."""
    return Value(Kind.CALLABLE, targets=frozenset((ExternalName(name),)))


def target(*targets: Target) -> Value:
    """A callable that is one of ``targets``."""
    return Value(Kind.CALLABLE, targets=frozenset(targets))


def sequence(items: Iterable[Value]) -> Value:
    """A tuple or list of known elements."""
    known = tuple(shallow(item) for item in items)
    return Value(Kind.CONTAINER, items=known, element=join_all(known))


def container(element: Value) -> Value:
    """A container with elements of one kind and unknown length."""
    return Value(Kind.CONTAINER, element=shallow(element))


def dictionary(element: Value) -> Value:
    """A dict with values of one kind: a container that is told from lists and tuples by its class."""
    return Value(Kind.CONTAINER, element=shallow(element), classes=_DICT)


def keyed(values: Mapping[str, Value]) -> Value:
    """A dict of which every key is known."""
    known = tuple((key, shallow(settled(values[key]))) for key in sorted(values)) if len(values) <= _MANY else None
    return replace(dictionary(join_all(values.values())), fields=known)


def with_field(holder: Value, key: Constant, value: Value) -> Value:
    """A container in which an element was given a value."""
    fields = None
    if holder.fields is not None and isinstance(key, str):
        fields = keyed({**dict(holder.fields), key: value}).fields
    return replace(holder, items=None, element=shallow(join(holder.element or NOTHING, value)), fields=fields)


def field_of(holder: Value, key: Constant) -> Value | None:
    """What a dict holds under a key; ``None`` if that is not known."""
    if holder.fields is None or not holder.only(Kind.CONTAINER | Kind.NONE):
        return None
    return next((value for name, value in holder.fields if name == key), None)


def shallow(value: Value, depth: int = _DEPTH) -> Value:
    """The value with containers nested deeper than the domain's bound cut off."""
    if value.element is None and value.items is None:
        return value
    if depth == 0:
        return replace(value, items=None, element=UNKNOWN, fields=None)
    element = shallow(value.element, depth - 1) if value.element else None
    items = tuple(shallow(item, depth - 1) for item in value.items) if value.items is not None else None
    if element == value.element and items == value.items and value.fields is None:
        return value
    return replace(value, items=items, element=element, fields=None)  # what else holds a dict may change it


def join(a: Value, b: Value) -> Value:
    """The least value that covers both."""
    if a is b or not b.kinds:
        return a
    if not a.kinds:
        return b
    if a == b:
        return a
    kinds = a.kinds | b.kinds
    traced = (a.traced or b.traced) and all(
        value.constant is not None and (value.traced or value.constant is False) for value in (a, b)
    )
    # A helper that wraps the compiler's own answer ("return is_compiling()", else "return False" where torch is too old
    # to ask) answers what the compiler does: the constant False belongs to paths that tracing does not take.
    same = a.constant is not MISSING and type(a.constant) is type(b.constant) and a.constant == b.constant
    known = a.constant if same else True if traced else MISSING
    classes = a.classes if a.classes is b.classes else a.classes | b.classes
    targets = a.targets if a.targets is b.targets else a.targets | b.targets
    if len(classes) > _MANY or len(targets) > _MANY:
        # Too many to follow each: what was known first stays, and the value may be anything else as well.
        classes, targets, kinds = a.classes or classes, a.targets or targets, kinds | Kind.UNKNOWN
    one, other = bool(a.kinds & Kind.TENSOR), bool(b.kinds & Kind.TENSOR)
    tensor = a if one else b
    both = one and other
    made = Kind.TENSOR | Kind.NUMPY
    element, items = a.element, a.items
    if element is not b.element or items is not b.items:
        element, items = _join_contents(a, b)
    return Value(
        kinds,
        (a.inferred and bool(a.kinds & DATA)) or (b.inferred and bool(b.kinds & DATA)),
        tensor.dtype if not both or a.dtype == b.dtype else "",
        tensor.single if not both else a.single and b.single,
        a.leaf and one or b.leaf and other,
        classes,
        targets,
        items,
        element,
        known,
        None if a.low is None or b.low is None else min(a.low, b.low),
        None if a.high is None or b.high is None else max(a.high, b.high),
        traced,
        (a.fixed or b.fixed) and (a.fixed or not a.kinds & made) and (b.fixed or not b.kinds & made),
        a.fields if a.fields is b.fields else _join_fields(a, b),
    )


def _join_fields(a: Value, b: Value) -> Fields | None:
    if not a.kinds & b.kinds & Kind.CONTAINER:
        return a.fields or b.fields  # one side is no container
    if a.fields is None or b.fields is None:
        return None
    others = dict(b.fields)
    return tuple((key, join(value, others[key])) for key, value in a.fields if key in others)


def _join_contents(a: Value, b: Value) -> tuple[Value | None, tuple[Value, ...] | None]:
    element = join(a.element or NOTHING, b.element or NOTHING) if a.element or b.element else None
    if a.items is not None and b.items is not None:
        if len(a.items) != len(b.items):
            return element, None
        return element, tuple(map(join, a.items, b.items))
    if a.kinds & b.kinds & Kind.CONTAINER:
        return element, None
    # One side is no container: what is known of the other one's elements stays true of it.
    return element, a.items if a.items is not None else b.items


def join_all(values: Iterable[Value]) -> Value:
    """The join of any number of values; ``NOTHING`` for none."""
    return reduce(join, values, NOTHING)


def settled(value: Value) -> Value:
    """The value without what would keep a fixed point from being reached soon: literal values and bounds."""
    if value.constant is MISSING or value.constant is None or value.traced:
        return value if value.low is None or value.kinds & Kind.TENSOR else replace(value, low=None, high=None)
    if isinstance(value.constant, str):
        return value
    return replace(value, constant=MISSING, low=None, high=None)


def element(value: Value) -> Value:
    """What iterating over a value gives; of a dict the keys."""
    return STATIC if value.is_keyed else held(value)


def held(value: Value) -> Value:
    """What a value holds: the elements of a list, and the values of a dict."""
    results: list[Value] = []
    if value.may(Kind.CONTAINER) or value.element is not None:
        results.append(value.element if value.element is not None and value.element.kinds else UNKNOWN)
    if value.may(Kind.TENSOR):
        results.append(Value(Kind.TENSOR, inferred=value.inferred, dtype=value.dtype))
    if value.may(Kind.SIZE) and not value.may(Kind.CONTAINER):
        results.append(SIZE)
    if value.may(Kind.STATIC):
        results.append(STATIC)
    for kind in (Kind.SCALAR, Kind.NUMPY, Kind.DRAWN):
        if value.may(kind):
            results.append(Value(kind, inferred=value.inferred))
    return join_all(results) if results else UNKNOWN
