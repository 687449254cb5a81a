"""The identifiers of graph breaks that the rules name, against the registry of the installed torch."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from graphmend.rules.loader import builtin_paths, load_pack
from graphmend.rules.model import CallMatch, Rule

RULES = [rule for path in builtin_paths() for rule in load_pack(path).rules]


def registry() -> dict[str, object]:
    """The registry, which is read without importing torch."""
    found = importlib.util.find_spec("torch")
    path = Path(found.origin if found and found.origin else "").parent / "_dynamo" / "graph_break_registry.json"
    if not path.exists():
        pytest.skip("no torch with a registry of graph breaks is installed")
    entries: dict[str, object] = json.loads(path.read_text("utf-8"))
    return entries


def identifiers(rule: Rule) -> set[str]:
    match = rule.match
    of_calls = {*match.function_gb, *match.method_gb} if isinstance(match, CallMatch) else set()
    return {*rule.gb, *of_calls}


def test_there_are_rules() -> None:
    assert len(RULES) >= 8


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_identifiers_are_in_the_registry(rule: Rule) -> None:
    assert identifiers(rule) - registry().keys() == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_identifiers_and_versions_are_named(rule: Rule) -> None:
    assert rule.gb
    assert re.fullmatch(r"(>=|>)\d+\.\d+[^,]*(,(<|<=)\d+.*)?", rule.torch)
