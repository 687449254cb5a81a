"""Programs with what is to be found in them beside the line: a finding, or nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphmend import engine
from graphmend.config import default_config

FOLDER = Path(__file__).parent.parent / "fixtures" / "detection"
PROGRAMS = sorted(FOLDER.glob("*.py"))
_EXPECTED = re.compile(r"# (GM\d+)$")


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_what_is_found(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(text, "utf-8")
    report = engine.run(engine.Request(("program.py",), default_config(str(tmp_path))))
    assert report.errors == ()
    shown = [finding for finding in report.findings if finding.confidence.value != "low"]
    found = [(finding.range.line, finding.rule) for finding in shown]
    found += [(each.range.line, each.rule) for finding in shown for each in finding.behind]
    expected = [
        (number, match[1])
        for number, line in enumerate(text.splitlines(), 1)
        for match in _EXPECTED.finditer(line.rstrip())
    ]
    assert sorted(found) == expected


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 4
