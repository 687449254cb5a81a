"""Plans and their verification, without the engine around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.findings import Fix, Refusal
from graphmend.fixes import TRANSFORMS, verify_edits
from graphmend.obligations import Obligation
from graphmend.source.edits import apply_edits, choose_fixes, make_edit
from graphmend.source.text import SourceText
from tests.fixes.planning import plan_at

SOURCE = """\
import torch
from torch import nn

from metrics import push


class Model(nn.Module):
    def forward(self, x):
        push("mean", x.mean())
        if (x < 0).any():
            raise ValueError("negative")
        print(x)
        return x
"""
PUSH, CHECK, PRINT = 9, 10, 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def test_a_rule_may_declare_that_a_call_observes(path: Path) -> None:
    refused, _ = plan_at(path, PUSH)
    assert isinstance(refused, Refusal)
    assert refused.obligation == Obligation.ONLY_OBSERVES.value
    plan, text = plan_at(path, PUSH, observes=True)
    assert isinstance(plan, Fix)
    assert '@graphmend.effect\ndef _push_model(x_mean):\n    push("mean", x_mean)\n' in text
    assert "        _push_model(x.mean())\n" in text


def test_packages_that_torchscript_compiles(path: Path) -> None:
    refused, _ = plan_at(path, PRINT, torchscript=("model",))
    assert isinstance(refused, Refusal)
    assert refused.obligation == Obligation.NOT_SCRIPTED.value
    assert isinstance(plan_at(path, PRINT, torchscript=("mod", "model.part"))[0], Fix)


def test_the_same_place_gets_the_same_plan(path: Path) -> None:
    plan, _ = plan_at(path, CHECK, times=3)
    assert isinstance(plan, Fix)


def test_proof(path: Path) -> None:
    message, _ = plan_at(path, PRINT)
    check, _ = plan_at(path, CHECK)
    assert isinstance(message, Fix)
    assert isinstance(check, Fix)
    known = {obligation.value for obligation in TRANSFORMS["outline"].obligations}
    assert {proof.obligation for proof in check.proof} | {Obligation.SUPPORTED_FORM.value} == known
    assert {proof.how for proof in message.proof} <= {"statically", "at trace time"}
    traced = {proof.obligation for proof in check.proof if proof.how == "at trace time"}
    assert traced >= {Obligation.NO_CATCHING_HANDLER.value, Obligation.NO_EARLIER_MUTATION.value}
    (assumed,) = [proof for proof in check.proof if proof.how == "assumed"]
    assert "leave the compiled region" in assumed.detail


def test_fixes_of_one_file_go_together(path: Path) -> None:
    fixes = [plan_at(path, line)[0] for line in (CHECK, PRINT)]
    source = SourceText(str(path), SOURCE)
    assert choose_fixes(fixes) == fixes  # type: ignore[arg-type]
    edits = [edit for fix in fixes if isinstance(fix, Fix) for edit in fix.edits]
    assert verify_edits(source, edits) is None
    assert apply_edits(SOURCE, edits).count("import graphmend\n") == 1


# -------------------------------------------------------------------- verification

TEXT = "def f(x):\n    if x:\n        y = 1\n    return y\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("y = 1", "y = 2", ""),
        ("    if x:\n        y = 1\n", "    y = x\n", ""),
        ("y = 1", "y = (", "does not parse"),
        ("if x:\n", "if x: pass\n    while x:\n", "would not be the same"),
        ("    return", "        return", "would not be the same"),
        ("def f(x):\n", "def f(x):\n    def g():\n        pass\n    class C:\n      pass\n", ""),
        ("y = 1\n", "y = 1\ndef g():\n", "would not be the same"),
        ("y = 1\n", 'y = """\n', "does not parse"),
    ],
)
def test_verification(old: str, new: str, problem: str) -> None:
    source = SourceText("m.py", TEXT)
    start = TEXT.index(old)
    found = verify_edits(source, [make_edit(source, start, start + len(old), new)])
    assert (problem in found) if problem else found is None, found  # type: ignore[operator]


def test_verification_of_several_edits() -> None:
    source = SourceText("m.py", TEXT)
    overlapping = [make_edit(source, 0, 5, "def f"), make_edit(source, 4, 6, "g(")]
    assert "overlap" in str(verify_edits(source, overlapping))
    twice = [make_edit(source, 0, 0, "import a\n")] * 2
    assert verify_edits(source, twice) is None


def test_verification_of_characters() -> None:
    source = SourceText("m.py", TEXT, "latin-1")
    assert "latin-1" in str(verify_edits(source, [make_edit(source, 0, 0, "# \u20ac\n")]))
