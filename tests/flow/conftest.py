"""A program from a text, with the pieces that tests ask about: the fixtures ``analyse`` and ``forward``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphmend.flow.frames import Frame, frames_of
from graphmend.flow.program import Program
from graphmend.model.index import Index
from graphmend.model.module import Function


@dataclass
class Analysed:
    """A settled program of one file."""

    program: Program
    text: str

    def function(self, name: str) -> Function:
        return next(each for each in self.program.states if each.qualname.endswith(name))

    def frame(self, name: str = "forward") -> Frame:
        return frames_of(self.program).frame(self.function(name))

    def line(self, mark: str) -> int:
        """The line that ends with a comment."""
        return next(number for number, line in enumerate(self.text.splitlines(), 1) if line.endswith(f"# {mark}"))

    def statement(self, mark: str, name: str = "forward") -> ast.stmt:
        """The statement whose first line ends with a comment."""
        line = self.line(mark)
        nodes = [node for node in ast.walk(self.function(name).node) if isinstance(node, ast.stmt)]
        return next(node for node in nodes if node.lineno == line)


@pytest.fixture
def analyse(tmp_path: Path) -> Callable[[str], Analysed]:
    """Follows everything that starts in a text."""

    def follow(text: str) -> Analysed:
        path = tmp_path / "module.py"
        path.write_text(text, encoding="utf-8")
        index = Index()
        module = index.load(str(path))
        assert module is not None, index.errors
        program = Program(index)
        launches = program.find_launches([module])
        program.add_module(module)
        program.launch(launches)
        return Analysed(program, text)

    return follow


@pytest.fixture
def forward() -> Callable[..., str]:
    """Writes a module class around the body of its ``forward``."""
    return _forward


def _forward(body: str, before: str = "", methods: str = "") -> str:
    lines = "".join(f"        {line}\n" if line.strip() else "\n" for line in body.strip("\n").splitlines())
    more = "".join(f"    {line}\n" if line.strip() else "\n" for line in methods.strip("\n").splitlines())
    return (
        f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n{before}\n\n"
        f"class Model(nn.Module):\n    def forward(self, x, y: torch.Tensor, flag: bool = False):\n{lines}{more}"
    )
