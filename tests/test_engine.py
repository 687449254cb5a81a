"""The engine as a whole: several files, what is fixed and what is left, and files that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import Config, Vendor, default_config
from graphmend.findings import Report

HELPERS = """\
import logging

from torch import nn

logger = logging.getLogger(__name__)


class Base(nn.Module):
    def project(self, x):
        logger.info("projecting")
        return x
"""

MODEL = """\
import torch

from .helpers import Base


class Model(Base):
    def forward(self, x):
        y = torch.relu(x)
        if (y > 3).any():
            raise ValueError("too large")
        return self.project(y)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "model.py").write_text(MODEL)
    return folder


def lint(*paths: str, fix: bool = False, unsafe: bool = False, config: Config | None = None) -> Report:
    settings = config or default_config(Path.cwd().as_posix())
    return engine.run(engine.Request(paths, settings, fix=fix, unsafe=unsafe, write=fix))


def places(report: Report) -> list[tuple[str, int, str]]:
    return [(finding.path, finding.range.line, finding.rule) for finding in report.findings]


def test_regions_cross_files(package: Path) -> None:
    report = lint("pkg")
    assert places(report) == [("pkg/helpers.py", 10, "GM302"), ("pkg/model.py", 9, "GM201")]
    chain = report.findings[0].region
    assert [(frame.path, frame.line, frame.function) for frame in chain] == [
        ("pkg/model.py", 11, "Model.forward"),
        ("pkg/helpers.py", 10, "Base.project"),
    ]


def test_a_partial_list_reads_what_it_imports_and_writes_only_what_was_passed(package: Path) -> None:
    report = lint("pkg/model.py", fix=True)
    assert places(report) == []
    assert (package / "helpers.py").read_text() == HELPERS
    assert "@graphmend.effect" in (package / "model.py").read_text()


def test_a_file_alone_is_not_in_a_region(package: Path) -> None:
    assert places(lint("pkg/helpers.py")) == []


def test_a_helper_without_the_word_torch_is_in_a_region_that_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "util.py").write_text('def dump(x):\n    print("dump", x.shape)\n')
    (tmp_path / "other.py").write_text('def dump(x):\n    print("dump", x.shape)\n')
    (tmp_path / "model.py").write_text(
        "import torch\nfrom util import dump\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        dump(x)\n        return x + 1\n"
    )
    report = lint(str(tmp_path), fix=True)
    assert [Path(file.path).name for file in report.fixed] == ["util.py"]
    assert "@graphmend.effect" in (tmp_path / "util.py").read_text()
    assert not report.findings


