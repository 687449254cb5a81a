"""Reads and writes, certain bindings, definitions and liveness."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from graphmend.flow.names import accessed, free_reads


@pytest.mark.parametrize(
    ("code", "reads", "writes", "captured"),
    [
        ("a = b + c", {"b", "c"}, {"a"}, set()),
        ("a += b", {"a", "b"}, {"a"}, set()),
        ("a.b = c", {"a", "c"}, set(), set()),
        ("a[b] = c", {"a", "b", "c"}, set(), set()),
        ("a, *b = c", {"c"}, {"a", "b"}, set()),
        ("del a", set(), set(), set()),
        ("f = lambda a, b=c: a + d", {"c", "d"}, {"f"}, {"d"}),
        ("[a for a in b if a > c]", {"b", "c"}, set(), set()),
        ("[a for b in c for a in b]", {"c"}, set(), set()),
        ("x = (a + d for a in b)", {"b", "d"}, {"x"}, {"d"}),
        ("[y := f(a) for a in b]", {"f", "b"}, {"y"}, set()),
        ("def f(a=b):\n    c = a + d\n    return c", {"b", "d"}, {"f"}, {"d"}),
        ("def f():\n    nonlocal a\n    a = b", {"a", "b"}, {"f"}, {"a", "b"}),
        ("class C(B):\n    x = a", {"B", "a"}, {"C"}, {"a"}),
        ("for a in b:\n    c = a", {"a", "b"}, {"a", "c"}, set()),
        ("with a as b:\n    pass", {"a"}, {"b"}, set()),
        ("try:\n    a\nexcept E as e:\n    b", {"a", "E", "b"}, {"e"}, set()),
        ("import a.b, c as d", set(), {"a", "d"}, set()),
        ("match a:\n    case [b, *c]:\n        d", {"a", "d"}, {"b", "c"}, set()),
    ],
)
def test_accessed(code: str, reads: set[str], writes: set[str], captured: set[str]) -> None:
    found = accessed(ast.parse(code).body)
    assert (found.reads, found.writes, found.captured) == (reads, writes, captured)
    assert free_reads(ast.parse(code).body) == reads


BODY = """
a = x
if flag:
    b = x  # inside
    c = x
else:
    c = y
z = 1  # after branch
for i in range(3):
    d = x  # loop
    if flag:
        continue
    e = x
u = 1  # after loop
try:
    g = x
    h = y
except ValueError as error:
    h = x  # handler
v = 1  # after try
del a
w = 1  # last
return x
"""


@pytest.mark.parametrize(
    ("mark", "bound", "unbound"),
    [
        ("inside", {"a", "x", "self"}, {"b", "c"}),
        ("after branch", {"a", "c"}, {"b"}),
        ("loop", {"i"}, {"d", "e"}),
        ("after loop", {"a", "c"}, {"i", "d", "e"}),
        ("handler", {"a"}, {"g", "h"}),
        ("after try", {"h"}, {"g", "error"}),
        ("last", {"c"}, {"a"}),
    ],
)
def test_bound_before(
    analyse: Callable[..., Any], forward: Callable[..., Any], mark: str, bound: set[str], unbound: set[str]
) -> None:
    analysed = analyse(forward(BODY))
    found = analysed.frame().names.bound_before(analysed.statement(mark))
    assert bound <= found
    assert not unbound & found


def test_read_after_a_branch(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    body = """
a = b = c = d = e = x
if flag:  # branch
    a = x + 1
    b = a + 1
    c = x
    d = x
    f = d
b = y
if flag:
    return c
return lambda: e
"""
    analysed = analyse(forward(body))
    names, branch = analysed.frame().names, analysed.statement("branch")
    read = {name for name in "abcdef" if names.read_after(name, branch)}
    # `a` and `d` are read inside only, `b` is assigned again, `e` is read by a function that may run later.
    assert read == {"c", "e"}


def test_read_after_in_a_loop(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    body = """
a = b = x
for _ in range(3):
    if flag:  # branch
        c = a
        a = x + 1
        b = c
        d = c
return y
"""
    analysed = analyse(forward(body))
    names, branch = analysed.frame().names, analysed.statement("branch")
    # The next round reads `a` inside the branch.
    assert {name for name in "abcd" if names.read_after(name, branch)} == {"a"}


def test_read_after_by_a_handler(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    body = """
a = x
try:
    if flag:  # branch
        a = y
    b = x.relu()
except RuntimeError:
    return a
return b
"""
    analysed = analyse(forward(body))
    assert analysed.frame().names.read_after("a", analysed.statement("branch"))


def test_definitions(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    body = """
a = x  # first
if flag:
    a = y  # second
z = a  # use
for i in range(2):
    z = a  # again
    a = z  # third
return x
"""
    analysed = analyse(forward(body))
    names = analysed.frame().names

    def lines(name: str, mark: str) -> set[int]:
        found = names.definitions(name, analysed.statement(mark))
        assert found is not None
        return {item.lineno if isinstance(item, ast.stmt) else 0 for item in found}

    line = analysed.line
    assert lines("a", "use") == {line("first"), line("second")}
    assert lines("a", "again") == {line("first"), line("second"), line("third")}
    assert lines("x", "use") == {0}


def test_names_of_an_outer_function_are_bound(analyse: Callable[..., Any], forward: Callable[..., Any]) -> None:
    analysed = analyse(forward("b = 1\nreturn x  # use"))
    names, use = analysed.frame().names, analysed.statement("use")
    assert names.is_bound("torch", use)
    assert names.is_bound("b", use)
    assert names.is_bound("elsewhere", use)
