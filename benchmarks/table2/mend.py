"""Copying the installed transformers package, and mending the copy with the command line and nothing else."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table2.builds import SHARED_FILES, Build

VERSION = "4.52.4"
"""The release whose break sites and line numbers the numbers belong to."""

GENERATED = "automatically generated from"
"""Marks, in a file's first lines, a file that a program wrote; the tool fixes such a file only when it is named."""

_HEAD = 4000
"""Characters of a file that are searched for the marker."""


class MendError(RuntimeError):
    """The copy could not be made, or the mender could not do its work."""


@dataclass(frozen=True)
class Mending:
    """What mending cost and changed.

    Attributes:
        command: the mender, without the paths.
        paths: how many paths it was given.
        status: its exit status; 1 says that findings are left.
        cpu: seconds of CPU time, of user and system together.
        peak: most memory it held, in bytes.
        changed: files that differ from the copy before, relative to the package.
        log: where its output is kept.
    """

    command: str
    paths: int
    status: int
    cpu: float
    peak: int
    changed: tuple[str, ...]
    log: Path


def installed() -> Path:
    """The folder of the installed package.

    Raises:
        MendError: it is missing, or another version.
    """
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise MendError(f"transformers {VERSION} is not installed") from None
    if version != VERSION:
        raise MendError(f"transformers {VERSION} is needed, {version} is installed")
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        raise MendError("the installed transformers cannot be found")
    return Path(spec.origin).parent


def copy_package(source: Path, tree: Path) -> Path:
    """Copies a package folder to `tree/transformers`, without compiled files, and returns the copy."""
    target = tree / "transformers"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def generated_files(package: Path) -> list[Path]:
    """Files that say in their head that a program wrote them."""
    found = []
    for path in sorted(package.rglob("*.py")):
        with path.open(encoding="utf-8", errors="replace") as file:
            if GENERATED in file.read(_HEAD):
                found.append(path)
    return found


def parts(package: Path, builds: Iterable[Build]) -> list[Path]:
    """The files that some builds run through: what to mend when the whole tree would take too long."""
    names = {*SHARED_FILES, *(name for build in builds for name in build.files)}
    return [package / name for name in sorted(names)]


def default_mender() -> list[str]:
    """The tool's own command line, run by this Python; safe fixes only, whatever configuration lies around."""
    return [sys.executable, "-m", "graphmend", "lint", "--fix", "--isolated"]


def mend(package: Path, paths: list[Path], mender: list[str], log: Path) -> Mending:
    """Runs the mender on the paths, from the folder above the package.

    Raises:
        MendError: it says that it could not do its work (any status but 0 and 1).
    """
    named = [path for path in generated_files(package) if path not in paths and _covered(path, paths)]
    before = _contents(package)
    command = [*mender, *(str(path.relative_to(package.parent)) for path in [*paths, *named])]
    root = Path(__file__).resolve().parents[2]
    with log.open("w", encoding="utf-8") as output:
        child = subprocess.Popen(
            command,
            cwd=package.parent,
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        # wait4 gives the cost of this one child.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise MendError(f"{shlex.join(mender)} ended with status {child.returncode}:\n{tail}")
    _settle(package)
    after = _contents(package)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    scale = 1 if sys.platform == "darwin" else 1024
    return Mending(
        command=shlex.join(mender),
        paths=len(paths) + len(named),
        status=child.returncode,
        cpu=usage.ru_utime + usage.ru_stime,
        peak=usage.ru_maxrss * scale,
        changed=tuple(changed),
        log=log,
    )


def _covered(path: Path, paths: list[Path]) -> bool:
    return any(parent in path.parents for parent in paths)


def _contents(package: Path) -> dict[str, bytes]:
    return {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}


def _settle(package: Path) -> None:
    """Waits until compiled files of the copy cannot be mistaken for those of a file written in the same second."""
    newest = max(path.stat().st_mtime for path in package.rglob("*.py"))
    time.sleep(max(0.0, min(1.1, newest + 1.1 - time.time())))
