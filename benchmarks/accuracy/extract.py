"""Makes the variants: one small program for each measured pattern, out of the file that measured them all.

    python -m benchmarks.accuracy.extract patterns.py patterns.json

The patterns of that file are functions and classes under `@pat(name, *inputs)` and `@mod(name, *inputs)`. Each becomes
a program of its own, with the imports and module-level definitions that it needs, a visible `torch.compile` of it, and
one call. The text of the definitions is kept. Each program is run once under Dynamo: it must give the measured numbers
of graphs and breaks, and the log says on which lines it breaks.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.observe import observe
from benchmarks.accuracy.statements import Source, headers

DATA = Path(__file__).with_name("data")

MARKS = ("pat", "mod")
"""Decorators that name a pattern: of a function, and of a module class."""

PREPARATIONS = {"breakpoint() [PYTHONBREAKPOINT=0]": ("import os\n", 'os.environ["PYTHONBREAKPOINT"] = "0"\n')}
"""What a variant needs to be set before it runs, as an import and a statement, from its name."""


@dataclass(frozen=True)
class Pattern:
    """One pattern.

    Attributes:
        name: what it is called.
        node: its function or class.
        text: its source, without the decorator that names it.
        inputs: the sources of its arguments.
    """

    name: str
    node: ast.FunctionDef | ast.ClassDef
    text: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Helper:
    """A module-level statement: what it binds, what it sets on something else, and what it uses."""

    text: str
    binds: frozenset[str]
    alters: str
    attribute: str
    is_import: bool
    uses: frozenset[str]
    order: int


def names_in(node: ast.AST) -> frozenset[str]:
    """Names that a piece of code reads, also by their text (`globals()["SCALE"]`), and attributes, with a dot."""
    found = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            found.add(child.id)
        elif isinstance(child, ast.Attribute):
            found.add(f".{child.attr}")
        elif isinstance(child, ast.Constant) and isinstance(child.value, str) and child.value.isupper():
            found.add(child.value)
    return frozenset(found)


def root(node: ast.expr) -> str:
    """The name at the start of a chain of attributes, calls and subscripts; empty for another expression."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, with those inside `try`."""
    for statement in body:
        if isinstance(statement, ast.Try):
            yield from _flat(statement.body)
        else:
            yield statement


