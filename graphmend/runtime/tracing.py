"""Questions asked of Dynamo while it traces: their answers cost no guard and leave nothing in the graph.

Functions marked with :func:`at_trace_time` are called by Dynamo itself, as ordinary Python, while it traces a call to
them; the result enters the graph as a constant. All others are traced like user code.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_PREFIX = "graphmend_runtime_"
_WRAPPED = ("_torchdynamo_orig_backend", "compiler_fn", "compiler")
"""The attributes under which wrappers of back ends keep what they wrap: Dynamo's, ``torch.compile``'s, our own."""
_WRAPPERS = 8
"""More than there are around a back end; an object of somebody else's may have any attribute, without end."""


def at_trace_time(*, otherwise: Answer) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Have Dynamo call a function of constants while tracing, and take its result as a constant.

    It is what ``torch.compiler.assume_constant_result`` does, without importing Dynamo (two seconds) where a library
    only defines functions. A version of torch that does not know the mark breaks the graph, as the unmended code did.

    Args:
        otherwise: The result in a version of torch that lacks what the function looks at.

    Returns:
        A decorator.
    """

    def mark(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        @functools.wraps(function)
        def answer(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            try:
                return function(*args, **kwargs)
            except (ImportError, AttributeError):
                return otherwise

        # Dynamo stores the result among the globals of the compiled function, under the name of the code object.
        answer.__code__ = answer.__code__.replace(co_name=f"{_PREFIX}{function.__name__.strip('_')}")  # type: ignore[attr-defined]
        answer._dynamo_marked_constant = True  # type: ignore[attr-defined]
        return answer

    return mark


def is_static(value: Any) -> bool:
    """Whether tracing knows ``value``, an int, float or bool, without a guard: false for symbolic numbers."""
    has_static_value = getattr(torch.fx.experimental.symbolic_shapes, "has_static_value", None)
    return has_static_value is not None and bool(has_static_value(value))


def known_true(condition: Any) -> bool:
    """Whether a comparison of sizes holds for every input that the graph accepts, asked without adding a guard."""
    statically_known_true = getattr(torch.fx.experimental.symbolic_shapes, "statically_known_true", None)
    return statically_known_true is not None and bool(statically_known_true(condition))


@at_trace_time(otherwise="vmap")
def transform() -> str:
    """The transform around the traced code: ``""``, ``"vmap"`` (anywhere on the stack), or another of ``torch.func``.

    Forward-mode differentiation is one, too.
    """
    if torch.autograd.forward_ad._current_level >= 0:
        return "dual"
    if torch._C._functorch.maybe_current_level() is None:
        return ""
    from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters

    kinds = {interpreter.key() for interpreter in retrieve_all_functorch_interpreters()}
    return "vmap" if torch._C._functorch.TransformType.Vmap in kinds else "grad"


@at_trace_time(otherwise="unknown")
def enclosing_operators() -> str:
    """The higher-order operators, such as a checkpoint, whose bodies the traced code is in, innermost first."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    names = []
    tracer = InstructionTranslator.current_tx().output.current_tracer
    while tracer.parent is not None:
        names.append(str(tracer.source_target))
        tracer = tracer.parent
    return " ".join(names)


@at_trace_time(otherwise=True)
def runs_graphs_as_they_are() -> bool:
    """Whether the back end is the one that runs graphs as they are, ``"eager"``.

    It has the body of a checkpoint run by ``torch.fx.Interpreter``, which appends to the messages of exceptions, and
    once more from start to end for gradients, where the checkpoint stops when it has what it needs. And it lets the
    gradients of a graph be differentiated again, which other back ends refuse, and ``torch.cond`` does wrong.
    """
    from torch._dynamo.symbolic_convert import InstructionTranslator

    compiler: Any = InstructionTranslator.current_tx().output.compiler_fn
    for _ in range(_WRAPPERS):
        compiler = next((inner for name in _WRAPPED if (inner := getattr(compiler, name, None)) is not None), compiler)
    name = f"{getattr(compiler, '__module__', '')}.{getattr(compiler, '__name__', '')}"
    return name.startswith("torch._dynamo.backends.debugging.eager")


def current_trace() -> tuple[object, int]:
    """The compilation under way, and which attempt it is at."""
    from torch._guards import CompileContext

    context = CompileContext.try_get()
    return (None, 0) if context is None else (weakref.ref(context), context.attempt)


def compiled_code() -> types.CodeType:
    """The code of the frame that is being compiled."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    code: types.CodeType = InstructionTranslator.current_tx().f_code
    return code


@at_trace_time(otherwise="")
def caller(called: str, known: str) -> str:
    """Where traced code calls into a file: ``LINE:FUNCTION``, or ``LINE:FUNCTION:FILE``; empty if it cannot be told.

    Args:
        called: The file.
        known: The file that goes without saying: that the path of a package is in the text would keep its graphs from
            being found in a cache that another machine has filled.
    """
    from torch._guards import TracingContext

    frames = [frame for frame in TracingContext.extract_stack() if frame.filename != called]
    if not frames:
        return ""
    frame = frames[-1]
    place = f"{frame.lineno}:{frame.name}"
    return place if frame.filename == known else f"{place}:{frame.filename}"
