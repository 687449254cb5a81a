"""Compares ``behaviour.yaml``, what operations and modules do beyond computing a value, with what torch does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.signatures.calls import call, draws, shares
from benchmarks.signatures.check import Mismatch
from benchmarks.signatures.measure import Measured, Trial, data, is_finite
from benchmarks.signatures.operands import PLAIN, Recipe
from graphmend.signatures.behaviour import Behaviour

_CONSTRUCTORS = ("", "1", "2", "3", "4", "0.5", "(3,)", "(1, 1)", "3, 3", "4, 4", "0.1, 0.5", "4, 4, 1")
_CALLED = ("x", "v", "t", "u", "g", "i", "x, y", "x, j")


def mismatches(behaviour: Behaviour) -> Iterator[Mismatch]:
    """The facts that do not hold."""
    excused = {(name, each["fact"]) for each in data()["excused"] for name in each["names"]}
    for found in (*_operations(behaviour), *_parameters(behaviour), *_modules(behaviour)):
        if (found.name, found.fact) not in excused:
            yield found


# -------------------------------------------------------------------- operations


def _operations(behaviour: Behaviour) -> Iterator[Mismatch]:
    for name in sorted(behaviour.elementwise | behaviour.like_first):
        for trial in Measured(name).computing:
            shapes = [operand.shape for operand in trial.outcome.operands]
            broadcast = name in behaviour.elementwise
            expected = torch.broadcast_shapes(*shapes) if broadcast else shapes[0]
            if trial.outcome.results[0].shape != expected and not trial.recipe.casts:
                word = "elementwise" if broadcast else "like_first"
                yield Mismatch(name, word, word, f"{trial} gives {tuple(trial.outcome.results[0].shape)}")
                break
    for name, positions in behaviour.no_gradient.items():
        for trial in Measured(name).computing:
            for position in positions:
                if _carries(trial, position):
                    says = f"operand {position} has no gradient"
                    yield Mismatch(name, "no_gradient", says, f"{trial} gives it one")


def _carries(trial: Trial, position: int) -> bool:
    """Whether a gradient comes back to an operand."""
    outcome = trial.varied(PLAIN.with_gradients())
    differentiable = [result for result in outcome.results if result.requires_grad]
    if not differentiable or position >= len(outcome.operands) or len(outcome.operands) < trial.recipe.positional:
        return False
    torch.sum(differentiable[0]).backward()
    return outcome.operands[position].grad is not None


# -------------------------------------------------------------------- parameters of functions


def _parameters(behaviour: Behaviour) -> Iterator[Mismatch]:
    """The names and positions of arguments."""
    for name, place in behaviour.in_place.items():
        yield from _at(name, getattr(functional, name), "inplace", place, "in_place")
    for name, place in behaviour.in_place_modules.items():
        short = name.rpartition(".")[2]
        yield from _at(short, getattr(nn, short), "inplace", place, "in_place")
    for name, (argument, place) in behaviour.keep_statistics.items():
        yield from _at(name, getattr(functional, name), argument, place, "keep_statistics")
    for name, asked in behaviour.draw_if.items():
        called = getattr(functional, name)
        yield from _at(name, called, asked.name, asked.position, "draw_if")
        default = _parameters_of(called).get(asked.name)
        if default is not None and bool(default.default) != asked.missing:
            yield Mismatch(
                name, "draw_if", f"missing: {asked.missing}", f"{asked.name} is {default.default} by default"
            )


def _at(name: str, called: Callable[..., Any], argument: str, position: int, fact: str) -> Iterator[Mismatch]:
    parameters = list(_parameters_of(called))
    if parameters and parameters[position : position + 1] != [argument]:
        yield Mismatch(name, fact, f"argument {position} is `{argument}`", f"its arguments are {', '.join(parameters)}")


def _parameters_of(called: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters; none if the function is written in C."""
    try:
        return dict(inspect.signature(called).parameters)
    except ValueError:
        return {}


# -------------------------------------------------------------------- modules


def _modules(behaviour: Behaviour) -> Iterator[Mismatch]:
    known = {
        "without_parameters": behaviour.modules_without_parameters,
        "bounded": behaviour.bounded_modules,
        "like_argument": behaviour.modules_like_argument,
        "pure": behaviour.pure_modules,
    }
    for dotted in sorted(frozenset().union(*known.values())):
        name = dotted.rpartition(".")[2]
        trials = list(_module_trials(name, behaviour))
        if not trials:
            yield Mismatch(name, "works", "there is such a module", "no arguments were found with which it works")
        for fact, names in known.items():
            shown = next(filter(None, (_BREAKS[fact](trial) for trial in trials)), "")
            if dotted in names and shown:
                yield Mismatch(name, fact, fact, shown)
        passed = next((trial for trial in trials if shares(trial.outcome)), None)
        if passed is not None and dotted not in behaviour.passing_modules:
            yield Mismatch(name, "passing", "not passing", f"{passed} gives back its argument")


def _module_trials(name: str, behaviour: Behaviour) -> Iterator[Trial]:
    """Calls of instances that work, and were not told to write into their argument."""
    own = data()["modules"].get(name, {})
    told = behaviour.in_place_modules.get(f"torch.nn.{name}", len(_CONSTRUCTORS))
    for text in own.get("made", _CONSTRUCTORS):
        arguments, keywords = Recipe(text).build(PLAIN)
        if len(arguments) > told:
            continue
        try:
            module = getattr(nn, name)(*arguments, **keywords)
        except Exception:  # noqa: BLE001 - whatever it raises, these are not its arguments
            continue
        for called in own.get("called", _CALLED):
            recipe = Recipe(str(called))
            outcome = call(module, recipe)
            if outcome.error is None and outcome.results:
                yield Trial(f"torch.nn.{name}({text})", module, recipe, outcome)


def _has_parameters(trial: Trial) -> str:
    module: Any = trial.function
    return f"{trial.dotted} has parameters" if next(module.parameters(), None) is not None else ""


def _is_unbounded(trial: Trial) -> str:
    for variant in trial.special():
        if not is_finite(trial.varied(variant.with_gradients())):
            return f"the derivative of {trial} is not finite for {variant.fills or variant.starts}"
    return ""


def _is_unlike(trial: Trial) -> str:
    result, argument = trial.outcome.results[0], trial.outcome.operands[0]
    unlike = (result.shape, result.dtype) != (argument.shape, argument.dtype)
    return f"{trial} gives {tuple(result.shape)} of {result.dtype}" if unlike else ""


def _does_more(trial: Trial) -> str:
    module: Any = trial.function
    before = [(each, each._version) for each in (*module.parameters(), *module.buffers())]
    failed = next((variant for variant in trial.special() if trial.varied(variant).error is not None), None)
    if failed is not None:
        return f"{trial} fails for {failed.fills or failed.starts}"
    if trial.outcome.written or any(each._version != version for each, version in before):
        return f"{trial} writes"
    return f"{trial} draws random numbers" if draws(trial.function, trial.recipe) else ""


_BREAKS: dict[str, Callable[[Trial], str]] = {
    "without_parameters": _has_parameters,
    "bounded": _is_unbounded,
    "like_argument": _is_unlike,
    "pure": _does_more,
}
