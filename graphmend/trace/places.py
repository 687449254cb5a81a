"""Which linted file a path of a log means: the log may come from another folder, machine or system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages. A file in one is no file of a project that happens to be called the same."""


class Places:
    """Finds linted files by the names that a log has for them.

    A path that exists means itself. Any other means the linted file whose path, relative to the working directory, it
    ends with; the longest of several.

    Arguments:
        files: the linted files, relative to the working directory or absolute.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self._files = sorted(set(files))
        self._real = {os.path.realpath(file): file for file in self._files}
        self._found: dict[str, str | None] = {}

    def find(self, path: str) -> str | None:
        """Returns the linted file that a path of the log means, or ``None`` if it means none of them."""
        if path not in self._found:
            self._found[path] = self._look(path)
        return self._found[path]

    def _look(self, path: str) -> str | None:
        if path.startswith("<"):
            return None
        found = self._real.get(os.path.realpath(path))
        if found is not None or os.path.exists(path):
            return found
        there = _parts(path)
        endings = [(parts, file) for file in self._files if (parts := _relative(file)) and _ends(there, parts)]
        return max(endings, key=lambda each: len(each[0]), default=((), None))[1]


def is_installed(path: str) -> bool:
    """Whether a file lies where packages are installed."""
    return not _INSTALLED.isdisjoint(_parts(path))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\\/]", path) if part not in ("", "."))


def _relative(file: str) -> tuple[str, ...]:
    """The parts of a linted file's path below the working directory, or below where it leads out of it."""
    parts = _parts(os.path.relpath(file) if os.path.isabs(file) else file)
    return tuple(part for part in parts if part != "..")


def _ends(path: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return path[-len(parts) :] == parts and _INSTALLED.isdisjoint(path[: -len(parts)])
