"""The changes of a run as a unified diff that ``git apply`` and ``patch`` understand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from graphmend.findings import FixedFile, RuntimeCopy


def render_diff(files: Sequence[FixedFile | RuntimeCopy]) -> str:
    r"""Returns the differences between the texts before and after, file by file.

    Lines end where ``\n`` is, as for the tools that read diffs; a carriage return is part of its line.
    """
    return "".join(_file(file) for file in files)


def _file(file: FixedFile | RuntimeCopy) -> str:
    before, after = (file.before or "").split("\n"), file.after.split("\n")
    old = "/dev/null" if file.before is None else f"a/{file.path}"
    lines = difflib.unified_diff(_with_ends(before), _with_ends(after), old, f"b/{file.path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _with_ends(parts: list[str]) -> list[str]:
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
