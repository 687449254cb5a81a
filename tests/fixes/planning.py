"""Plans one fix without the rules: for forms that no built-in rule reports."""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path

from graphmend.findings import Fix, Refusal
from graphmend.fixes import TRANSFORMS
from graphmend.fixes.site import Site
from graphmend.flow.impact import parents_of
from graphmend.flow.program import Program
from graphmend.model.index import Index
from graphmend.source.edits import apply_edits


def plan_at(
    path: Path, line: int, torchscript: tuple[str, ...] = (), times: int = 1, **arguments: object
) -> tuple[Fix | Refusal, str]:
    """The plan of outline for the statement that begins in a line, and the text of the file with its edits.

    With ``times`` the plan is made several times, and must be the same each time.
    """
    found: list[tuple[Fix | Refusal, str]] = []
    before = threading.stack_size(256 * 1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(_plan(path, line, torchscript, times, arguments)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return found[0]


def _plan(
    path: Path, line: int, torchscript: tuple[str, ...], times: int, arguments: dict[str, object]
) -> tuple[Fix | Refusal, str]:
    sys.setrecursionlimit(20_000)
    index = Index()
    module = index.load(str(path))
    assert module is not None, index.errors
    program = Program(index)
    launches = program.find_launches([module])
    program.add_module(module)
    program.launch(launches)
    for function in program.traced():
        for statement in ast.walk(function.node):
            if (
                isinstance(statement, ast.stmt)
                and statement.lineno == line
                and not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            ):
                node = getattr(statement, "test", getattr(statement, "value", statement))
                site = Site(
                    program,
                    function,
                    program.facts(function),
                    statement,
                    node,
                    parents_of(function),
                    torchscript=torchscript,
                )
                plans = [TRANSFORMS["outline"].plan(site, arguments) for _ in range(times)]
                assert len(set(plans)) == 1
                plan = plans[0]
                edits = plan.edits if isinstance(plan, Fix) else ()
                return plan, apply_edits(module.source.text, edits)
    raise AssertionError(f"no traced statement begins in line {line}")
