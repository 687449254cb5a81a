"""Where the command line writes: standard output, standard error, or a file."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable

from graphmend.errors import UserError
from graphmend.files import write_atomically
from graphmend.findings import FileError

_STANDARD_OUTPUT = (None, "-", "/dev/stdout")


def write(text: str, path: str | None = None) -> None:
    """Writes text to standard output (also ``-``), or as UTF-8 to a file that appears as a whole or not at all.

    A reader that has gone away is no error.

    Raises:
        UserError: the file cannot be written.
    """
    if path not in _STANDARD_OUTPUT:
        try:
            write_atomically(path, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise UserError(f"cannot write the output: {error.strerror}", path=path) from None
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, and must not fail there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_source(text: str) -> None:
    """Writes Python source to standard output as UTF-8, with its line ends as they are."""
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """Writes a message about the run itself to standard error."""
    print(f"graphmend: {message}", file=sys.stderr)


def complain_about(errors: Iterable[FileError]) -> None:
    """Writes each error, with its place, to standard error."""
    for error in errors:
        place = ":".join(str(part) for part in (error.path, error.line, error.column) if part is not None)
        hint = f" ({error.hint})" if error.hint else ""
        complain(f"{place}: {error.message}{hint}")


def wants_colour(path: str | None) -> bool:
    """Whether text may be coloured: on a terminal, unless ``NO_COLOR`` is set."""
    if path not in _STANDARD_OUTPUT or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def tolerate_any_text() -> None:
    """Makes the standard streams escape what their encoding cannot hold, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
