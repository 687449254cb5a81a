"""What mended code calls at run time: ``effect``, ``select`` and ``compile``. Imports torch and nothing else."""

from __future__ import annotations

from graphmend.runtime.compile import compile  # noqa: A004
from graphmend.runtime.effect import effect
from graphmend.runtime.select import select

__all__ = ["compile", "effect", "select"]
