"""Finds the files to look at: named files, and the Python files of named folders less what is excluded or ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend.config import Config
from graphmend.findings import FileError
from graphmend.globs import Globs, any_takes, read_lines


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to look at.

    Attributes:
        path: relative to the working directory, with ``/``.
        named: whether it was named itself, not only a folder around it.
    """

    path: str
    named: bool


@dataclass(frozen=True, slots=True)
class Discovery:
    """The files, sorted by path, each once, and what went wrong on the way."""

    files: tuple[SourceFile, ...]
    errors: tuple[FileError, ...]


def discover(paths: Sequence[str], config: Config) -> Discovery:
    """Finds the files that paths stand for.

    A named file is taken whatever its suffix, a folder for its ``*.py`` files. What the configuration excludes and, in
    a folder, what git ignores is left out; a path that was named itself is only left out with ``force_exclude``. Links
    to folders are not followed.

    Arguments:
        paths: files and folders.
        config: what is excluded.

    Returns:
        The files, and an error for each path that does not exist or cannot be read.
    """
    search = _Search(config)
    for path in paths:
        search.add(path)
    files: dict[str, SourceFile] = {}
    for file in sorted(search.files, key=lambda file: (not file.named, file.path)):
        files.setdefault(os.path.realpath(file.path), file)
    ordered = tuple(sorted(files.values(), key=lambda file: file.path))
    return Discovery(ordered, tuple(search.errors))


def display_path(path: str) -> str:
    """Returns a path as reports show it: relative to the working directory, with ``/``."""
    try:
        path = os.path.relpath(path)
    except ValueError:  # on Windows, a path on another drive
        path = os.path.abspath(path)
    return path.replace(os.sep, "/")


def is_excluded(path: str, config: Config) -> bool:
    """Whether the configuration excludes a file or a folder around it, as ``--force-exclude`` asks."""
    absolute = _absolute(path)
    return any(globs.takes_with_parents(absolute) for globs in config.excluded)


class _Search:
    """Walks folders and collects what it finds."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.files: list[SourceFile] = []
        self.errors: list[FileError] = []

    def add(self, path: str) -> None:
        try:
            is_folder = Path(path).is_dir()
            Path(path).stat()
        except OSError as error:
            self.fail(path, f"cannot read the path: {error.strerror}")
            return
        except ValueError as error:  # a null character
            self.fail(repr(path), f"no path: {error}")
            return
        if self.config.force_exclude and is_excluded(path, self.config):
            return
        if is_folder:
            absolute = _absolute(path)
            self.walk(absolute, self.outer_ignores(absolute))
        else:
            self.files.append(SourceFile(display_path(path), named=True))

    def fail(self, path: str, message: str) -> None:
        self.errors.append(FileError(display_path(path), message))

    def walk(self, folder: str, ignores: tuple[Globs, ...]) -> None:
        """Collects the files of a folder, given the ignore files of the folders around it."""
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.fail(folder, f"cannot read the folder: {error.strerror}")
            return
        names = {entry.name for entry in found}
        if self.config.respect_gitignore:
            ignores = _enter(folder, names, ignores)
        for entry in found:
            path = f"{folder.rstrip('/')}/{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.name.endswith(".py"):
                continue
            if any_takes(self.config.excluded, path, folder=is_folder) or _ignored(ignores, path, folder=is_folder):
                continue
            if is_folder:
                self.walk(path, ignores)
            elif os.path.isfile(path):  # also through a link, if it leads somewhere
                self.files.append(SourceFile(display_path(path), named=False))

    def outer_ignores(self, folder: str) -> tuple[Globs, ...]:
        """Returns the ignore files of the folders around a folder, up to the top of its repository."""
        if not self.config.respect_gitignore:
            return ()
        ignores: tuple[Globs, ...] = ()
        for around in reversed(_up_to_repository(folder)):
            ignores = _enter(around, {".git", ".gitignore"}, ignores)
        return ignores


def _enter(folder: str, names: set[str], ignores: tuple[Globs, ...]) -> tuple[Globs, ...]:
    """Adds a folder's ignore files; a repository of its own begins anew."""
    if ".git" in names and os.path.exists(f"{folder}/.git"):
        ignores = tuple(_read(Path(folder, ".git", "info", "exclude"), folder))
    if ".gitignore" in names:
        ignores += tuple(_read(Path(folder, ".gitignore"), folder))
    return ignores


def _read(path: Path, root: str) -> Iterator[Globs]:
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:  # there is none, or git could not read it either
        return
    yield Globs(root, read_lines(text))


def _ignored(ignores: tuple[Globs, ...], path: str, *, folder: bool) -> bool:
    """The nearest ignore file that has something to say decides."""
    for globs in reversed(ignores):
        decision = globs.decide(path, folder=folder)
        if decision is not None:
            return decision
    return False


def _up_to_repository(folder: str) -> list[str]:
    """Returns the folders around a folder, from the inside out, up to its repository's; none if it lies in none."""
    if os.path.exists(f"{folder}/.git"):
        return []
    around: list[str] = []
    for parent in Path(folder).parents:
        around.append(parent.as_posix())
        if os.path.exists(parent / ".git"):
            return around
    return []


def _absolute(path: str) -> str:
    return os.path.abspath(path).replace(os.sep, "/")