PATCHES = {
    "by the class": "from core import Core\n\n\nCore.check = safely(Core.check)\n",
    "by the module": "import core\n\n\ncore.Core.check = safely(core.Core.check)\n",
    "in a function": "import core\n\n\ndef patch(cls):\n    cls.check = safely(cls.check)\n",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_what_another_file_replaces_may_catch_exceptions(tmp_path: Path, patch: str) -> None:
    (tmp_path / "core.py").write_text("""\
import torch


class Core(torch.nn.Module):
    def check(self, x):
        if (x < 0).any():
            raise ValueError("negative")
        return x

    def forward(self, x):
        return self.check(torch.sin(x)) + 1
""")
    (tmp_path / "patch.py").write_text(patch)
    (finding,) = lint(str(tmp_path)).findings
    assert finding.refusal is not None
    assert finding.refusal.obligation == "no-catching-handler"


def test_nothing_is_fixed_in_a_package_that_torchscript_compiles(package: Path) -> None:
    (package / "model.py").write_text(
        MODEL.replace('            raise ValueError("too large")\n', "            y = y * 2\n        print(y)\n")
    )
    settings = replace(default_config(Path.cwd().as_posix()), torchscript=("pkg",))
    report = lint("pkg", fix=True, config=settings)
    assert report.fixed == ()
    refused = {finding.rule: finding.refusal.obligation for finding in report.findings if finding.refusal}
    assert refused == dict.fromkeys(("GM101", "GM301", "GM302"), "not-scripted")


@pytest.mark.parametrize(
    ("use", "obligation"),
    [("torch.jit.script(Model().eval())", "not-scripted"), ("torch.cond(p, Model(), abs, (x,))", "not-in-arm")],
)
def test_a_refusal_names_the_file_that_is_the_reason(package: Path, use: str, obligation: str) -> None:
    (package / "export.py").write_text(f"import torch\n\nfrom .model import Model\n\nused = {use}\n")
    refusals = [finding.refusal for finding in lint("pkg").findings]
    assert {refusal.obligation for refusal in refusals if refusal} == {obligation}
    assert all(refusal is not None and "pkg/export.py:5" in refusal.reason for refusal in refusals)


def test_fixes_of_several_files(package: Path) -> None:
    report = lint("pkg", fix=True)
    assert not report.findings
    assert not report.errors
    assert [file.path for file in report.fixed] == ["pkg/helpers.py", "pkg/model.py"]
    again = lint("pkg", fix=True)
    assert not again.findings
    assert not again.fixed


def test_without_write_nothing_is_written(package: Path) -> None:
    request = engine.Request(("pkg",), default_config(Path.cwd().as_posix()), fix=True, write=False)
    report = engine.run(request)
    assert len(report.fixed) == 2
    assert (package / "helpers.py").read_text() == HELPERS


def test_the_runtime_is_vendored_beside_the_package(package: Path) -> None:
    config = replace(default_config(Path.cwd().as_posix()), runtime=Vendor())
    report = lint("pkg", fix=True, config=config)
    assert not report.errors
    assert (package / "_graphmend.py").exists()
    assert "from . import _graphmend as graphmend" in (package / "model.py").read_text()
    assert not lint("pkg").findings, "neither the mended files nor the copy of the runtime break a graph"


def test_suppressed_findings_are_kept_and_not_fixed(package: Path) -> None:
    (package / "model.py").write_text(MODEL.replace("(y > 3).any():", "(y > 3).any():  # noqa: GM201"))
    report = lint("pkg/model.py", fix=True)
    assert [(finding.rule, finding.suppressed) for finding in report.findings] == [("GM201", True)]
    assert not report.fixed


def test_generated_files_are_mended_only_when_named(package: Path) -> None:
    (package / "model.py").write_text("# This file was automatically generated from modular_model.py.\n" + MODEL)
    report = lint("pkg", fix=True)
    assert places(report) == [("pkg/model.py", 10, "GM201")]
    assert "modular_model.py" in report.findings[0].note
    assert lint("pkg/model.py", fix=True).fixed


@pytest.mark.parametrize(
    ("name", "content", "message", "line"),
    [
        ("syntax.py", b"import torch\n\ndef broken(:\n", "syntax error", 3),
        ("no_torch.py", b"def broken(:\n", "syntax error", 1),
        ("bytes.py", b"import torch\nx = '\xff'\n", "cannot be decoded", None),
        ("coding.py", b"# -*- coding: no-such-codec -*-\nimport torch\n", "cannot be decoded", None),
        ("null.py", b"import torch\n\0\n", "", None),
    ],
)
def test_a_file_that_cannot_be_used(package: Path, name: str, content: bytes, message: str, line: int | None) -> None:
    (package / name).write_bytes(content)
    report = lint("pkg", fix=True)
    assert [(error.path, error.line) for error in report.errors if line] == ([(f"pkg/{name}", line)] if line else [])
    assert len(report.errors) == 1
    assert message in report.errors[0].message
    assert len(report.fixed) == 2, "the other files are still mended"
    assert (package / name).read_bytes() == content


def test_an_empty_file_is_fine(package: Path) -> None:
    (package / "empty.py").write_bytes(b"")
    assert not lint("pkg").errors


def test_a_crash_inside_graphmend_is_told_and_the_rest_goes_on(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend.rules.matcher import Matcher

    original = Matcher.matches

    def crashing(self, program, facts):  # type: ignore[no-untyped-def]
        if facts.function.name == "project":
            raise ZeroDivisionError("boom")
        return original(self, program, facts)

    monkeypatch.setattr(Matcher, "matches", crashing)
    report = lint("pkg")
    assert places(report) == [("pkg/model.py", 9, "GM201")]
    assert [error.path for error in report.errors] == ["pkg/helpers.py"]
    assert "ZeroDivisionError: boom" in report.errors[0].message


def test_positions_count_characters(package: Path) -> None:
    code = MODEL.replace('"too large"', '"größer"').replace("if (y", "größe = 1; print('ö', größe)\n        if (y")
    (package / "model.py").write_text(code, encoding="utf-8")
    finding = next(finding for finding in lint("pkg").findings if finding.rule == "GM301")
    assert (finding.range.column, finding.range.end_column) == (20, 37)


def test_line_numbers_follow_the_fixes(package: Path) -> None:
    """What is left after fixing is reported where it now is."""
    code = (
        MODEL
        + """

class Other(Base):
    def forward(self, x):
        y = torch.relu(x)
        if (y > 0).any():
            y = y[y > 0]
        return y
"""
    )
    (package / "model.py").write_text(code)
    report = lint("pkg", fix=True)
    assert [finding.rule for finding in report.findings] == ["GM101", "GM502"]
    text = (package / "model.py").read_text().splitlines()
    finding = report.findings[0]
    assert text[finding.range.line - 1].strip() == "if (y > 0).any():"
    assert text[finding.region[0].line - 1].strip() == "if (y > 0).any():"


OWN_RULES = """\
rules:
  - code: OWN1
    name: own-dump
    summary: dumping is slow
    match: {call: {function: pkg.debug.dump}}
    refusal: {obligation: supported-form, reason: "take it out"}
  - code: OWN2
    name: own-square
    summary: use square
    match:
      pattern: "torch.pow($X, 2)"
      where: {$X: tensor}
    fix: {replace: "torch.square($X)"}
  - code: OWN3
    name: own-anywhere
    summary: no sleeping
    match: {call: {function: time.sleep}, region: anywhere}
    refusal: {obligation: supported-form, reason: "take it out"}
"""

OWN_MODEL = """\
import time

import torch as th
from torch import nn

from .debug import dump as show


class Model(nn.Module):
    def forward(self, x):
        show(x)
        y = th.relu(x)
        return th.pow(y, 2) + th.pow(y.sum(), 2) + th.pow(2, 2)


def outside():
    time.sleep(1)
"""


def test_own_rules_match_calls_and_patterns_by_meaning(package: Path, tmp_path: Path) -> None:
    (package / "debug.py").write_text("def dump(x):\n    return x\n")
    (package / "own.py").write_text(OWN_MODEL)
    (tmp_path / "own.yaml").write_text(OWN_RULES)
    config = replace(default_config(tmp_path.as_posix()), packs=(str(tmp_path / "own.yaml"),))
    report = lint("pkg/own.py", config=config)
    assert places(report) == [("pkg/own.py", 11, "OWN1"), ("pkg/own.py", 13, "OWN2"), ("pkg/own.py", 17, "OWN3")]
    fixed = lint("pkg/own.py", fix=True, config=config)
    assert not fixed.fixed, "a template is unsafe"
    lint("pkg/own.py", fix=True, unsafe=True, config=config)
    assert "return th.square(y) + th.square(y.sum()) + th.pow(2, 2)" in (package / "own.py").read_text()


def test_a_finding_in_a_lambda(package: Path) -> None:
    (package / "model.py").write_text(
        MODEL.replace(
            "y = torch.relu(x)\n", 'show = lambda t: print("t", t)\n        show(x)\n        y = torch.relu(x)\n'
        )
    )
    report = lint("pkg/model.py")
    assert not report.errors
    assert [finding.rule for finding in report.findings] == ["GM301", "GM201"]
    assert report.findings[0].refusal is not None
