"""Runs the Markdown files beside this one.

Each Python block is a module (blocks that begin with ``# file: name.py`` form one package with the block that follows
them). A trailing comment says what graphmend knows:

- ``# is: KINDS …`` — the value of the expression statement or assignment on that line: kinds joined by ``|``, followed
  by facts (``bool``, ``int``, ``float``, ``single``, ``guess``);
- ``# unreachable`` — tracing does not get to the statement.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from pathlib import Path

import pytest

from graphmend.flow.program import Program
from graphmend.flow.values import Kind, Value
from graphmend.model.index import Index
from graphmend.model.scopes import walk_scope

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
EXPECTED = re.compile(r"#\s*(is: .*|unreachable)$")
NAMES = {
    Kind.TENSOR: "tensor",
    Kind.SCALAR: "scalar",
    Kind.SIZE: "size",
    Kind.STATIC: "static",
    Kind.NONE: "none",
    Kind.OBJECT: "object",
    Kind.CALLABLE: "callable",
    Kind.CONTAINER: "container",
    Kind.UNKNOWN: "unknown",
}


def cases() -> list[object]:
    found: list[object] = []
    for path in sorted(HERE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        files: dict[str, str] = {}
        for block in BLOCK.finditer(text):
            code = block.group(1)
            named = re.match(r"# file: (\S+)\n", code)
            if named:
                files[named.group(1)] = code
                continue
            heading = [match.group(1) for match in HEADING.finditer(text, 0, block.start())][-1]
            found.append(pytest.param({**files, "module.py": code}, id=f"{path.stem}: {heading}"))
            files = {}
    return found


def describe(value: Value) -> str:
    kinds = "|".join(name for kind, name in NAMES.items() if value.kinds & kind) or "nothing"
    facts = [value.dtype] if value.dtype else []
    facts += ["single"] if value.single else []
    facts += ["guess"] if value.inferred else []
    return " ".join([kinds, *facts])


@pytest.mark.parametrize("files", cases())
def test_block(files: dict[str, str], tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name, code in files.items():
        (package / name).write_text(code, encoding="utf-8")
    problems: list[str] = []
    thread = threading.Thread(target=guarded, args=(package, files, problems))
    thread.start()
    thread.join()
    assert not problems, "\n".join(problems)


def guarded(package: Path, files: dict[str, str], problems: list[str]) -> None:
    try:
        check(package, files, problems)
    except Exception as error:  # a test must not pass because its thread died
        problems.append(f"{type(error).__name__}: {error}")


def check(package: Path, files: dict[str, str], problems: list[str]) -> None:
    sys.setrecursionlimit(20_000)
    index = Index()
    program = Program(index)
    for name in files:
        module = index.load(str(package / name))
        assert module is not None, index.errors
        launches = program.find_launches([module])
        program.add_module(module)
        program.launch(launches)
    assert not program.failures
    for name, code in files.items():
        expected = {
            number: match.group(1)
            for number, line in enumerate(code.splitlines(), 1)
            if (match := EXPECTED.search(line)) is not None
        }
        module = index.load(str(package / name))
        for function in [each for each in program.states if each.module is module]:
            facts = program.facts(function)
            for node in walk_scope(function.body):
                if not isinstance(node, ast.stmt) or node.end_lineno not in expected or hasattr(node, "body"):
                    continue
                wanted = expected.pop(node.end_lineno)
                if wanted == "unreachable":
                    if id(node) in facts.reached:
                        problems.append(f"{name}:{node.lineno}: is reached")
                    continue
                value = getattr(node, "value", None)
                assert value is not None, f"nothing to look at in line {node.lineno}"
                got = f"is: {describe(facts.value(value))}"
                if got != wanted:
                    problems.append(f"{name}:{node.lineno}: expected {wanted!r}, got {got!r}")
        problems += [f"{name}:{line}: no function that was interpreted holds this line" for line in expected]
