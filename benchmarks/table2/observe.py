"""Watching a model from outside: results, state, arguments, random streams, and everything it says.

Runs in the measured process. Nothing here knows what graphmend does: whatever a caller could notice is recorded, and
`compare` decides later what may differ.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from benchmarks.table2.records import LogEntry, Messages, TensorRecord, Tree, WarningEntry

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_MODULE_INTERNALS = frozenset({*vars(torch.nn.Module()), "_is_torch_compile"})
"""Attributes that torch itself gives a module, the last one when it is compiled."""


def digest(tensor: torch.Tensor) -> str:
    """SHA-256 of the elements in logical order, whatever the strides."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(plain.view(torch.uint8).numpy().tobytes()).hexdigest()


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """At most a hundred thousand elements, evenly spread: enough to judge the accuracy of a large gradient."""
    flat = tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // 100_000)].clone()


def record_tensor(tensor: torch.Tensor, *, keep: bool = False) -> TensorRecord:
    """The record of a tensor; with `keep`, its value too."""
    return TensorRecord(
        dtype=str(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        requires_grad=tensor.requires_grad,
        digest=digest(tensor),
        value=tensor.detach().clone() if keep else None,
    )


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a structure with its path; containers leave a marker with their type, so that a tuple is no list.

    Model outputs are mappings and caches are plain objects: both are entered.
    """
    kind = type(value).__qualname__
    if isinstance(value, (torch.Tensor, *_PLAIN)):
        yield path, value
    elif isinstance(value, Mapping):
        yield f"{path}<{kind}>", len(value)
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        yield f"{path}<{kind}>", len(value)
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    elif type(value).__module__.startswith("transformers.") and hasattr(value, "__dict__"):
        yield f"{path}<{kind}>", len(vars(value))
        for key, item in vars(value).items():
            yield from leaves(item, f"{path}.{key}")
    else:
        # An object of unknown making: its type is all that can be compared without running its code.
        yield f"{path}<{kind}>", "object"


def freeze(items: Iterator[tuple[str, Any]], *, keep: bool = False) -> Tree:
    """Turns leaves into a tree of records."""
    return {
        path: record_tensor(value, keep=keep) if isinstance(value, torch.Tensor) else repr(value)
        for path, value in items
    }


def state_leaves(model: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers (persistent or not) and plain attributes of every module.

    Configurations belong to it: code under test could write to them.
    """
    for name, module in model.named_modules():
        for key, value in module.named_parameters(recurse=False):
            yield f"{name}.{key} (parameter)", value
        for key, value in module.named_buffers(recurse=False):
            fixed = "not saved" if key in module._non_persistent_buffers_set else "saved"
            yield f"{name}.{key} (buffer, {fixed})", value
        for key, value in vars(module).items():
            if key in _MODULE_INTERNALS or isinstance(value, torch.nn.Module) or callable(value):
                continue
            if hasattr(value, "to_dict"):
                yield f"{name}.{key}", repr(sorted(value.to_dict().items(), key=lambda item: str(item[0])))
            else:
                yield from leaves(value, f"{name}.{key}")


def alias_groups(items: list[tuple[str, Any]]) -> tuple[tuple[str, ...], ...]:
    """Groups of paths whose tensors share storage: a rewrite that copies what was shared, or shares a copy, shows."""
    groups: dict[int, list[str]] = {}
    for path, value in items:
        if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes():
            groups.setdefault(value.untyped_storage().data_ptr(), []).append(path)
    return tuple(sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1))


def random_state() -> dict[str, str]:
    """Digests of the three random generators' states."""
    return {
        "torch": digest(torch.get_rng_state()),
        "numpy": hashlib.sha256(pickle.dumps(np.random.get_state())).hexdigest(),
        "python": hashlib.sha256(repr(random.getstate()).encode()).hexdigest(),
    }


def seed(value: int) -> None:
    """Seeds the three random generators."""
    torch.manual_seed(value)
    np.random.seed(value)  # the global one: model code draws from it
    random.seed(value)


class Recorder(logging.Handler):
    """Collects log records, warnings and text written to the process's two streams.

    Streams are taken at the file descriptor, so that text from C code and from handlers that kept an old `sys.stderr`
    is caught too. Warnings are taken where Python shows them, after its filters and once-per-place registries have
    decided: how often a warning is shown is part of what is compared.

    Records of torch's own loggers, and warnings that point into torch, are about the compiler and not about the
    model; they go to `compiler` instead.
    """

    def __init__(self, root: Path) -> None:
        """Collects for a package copied to `root`; files are reported relative to it."""
        super().__init__(logging.NOTSET)
        self.root = root
        self.compiler: list[logging.LogRecord] = []
        self._logs: list[LogEntry] = []
        self._warnings: list[WarningEntry] = []
        self._streams: list[tuple[TextIO, TextIO]] = []
        self._torch = str(Path(torch.__file__).parent)

    def install(self, *, always: bool) -> None:
        """Starts collecting. With `always`, every warning is shown, not only the first from each place."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            capture = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - lives on
            os.dup2(capture.fileno(), stream.fileno())
            self._streams.append((stream, capture))
        logging.getLogger().addHandler(self)
        warnings.showwarning = self._show
        if always:
            warnings.simplefilter("always")

    def adopt(self, name: str) -> None:
        """Also listens to a logger that does not pass its records on."""
        logger = logging.getLogger(name)
        if not logger.propagate and self not in logger.handlers:
            logger.addHandler(self)

    def relative(self, file: str) -> str:
        """A file name that does not depend on where the package was copied to."""
        try:
            return Path(file).resolve().relative_to(self.root).as_posix()
        except ValueError:
            return file

    # Between two graphs the model's own Python runs with Dynamo's frame hook on: without this it would compile us.
    @torch.compiler.disable
    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one record."""
        if record.name.split(".")[0] == "torch":
            self.compiler.append(record)
            return
        exception = record.exc_info[1] if record.exc_info else None
        arguments = record.args if isinstance(record.args, tuple) else (record.args,)
        self._logs.append(
            LogEntry(
                logger=record.name,
                level=record.levelname,
                message=str(record.msg),
                arguments=repr(list(freeze(leaves(arguments)).items())),
                exception=repr(exception) if exception else "",
                file=self.relative(record.pathname),
            )
        )

    @torch.compiler.disable
    def _show(self, message: Any, category: type, filename: str, *_: Any) -> None:
        if not filename.startswith(self._torch):
            self._warnings.append(WarningEntry(category.__name__, str(message), self.relative(filename)))

    def take(self) -> Messages:
        """What was said since the last time."""
        texts = []
        for stream, capture in self._streams:
            stream.flush()
            capture.seek(0)
            texts.append(capture.read())
            capture.seek(0)
            capture.truncate()
        messages = Messages(tuple(self._logs), tuple(self._warnings), *texts)
        self._logs.clear()
        self._warnings.clear()
        return messages
