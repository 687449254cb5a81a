"""What can travel through a graph as an argument, and the tables of what may be in the text of a message."""

from __future__ import annotations

import ast
from dataclasses import replace
from enum import IntEnum

from graphmend.fixes.site import Site
from graphmend.flow.values import MISSING, ClassRef, ExternalName, Kind, Value
from graphmend.model.module import Class
from graphmend.model.tree import walk


def _names(text: str, prefix: str = "") -> frozenset[str]:
    return frozenset(prefix + name for name in text.split())


METADATA = _names("shape dtype device ndim layout itemsize nbytes is_cuda is_cpu is_meta is_mps is_xpu names")
AUTOGRAD_ATTRIBUTES = _names("requires_grad is_leaf")
"""Plain values of a tensor that are others where the graph runs the message."""
AUTOGRAD_OBJECTS = _names("grad_fn grad _version _base data_ptr untyped_storage storage retain_grad register_hook")
SAME_ANYWHERE = _names("""
    item tolist cpu detach clone float double half bfloat16 int long short bool to type
    any all isnan isinf isfinite isneginf isposinf max min amax amin aminmax argmax argmin mean median
    abs neg sign round floor ceil clamp eq ne lt le gt ge logical_and logical_or logical_not logical_xor
    nonzero argwhere unique count_nonzero numel size dim ndimension nelement stride is_contiguous
    is_floating_point is_complex element_size flatten view reshape squeeze unsqueeze equal allclose is_nonzero
    isclose sort topk masked_select index_select where add sub mul std var
""")
"""Operations that compute the same in the text as at the call: autocast leaves them alone and they need no gradient."""
SAME_FOR_INTEGERS = _names("sum cumsum prod")
TORCH_CONSTANTS = _names("finfo iinfo device Size is_tensor is_floating_point", "torch.")
MODES = _names(
    """
    is_grad_enabled is_autocast_enabled is_inference_mode_enabled get_default_dtype are_deterministic_algorithms_enabled
    """,
    "torch.",
)
"""Functions that ask for a mode, which is another one where the graph runs the message."""
BUILTINS = _names("""
    len str repr ascii int float bool complex list tuple dict set frozenset sorted reversed min max sum abs round any
    all range enumerate zip map filter format type isinstance issubclass hasattr getattr callable ord chr hex oct bin
    divmod pow slice bytes
""")
SAFE_BUILTINS = _names("len str repr ascii list tuple type isinstance callable bool")
READING_BUILTINS = _names("int float bool complex any all sorted")
TEXT_BUILTINS = _names("str repr format ascii")
TEXT_METHODS = _names("format join format_map ljust rjust center zfill")
FORBIDDEN = _names("locals globals vars dir exec eval super breakpoint input open id hash __import__ compile")
"""Functions that ask for what surrounds them, or for the identity of an object."""
_UNCARRIED_RESULTS = frozenset(
    ExternalName(name)
    for name in _names("type range set frozenset enumerate zip map filter reversed slice bytes complex", "builtins.")
)
_DTYPES = _names("""
    float float16 float32 float64 half double bfloat16 int int8 int16 int32 int64 long short uint8 bool complex64
    complex128 strided sparse_coo contiguous_format channels_last preserve_format
""")

_LOGGER = frozenset({ExternalName("logging.Logger")})


class Certainty(IntEnum):
    """Whether a value can travel through a graph."""

    NO = 0
    CHECKED = 1
    """Known only while tracing; if it cannot travel, the text runs in place, as it did before."""
    YES = 2


