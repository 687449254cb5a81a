"""The examples of the built-in rules do what they say."""

from __future__ import annotations

import pytest

from graphmend.examples import check_examples
from graphmend.rules.loader import load_rules
from graphmend.rules.model import Rule


@pytest.mark.parametrize("rule", load_rules(), ids=lambda rule: rule.code)
def test_examples(rule: Rule) -> None:
    assert [str(failure) for failure in check_examples(rule)] == []
