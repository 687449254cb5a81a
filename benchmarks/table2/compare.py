"""What differs between two runs, and which differences do not count.

A difference is a line of text. Stock `torch.compile` changes some things on its own (a stride, say); a compiled run is
therefore given the stock compiled run of the unmended model as well, and a difference that this one shows in the very
same words is a note, not a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from benchmarks.table2.records import CallRecord, Messages, RunRecord, TensorRecord, Tree

SLACK = 1.5
"""How much larger than stock's an error may be: both are rounding noise, in differently fused loops."""

HALF_LIMIT = 65504 - 2000
"""Values of float16 from here on may be clamped ones: the models clamp at the largest finite value less 1000."""

FLOOR = {"torch.float16": 2.0**-11, "torch.bfloat16": 2.0**-8, "torch.float32": 2.0**-22}
"""Relative errors up to this are rounding of the result itself: half a unit in the last place (two in float32)."""


@dataclass(frozen=True)
class Comparison:
    """What a run shows against its reference.

    Attributes:
        run: name of the run.
        differences: what counts.
        notes: what does not, with the reason.
    """

    run: str
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compare(
    reference: RunRecord,
    run: RunRecord,
    stock: RunRecord | None = None,
    *,
    compiled: bool = False,
    accuracy: RunRecord | None = None,
    gradient_accuracy: RunRecord | None = None,
) -> Comparison:
    """Compares a run of the mended model with the unmended model in eager.

    Args:
        reference: the unmended model in eager.
        run: the run to judge.
        stock: the unmended model compiled with the same backend.
        compiled: grant what is granted under compile only.
        accuracy: the unmended model in float64; outputs are then judged against it and not bit for bit.
        gradient_accuracy: the same with gradients. Only gradients that stock compiled code rounds differently than
            eager are judged against it: AOTAutograd adds up the parts of a gradient in another order.
    """
    for record in filter(None, (reference, run, stock, accuracy, gradient_accuracy)):
        if record.error:
            return Comparison(run.name, (f"{record.name} could not be run: {record.error.strip().splitlines()[-1]}",))
    if len(reference.calls) != len(run.calls):
        return Comparison(run.name, (f"{len(run.calls)} calls instead of {len(reference.calls)}",))
    found, notes = [], []
    for number in range(len(run.calls)):
        known = set(_differences(reference, stock, number, compiled, accuracy)) if stock else set()
        for difference in _differences(reference, run, number, compiled, accuracy):
            if difference in known:
                notes.append(f"{difference} (so does stock)")
            elif difference.startswith(_LICENCE):
                notes.append(difference)
            elif (
                stock
                and gradient_accuracy
                and _rounded(
                    difference, [record.calls[number] for record in (run, reference, stock, gradient_accuracy)], known
                )
            ):
                notes.append(f"{difference} (stock rounds differently too)")
            else:
                found.append(difference)
        if accuracy and stock:
            found.extend(_accuracy(reference, run, stock, accuracy, number))
    return Comparison(run.name, tuple(found), tuple(notes))


_LICENCE = "lazy cache: "

_GRADIENT = re.compile(r"call \d+: gradient of (.+): other values ")


def _rounded(difference: str, calls: Sequence[CallRecord], known: set[str]) -> bool:
    """Whether a difference is only in how a gradient is rounded.

    Stock has one there too, and the error is no larger than that of stock or of eager; or it is smaller than the
    rounding of the largest gradient, of which a gradient that is zero but for rounding is the remainder.

    Args:
        difference: the text of the difference.
        calls: the call in the mended run, in eager, in stock, and in float64.
        known: the differences of stock.
    """
    match = _GRADIENT.match(difference)
    if not match or not any(text.startswith(match[0]) for text in known):
        return False
    dtype = calls[0].gradients[match[1]].dtype
    got, eager, stock, exact = (call.gradients[match[1]].value for call in calls)
    error = distance(got, exact)
    if error <= SLACK * max(distance(eager, exact), distance(stock, exact)):
        return True
    largest = max(norm(record.value) for record in calls[3].gradients.values())
    return error <= FLOOR.get(dtype, 0.0) * largest


def _differences(
    reference: RunRecord, run: RunRecord, number: int, compiled: bool, accuracy: RunRecord | None
) -> Iterator[str]:
    left, right = reference.calls[number], run.calls[number]
    where = f"call {number + 1}: "
    yield from (where + text for text in _trees("output", left.outputs, right.outputs, bits=accuracy is None))
    yield from (where + text for text in _trees("argument", left.arguments, right.arguments))
    yield from (where + text for text in _trees("gradient of", left.gradients, right.gradients))
    for text in _trees("state", left.state, right.state):
        path = text.removeprefix("state ").removesuffix(" is new")
        if compiled and text.endswith(" is new") and _appears_later(reference, run, number, path):
            yield f"{_LICENCE}{where}{text}"
        else:
            yield where + text
    if not compiled and left.aliases != right.aliases:
        gained = sorted(set(right.aliases) - set(left.aliases))
        lost = sorted(set(left.aliases) - set(right.aliases))
        yield f"{where}shared storage differs: lost {lost[:3]}, gained {gained[:3]}"
    for name, value in left.random.items():
        if right.random.get(name) != value:
            yield f"{where}the {name} random stream is elsewhere"
    if left.raised != right.raised:
        yield f"{where}raised {right.raised} instead of {left.raised}"
    yield from (where + text for text in _messages(left.messages, right.messages))


