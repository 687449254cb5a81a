"""Runs the Markdown files beside this one.

A section is one case: a ``python`` block, and after the word "becomes" another one, what ``--fix`` makes of it. A
block that begins with ``def`` is the body of a module class behind the usual imports; what comes before its first
method in the second block is new code of the module. ``# refused: obligation`` behind a statement says that its finding
has no fix, and why; more words behind a colon must occur in the reason. A block that begins with ``# file: name.py`` is
another file of the package.

Each result is mended once more, which must change nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import Config
from graphmend.findings import Report

HERE = Path(__file__).parent
SECTION = re.compile(r"^## (.*)\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFUSED = re.compile(r"# refused: (\S+?)(?:: (.*))?$")
RULES = ("GM104", "GM201", "GM301", "GM302", "GM303")
HEAD = """\
import logging
import warnings
from typing import Optional

{}import torch
from torch import nn

logger = logging.getLogger(__name__)


"""


@dataclass(frozen=True)
class Case:
    files: dict[str, str]
    after: str | None


def cases() -> list[object]:
    found: list[object] = []
    for path in sorted(HERE.glob("*.md")):
        for section in SECTION.finditer(path.read_text(encoding="utf-8")):
            title, text = section.groups()
            before, _, after = text.partition("\nbecomes\n")
            blocks = [block.group(1) for block in BLOCK.finditer(before)]
            files: dict[str, str] = {}
            for block in blocks:
                named = re.match(r"# file: (\S+)\n", block)
                files[named.group(1) if named else "module.py"] = block if named else whole(block)
            expected = BLOCK.search(after)
            found.append(
                pytest.param(Case(files, whole(expected.group(1)) if expected else None), id=f"{path.stem}: {title}")
            )
    return found


def whole(block: str) -> str:
    """A block with the imports and the class around it that it leaves out."""
    if re.match(r"from |import |# whole", block):
        return block
    start = block.index("def __init__(") if "\ndef __init__(" in f"\n{block}" else block.index("def forward(")
    new, methods = block[:start], block[start:]
    body = "".join("    " + line if line.strip() else line for line in methods.splitlines(keepends=True))
    return HEAD.format("import graphmend\n" if new else "") + new + "class Model(nn.Module):\n" + body


def mend(folder: Path, files: dict[str, str]) -> Report:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return engine.run(engine.Request((".",), Config(root=str(folder), select=RULES), fix=True))


@pytest.mark.parametrize("case", cases())
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "__init__.py").write_text("")
    report = mend(tmp_path, case.files)
    assert report.errors == ()
    after = {**case.files, **{fixed.path: fixed.after for fixed in report.fixed}}
    assert after["module.py"] == (case.after if case.after is not None else case.files["module.py"])
    wanted = {
        (name, number): match.groups()
        for name, text in after.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (match := REFUSED.search(line)) is not None
    }
    told = [part for finding in report.findings for part in (finding, *finding.behind)]
    refused = {(part.path, part.range.line): part for part in told}
    assert {place: part.refusal.obligation for place, part in refused.items() if part.refusal} == {
        place: obligation for place, (obligation, _) in wanted.items()
    }
    for place, (_, reason) in wanted.items():
        assert (reason or "") in refused[place].refusal.reason  # type: ignore[union-attr]
    again = mend(tmp_path, after)
    assert again.fixed == ()
