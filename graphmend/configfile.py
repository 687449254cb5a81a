"""Finds and reads the configuration: ``graphmend.toml``, or ``[tool.graphmend]`` in ``pyproject.toml``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from graphmend.config import AssumeCallers, Config, OutputFormat, Scope, Vendor, default_config
from graphmend.errors import ConfigError, did_you_mean
from graphmend.findings import Confidence, Severity
from graphmend.globs import Globs

_E = TypeVar("_E", bound=Enum)
_T = TypeVar("_T")
_POSITION = re.compile(r" \(at line (\d+), column (\d+)\)$")
_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\]]+?)\s*\]+\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*(?P<name>[\w.\"'\s*/-]+?)\s*=")


def find_config(paths: Sequence[str]) -> Path | None:
    """Returns the configuration file that holds for some paths, or None.

    It is looked for in the folder that the paths have in common, and upwards from there. A ``pyproject.toml`` without a
    ``[tool.graphmend]`` table is passed over; in one folder ``graphmend.toml`` comes first.

    Raises:
        ConfigError: a ``pyproject.toml`` on the way is no TOML.
    """
    start = _common_folder(paths)
    for folder in (start, *start.parents):
        own = folder / "graphmend.toml"
        if os.path.isfile(own):
            return own
        project = folder / "pyproject.toml"
        if os.path.isfile(project) and _table(_parse(project), project) is not None:
            return project
    return None


def load_config(path: Path) -> Config:
    """Reads one configuration file.

    Arguments:
        path: a ``pyproject.toml``, or a file whose top level holds the keys.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or has an unknown key or a bad value.
    """
    path = Path(os.path.abspath(path))
    table = _table(_parse(path), path)
    root = path.parent.as_posix()
    return _Reader(path, table or {}).apply(default_config(root))


def parse_vendor(text: str, base: str) -> Vendor | None:
    """Reads a value of ``runtime``: ``package``, ``vendor`` or ``vendor=PATH`` with the path relative to ``base``.

    Raises:
        ValueError: it is something else.
    """
    name, equals, target = text.partition("=")
    if text == "package":
        return None
    if name != "vendor" or (equals and not target):
        raise ValueError("expected `package`, `vendor` or `vendor=PATH`")
    return Vendor(_join(base, target) if target else None)


def parse_torch(text: str) -> str:
    """Reads a version of torch, like ``2.13``.

    Raises:
        ValueError: it is no version, or one without ``torch.compile``.
    """
    if not re.fullmatch(r"\d+(\.\d+){1,2}", text):
        raise ValueError("expected a version like `2.13`")
    if int(text.partition(".")[0]) < 2:
        raise ValueError("torch has `torch.compile` from version 2.0 on")
    return text


def parse_choice(kind: type[_E], text: str) -> _E:
    """Reads one of a closed list of words.

    Raises:
        ValueError: it is none of them; the message names them, or the nearest.
    """
    words = [member.value for member in kind]
    if text not in words:
        hint = did_you_mean(text, words)
        raise ValueError(f"`{text}` is not one of {', '.join(words)}{'; ' + hint if hint else ''}")
    return kind(text)


def _common_folder(paths: Sequence[str]) -> Path:
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in map(os.path.abspath, paths or ["."])]
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # on Windows, paths on several drives
        return Path.cwd()


def _parse(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the configuration: {error.strerror}", path=_show(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("the configuration is not UTF-8", path=_show(path)) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        raise ConfigError(
            f"broken TOML: {_POSITION.sub('', str(error))}",
            path=_show(path),
            line=int(position[1]) if position else len(text.splitlines()),
            column=int(position[2]) if position else None,
        ) from None


def _table(document: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """Returns the table of ours in a parsed file, or None if a ``pyproject.toml`` has none."""
    if path.name != "pyproject.toml":
        return document
    tools = document.get("tool", {})
    table = tools.get("graphmend") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError("`tool.graphmend` must be a table", path=_show(path), line=_find_line(path, ("tool",)))
    return table


def _find_line(path: Path, key: tuple[str, ...]) -> int | None:
    """Returns the line on which a key, or else a table around it, is defined.

    The parser keeps no positions. Tables and keys are found by reading the lines again, which can at worst name a line
    inside a multi-line string.
    """
    table: tuple[str, ...] = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if header := _HEADER.match(line):
            table = here = _split_key(header["name"])
        elif assignment := _ASSIGNMENT.match(line):
            here = (*table, *_split_key(assignment["name"]))
        else:
            continue
        common = _common(here, key)
        if common and (best is None or common > best[0]):
            best = (common, number)
    return best[1] if best else None


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    """Returns how many parts two keys have in common at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (ours, theirs) in pairs if ours != theirs), min(len(left), len(right)))


