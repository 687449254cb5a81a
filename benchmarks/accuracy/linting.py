"""Running `graphmend lint` as a user would, and reading what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.statements import Lines

ROOT = Path(__file__).resolve().parents[2]
"""Where `graphmend` is imported from."""


class LintError(RuntimeError):
    """The linter could not do its work."""


@dataclass(frozen=True)
class Finding:
    """A printed finding.

    Attributes:
        path: its file, relative to the linted folder.
        lines: its first and last line.
        column: where it starts in its first line.
        rule: the code of its rule.
        hidden: whether it is listed with another finding that keeps Dynamo from reaching it, and not for itself.
    """

    path: str
    lines: Lines
    column: int
    rule: str
    hidden: bool = False


def read(document: dict[str, Any]) -> list[Finding]:
    """The findings that are shown by default, from the linter's JSON.

    A finding may list others `behind` it: Dynamo gives up on the frame at the first, and never sees those. They are
    printed too, so a break among them is found; that Dynamo does not confirm them is what they say.
    """
    found = []
    for entry in document["findings"]:
        if entry["suppressed"]:
            continue
        found.append(_finding(entry, entry["rule"], hidden=False))
        for other in entry.get("behind") or ():
            found.append(_finding(other, other.get("rule", entry["rule"]), hidden=True))
    return found


def _finding(entry: dict[str, Any], rule: str, *, hidden: bool) -> Finding:
    lines = (entry["line"], entry.get("end_line", entry["line"]))
    return Finding(entry["path"], lines, entry.get("column", 1), rule, hidden)


def lint(folder: Path, paths: list[str]) -> list[Finding]:
    """Lints paths of a folder, from inside that folder, with the default settings.

    Raises:
        LintError: it failed, or could not read a file.
    """
    done = subprocess.run(
        [sys.executable, "-m", "graphmend", "lint", "--isolated", "--exit-zero", "--output-format", "json", *paths],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LintError(f"graphmend lint ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    document = json.loads(done.stdout)
    if document["errors"]:
        raise LintError(f"graphmend lint could not read everything: {document['errors'][:3]}")
    return read(document)
