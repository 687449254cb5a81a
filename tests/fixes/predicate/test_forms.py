"""Runs the Markdown files beside this one.

A section is one case: a ``python`` block, and after the word "becomes" another one, what ``--fix`` makes of it. A block
that begins with ``def`` is the body of a module class behind the usual imports. ``# refused: obligation`` behind a line
says that its finding has no fix, and why; more words behind a colon must occur in the reason. A block that begins with
``# file: name.py`` is another file of the package.

What becomes something else is run before and after, in eager and compiled, and must show the same. An ``inputs`` block
holds the arguments of the calls; without one, ``forward`` gets the usual samples. Where it says "falls back", tracing
finds that the sides do not agree after all, and the graph breaks as before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import branch_harness as harness
import pytest
import torch

HERE = Path(__file__).parent
SECTION = re.compile(r"^## (.*)\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
BLOCK = re.compile(r"^```(python|inputs)\n(.*?)^```", re.MULTILINE | re.DOTALL)
REFUSED = re.compile(r"# refused: (\S+?)(?:: (.*))?$")
HEAD = "{}import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


@dataclass(frozen=True)
class Case:
    files: dict[str, str]
    after: str | None
    inputs: str | None
    unsafe: bool


def cases(mended: bool) -> list[object]:
    found: list[object] = []
    for path in sorted(HERE.glob("*.md")):
        for section in SECTION.finditer(path.read_text(encoding="utf-8")):
            title, text = section.groups()
            before, _, after = text.partition("\nbecomes\n")
            expected = [block.group(2) for block in BLOCK.finditer(after) if block.group(1) == "python"]
            if bool(expected) is not mended:
                continue
            files: dict[str, str] = {}
            inputs = None
            for block in BLOCK.finditer(text if not expected else before + after):
                kind, code = block.groups()
                if kind == "inputs":
                    inputs = code
            for block in BLOCK.finditer(before):
                kind, code = block.groups()
                if kind == "python":
                    named = re.match(r"# file: (\S+)\n", code)
                    files[named.group(1) if named else "module.py"] = code if named else whole(code)
            unsafe = path.stem == "guards"
            case = Case(files, whole(expected[0]) if expected else None, inputs, unsafe)
            found.append(pytest.param(case, id=f"{path.stem}: {title}"))
    return found


def whole(block: str) -> str:
    """A block with the imports and the class around it that it leaves out."""
    if re.match(r"from |import |# whole", block):
        return block
    body = "".join("    " + line if line.strip() else line for line in block.splitlines(keepends=True))
    return HEAD.format("import graphmend\n" if "graphmend." in block else "") + "class Model(nn.Module):\n" + body


@pytest.mark.parametrize("case", cases(mended=True))
def test_mended(case: Case, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    after, report = harness.mended(tmp_path / "work", case.files, unsafe=case.unsafe)
    assert report.errors == ()
    assert after["module.py"] == case.after
    again, second = harness.mended(tmp_path / "work", after, unsafe=case.unsafe)
    assert again == after
    assert not second.errors
    before_module = harness.load(tmp_path, "before", case.files)
    after_module = harness.load(tmp_path, "after", after)
    calls = (
        eval(case.inputs, {"torch": torch, "inf": harness.INF, "nan": harness.NAN}) if case.inputs else harness.SAMPLES
    )
    selections = len(re.findall(r"graphmend\.select\(", after["module.py"]))
    differentiable = len(re.findall(r"grad=\"", after["module.py"]))
    harness.compare(
        before_module.Model,
        after_module.Model,
        calls,
        with_gradients=differentiable == selections,
        whole=selections > 0 and "falls back" not in (case.inputs or ""),
        counted=not selections,
        # A guard lets the other backends drop the draw: that is what makes it unsafe.
        backends=(("eager", False), ("eager", True)) if case.unsafe else (("eager", False), ("aot_eager", True)),
    )


@pytest.mark.parametrize("case", cases(mended=False))
def test_refused(case: Case, tmp_path: Path) -> None:
    after, report = harness.mended(tmp_path, case.files)
    assert report.errors == ()
    assert after == case.files
    wanted = {
        number: match.groups()
        for number, line in enumerate(case.files["module.py"].splitlines(), 1)
        if (match := REFUSED.search(line)) is not None
    }
    assert wanted
    refused = {finding.range.line: finding.refusal for finding in report.findings if finding.path.endswith("module.py")}
    assert {line: refusal and refusal.obligation for line, refusal in refused.items()} == {
        line: obligation for line, (obligation, _) in wanted.items()
    }
    for line, (_, words) in wanted.items():
        refusal = refused[line]
        assert refusal is not None
        assert (words or "") in refusal.reason


def test_a_guard_takes_the_break_away_where_it_decides(tmp_path: Path) -> None:
    case = next(param.values[0] for param in cases(mended=True) if "skipped" in param.id)  # type: ignore[attr-defined]
    assert case.after is not None
    after = harness.load(tmp_path, "after", {"module.py": case.after})
    seen = harness.run(after.Model, harness.SAMPLES, grad=True, backend="eager", fullgraph=True)
    assert seen.graphs == 1
