"""Plans one fix without the rules: for forms that no built-in rule reports."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path

from graphmend.findings import Fix, Refusal
from graphmend.fixes import TRANSFORMS
from graphmend.fixes.site import Site
from graphmend.flow.program import Program
from graphmend.model.index import Index
from graphmend.regions.impact import parents_of
from graphmend.source.edits import apply_edits


def plan_at(path: Path, line: int, transform: str = "outline", **arguments: object) -> tuple[Fix | Refusal, str]:
    """The plan for the statement that begins in a line, and the text of the file with its edits."""
    found: list[tuple[Fix | Refusal, str]] = []
    before = threading.stack_size(256 * 1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(_plan(path, line, transform, arguments)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return found[0]


def _plan(path: Path, line: int, transform: str, arguments: dict[str, object]) -> tuple[Fix | Refusal, str]:
    sys.setrecursionlimit(20_000)
    index = Index()
    module = index.load(str(path))
    assert module is not None, index.errors
    program = Program(index)
    program.add_module(module)
    for function in program.traced():
        for statement in ast.walk(function.node):
            if (
                isinstance(statement, ast.stmt)
                and statement.lineno == line
                and not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            ):
                node = getattr(statement, "test", getattr(statement, "value", statement))
                site = Site(program, function, program.facts(function), statement, node, parents_of(function))
                plan = TRANSFORMS[transform].plan(site, arguments)
                edits = plan.edits if isinstance(plan, Fix) else ()
                return plan, apply_edits(module.source.text, edits)
    raise AssertionError(f"no traced statement begins in line {line}")
