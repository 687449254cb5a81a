"""Reading files that may be gone, and writing files so that no reader ever sees half of one."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file: into a new one in the same folder, which then takes the place of the old.

    Links are followed and permissions kept. What is no ordinary file, like a terminal or a pipe, is written directly.

    Arguments:
        path: the file.
        data: its new content.

    Raises:
        OSError: the file cannot be written; it is as it was before.
    """
    import tempfile

    target = Path(os.path.realpath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        temporary.chmod(_default_mode() if mode is None else stat.S_IMODE(mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _default_mode() -> int:
    """The permissions that a new file gets; the mask can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def file_bytes(path: str) -> bytes:
    """The bytes of a file; nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
