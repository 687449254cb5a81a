"""Errors that end a run with exit code 2: the tool cannot do what it was asked, and a person can do something about it.

What goes wrong in one file among many is no exception but a :class:`graphmend.findings.FileError` in the report.
"""

from __future__ import annotations

from collections.abc import Iterable


class UserError(Exception):
    """A problem with what the tool was given, told in one message with its place and, if there is one, a hint.

    Arguments:
        message: what is wrong, without the place.
        path: the file at fault, as a person should see it, or None.
        line: 1-based line in that file, or None.
        column: 1-based column in characters, or None.
        hint: what to do about it, or the empty string.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
    ) -> None:
        self.message = message
        self.path = path
        self.line = line
        self.column = column
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(UserError):
    """A configuration file or a command line option cannot be used."""


class PackError(UserError):
    """A rule pack cannot be used."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a hint that names the known word nearest to ``word``, or the empty string if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""
