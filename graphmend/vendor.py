"""The run-time package as one file, for packages that take no dependency."""

from __future__ import annotations

import ast
import os
import tempfile
from pathlib import Path

from graphmend.version import __version__

# Each after what it uses.
_MODULES = (
    *("tracing", "frames", "breaks", "calls", "arms", "codec", "defer", "operator"),
    *("around", "effect", "select", "compile"),
)

# The linter knows a copy by the first words (`regions.entries.RUNTIME_MARK`).
_HEAD = '''"""The graphmend runtime: effect, select and compile, for mended code. Needs torch and nothing else.

Written by graphmend {version} (`graphmend lint --fix --runtime vendor`); write it again rather than edit it.
"""
# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations
'''


def write_runtime(path: Path) -> None:
    """Write the run-time package into one file.

    The file needs torch and nothing else. Wherever it is imported as a module of another name, its operator has a
    namespace of its own, so that any number of packages may bring a copy.

    Args:
        path: The file to write; it is replaced at once or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(runtime_source())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise


def runtime_source() -> str:
    """The text that :func:`write_runtime` writes."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    bodies = []
    for module in _MODULES:
        text = (Path(__file__).parent / "runtime" / f"{module}.py").read_text(encoding="utf-8")
        imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        for node in imports:
            names = {ast.unparse(alias) for alias in node.names}
            if isinstance(node, ast.Import):
                plain |= names
            elif node.module != "__future__" and not str(node.module).startswith("graphmend."):
                named.setdefault(str(node.module), set()).update(names)
        lines = text.splitlines()[max(node.end_lineno or 0 for node in imports) :]
        bodies.append("\n".join(lines).strip("\n"))
    head = _HEAD.format(version=__version__)
    lines = [f"import {name}" for name in sorted(plain)]
    lines += [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(named.items())]
    exported = '__all__ = ["compile", "effect", "select"]'
    return "\n\n\n".join([head + "\n" + "\n".join(lines) + "\n\n" + exported, *bodies]) + "\n"
