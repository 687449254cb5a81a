"""Paths as code hosts want them: relative to the top of the repository."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


class Repository:
    """The repository that holds the working directory, or the working directory itself if none does."""

    def __init__(self) -> None:
        here = Path.cwd()
        self.top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)

    def relative(self, path: str) -> str | None:
        """Returns a path relative to the top, with ``/``, or None if it lies outside.

        Arguments:
            path: relative to the working directory.
        """
        absolute = Path(os.path.abspath(path))
        return absolute.relative_to(self.top).as_posix() if absolute.is_relative_to(self.top) else None

    def uri(self, path: str) -> tuple[str, bool]:
        """Returns a path as a URI, and whether that is relative to the top."""
        relative = self.relative(path)
        if relative is None:
            return Path(os.path.abspath(path)).as_uri(), False
        return quote(relative), True