def _appears_later(reference: RunRecord, run: RunRecord, number: int, path: str) -> bool:
    """Whether the unmended model creates the same attribute, with the same value, in a later call.

    That is the licence for lazy caches: created earlier than in eager, never with another value.
    """
    value = run.calls[number].state[path]
    later = [call.state[path] for call in reference.calls[number + 1 :] if path in call.state]
    return bool(later) and later[0] == value


def _trees(what: str, left: Tree, right: Tree, *, bits: bool = True) -> Iterator[str]:
    """Differences of two trees; without `bits`, the elements of floating tensors are left to the accuracy check."""
    for path in left.keys() - right.keys():
        yield f"{what} {path} is missing"
    for path in right.keys() - left.keys():
        yield f"{what} {path} is new"
    for path in left.keys() & right.keys():
        one, other = left[path], right[path]
        if one == other:
            continue
        if not isinstance(one, TensorRecord) or not isinstance(other, TensorRecord):
            yield f"{what} {path} is {_short(other)} instead of {_short(one)}"
            continue
        for field in fields(TensorRecord):
            if not field.compare or getattr(one, field.name) == getattr(other, field.name):
                continue
            if field.name == "digest":
                if bits or "float" not in one.dtype:
                    yield f"{what} {path}: other values ({other.digest[:8]} instead of {one.digest[:8]})"
            else:
                yield (
                    f"{what} {path}: {field.name} {getattr(other, field.name)} instead of {getattr(one, field.name)}"
                )


def _messages(left: Messages, right: Messages) -> Iterator[str]:
    for name in ("logs", "warnings"):
        one, other = getattr(left, name), getattr(right, name)
        if one != other:
            yield f"{name}: {_listed(other)} instead of {_listed(one)}"
    for name in ("stdout", "stderr"):
        one, other = getattr(left, name), getattr(right, name)
        if one != other:
            yield f"{name}: {other[-200:]!r} instead of {one[-200:]!r}"


def _listed(entries: tuple[object, ...]) -> str:
    return f"{len(entries)} [{'; '.join(str(entry) for entry in entries)}]"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def error_of(value: object, exact: object) -> float:
    """Relative error against a more exact tensor; infinite if they disagree on what is finite."""
    return distance(value, exact) / (norm(exact) or 1.0)


def distance(value: object, exact: object) -> float:
    """Root of the squared differences to a more exact tensor; infinite if they disagree on what is finite."""
    import torch

    assert isinstance(value, torch.Tensor)
    assert isinstance(exact, torch.Tensor)
    got, wanted = value.double().flatten(), exact.double().flatten()
    finite = wanted.isfinite()
    if got.shape != wanted.shape or bool((got.isfinite() != finite).any()):
        return float("inf")
    return norm(got[finite] - wanted[finite])


def norm(value: object) -> float:
    """Root of the squares of the finite elements of a tensor."""
    import torch

    assert isinstance(value, torch.Tensor)
    elements = value.double()
    return float(elements[elements.isfinite()].pow(2).sum().sqrt())


def _accuracy(
    reference: RunRecord, run: RunRecord, stock: RunRecord, accuracy: RunRecord, number: int
) -> Iterator[str]:
    """Floating outputs that are further from float64 than stock compiled code is."""
    calls: list[CallRecord] = [record.calls[number] for record in (reference, run, stock, accuracy)]
    for path, record in calls[0].outputs.items():
        if not isinstance(record, TensorRecord) or "float" not in record.dtype:
            continue
        values = [call.outputs.get(path) for call in calls]
        if not all(isinstance(value, TensorRecord) for value in values):
            continue  # a missing output is reported already
        eager, got, known, exact = (value.value for value in values if isinstance(value, TensorRecord))
        # Where float16 overflows, the model clamps or gives infinity, and float64 does neither: there eager decides.
        beyond = exact.abs() > HALF_LIMIT if record.dtype == "torch.float16" else exact.isnan()
        if not bool((got[beyond].nan_to_num() == eager[beyond].nan_to_num()).all()):
            yield f"call {number + 1}: output {path}: other values than in eager where float16 overflows"
        error, known_error = (error_of(value[~beyond], exact[~beyond]) for value in (got, known))
        limit = max(SLACK * known_error, FLOOR.get(record.dtype, 0.0))
        if error > limit:
            yield f"call {number + 1}: output {path}: error {error:.2e} against float64, at most {limit:.2e} allowed"
