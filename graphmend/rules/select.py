"""Decides which rules are on: for a run, and for one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphmend.config import Config
from graphmend.errors import ConfigError, did_you_mean
from graphmend.rules.model import Rule

_BOUND = re.compile(r"(>=|<=|==|!=|>|<)([\d.]+)")


def select_rules(rules: Sequence[Rule], config: Config) -> tuple[Rule, ...]:
    """Returns the rules that the configuration turns on.

    ``select`` and ``ignore`` hold codes or beginnings of codes, or ``ALL``; of several that fit a rule, the longest
    decides, and between equal ones ``ignore``.

    Raises:
        ConfigError: a code fits no rule.
    """
    check_codes(rules, config)
    chosen = (config.select or ("ALL",)) + config.extend_select
    ignored = config.ignore + config.extend_ignore
    return tuple(
        rule
        for rule in rules
        if _longest(rule.code, chosen) > _longest(rule.code, ignored) and breaks_in(rule.torch, config.torch)
    )


def check_codes(rules: Iterable[Rule], config: Config) -> None:
    """Checks that each code of the configuration fits a rule.

    Raises:
        ConfigError: one does not.
    """
    codes = [rule.code for rule in rules]
    lists = {
        "select": config.select,
        "extend-select": config.extend_select,
        "ignore": config.ignore,
        "extend-ignore": config.extend_ignore,
        "per-file-ignores": tuple(code for _, listed in config.per_file_ignores for code in listed),
    }
    for key, listed in lists.items():
        for code in listed:
            if code != "ALL" and (not code or not any(known.startswith(code) for known in codes)):
                raise ConfigError(f"{key}: unknown rule code `{code}`", hint=did_you_mean(code, codes))


def ignored_codes(path: str, config: Config) -> tuple[str, ...]:
    """Returns the codes or beginnings of codes that the configuration silences in one file.

    Arguments:
        path: the file, absolute, with ``/``.
        config: the configuration.
    """
    lists = (codes for globs, codes in config.per_file_ignores if globs.takes_with_parents(path))
    return tuple("" if code == "ALL" else code for codes in lists for code in codes)


def breaks_in(bounds: str, version: str | None) -> bool:
    """Whether a version of torch lies within bounds like ``>=2.0,<2.6``; no version lies within all."""
    if version is None:
        return True
    actual = _key(version)
    for operator, bound in _BOUND.findall(bounds):
        wanted = _key(bound)
        length = min(len(actual), len(wanted)) if operator in ("==", "!=") else max(len(actual), len(wanted))
        left, right = _pad(actual, length), _pad(wanted, length)
        fits = {
            ">=": left >= right,
            "<=": left <= right,
            ">": left > right,
            "<": left < right,
            "==": left == right,
            "!=": left != right,
        }
        if not fits[operator]:
            return False
    return True


def _longest(code: str, listed: tuple[str, ...]) -> int:
    """Returns the length of the longest entry that fits a code, or -1."""
    return max(
        (0 if entry == "ALL" else len(entry) for entry in listed if entry == "ALL" or code.startswith(entry)),
        default=-1,
    )


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _pad(key: tuple[int, ...], length: int) -> tuple[int, ...]:
    return (*key, *(0,) * (length - len(key)))[:length]
