"""The functions and methods that a name of the tables means, and calls of them."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.nn import functional

from benchmarks.signatures.operands import PLAIN, Recipe, Variant

SPACES: dict[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": functional,
    "torch.special": torch.special,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
}
"""Where the names of the tables stand; ``torch.yaml`` lists the same namespaces."""


_NO_DATA = "its data is not allocated yet"


@dataclass(frozen=True)
class Outcome:
    """One call.

    Args:
        operands: the tensors that were given, in the order in which they stand.
        value: what was returned.
        error: what was raised.
        versions: how often each operand had been written to before the call.
    """

    operands: tuple[torch.Tensor, ...] = ()
    value: Any = None
    error: Exception | None = None
    versions: tuple[int, ...] = ()

    @property
    def results(self) -> list[torch.Tensor]:
        """The tensors in what was returned."""
        return list(tensors(self.value))

    @property
    def written(self) -> bool:
        """Whether the first operand was written to."""
        return bool(self.operands) and self.operands[0]._version != self.versions[0]


def callables(name: str) -> dict[str, Callable[..., Any]]:
    """What a name means, by dotted name; an attribute of tensors is a function of the tensor."""
    found: dict[str, Callable[..., Any]] = {}
    for space, holder in SPACES.items():
        member = getattr(holder, name, None)
        if member is None or isinstance(member, ModuleType):
            continue
        if space == "torch.Tensor":
            member = _method(name) if callable(member) else _reader(name)
        if callable(member) and member not in found.values():
            found[f"{space}.{name}"] = member
    return found


def _method(name: str) -> Callable[..., Any]:
    def method(*arguments: Any, **keywords: Any) -> Any:
        if not arguments or not isinstance(arguments[0], torch.Tensor):
            raise TypeError(name)
        return getattr(arguments[0], name)(*arguments[1:], **keywords)

    return method


def _reader(name: str) -> Callable[[Any], Any]:
    def read(tensor: torch.Tensor) -> Any:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(name)
        return getattr(tensor, name)

    return read


def call(function: Callable[..., Any], recipe: Recipe, variant: Variant = PLAIN) -> Outcome:
    """Calls a function with a recipe's operands; nothing is returned or raised if these cannot be made."""
    try:
        arguments, keywords = recipe.build(variant)
    except Exception:  # noqa: BLE001 - what computes an operand takes no such values
        return Outcome()
    operands = tuple(tensors((arguments, tuple(keywords.values()))))
    versions = tuple(each._version for each in operands)
    try:
        value = function(*arguments, **keywords)
    except Exception as error:  # noqa: BLE001 - whatever a function raises for operands is what is asked
        return Outcome(operands, None, error, versions)
    return Outcome(operands, value, None, versions)


def read_of_data(function: Callable[..., Any], recipe: Recipe) -> str:
    """What of a call depends on data, as fake tensors say: ``dynamic`` shapes, ``reads`` of values, or nothing."""
    arguments, keywords = recipe.build(PLAIN)
    with _fakes() as mode:

        def fake(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return mode.from_tensor(value)
            return type(value)(map(fake, value)) if type(value) in (list, tuple) else value

        try:
            function(*map(fake, arguments), **{name: fake(value) for name, value in keywords.items()})
        except DynamicOutputShapeException:
            return "dynamic"
        except DataDependentOutputException:
            return "reads"
        except Exception as error:  # noqa: BLE001 - fake tensors lack some operations
            return "reads" if _NO_DATA in str(error) else ""
    return ""


@lru_cache(None)
def _fakes() -> FakeTensorMode:
    return FakeTensorMode()


def draws(function: Callable[..., Any], recipe: Recipe) -> bool:
    """Whether a call draws random numbers."""
    arguments, keywords = recipe.build(PLAIN)
    before = torch.get_rng_state()
    # The generator keeps a spare normal number, so one call may draw nothing: two do.
    for _ in range(2):
        with contextlib.suppress(Exception):
            function(*arguments, **keywords)
    return not torch.equal(before, torch.get_rng_state())


def shares(outcome: Outcome) -> bool:
    """Whether a result is the first operand, or a view of it."""
    if not outcome.operands:
        return False
    first = outcome.operands[0]
    return any(each is first or _storage(each) == _storage(first) != 0 for each in outcome.results)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse tensors have none
        return 0


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors(each)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps warnings, prints and the random state to itself."""
    threads = torch.get_num_threads()
    default = torch.get_default_dtype()
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), torch.random.fork_rng(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(default)
            logging.disable(logging.NOTSET)
