"""Patterns of paths, with the syntax and meaning of ``.gitignore`` lines.

Used for ``.gitignore`` files themselves and for the path patterns of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "\\x21-\\x7e",
    "lower": "a-z",
    "print": "\\x20-\\x7e",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class _Glob:
    regex: re.Pattern[str]
    negated: bool
    only_folders: bool
    whole_path: bool


@dataclass(frozen=True, slots=True)
class Globs:
    """A list of patterns that are relative to one folder; the last pattern that matches a path decides.

    Attributes:
        root: the folder, absolute, with ``/`` between its parts.
        patterns: the patterns as they were written.
    """

    root: str
    patterns: tuple[str, ...]
    _compiled: tuple[_Glob, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled = (_compile(pattern) for pattern in self.patterns)
        object.__setattr__(self, "_compiled", tuple(glob for glob in compiled if glob is not None))

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Says whether the patterns take or, with ``!``, give back a path.

        Arguments:
            path: an absolute path with ``/`` between its parts.
            folder: whether it is a folder.

        Returns:
            True if the last matching pattern takes it, False if that gives it back, None if no pattern matches or the
            path does not lie in the root.
        """
        relative = self._relative(path)
        if relative is None:
            return None
        name = relative.rpartition("/")[2]
        for glob in reversed(self._compiled):
            if glob.only_folders and not folder:
                continue
            if glob.regex.fullmatch(relative if glob.whole_path else name):
                return not glob.negated
        return None

    def takes_with_parents(self, path: str) -> bool:
        """Whether the patterns take a file or one of the folders around it, up to the root."""
        relative = self._relative(path)
        if relative is None:
            return False
        parts = relative.split("/")
        prefix = self.root.rstrip("/")
        return any(
            self.decide(f"{prefix}/{'/'.join(parts[: count + 1])}", folder=count + 1 < len(parts)) is True
            for count in range(len(parts))
        )

    def _relative(self, path: str) -> str | None:
        prefix = self.root.rstrip("/") + "/"
        return path[len(prefix) :] if path.startswith(prefix) and len(path) > len(prefix) else None


def read_lines(text: str) -> tuple[str, ...]:
    """Returns the patterns in the text of a ``.gitignore`` file."""
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    return tuple(line for line in lines if line.strip(" ") and not line.startswith("#"))


def any_takes(lists: Iterable[Globs], path: str, *, folder: bool) -> bool:
    """Whether any of several lists takes a path."""
    return any(globs.decide(path, folder=folder) is True for globs in lists)


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> _Glob | None:
    """Compiles one line; None if it is empty."""
    text = _strip_trailing_spaces(pattern)
    negated = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    whole_path = "/" in text
    text = text.removeprefix("/")
    return _Glob(_regex(text), negated, only_folders, whole_path)


def _strip_trailing_spaces(text: str) -> str:
    """Removes unescaped spaces from the end."""
    stripped = text.rstrip(" ")
    if stripped == text:
        return text
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 else stripped


def _regex(text: str) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "*":
            part, position = _stars(text, position)
        elif char == "?":
            part, position = "[^/]", position + 1
        elif char == "[":
            bracket = _bracket(text, position)
            if bracket is None:
                return _NEVER
            part, position = bracket
        elif char == "\\":
            if position + 1 == len(text):
                return _NEVER
            part, position = re.escape(text[position + 1]), position + 2
        else:
            part, position = re.escape(char), position + 1
        parts.append(part)
    return re.compile("".join(parts), re.DOTALL)


def _stars(text: str, start: int) -> tuple[str, int]:
    """Translates a run of stars. Two, between slashes or ends, cross folders; any other run stays within a name."""
    end = start
    while end < len(text) and text[end] == "*":
        end += 1
    opens = start == 0 or text[start - 1] == "/"
    closes = end == len(text) or text[end] == "/"
    if end - start < 2 or not opens or not closes:
        return "[^/]*", end
    if end == len(text):
        return ".*", end
    return "(?:.*/)?", end + 1


def _bracket(text: str, start: int) -> tuple[str, int] | None:
    """Translates ``[…]``; None if it is not closed or names an unknown class, and then never matches."""
    position = start + 1
    negated = text[position : position + 1] in ("!", "^")
    position += negated
    body: list[str] = []
    previous = ""  # the character that a following "-" would make the start of a range
    first = True
    while first or text[position] != "]":
        first = False
        if position >= len(text):
            return None
        if previous and text[position] == "-" and text[position + 1 : position + 2] not in ("", "]"):
            item = _member(text, position + 1)
            if item is None:
                return None
            if previous <= item[0]:
                body.append(f"{re.escape(previous)}-{re.escape(item[0])}")
            previous, position = "", item[1]
        elif (name := _class_name(text, position)) is not None:
            if name not in _CLASSES:
                return None
            body.append(_CLASSES[name])
            previous, position = "", position + len(name) + 4
        else:
            item = _member(text, position)
            if item is None:
                return None
            previous, position = item
            body.append(re.escape(previous))
        if position >= len(text):
            return None
    members = "".join(body)
    return (f"[^/{members}]" if negated else f"(?!/)[{members}]"), position + 1


def _member(text: str, position: int) -> tuple[str, int] | None:
    """Reads one, perhaps escaped, character of a bracket, and says where the next one begins."""
    if text[position] != "\\":
        return text[position], position + 1
    return (text[position + 1], position + 2) if position + 1 < len(text) else None


def _class_name(text: str, position: int) -> str | None:
    """Returns the name in ``[:name:]``, or None if no such thing begins here."""
    if not text.startswith("[:", position):
        return None
    close = text.find("]", position + 2)
    return text[position + 2 : close - 1] if close > position + 2 and text[close - 1] == ":" else None
