"""What one measured run leaves behind: plain values that can be pickled, compared and printed.

Importing this module does not import torch: tensors appear in it only as values held by a record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TensorRecord:
    """A tensor as the caller can see it.

    Attributes:
        dtype: its dtype, as text.
        shape: its sizes.
        stride: its strides.
        requires_grad: whether a gradient would flow into it.
        digest: SHA-256 of its elements in logical order: equal digests mean equal bits.
        value: the tensor itself where accuracy is compared later, else `None`.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    digest: str
    value: Any = field(default=None, compare=False, repr=False)


Tree = dict[str, Any]
"""A structure flattened to `path -> leaf`, where a leaf is a TensorRecord or the text of a plain value."""


@dataclass(frozen=True)
class LogEntry:
    """One log record. Function and line are left out: outlining moves the call, and the design says so."""

    logger: str
    level: str
    message: str
    arguments: str
    exception: str
    file: str


@dataclass(frozen=True)
class WarningEntry:
    """One shown warning, attributed to a file."""

    category: str
    message: str
    file: str


@dataclass(frozen=True)
class Messages:
    """Everything a call said."""

    logs: tuple[LogEntry, ...] = ()
    warnings: tuple[WarningEntry, ...] = ()
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, order=True)
class BreakSite:
    """A statement that broke the graph: the innermost frame inside the measured package."""

    file: str
    line: int
    gb: str


@dataclass(frozen=True)
class SkippedFrame:
    """A function that Dynamo gave up on: nothing of it is compiled."""

    function: str
    file: str
    reason: str


@dataclass(frozen=True)
class Compilation:
    """What Dynamo did during one call.

    Attributes:
        graphs: graphs compiled.
        breaks: entries of the graph_breaks log, in order, repetitions included.
        skipped: frames it gave up on.
        cache: Inductor's and AOTAutograd's cache counters.
    """

    graphs: int
    breaks: tuple[BreakSite, ...]
    skipped: tuple[SkippedFrame, ...]
    cache: dict[str, int]


@dataclass(frozen=True)
class Raised:
    """An exception as the caller sees it."""

    kind: str
    arguments: str
    text: str


@dataclass(frozen=True)
class CallRecord:
    """One call, from outside.

    Attributes:
        outputs: every leaf of the returned object; empty when it raised.
        aliases: groups of paths, over outputs, arguments and module state, that share one storage.
        arguments: the arguments after the call.
        state: parameters, buffers and plain attributes of every module after the call.
        gradients: gradient of every parameter, where the run asks for them.
        random: digests of the random generators' states after the call.
        messages: what it said.
        raised: the exception that left it.
        compilation: what Dynamo did; `None` in eager.
    """

    outputs: Tree
    aliases: tuple[tuple[str, ...], ...]
    arguments: Tree
    state: Tree
    gradients: Tree
    random: dict[str, str]
    messages: Messages
    raised: Raised | None = None
    compilation: Compilation | None = None


@dataclass(frozen=True)
class RunRecord:
    """All calls of one process, or the reason why there are none."""

    name: str
    calls: tuple[CallRecord, ...] = ()
    importing: Messages = Messages()
    error: str = ""
