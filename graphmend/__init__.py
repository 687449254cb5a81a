"""graphmend finds the code that breaks PyTorch graphs under ``torch.compile`` and mends what can be proven safe.

``graphmend.effect``, ``graphmend.select`` and ``graphmend.compile`` are what mended code calls. They live in
:mod:`graphmend.runtime` and are imported at first use, so that the linter never loads torch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from graphmend.version import __version__

if TYPE_CHECKING:
    from graphmend.runtime import compile, effect, select  # noqa: A004

__all__ = ["__version__", "compile", "effect", "select"]

_RUNTIME = frozenset({"compile", "effect", "select"})


def _load() -> Any:
    from graphmend import runtime

    return runtime


def __getattr__(name: str) -> Any:
    """Import the run-time package when one of its names is first asked for (PEP 562)."""
    if name not in _RUNTIME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The first use may be in a frame that Dynamo has left to Python: what is called from there is compiled.
    dynamo = sys.modules.get("torch._dynamo")
    load = _load if dynamo is None else dynamo.disable(_load)
    value = getattr(load(), name)
    globals()[name] = value
    return value
