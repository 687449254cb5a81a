"""``compile``: ``torch.compile``, with messages that wait for the end of their graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from graphmend.runtime.defer import deferring
from graphmend.runtime.operator import OPERATOR

Compiler = Callable[..., Callable[..., Any]]


def compile(model: Any = None, **arguments: Any) -> Any:  # noqa: A001
    """Compile with ``torch.compile``, and have the messages of effects wait for the end of their graph.

    While a graph runs, messages are kept, with the values that their arguments have at that point; they are emitted in
    order when it ends, also when it ends by an exception. Nothing in the graph waits for a value to be formatted, and
    since whatever is not in the graph comes after it, no message is overtaken: a program that still breaks says
    everything in the order of eager, too. An effect that validates runs at its place, after the messages before it.

    Args:
        model: A module, function or method; None to use the result as a decorator.
        **arguments: Those of ``torch.compile``.

    Returns:
        What ``torch.compile`` returns.
    """
    if model is None:
        return lambda decorated: compile(decorated, **arguments)
    return torch.compile(model, **_with_deferring_backend(arguments))


def _with_deferring_backend(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the back end replaced, or the same ones where nothing can be deferred."""
    options = dict(arguments.get("options") or {})
    if "use_aoti" in options or (arguments.get("mode") and options):
        # Code without Python, or an error that torch.compile reports.
        return arguments
    backend = arguments.get("backend") or _default_backend()
    if backend != "inductor":
        from torch._dynamo.backends.registry import lookup_backend

        return {**arguments, "backend": DeferringBackend(lookup_backend(backend))}
    # What torch.compile makes of this back end and its options; the only other one is an argument of its own.
    guard_filter = {name: options.pop(name) for name in ("guard_filter_fn",) if name in options}
    named = {name: arguments[name] for name in ("name",) if name in arguments}
    mode, dynamic = arguments.get("mode") or "default", arguments.get("dynamic")
    compiler = torch._TorchCompileInductorWrapper(mode, options, dynamic, **named)  # type: ignore[no-untyped-call]
    rest = {name: value for name, value in arguments.items() if name not in ("mode", "options")}
    return {**rest, "options": guard_filter or None, "backend": DeferringBackend(compiler)}


def _default_backend() -> Any:
    from torch._dynamo.backends import registry

    get_default_backend: Callable[[], Any] = getattr(registry, "get_default_backend", lambda: "inductor")
    return get_default_backend()


@dataclass(frozen=True)
class DeferringBackend:
    """A back end whose graphs emit their messages at their end.

    Attributes:
        compiler: The back end that compiles.
    """

    compiler: Compiler

    @property
    def __name__(self) -> str:
        """The name of the back end that compiles, for messages of Dynamo."""
        return str(getattr(self.compiler, "compiler_name", getattr(self.compiler, "__name__", self.compiler)))

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **arguments: Any) -> Callable[..., Any]:
        """Compile one graph."""
        compiled = self.compiler(graph, inputs, **arguments)
        if not _may_defer(graph):
            return compiled

        def run(*args: Any) -> Any:
            with deferring():
                return compiled(*args)

        return run

    def reset(self) -> None:
        """Pass ``torch.compiler.reset`` on."""
        reset = getattr(self.compiler, "reset", None)
        if reset is not None:
            reset()


def _may_defer(graph: torch.fx.GraphModule) -> bool:
    """Whether a graph has messages, and nothing else that could come out while they wait."""
    if torch._dynamo.config.caching_precompile:
        # What the back end returns is written to disk.
        return False
    targets = {
        node.target
        for module in graph.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
        if node.op == "call_function"
    }
    return OPERATOR in targets and all(target is OPERATOR or _is_silent(target) for target in targets)


def _is_silent(target: Any) -> bool:
    if isinstance(target, torch._ops.OpOverloadPacket):
        target = target.default
    if isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
        from torch._higher_order_ops.effects import _get_effect

        # The other operator of this name is that of another copy of this runtime.
        name: str = target.name()  # type: ignore[no-untyped-call]
        return _get_effect(target) is None and not name.startswith("graphmend_")
    module = getattr(target, "__module__", None) or ""
    return module.partition(".")[0] in _SILENT_MODULES


_SILENT_MODULES = frozenset({"torch", "math", "operator", "_operator", "builtins", ""})
