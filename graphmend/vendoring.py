"""Where mended code gets the runtime from: the installed package, or a copy inside the user's own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from graphmend.config import Vendor
from graphmend.discover import display_path
from graphmend.errors import UserError
from graphmend.findings import RuntimeCopy
from graphmend.fixes.site import RuntimeImport
from graphmend.model.index import RUNTIME_COPY

_FILE = f"{RUNTIME_COPY}.py"
INSTALLED = RuntimeImport("import graphmend", "graphmend")


@dataclass(frozen=True)
class Vendored:
    """A copy of the runtime that mended files import.

    Args:
        path: the file, absolute.
    """

    path: str

    @classmethod
    def beside(cls, mended: str, vendor: Vendor) -> Vendored:
        """The copy for a mended file: the named one, or one at the top of the file's package."""
        return cls(vendor.path or os.path.join(_top(os.path.abspath(mended)), _FILE))

    def copy(self) -> RuntimeCopy:
        """What writing the copy changes."""
        from graphmend.vendor import runtime_source

        try:
            before = Path(self.path).read_bytes().decode("utf-8", "replace")
        except OSError:
            before = None
        return RuntimeCopy(display_path(self.path), before, runtime_source())

    def write(self) -> None:
        """Write the copy, or bring it up to date.

        Raises:
            OSError: the file cannot be written.
        """
        from graphmend.vendor import write_runtime

        write_runtime(Path(self.path))


def runtime_for(path: str, vendor: Vendor | None) -> RuntimeImport:
    """The import statement with which a mended file gets at the runtime.

    Raises:
        UserError: the copy lies outside the file's package, where no import reaches it.
    """
    if vendor is None:
        return INSTALLED
    copy = Vendored.beside(path, vendor).path
    mended = os.path.abspath(path)
    top, module = _top(mended), Path(copy).stem
    if top == os.path.dirname(mended) and not _is_package(top):
        if os.path.dirname(copy) != top:
            raise UserError(f"the runtime `{copy}` is not beside the file that imports it", path=path)
        return RuntimeImport(
            f"import {module} as graphmend" if module != "graphmend" else "import graphmend", "graphmend"
        )
    inside = os.path.relpath(os.path.dirname(copy), top)
    if inside.startswith(".."):
        raise UserError(f"the runtime `{copy}` is outside the package of the file that imports it", path=path)
    depth = len(Path(os.path.relpath(os.path.dirname(mended), top)).parts)
    package = "" if inside == "." else inside.replace(os.sep, ".")
    return RuntimeImport(f"from {'.' * (depth + 1)}{package} import {module} as graphmend", "graphmend")


def _is_package(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "__init__.py"))


def _top(path: str) -> str:
    """The folder of the outermost package around a file; without one, the file's own folder."""
    folder = os.path.dirname(path)
    while _is_package(folder) and _is_package(os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    return folder
