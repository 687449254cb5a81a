"""The one operator that stands for every effect in a graph, and the table of what it runs.

The operator mutates a token, as far as its schema says, and returns nothing: that is what keeps it alive, in order and
out of every other optimisation on all back ends, and what lets the compiled graph be cached on disk. Nothing really
writes the token, which has no elements. ``docs/runtime.md`` has the measurements behind this choice.
"""

from __future__ import annotations

import hashlib
import re
import sys
import types
from collections.abc import Sequence
from typing import Any

import torch

from graphmend.runtime.defer import Body, run

# `call` holds site, location and layout, a line each: every argument more costs a microsecond.
_SCHEMA = "(Tensor(a!) token, str call, Tensor[] tensors, SymInt[] ints) -> ()"
_TAGS = ("cudagraph_unsafe", "needs_exact_strides", "pt2_compliant_tag")


class UnknownSiteError(RuntimeError):
    """A graph from elsewhere asks for an effect that no imported module has defined."""

    def __init__(self, site: str) -> None:
        module = site.partition(":")[0]
        super().__init__(
            f"the graph calls the effect {site!r}, which is not defined in this process: import the module {module!r}, "
            "in the version that the graph was made from, before running the graph"
        )


_bodies: dict[str, Body] = {}


def register_body(site: str, body: Body) -> None:
    """Make ``body`` what graphs mean by ``site``; the same site again replaces it."""
    _bodies[site] = body


def body_of(site: str) -> Body:
    """What graphs mean by ``site``."""
    return _bodies[site]


def _kernel(_token: torch.Tensor, call: str, tensors: Sequence[torch.Tensor], ints: Sequence[int]) -> None:
    site, location, layout = call.split("\n", 2)
    body = _bodies.get(site)
    if body is None:
        raise UnknownSiteError(site)
    run(body, location, layout, tensors, ints)


def _fake(*_args: object) -> None:
    return None


def _shared_token() -> torch.Tensor:
    """The token, one for the process: vendored copies of this file keep their messages in order among each other."""
    holder = sys.modules.setdefault("_graphmend_token", types.ModuleType("_graphmend_token"))
    if not hasattr(holder, "token"):
        # torch.tensor, since packages patch torch.empty and its like to build on the meta device.
        with torch.inference_mode(False):
            holder.token = torch.tensor([], device="cpu")  # type: ignore[attr-defined]
    token: torch.Tensor = holder.token
    return token


def _define(module: str) -> tuple[torch.library.Library, Any]:
    """Define the operator in a namespace made from the name of ``module``, so that graphs find it in any process."""
    digest = hashlib.sha256(module.encode()).hexdigest()[:8]
    namespace = f"graphmend_{re.sub(r'[^0-9A-Za-z]', '_', module)}_{digest}"
    while hasattr(getattr(torch.ops, namespace), "effect"):
        # This module has been imported before and thrown away, but not all graphs of it.
        namespace += "_"
    library = torch.library.Library(namespace, "FRAGMENT")  # type: ignore[no-untyped-call]
    tags = [getattr(torch.Tag, tag) for tag in _TAGS if hasattr(torch.Tag, tag)]
    library.define("effect" + _SCHEMA, tags=tags)  # type: ignore[no-untyped-call]
    library.impl("effect", _kernel, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"{namespace}::effect", _fake, lib=library)
    return library, getattr(torch.ops, namespace).effect.default


TOKEN = _shared_token()
LIBRARY, OPERATOR = _define(__name__)
