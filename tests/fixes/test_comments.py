"""No comment of a branch is lost or doubled, wherever it stands."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import Config

HEAD = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, flag: bool = True):
        y = x + 1
"""

BODIES_TEXT = """\
        if x.sum() > 0:
            y = x * 2
        elif x.mean() > 0:
            y = x * 3
        else:
            y = -x
---
        if flag:
            y = x
        elif x.mean() > 0:
            half = 0.5
            y = x * half
        else:
            y = -x
---
        if flag and x.sum() > 0:
            half = 0.5
            y = x * half
---
        if (
            x.sum()
            > 0
        ):
            half = 0.5
            y = (
                x
                * half
            )
        else:
            twice = 2.0

            y = x * twice
---
        if x.sum() > 0:
            a = x * 2
            y = a * 2
        else:
            a = x * 2
            y = a * 3
        y = y + a
---
        if x.sum() > 0:
            return x
        elif x.mean() > 0:
            return x * 2
        return -x
---
        y = (
            x * 2
            if x.sum() > 0
            else x * 3
            if x.mean() > 0
            else -x
        )
---
        if (x > 3).any():
            raise ValueError(
                "x",
            )
        else:
            y = x * 3
---
        if flag:
            y = x
        elif flag and (
            (x > 3).any()
        ):
            print("x")
            raise ValueError("x")
---
        if x.sum() > 0:
            print("a", x)
            y = x * 2
            print("b", x)
---
        if (
            flag
            and x.sum() > 0
        ):
            print(
                "a",
                x,
            )
"""
BODIES = BODIES_TEXT.split("---\n")


def commented(body: str, chance: random.Random, often: float) -> str:
    """A body with numbered comments above lines, behind them, and at the ends of blocks."""
    lines: list[str] = []
    before = body.splitlines()
    for line, following in zip(before, [*before[1:], ""]):
        indentation, comment = line[: len(line) - len(line.lstrip())], f"# remark {len(lines)}"
        ends_block = len(following) - len(following.lstrip()) < len(indentation)
        if line and chance.random() < often:
            lines.append(f"{indentation}{comment} above")
        lines.append(f"{line}  {comment} behind" if line and chance.random() < often else line)
        if line and ends_block and chance.random() < often:
            lines.append(f"{indentation}{comment} below")
    return "\n".join(lines) + "\n"


def remarks(text: str) -> list[str]:
    return sorted(re.findall(r"# remark \d+ \w+", text))


@pytest.mark.parametrize("often", [0.1, 0.4, 0.9])
def test_every_comment_stays(tmp_path: Path, often: float) -> None:
    chance = random.Random(often)
    for number in range(6 * len(BODIES)):
        body = commented(BODIES[number % len(BODIES)], chance, often)
        (tmp_path / f"case_{number}.py").write_text(f"{HEAD}{body}        return y\n")
    report = engine.run(engine.Request((str(tmp_path),), Config(root=str(tmp_path)), fix=True))
    assert report.errors == ()
    assert len(report.fixed) > 4 * len(BODIES)
    for file in report.fixed:
        ast.parse(file.after)
        assert remarks(file.after) == remarks(file.before), file.after
        assert not re.search(r"[ \t]$", file.after, re.MULTILINE)
