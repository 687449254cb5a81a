from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="the run-time package needs torch")

import torch
import torch._dynamo
from runtime_helpers import BACKENDS


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    logging.getLogger("user").setLevel(logging.DEBUG)
    yield
    torch._dynamo.reset()
