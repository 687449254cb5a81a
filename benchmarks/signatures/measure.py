"""What torch does: the facts of one operation, measured by calling it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
import yaml

from benchmarks.signatures.calls import Outcome, call, callables, draws, read_of_data, shares, tensors
from benchmarks.signatures.operands import PLAIN, SPECIAL, SPECIAL_INTEGERS, Recipe, Variant, kind_of
from graphmend.signatures.behaviour import behaviour

_DATA = Path(__file__).with_name("recipes.yaml")
_NAMES_OF_DIMENSIONS = {"dim", "axis"}


@dataclass(frozen=True)
class Trial:
    """A call that works: a function and arguments that fit.

    Args:
        dotted: the name of the function.
        function: the function.
        recipe: the arguments.
        outcome: what the call gave.
    """

    dotted: str
    function: Callable[..., Any]
    recipe: Recipe
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.dotted}({self.recipe.text})"

    def varied(self, variant: Variant) -> Outcome:
        """What a call with other operands gives."""
        return call(self.function, self.recipe, variant)

    @property
    def is_whole(self) -> bool:
        """Whether one tensor is given, and no dimension."""
        return self.recipe.positional < 2 and not self.recipe.keywords & _NAMES_OF_DIMENSIONS

    def kinds(self) -> Iterator[Variant]:
        """The same call with operands of other kinds, one after the other and all of them."""
        letters = self.recipe.letters
        for kind in ("int", "bool"):
            for changed in dict.fromkeys((letters[:1], letters[1:], letters)):
                if changed:
                    yield Variant(kinds=dict.fromkeys(changed, kind))

    def special(self, base: Variant = PLAIN) -> Iterator[Variant]:
        """The same call with special values in each operand and in all."""
        letters = self.recipe.letters
        groups = [(letter,) for letter in letters] + ([letters] if len(letters) > 1 else [])
        for group in groups:
            kinds = {base.kinds.get(letter, self.recipe.kind(letter)) for letter in group}
            values = {"float": SPECIAL, "complex": SPECIAL, "int": SPECIAL_INTEGERS, "bool": (0, 1)}[max(kinds)]
            if kinds == {"float", "int"}:
                values = (0, 1)
            for value in values:
                yield replace(base, fills=dict.fromkeys(group, value))
                yield replace(base, starts=dict.fromkeys(group, value))


@lru_cache(None)
def data() -> dict[str, Any]:
    """What ``recipes.yaml`` says."""
    with open(_DATA, "rb") as file:
        found: dict[str, Any] = yaml.safe_load(file)
    return found


@lru_cache(None)
def _everywhere() -> tuple[Recipe, ...]:
    return tuple(Recipe(str(text)) for text in data()["all"])


def recipes(name: str) -> list[Recipe]:
    """The arguments with which an operation is tried, those that were written for it first."""
    own = [Recipe(str(text)) for text in data()["own"].get(name, ())]
    texts = {recipe.text for recipe in own}
    return [*own, *(recipe for recipe in _everywhere() if recipe.text not in texts)]


class Measured:
    """The facts of an operation, each measured when it is asked for.

    Args:
        key: the operation as the tables name it: a dotted name is one function, another name means all functions,
            methods and attributes of that name.
        apart: dotted names that are operations of their own.
    """

    def __init__(self, key: str, apart: Container[str] = ()) -> None:
        self.name = key.rpartition(".")[2]
        meant = callables(self.name)
        self.functions = {
            dotted: function
            for dotted, function in meant.items()
            if (dotted == key if "." in key else dotted not in apart)
        }

    @cached_property
    def trials(self) -> list[Trial]:
        """The calls that work, those that were written for the operation first."""
        found: list[Trial] = []
        for dotted, function in self.functions.items():
            for recipe in recipes(self.name):
                outcome = call(function, recipe)
                if outcome.error is not None or (isinstance(outcome.value, tuple) and not outcome.value):
                    continue
                # A tensor in the place of a Python number is read by whatever it is given to.
                if not (recipe.has_numbers and read_of_data(function, recipe) == "reads"):
                    found.append(Trial(dotted, function, recipe, outcome))
        return found

    @cached_property
    def computing(self) -> list[Trial]:
        """The calls that give tensors and take some."""
        return [trial for trial in self.trials if trial.outcome.results and trial.recipe.letters]

    @cached_property
    def swept(self) -> list[Trial]:
        """The calls that are tried with special values: all arguments, each with the first function that takes them."""
        found: dict[str, Trial] = {}
        for trial in self.trials:
            if trial.recipe.letters and not trial.recipe.is_typed:
                found.setdefault(trial.recipe.text, trial)
        return list(found.values())

    # ---------------------------------------------------------------- what comes back

    def returns(self) -> dict[str, Trial]:
        """What comes back (``tensor``, ``pair``, ``tensors``, ``size``, …), each with a call in which it does."""
        found: dict[str, Trial] = {}
        for trial in self.trials:
            found.setdefault(_shape_of(trial), trial)
        return found

    def dtypes(self) -> dict[str, str]:
        """The kinds of the first result: ``same`` as the first operand or not, each with a call.

        The keys are pairs of the first operand's kind and the result's, such as ``int float``.
        """
        found: dict[str, str] = {}
        for trial in self.trials:
            if trial.recipe.casts or not trial.outcome.results:
                continue
            for variant in (PLAIN, *trial.kinds()):
                outcome = trial.outcome if variant is PLAIN else trial.varied(variant)
                if outcome.error is None and outcome.results:
                    first = kind_of(outcome.operands[0].dtype) if outcome.operands else ""
                    found.setdefault(f"{first} {kind_of(outcome.results[0].dtype)}", _shown(trial, variant))
        return found

    def not_whole(self) -> str:
        """A call on one tensor without a dimension that gives other than one element; empty if there is none."""
        trials = [trial for trial in self.computing if trial.is_whole]
        return next((str(trial) for trial in trials if trial.outcome.results[0].numel() != 1), "")

    def not_one(self) -> str:
        """A call that gives other than one element."""
        return next((str(trial) for trial in self.computing if trial.outcome.results[0].numel() != 1), "")

    def not_like_operands(self) -> str:
        """A call on tensors of one element that gives other than one element."""
        for trial in self.computing:
            for ones in ("dimensions", "scalar"):
                if trial.recipe.casts:
                    continue
                outcome = trial.varied(Variant(ones=ones))
                of_one = all(operand.numel() == 1 for operand in outcome.operands)
                if of_one and outcome.results and outcome.results[0].numel() != 1:
                    return f"{trial} on operands of one element"
        return ""

    def not_elementwise(self) -> str:
        """A call that gives another shape than its operands broadcast to."""
        for trial in self.computing:
            try:
                shape = torch.broadcast_shapes(*(operand.shape for operand in trial.outcome.operands))
            except RuntimeError:
                return str(trial)
            if trial.outcome.results[0].shape != shape:
                return str(trial)
        return ""

    # ---------------------------------------------------------------- what it does

    def failing(self, *, integers: bool = True) -> str:
        """A call that works for some values and fails for others; empty if there is none.

        Args:
            integers: whether calls in which all operands hold integers count.
        """
        for trial in self.swept:
            bases = [PLAIN, Variant(kinds=dict.fromkeys(trial.recipe.letters, "int"))]
            for base in bases:
                kinds = {base.kinds.get(letter, trial.recipe.kind(letter)) for letter in trial.recipe.letters}
                if not integers and not kinds & {"float", "complex"}:
                    continue
                if base is not PLAIN and not any(self._works(trial, base)):
                    continue
                for variant in trial.special(base):
                    outcome = trial.varied(variant)
                    if outcome.error is not None:
                        return f"{_shown(trial, variant)}: {_brief(outcome.error)}"
        return ""

    @staticmethod
    def _works(trial: Trial, base: Variant) -> Iterator[bool]:
        for value in (1.0, 2.0):
            fills = dict.fromkeys(trial.recipe.letters, value)
            yield trial.varied(replace(base, fills=fills)).error is None

    def unbounded(self, *, alone: bool = False) -> str:
        """A call whose derivative is not finite for some values.

        Args:
            alone: look at calls on one tensor alone.
        """
        for trial in self.swept:
            floats = [letter for letter in trial.recipe.letters if trial.recipe.kind(letter) == "float"]
            if not floats or (alone and (len(trial.recipe.letters) > 1 or trial.recipe.has_zero)):
                continue
            if not any(result.requires_grad for result in trial.varied(PLAIN.with_gradients()).results):
                continue
            for variant in trial.special():
                if not is_finite(trial.varied(variant.with_gradients())):
                    return _shown(trial, variant)
        return ""

    def differentiable(self) -> str:
        """A call whose result carries a gradient."""
        for trial in self.computing:
            outcome = trial.varied(PLAIN.with_gradients())
            if any(result.requires_grad for result in outcome.results):
                return str(trial)
        return ""

    def mutating(self) -> str:
        """A call that writes into its first operand, though no argument says so."""
        trials = (trial for trial in self.trials if not self._is_told_to_write(trial))
        return next((str(trial) for trial in trials if trial.outcome.written), "")

    def _is_told_to_write(self, trial: Trial) -> bool:
        position = behaviour().in_place.get(self.name)
        return position is not None and trial.recipe.positional > position

    def drawing(self) -> str:
        """A call that draws random numbers."""
        return next((str(trial) for trial in self.trials if draws(trial.function, trial.recipe)), "")

    def sharing(self) -> str:
        """A call that gives back its first operand, or a view of it."""
        for trial in self.computing:
            if self._is_told_to_write(trial):
                continue
            for variant in (PLAIN, *trial.kinds()):
                if shares(trial.outcome if variant is PLAIN else trial.varied(variant)):
                    return _shown(trial, variant)
        return ""

    @cached_property
    def of_data(self) -> dict[str, str]:
        """What depends on data, ``dynamic`` shapes or ``reads`` of values, each with a call; `` `` for neither."""
        found: dict[str, str] = {}
        for trial in self.swept:
            if trial.outcome.operands:
                found.setdefault(read_of_data(trial.function, trial.recipe), str(trial))
        return found


def _shape_of(trial: Trial) -> str:
    value = trial.outcome.value
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (tuple, list)) and value and all(isinstance(each, torch.Tensor) for each in value):
        return "pair" if len(value) == 2 and isinstance(value, tuple) else "tensors"
    if next(tensors(value), None) is not None:
        return "tensors"
    if trial.outcome.operands and read_of_data(trial.function, trial.recipe) == "reads":
        return "scalar"
    whole = value if isinstance(value, tuple) else (value,)
    if all(isinstance(each, int) and not isinstance(each, bool) for each in whole):
        return "size"
    return "static"


def is_finite(outcome: Outcome) -> bool:
    """Whether the gradients that come back from a result are finite."""
    result = next((result for result in outcome.results if result.requires_grad), None)
    if result is None:
        return True
    try:
        torch.sum(result.real if result.is_complex() else result).backward()
    except (NotImplementedError, RuntimeError):  # there is no derivative
        return False
    gradients = [operand.grad for operand in outcome.operands if operand.is_leaf and operand.grad is not None]
    return all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


def _shown(trial: Trial, variant: Variant) -> str:
    parts = [f"{letter} holds {kind}s" for letter, kind in variant.kinds.items()]
    parts += [f"{letter} = {value}" for letter, value in variant.fills.items()]
    parts += [f"{letter}[0] = {value}" for letter, value in variant.starts.items()]
    return f"{trial}{' where ' if parts else ''}{', '.join(parts)}"


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:80] if str(error) else ''}"
