"""Runs a program in a process of its own, in which Dynamo is watched, and reads what that process writes down."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphmend.errors import UserError
from graphmend.trace.log import Log, read_messages

_FACTORY = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*|.+\.py):(?P<attribute>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")
_OBSERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "observe.py")


@dataclass(frozen=True, slots=True)
class Job:
    """What the watched process does.

    Attributes:
        kind: ``factory``, ``script`` or ``module``.
        target: as given.
        module: of a factory, the module that it is in.
        attribute: of a factory, its name there.
        path: what comes first on the module path.
        arguments: what a program is given.
        calls: how often what a factory makes is called.
        backend: what runs the graphs; ``None`` to run them as they were captured.
        roots: folders and files that are the user's own.
    """

    kind: str
    target: str
    module: str = ""
    attribute: str = ""
    path: str = ""
    arguments: tuple[str, ...] = ()
    calls: int = 2
    backend: str | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """What a watched run did.

    Attributes:
        torch: its version of torch.
        python: its version of Python.
        is_of_calls: whether it called what a factory made; otherwise a program did as it liked.
        graphs: how many graphs each call gave; of a program, how many it gave in all.
        compilations: how often it called ``torch.compile``.
        fullgraph: whether a call works where no break is allowed; ``None`` where that was not tried, since the call
            broke anyway.
        obstacle: why it does not work there, or empty.
        log: the breaks and the skipped frames.
        files: the user's own files that were imported.
        lines: the lines of them that ran, if that is known.
        failure: why the run did not come to its end, or empty.
    """

    torch: str
    python: str
    is_of_calls: bool
    graphs: tuple[int, ...]
    compilations: int
    fullgraph: bool | None
    obstacle: str
    log: Log
    files: tuple[str, ...]
    lines: dict[str, frozenset[int]] | None
    failure: str = ""


def job_of(target: str, *, module: bool, arguments: Sequence[str]) -> Job:
    """Returns the job for a target of the command line.

    Arguments:
        target: ``package.module:factory``, ``file.py:factory``, or a script; with ``module``, a module to run.
        module: whether it is to be run like ``python -m``.
        arguments: what is left of the command line, for the program.

    Raises:
        UserError: there is no such target.
    """
    if module:
        return Job("module", target, path=os.getcwd(), arguments=tuple(arguments))
    if os.path.isfile(target):
        folder = os.path.dirname(os.path.abspath(target))
        return Job("script", target, path=folder, arguments=tuple(arguments), roots=(folder,))
    factory = _FACTORY.fullmatch(target)
    if factory is None:
        hint = "`package.module:factory`, `file.py:factory`, a script, or `-m package.module`"
        raise UserError(f"there is no `{target}` to run", hint=hint)
    name, attribute = factory["module"], factory["attribute"]
    if not name.endswith(".py"):
        return Job("factory", target, name, attribute, os.getcwd())
    if not os.path.isfile(name):
        raise UserError(f"there is no file `{name}`")
    path = Path(name).resolve()
    return Job("factory", target, path.stem, attribute, str(path.parent), roots=(str(path.parent),))


def is_factory(target: str) -> bool:
    """Whether a target names a factory, which takes no arguments of a command line."""
    return not os.path.isfile(target) and _FACTORY.fullmatch(target) is not None


def observe(job: Job, timeout: float | None = None) -> Observation:
    """Runs a job. What the program writes goes to standard error, so that standard output is the report's alone.

    Arguments:
        job: what to run.
        timeout: after how many seconds it is ended, or ``None`` to wait.

    Raises:
        UserError: it could not be run, or did not live to tell.
    """
    with tempfile.TemporaryDirectory(prefix="graphmend-") as folder:
        order, result = Path(folder, "job.json"), Path(folder, "result.json")
        order.write_text(json.dumps({**asdict(job), "result": str(result)}), encoding="utf-8")
        try:
            done = subprocess.run([sys.executable, _OBSERVER, str(order)], stdout=2, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise UserError(f"`{job.target}` was ended: it took longer than {timeout:g} s") from None
        except OSError as error:
            raise UserError(f"cannot start {sys.executable}: {error.strerror or error}") from None
        try:
            written = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise UserError(
                f"`{job.target}` {_ending(done.returncode)} before it could tell what was compiled"
            ) from None
    return _observation(job, written)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended its process with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _observation(job: Job, written: dict[str, Any]) -> Observation:
    failure = written["failure"]
    if failure is not None and failure["stage"] in ("torch", "import", "factory"):
        what = {"torch": "trace needs torch", "import": f"cannot import `{job.target}`"}
        raise UserError(f"{what.get(failure['stage'], f'`{job.target}` gives nothing to run')}: {failure['message']}")
    told = "" if failure is None else f"`{job.target}` did not come to its end: {failure['message']}"
    lines = written["lines"]
    return Observation(
        written["torch"],
        written["python"],
        job.kind == "factory",
        tuple(written["calls"]),
        written["compilations"],
        written["fullgraph"],
        written["obstacle"],
        read_messages(written["messages"]),
        tuple(written["files"]),
        None if lines is None else {path: frozenset(each) for path, each in lines.items()},
        told,
    )