def _split_key(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text))


def _show(path: Path) -> str:
    try:
        return os.path.relpath(path).replace(os.sep, "/")
    except ValueError:
        return path.as_posix()


def _join(base: str, path: str) -> str:
    return Path(os.path.normpath(Path(base) / path)).as_posix()


class _Reader:
    """Checks a table and turns it into settings."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.path = path
        self.root = path.parent.as_posix()
        self.table = table
        self.prefix = ("tool", "graphmend") if path.name == "pyproject.toml" else ()

    def apply(self, config: Config) -> Config:
        readers: dict[str, Callable[[str], dict[str, object]]] = {
            "select": self.codes,
            "extend-select": self.codes,
            "ignore": self.codes,
            "extend-ignore": self.codes,
            "exclude": self.exclude,
            "extend-exclude": self.exclude,
            "force-exclude": self.flag,
            "respect-gitignore": self.flag,
            "per-file-ignores": self.per_file_ignores,
            "rules": self.packs,
            "runtime": self.runtime,
            "output-format": self.choice(OutputFormat),
            "fail-on": self.choice(Severity),
            "min-confidence": self.choice(Confidence),
            "generated-markers": self.strings,
            "fix-generated": self.flag,
            "assume-callers": self.choice(AssumeCallers),
            "torchscript": self.strings,
            "torch": self.torch,
            "scope": self.choice(Scope),
        }
        changes: dict[str, object] = {}
        for key in self.table:
            if key not in readers:
                hint = did_you_mean(key, readers) or f"known keys: {', '.join(readers)}"
                raise self.error(key, f"unknown key `{key}`", hint)
            changes |= readers[key](key)
        return replace(config, **changes)  # type: ignore[arg-type] # the readers check the types

    def error(self, key: str, message: str, hint: str = "") -> ConfigError:
        line = _find_line(self.path, (*self.prefix, key))
        return ConfigError(message, path=_show(self.path), line=line, hint=hint)

    def value(self, key: str, kind: type[_T], what: str) -> _T:
        found = self.table[key]
        if not isinstance(found, kind):
            raise self.error(key, f"`{key}` must be {what}")
        return found

    def list_of_strings(self, key: str, found: object) -> tuple[str, ...]:
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise self.error(key, f"`{key}` must be a list of strings")
        return tuple(found)

    def strings(self, key: str) -> dict[str, object]:
        return {_attribute(key): self.list_of_strings(key, self.table[key])}

    codes = strings

    def flag(self, key: str) -> dict[str, object]:
        return {_attribute(key): self.value(key, bool, "true or false")}

    def exclude(self, key: str) -> dict[str, object]:
        return {_attribute(key): (Globs(self.root, self.list_of_strings(key, self.table[key])),)}

    def per_file_ignores(self, key: str) -> dict[str, object]:
        table = self.value(key, dict, "a table of patterns and lists of codes")
        items = ((Globs(self.root, (str(glob),)), self.list_of_strings(key, codes)) for glob, codes in table.items())
        return {_attribute(key): tuple(items)}

    def packs(self, key: str) -> dict[str, object]:
        return {"packs": tuple(_join(self.root, item) for item in self.list_of_strings(key, self.table[key]))}

    def choice(self, kind: type[Enum]) -> Callable[[str], dict[str, object]]:
        def read(key: str) -> dict[str, object]:
            text = self.value(key, str, "a string")
            return {_attribute(key): self.checked(key, lambda: parse_choice(kind, text))}

        return read

    def runtime(self, key: str) -> dict[str, object]:
        text = self.value(key, str, "a string")
        return {_attribute(key): self.checked(key, lambda: parse_vendor(text, self.root))}

    def torch(self, key: str) -> dict[str, object]:
        text = self.value(key, str, "a string")
        return {_attribute(key): self.checked(key, lambda: parse_torch(text))}

    def checked(self, key: str, read: Callable[[], object]) -> object:
        try:
            return read()
        except ValueError as error:
            raise self.error(key, f"`{key}`: {error}") from None


def _attribute(key: str) -> str:
    return key.replace("-", "_")