class Extractor:
    """The patterns of one file, and the programs made of them."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.patterns: list[Pattern] = []
        self.helpers: list[Helper] = []
        for order, statement in enumerate(_flat(ast.parse(text).body)):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and self._mark(statement):
                self._add_pattern(statement)
            elif isinstance(statement, ast.For):
                self._add_family(statement)
            else:
                self._add_helper(statement, order)

    def _text(self, node: ast.stmt, *, skip: ast.expr | None = None) -> str:
        """The source of a statement with its decorators but one, at column 0."""
        first = node.lineno
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            kept = [decorator.lineno for decorator in node.decorator_list if decorator is not skip]
            first = min([node.lineno, *kept])
        indent = " " * node.col_offset
        return "\n".join(line.removeprefix(indent) for line in self.lines[first - 1 : node.end_lineno]) + "\n"

    @staticmethod
    def _mark(node: ast.FunctionDef | ast.ClassDef) -> ast.Call | None:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and root(decorator.func) in MARKS:
                return decorator
        return None

    def _add_pattern(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        mark = self._mark(node)
        assert mark is not None
        name = ast.literal_eval(mark.args[0])
        inputs = tuple(ast.unparse(argument) for argument in mark.args[1:]) or ("X",)
        text = self._text(node, skip=mark)
        node.decorator_list.remove(mark)
        self.patterns.append(Pattern(name, node, text, inputs))

    def _add_family(self, loop: ast.For) -> None:
        """Patterns that a loop makes: `for v in (…): def mk(v): …; pat("… %s" % v)(mk(v))`.

        `mk` returns a function; where it defines several, it selects one by comparing its parameter with a constant.
        """
        maker = next(statement for statement in loop.body if isinstance(statement, ast.FunctionDef))
        call = next(statement.value for statement in loop.body if isinstance(statement, ast.Expr))
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Call)
        parameter = maker.args.args[0].arg
        for value in ast.literal_eval(loop.iter):
            template = call.func.args[0]
            assert isinstance(template, ast.BinOp)
            name = ast.literal_eval(template.left) % value
            node = _chosen(maker.body, parameter, value)
            text = self._text(node)
            pattern = re.compile(rf"getattr\((\w+), {parameter}\)")
            text = pattern.sub(rf"\1.{value}", text)
            made = ast.parse(text).body[0]
            assert isinstance(made, ast.FunctionDef)
            self.patterns.append(Pattern(name, made, text, ("X",)))

    def _add_helper(self, statement: ast.stmt, order: int) -> None:
        """A statement that binds a name, or sets something on an object."""
        binds: set[str] = set()
        alters = attribute = ""
        is_import = isinstance(statement, (ast.Import, ast.ImportFrom))
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            binds = {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            binds = {statement.name}
        elif isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            binds = {target.id}
        elif isinstance(statement, ast.Assign) and isinstance(target, ast.Attribute):
            alters, attribute = root(target), f".{target.attr}"
        elif isinstance(statement, ast.Expr):
            alters = root(statement.value)
        if binds or alters:
            uses = names_in(statement)
            self.helpers.append(
                Helper(self._text(statement), frozenset(binds), alters, attribute, is_import, uses, order)
            )

    def needed(self, pattern: Pattern) -> list[Helper]:
        """The module-level statements that a pattern needs, in the order of the file.

        What sets an attribute of an imported object is needed if the attribute is read (`Logger.warning_once = …`);
        what alters an object of the file, if that is needed.
        """
        uses = set(names_in(pattern.node)).union(*(names_in(ast.parse(text)) for text in pattern.inputs))
        taken: dict[int, Helper] = {}
        while True:
            imported = {name for helper in self.helpers if helper.is_import for name in helper.binds}
            added = [
                helper
                for helper in self.helpers
                if helper.order not in taken
                and (
                    helper.binds & uses
                    or (helper.alters in uses and (helper.alters not in imported or helper.attribute in uses))
                )
            ]
            if not added:
                return [taken[order] for order in sorted(taken)]
            for helper in added:
                taken[helper.order] = helper
                uses |= helper.uses

    def program(self, pattern: Pattern) -> str:
        """A program that defines the pattern, compiles it, and calls it."""
        helpers = self.needed(pattern)
        wanted, simple = PREPARATIONS.get(pattern.name, ("", ""))
        imports = {helper.text for helper in helpers if helper.is_import} | {"import torch\n", wanted}
        blocks = [f"# {pattern.name}\n", "".join(sorted(imports))]
        for helper in helpers:
            if helper.is_import:
                continue
            if helper.text.startswith(("def ", "class ", "@")):
                blocks.extend((simple, f"\n{helper.text}\n"))
                simple = ""
            else:
                simple += helper.text
        blocks.extend((simple, f"\n{pattern.text}\n"))
        target = f"{pattern.node.name}()" if isinstance(pattern.node, ast.ClassDef) else pattern.node.name
        blocks.append(f"compiled = torch.compile({target})\ncompiled({', '.join(pattern.inputs)})\n")
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join(block for block in blocks if block))


def _chosen(body: list[ast.stmt], parameter: str, value: str) -> ast.FunctionDef:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            return statement
        if isinstance(statement, ast.If) and isinstance(test := statement.test, ast.Compare):
            assert root(test.left) == parameter
            equal = ast.literal_eval(test.comparators[0]) == value
            return _chosen(statement.body if equal else statement.orelse, parameter, value)
    raise ValueError(f"no function is made for {value}")


def file_name(name: str, taken: set[str]) -> str:
    """A file name for a pattern that none has yet."""
    stem = re.sub(r"\W+", "_", name.lower()).strip("_") or "variant"
    number, result = 1, stem
    while result in taken:
        number += 1
        result = f"{stem}_{number}"
    taken.add(result)
    return f"{result}.py"


def is_configured(name: str, names: set[str]) -> bool:
    """Whether a measurement is one of another pattern under a configuration of Dynamo: `name [configuration]`."""
    base, bracket, _ = name.rpartition(" [")
    return bool(bracket) and base in names


def verdict(measured: dict[str, Any]) -> str:
    """`breaks`, `quiet` or `raises`, from a measurement in the default configuration.

    `raises` is what raises in eager, too: it shows nothing about graphs. `breaks` is what gives no or several graphs or
    an entry in the log of breaks, or fails with `fullgraph=True` (which works where only the result differs).
    """
    if measured["eager"] != "ok":
        return "raises"
    whole = measured["graphs"] == 1 and not measured["breaks"] and not measured["reasons"]
    return "quiet" if whole and measured["fullgraph"] in ("ok", "ok-DIFF") else "breaks"


def statements_of(text: str) -> list[list[int]]:
    """First and last lines of the statements in the functions of a program."""
    source = Source(text)
    inside = [
        statement
        for function in ast.walk(source.tree)
        if isinstance(function, (ast.FunctionDef, ast.Lambda))
        for statement in ast.walk(function)
        if isinstance(statement, ast.stmt) and statement is not function
    ]
    return [list(lines) for lines in sorted({lines for statement in inside for lines in headers(statement)})]


def extract(text: str, measurements: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Writes the programs to a folder, and returns their index.

    Raises:
        ValueError: programs and measurements do not belong together.
    """
    extractor = Extractor(text)
    measured = {name for name in measurements if not is_configured(name, set(measurements))}
    names = {pattern.name for pattern in extractor.patterns}
    if missing := measured - names:
        raise ValueError(f"no program for {sorted(missing)}")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    taken: set[str] = set()
    variants = []
    for pattern in extractor.patterns:
        if pattern.name not in measured:
            continue
        file, program = file_name(pattern.name, taken), extractor.program(pattern)
        (folder / file).write_text(program, encoding="utf-8")
        record = measurements[pattern.name]
        seen = observe(folder / file)
        if (seen.graphs, seen.breaks) != (record["graphs"], record["breaks"]):
            raise ValueError(f"{file} gives {seen}, and {record} was measured")
        variants.append(
            {
                "name": pattern.name,
                "file": file,
                "verdict": verdict(record),
                "statements": statements_of(program),
                "lines": list(seen.lines) if verdict(record) == "breaks" else [],
                "graphs": record["graphs"],
                "breaks": record["breaks"],
                "reasons": [f"{gb} {reason}" for gb, reason, _ in record["reasons"]],
                "fullgraph": record["fullgraph"],
                "eager": record["eager"] if record["eager"] == "ok" else ": ".join(record["eager"][1:]),
            }
        )
    return {
        "torch": "2.13.0",
        "measured": len(measurements),
        "configured": len(measurements) - len(measured),
        "note": "verdict: breaks, quiet (one graph, no break), or raises (in eager, too); statements: of the functions "
        "in the file; lines: where Dynamo's log places the breaks, on Python 3.11; configured: measurements of the "
        "same patterns under other configurations of Dynamo, which have no program",
        "variants": variants,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes `data/variants` and `data/variants.json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.extract", description=__doc__)
    parser.add_argument("patterns", type=Path, help="the program that holds all patterns")
    parser.add_argument("measurements", type=Path, help="what it measured, by name")
    options = parser.parse_args(arguments)
    index = extract(
        options.patterns.read_text(encoding="utf-8"),
        json.loads(options.measurements.read_text(encoding="utf-8")),
        DATA / "variants",
    )
    lines = ",\n".join(f"  {json.dumps(variant)}" for variant in index.pop("variants"))
    head = json.dumps(index, indent=1).removesuffix("\n}")
    (DATA / "variants.json").write_text(f'{head},\n "variants": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