class Carrier:
    """Decides which expressions of a site can travel.

    Args:
        site: the place.
    """

    def __init__(self, site: Site) -> None:
        self.facts = site.facts
        self._index = site.program.index
        self._objects = _objects(site)
        handlers = (node for node in walk(site.function.node) if isinstance(node, ast.ExceptHandler))
        self._exceptions = frozenset(handler.name for handler in handlers if handler.name)

    def certainty(self, node: ast.expr) -> Certainty:
        """Whether the value of an expression can travel."""
        value = self.facts.value(node)
        if isinstance(node, ast.Name) and node.id in self._exceptions:
            return Certainty.NO
        if isinstance(node, ast.Call) and self.facts.value(node.func).targets & _UNCARRIED_RESULTS:
            return Certainty.NO
        if self.is_logger(node):
            return Certainty.YES
        if value.kinds == Kind.OBJECT and value.classes and all(self._is_enum(cls) for cls in value.classes):
            return Certainty.YES
        if ast.dump(node) in self._objects and not value.may(Kind.TENSOR | Kind.CONTAINER):
            return Certainty.NO
        return certainty_of(value)

    def is_logger(self, node: ast.expr) -> bool:
        """Whether an expression is a path to a logger, which travels by its name."""
        value = self.facts.value(node)
        return is_path(node) and value.kinds == Kind.OBJECT and value.classes == _LOGGER

    def _is_enum(self, cls: ClassRef) -> bool:
        chain = self._index.mro(cls) if isinstance(cls, Class) else (cls,)
        return any(not isinstance(base, Class) and base.name.startswith("enum.") for base in chain)


def certainty_of(value: Value) -> Certainty:
    """Whether a value of these facts can travel."""
    kinds = value.kinds
    if value.only(Kind.TENSOR | Kind.SIZE | Kind.SCALAR | Kind.NONE):
        return Certainty.YES
    if kinds & Kind.CALLABLE and value.only(Kind.CALLABLE | Kind.NONE | Kind.STATIC):
        dtypes = all(
            isinstance(target, ExternalName) and _is_constant_of_torch(target.name) for target in value.targets
        )
        return Certainty.YES if value.targets and dtypes else Certainty.NO
    if kinds & Kind.OBJECT and not kinds & (Kind.TENSOR | Kind.CONTAINER | Kind.UNKNOWN):
        return Certainty.NO
    if kinds & Kind.CONTAINER:
        # Of a list or tuple written out the items are known; another one may be a set, a range, a dictionary's keys.
        listed = Certainty.YES if value.items is not None or kinds & Kind.SIZE else Certainty.CHECKED
        inner = certainty_of(value.element) if value.element is not None and value.element.kinds else Certainty.YES
        rest = replace(value, kinds=kinds & ~Kind.CONTAINER)
        return min(listed, inner, certainty_of(rest) if rest.kinds else Certainty.YES)
    if kinds == Kind.STATIC and value.constant is not MISSING:
        return Certainty.YES
    return Certainty.CHECKED


def _is_constant_of_torch(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return owner == "torch" and last in _DTYPES


def _objects(site: Site) -> frozenset[str]:
    """Dumps of the paths that the function uses as objects: it reads attributes that plain values do not have."""
    torch, python = site.program.torch, site.program.python
    plain = {*torch.attributes, *torch.operations, *python.readers, *python.writers}
    plain |= {"real", "imag", "type", "index", "start", "stop", "step"}
    return frozenset(
        ast.dump(node.value)
        for node in walk(site.function.node)
        if isinstance(node, ast.Attribute)
        and node.attr not in plain
        and not node.attr.endswith("_")
        and is_path(node.value)
    )


def is_private(name: str) -> bool:
    """Whether a class changes the name (``__x`` becomes ``_Class__x``)."""
    return name.startswith("__") and not name.endswith("__")


def builds_text(node: ast.expr) -> bool:
    """Whether an expression makes a string, which the text has to do itself."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.BinOp(op=ast.Mod(), left=left):
            return builds_text(left)
        case ast.BinOp(op=ast.Add() | ast.Mult(), left=left, right=right):
            return builds_text(left) or builds_text(right)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in TEXT_METHODS
        case ast.Call(func=ast.Name(id=name)):
            return name in TEXT_BUILTINS
    return False


def root_of(node: ast.expr) -> ast.expr:
    """What an attribute chain hangs from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def is_path(node: ast.expr) -> bool:
    """Whether an expression is a name or a chain of attributes of a name."""
    return isinstance(root_of(node), ast.Name)
