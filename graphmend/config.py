"""What a run is asked to do, apart from the paths: the values of the configuration file and of the command line.

:mod:`graphmend.configfile` reads files, :mod:`graphmend.cli` reads options; both produce a :class:`Config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from graphmend.findings import Confidence, Severity
from graphmend.globs import Globs

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
"""Folders that hold no code of the project's own."""

DEFAULT_GENERATED_MARKERS = (
    "automatically generated from",
    "@generated",
    "DO NOT EDIT",
)
"""Text near the top of a file, in a comment, that says a program wrote it."""


class OutputFormat(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


class AssumeCallers(str, Enum):
    """What is assumed of callers that are not in sight.

    ``exception-leaves-region``: no code out of sight writes, behind the place of an exception, into a tensor that
    outlives the region. ``none``: nothing; fixes that need the assumption are unsafe.
    """

    EXCEPTION_LEAVES_REGION = "exception-leaves-region"
    NONE = "none"


class Scope(str, Enum):
    """Which compiled regions findings are reported of.

    ``compiled``: those that start where the linted files hand something to ``torch.compile``. ``modules``: also the
    ``forward`` of every module, which somebody may compile.
    """

    COMPILED = "compiled"
    MODULES = "modules"


@dataclass(frozen=True, slots=True)
class Vendor:
    """The runtime is written into the user's package.

    Attributes:
        path: the file to write, absolute; None for a place that is found from each mended file's package.
    """

    path: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one run.

    Attributes:
        root: the folder, absolute, to which path patterns of the configuration are relative.
        select: codes or beginnings of codes to report; empty for all rules.
        extend_select: more of them.
        ignore: codes or beginnings of codes not to report.
        extend_ignore: more of them.
        exclude: folders and files to leave out.
        extend_exclude: more of them, in several lists with roots of their own.
        force_exclude: whether `exclude` also holds for paths that were named one by one.
        respect_gitignore: whether what git ignores is left out.
        per_file_ignores: codes not to report in files that a pattern takes.
        packs: further rule packs, absolute paths.
        runtime: None to import `graphmend` in mended code, or where its copy is written.
        output_format: how findings are printed.
        fail_on: the quietest severity that makes the exit code 1.
        min_confidence: the least certain findings that are shown.
        generated_markers: text that marks a file as written by a program.
        fix_generated: whether such files are mended without being named one by one.
        assume_callers: what is assumed of callers that are not in sight.
        torchscript: qualified names of packages whose functions may be compiled by TorchScript.
        torch: the version of torch that the code runs on, like ``2.13``; None for any.
        scope: which compiled regions findings are reported of.
    """

    root: str
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    exclude: tuple[Globs, ...] = ()
    extend_exclude: tuple[Globs, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    per_file_ignores: tuple[tuple[Globs, tuple[str, ...]], ...] = ()
    packs: tuple[str, ...] = ()
    runtime: Vendor | None = None
    output_format: OutputFormat = OutputFormat.TEXT
    fail_on: Severity = Severity.WARNING
    min_confidence: Confidence = Confidence.MEDIUM
    generated_markers: tuple[str, ...] = DEFAULT_GENERATED_MARKERS
    fix_generated: bool = False
    assume_callers: AssumeCallers = AssumeCallers.EXCEPTION_LEAVES_REGION
    torchscript: tuple[str, ...] = ()
    torch: str | None = None
    scope: Scope = Scope.MODULES

    @property
    def excluded(self) -> tuple[Globs, ...]:
        """What to leave out, all in all."""
        return (*self.exclude, *self.extend_exclude)


def default_config(root: str) -> Config:
    """Returns the settings that hold without any file or option.

    Arguments:
        root: the folder to which patterns are relative, absolute.
    """
    return Config(root=root, exclude=(Globs(root, DEFAULT_EXCLUDE),))
