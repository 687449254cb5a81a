"""The script that renames and lays out anew: the renamed package behaves as before, and the old names are gone."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from benchmarks.table2.rename import imports_of, rename_package, resolve

FILES = {
    "pack/__init__.py": "",
    "pack/tools.py": '''
        # A licence.

        import math
        import os.path
        import logging
        from typing import Optional

        logger = logging.getLogger("pack.tools")


        def _double(value):
            """Twice a value."""
            factor = 2
            return value * factor


        def shared(value):
            return _double(value)


        def root(value: "Optional[math.inf]" = None) -> "math.pi":
            result = math.sqrt(value)
            logger.warning(f"root of {value} is {result:.1f}, which is quite a long message for one line")
            return result
        ''',
    "pack/model.py": """
        import logging as log
        from .tools import _double, shared

        logger = log.getLogger("pack.model")
        total = 0


        class Model:
            size = 3
            sizes = [size, *(step for step in range(size))]

            def _only_here(self, value):
                return value + self.size

            def run(self, values, *extra, scale=1, **named):
                global total
                total += 1
                count = 0

                def add(amount):
                    nonlocal count
                    count += amount
                    return count

                kept = [item * scale for item in values if (last := item) > 0]
                for item in extra:
                    add(item)
                try:
                    named["missing"]
                except KeyError as error:
                    if count > 1 and scale == 1:
                        logger.warning("a long message with words that say that a key is missing: %s", error.args)
                    elif count:
                        logger.error("short")
                text = "{kept}".format(**locals()) if not values else f"{kept} {last!r} {(lambda kept: kept)(count)}"
                return self._only_here(_double(sum(kept)) + shared(count)), text
        """,
    "pack/other.py": """
        from pack.tools import (
            _double,
            shared,
        )


        def four(value):
            return _double(shared(value))
        """,
}

PROGRAM = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
from pack import model, other, tools
print(other.four(3), tools.root(value=2.0), model.Model.sizes)
print(model.Model().run([1, -2, 3], 1, 2), model.Model().run(values=[5], scale=2), model.total)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
    return tmp_path / "pack"


def output(package: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=package.parent, capture_output=True, text=True, check=True
    ).stdout


def names(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for attribute in ("id", "name", "asname", "attr"):
            value = getattr(node, attribute, None)
            if isinstance(value, str):
                found.add(value)
    return found


@pytest.fixture
def renamed(package: Path) -> Path:
    rename_package(package, ("tools.py", "model.py"), top="pack")
    return package


def test_the_renamed_package_says_the_same(package: Path) -> None:
    before = output(package)
    rename_package(package, ("tools.py", "model.py"), top="pack")
    assert output(package) == before


def test_old_names_are_gone(renamed: Path) -> None:
    gone = {"logger", "factor", "result", "count", "add", "_double", "_only_here", "last", "log"}
    assert not gone & names(renamed / "tools.py")
    # `run` looks at its own variables, so they stay; what it calls does not.
    assert not {"logger", "_double", "_only_here", "log"} & names(renamed / "model.py")


def test_parameters_and_public_names_stay(renamed: Path) -> None:
    tree = ast.parse((renamed / "model.py").read_text(encoding="utf-8"))
    run = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "run")
    assert [argument.arg for argument in (*run.args.args, *run.args.kwonlyargs)] == ["self", "values", "scale"]
    assert {"shared", "root"} <= names(renamed / "tools.py")


def test_strings_in_annotations_follow(renamed: Path) -> None:
    assert '"Optional[math' not in (renamed / "tools.py").read_text(encoding="utf-8").replace("'", '"')


def test_the_comments_at_the_top_stay(renamed: Path) -> None:
    assert (renamed / "tools.py").read_text(encoding="utf-8").startswith("# A licence.\n")


def test_renaming_is_the_same_each_time(package: Path, tmp_path: Path) -> None:
    texts = []
    original = {path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    for _ in range(2):
        for name, text in original.items():
            (package / name).write_text(text, encoding="utf-8")
        rename_package(package, ("tools.py", "model.py"), top="pack")
        texts.append({path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py")})
    assert texts[0] == texts[1]


def test_imports_are_resolved() -> None:
    text = "if True:\n    from ...utils.generic import (\n        a,\n        b as c,\n    )\nfrom x import y\n"
    found = list(imports_of("models/bart/modeling_bart.py", text, ("utils/generic.py",), "transformers"))
    assert [(item.source, [alias.name for alias in item.node.names]) for item in found] == [
        ("utils/generic.py", ["a", "b"])
    ]
    absolute = ast.parse("from transformers.models.bart.modeling_bart import x").body[0]
    assert isinstance(absolute, ast.ImportFrom)
    assert resolve("anywhere.py", absolute, "transformers") == "models/bart/modeling_bart.py"
