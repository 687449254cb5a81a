"""The settings of a run, from the configuration file and the options of the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from graphmend.config import AssumeCallers, Config, OutputFormat, Scope, default_config
from graphmend.configfile import find_config, load_config, parse_choice, parse_torch, parse_vendor
from graphmend.errors import ConfigError
from graphmend.findings import Confidence, Severity
from graphmend.globs import Globs

_V = TypeVar("_V")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds the options that overrule the configuration file."""
    rules = parser.add_argument_group("rules")
    for name, text in (
        ("--select", "report only these codes or beginnings of codes"),
        ("--extend-select", "report these codes too"),
        ("--ignore", "do not report these codes or beginnings of codes"),
        ("--extend-ignore", "do not report these codes either"),
    ):
        rules.add_argument(name, metavar="CODES", type=_listed, action="extend", help=text)
    _add_packs(rules)
    rules.add_argument(
        "--scope",
        type=_choice(Scope),
        metavar="WHAT",
        help="report what a visible torch.compile reaches (compiled), or every forward as well (modules, the default)",
    )
    rules.add_argument(
        "--target-torch",
        metavar="VERSION",
        type=_checked(parse_torch),
        help="leave out rules that do not hold for this torch",
    )
    rules.add_argument(
        "--min-confidence",
        type=_choice(Confidence),
        metavar="LEVEL",
        help=f"least certain findings to show: {_one_of(Confidence)} (medium)",
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--exclude", metavar="GLOBS", type=_listed, action="extend", help="leave these out, not the default"
    )
    files.add_argument("--extend-exclude", metavar="GLOBS", type=_listed, action="extend", help="leave these out too")
    files.add_argument(
        "--force-exclude", action="store_true", default=None, help="leave excluded files out even if named"
    )
    files.add_argument(
        "--no-respect-gitignore",
        dest="respect_gitignore",
        action="store_false",
        default=None,
        help="do not leave out what git ignores",
    )
    fixes = parser.add_argument_group("proof")
    fixes.add_argument(
        "--runtime", metavar="WHERE", help="`package` to import graphmend, `vendor[=PATH]` to write the runtime there"
    )
    fixes.add_argument(
        "--fix-generated", action="store_true", default=None, help="also fix files that a program has written"
    )
    fixes.add_argument(
        "--assume-callers",
        type=_choice(AssumeCallers),
        metavar="WHAT",
        help=f"what is assumed of unknown callers: {_one_of(AssumeCallers)} (exception-leaves-region)",
    )
    fixes.add_argument(
        "--torchscript", metavar="PACKAGES", type=_listed, action="extend", help="packages that TorchScript may compile"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--output-format", type=_choice(OutputFormat), metavar="FORMAT", help=_one_of(OutputFormat))
    output.add_argument(
        "--fail-on",
        type=_choice(Severity),
        metavar="SEVERITY",
        help=f"quietest severity that gives exit code 1: {_one_of(Severity)} (warning)",
    )
    _add_config(parser)


def add_packs(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which rule packs there are."""
    _add_packs(parser)
    _add_config(parser)


def _add_packs(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--rules", metavar="FILE", action="append", help="load a rule pack of your own")


def _add_config(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("configuration")
    where.add_argument("--config", metavar="FILE", help="read this configuration file")
    where.add_argument("--isolated", action="store_true", help="read no configuration file")


def read_packs(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the rule packs of the configuration and of the options of :func:`add_packs`.

    Raises:
        ConfigError: the configuration file cannot be used.
    """
    return _read(options, ["."])[0].packs + _packs(options)


def read_settings(options: argparse.Namespace, paths: Sequence[str]) -> tuple[Config, Path | None]:
    """Returns the settings of a run and the configuration file that they come from, if any.

    Arguments:
        options: the parsed options of :func:`add_settings`.
        paths: the files and folders of the run.

    Raises:
        ConfigError: the configuration file cannot be used.
    """
    config, path = _read(options, paths)
    return _overrule(config, options, Path.cwd().as_posix()), path


def _read(options: argparse.Namespace, paths: Sequence[str]) -> tuple[Config, Path | None]:
    if options.config and options.isolated:
        raise ConfigError("`--config` and `--isolated` exclude each other")
    path = Path(options.config) if options.config else None
    if path is None and not options.isolated:
        path = find_config(paths)
    return load_config(path) if path else default_config(Path.cwd().as_posix()), path


def _packs(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(os.path.abspath(path) for path in options.rules or ())


def _overrule(config: Config, options: argparse.Namespace, here: str) -> Config:
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key in (
            "select",
            "ignore",
            "scope",
            "min_confidence",
            "force_exclude",
            "respect_gitignore",
            "fix_generated",
            "assume_callers",
            "torchscript",
            "output_format",
            "fail_on",
        )
        if (value := getattr(options, key)) is not None
    }
    if options.target_torch is not None:
        changes["torch"] = options.target_torch
    config = replace(
        config,
        extend_select=config.extend_select + tuple(options.extend_select or ()),
        extend_ignore=config.extend_ignore + tuple(options.extend_ignore or ()),
        packs=config.packs + _packs(options),
        **changes,
    )
    if options.exclude is not None:
        config = replace(config, exclude=(Globs(here, tuple(options.exclude)),))
    if options.extend_exclude is not None:
        config = replace(config, extend_exclude=(*config.extend_exclude, Globs(here, tuple(options.extend_exclude))))
    if options.runtime is not None:
        try:
            config = replace(config, runtime=parse_vendor(options.runtime, here))
        except ValueError as error:
            raise ConfigError(f"--runtime: {error}") from None
    return config


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _choice(kind: type[Enum]) -> Callable[[str], Enum]:
    return _checked(lambda text: parse_choice(kind, text))


def _checked(read: Callable[[str], _V]) -> Callable[[str], _V]:
    """Makes argparse show the message of a ValueError."""

    def checked(text: str) -> _V:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def _one_of(kind: type[Enum]) -> str:
    return ", ".join(member.value for member in kind)
