"""The watched process: runs a program under Dynamo and writes down what Dynamo tells. The only module with torch.

Run as a file, ``python observe.py JOB``, so that nothing of graphmend is imported beside the program. ``JOB`` and the
file that it names for the result are JSON; :mod:`graphmend.trace.launch` writes the one and reads the other.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import logging
import os
import platform
import runpy
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_OURS = os.path.dirname(os.path.abspath(__file__))
_SKIPS = ("an error was suppressed during compilation", "compilation failed")
"""Beginnings of Dynamo's reasons for leaving to Python a frame that it had begun to compile."""


class FailedError(Exception):
    """The program cannot be run to its end; ``stage`` is what was tried: import, factory, call or program."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Graphs:
    """The backend of every compilation: counts the graphs, and runs each as it is or on a backend of torch's.

    Arguments:
        name: the backend to run graphs on, or ``None`` to run them as they are.
    """

    __name__ = "graphmend_trace"

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.count = 0

    def __call__(self, module: Any, inputs: Any, **_: Any) -> Any:
        """Counts a graph and returns what runs it."""
        self.count += 1
        if self.name is None:
            return module.forward
        from torch._dynamo.backends.registry import lookup_backend

        return lookup_backend(self.name)(module, inputs)


class Recorder:
    """Keeps what Dynamo logs of breaks and skipped frames, whatever the program does to torch's logging.

    Loggers are asked, not handlers: ``torch._logging.set_logs`` replaces those and the levels.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.is_on = True

    def install(self) -> None:
        """Listens to the loggers that tell of breaks, of skipped frames and of the limit of recompilations."""
        import torch._dynamo.utils

        for name, logger in list(logging.root.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger) and name.startswith("torch._dynamo."):
                if name.endswith(".__graph_breaks") or name == "torch._dynamo.convert_frame":
                    self.listen(logger, logging.DEBUG)
                elif name == "torch._dynamo.symbolic_convert":
                    self.listen(logger, logging.INFO)
        checker = getattr(torch._dynamo.utils, "graph_break_dup_warning_checker", None)
        if checker is not None:
            checker.add = lambda _: True  # what is told again leads here from another statement

    def listen(self, logger: logging.Logger, least: int) -> None:
        """Keeps the records of a logger from a level on, and passes on what it would have passed on."""
        enabled, handle = logger.isEnabledFor, logger.handle

        def handled(record: logging.LogRecord) -> None:
            if self.is_on:
                self.keep(record)
            if enabled(record.levelno):
                handle(record)

        logger.isEnabledFor = lambda level: level >= least or enabled(level)  # type: ignore[method-assign]
        logger.handle = handled  # type: ignore[method-assign]

    def keep(self, record: logging.LogRecord) -> None:
        """Writes down a record if it tells of a break or a skipped frame."""
        text = str(record.msg)
        if text.startswith("skipping: ") and isinstance(record.args, tuple) and len(record.args) == 3:
            function, reason, path = map(str, record.args)
            if reason.startswith(_SKIPS):
                line = _first_line(function, path)
                reason = "a break from which Dynamo cannot go on in it"
                self.messages.append(
                    f"torch.compile will skip the frame {function} ({path} line {line}) and fall back to eager.\n"
                    f"Reason: {reason}"
                )
            return
        if not record.name.endswith(".__graph_breaks") and not text.startswith(
            ("Skipping frame because there is a graph break", "torch._dynamo hit config.")
        ):
            return
        message = record.getMessage()
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            # The id of the break is only in the exception.
            message += f"\nTraceback (most recent call last):\nUnsupported: {record.exc_info[1]}"
        self.messages.append(message)


def _first_line(function: str, path: str) -> int:
    """The line at which the function of a frame begins that Dynamo is just now skipping."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = getattr(frame.f_locals.get("frame"), "f_code", None)
        if code is not None and (code.co_name, code.co_filename) == (function, path):
            return int(code.co_firstlineno)
        frame = frame.f_back
    return 1


class Files:
    """Which files are the user's own: those below some folders, without installed packages and Python itself.

    Arguments:
        roots: the folders.
    """

    def __init__(self, roots: list[str]) -> None:
        self.roots = [os.path.realpath(root) for root in roots]
        self.others = [os.path.realpath(path) for path in (sysconfig.get_paths()["stdlib"], _OURS)]
        self.known: dict[str, bool] = {}

    def __contains__(self, path: str) -> bool:
        if path not in self.known:
            self.known[path] = self.look(path)
        return self.known[path]

    def look(self, path: str) -> bool:
        """Whether a path leads to one of the user's files."""
        if path.startswith("<") or not path.endswith(".py"):
            return False
        real = os.path.realpath(path)
        for root in self.roots:
            if real == root or real.startswith(root.rstrip(os.sep) + os.sep):
                rest = real[len(root) :].split(os.sep)
                if "site-packages" in rest or "dist-packages" in rest:
                    continue
                if not any(other.startswith(root) and real.startswith(other + os.sep) for other in self.others):
                    return True
        return False

    def loaded(self) -> list[str]:
        """The user's files among the modules that are imported."""
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        known = {os.path.realpath(file) for file in files if isinstance(file, str) and file in self}
        return sorted(file for file in known if os.path.isfile(file))


class Run:
    """One run of a program.

    Arguments:
        job: what to run; see :class:`graphmend.trace.launch.Job`.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.graphs = Graphs(job["backend"])
        self.recorder = Recorder()
        self.roots: list[str] = list(job["roots"])
        self.result: dict[str, Any] = {
            "python": platform.python_version(),
            "torch": "",
            "calls": [],
            "compilations": 0,
            "fullgraph": None,
            "obstacle": "",
            "failure": None,
            "lines": None,
            "files": [],
        }

    def watch(self) -> None:
        """Makes every compilation of this process count its graphs.

        Raises:
            FailedError: there is no torch.
        """
        try:
            import torch
            import torch._dynamo
        except ImportError as error:
            raise FailedError("torch", f"{sys.executable} cannot import torch: {error}") from None
        self.result["torch"] = torch.__version__
        self.recorder.install()
        torch.compile = self.counting(torch.compile)
        torch._dynamo.optimize = self.counting(torch._dynamo.optimize)

    def counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that compiles, on the backend that counts."""
        by_name = original.__name__ == "compile"

        @functools.wraps(original)
        def compiling(*arguments: Any, **options: Any) -> Any:
            if by_name:
                self.result["compilations"] += 1
            if by_name or "backend" in options or not arguments:
                options["backend"] = self.graphs
            else:
                arguments = (self.graphs, *arguments[1:])
            return original(*arguments, **options)

        return compiling

    def factory(self) -> None:
        """Makes what is to be compiled, compiles it, and calls it.

        Raises:
            FailedError: any of that does not work.
        """
        import torch

        make = self.made()
        function, arguments, options = self.example(make)
        compiled = function if hasattr(function, "_torchdynamo_orig_callable") else torch.compile(function)
        for _ in range(self.job["calls"]):
            before = self.graphs.count
            try:
                compiled(*arguments, **options)
            except Exception as error:
                raise FailedError("call", _told(error)) from error
            finally:
                self.result["calls"].append(self.graphs.count - before)
        del compiled, function, arguments, options
        self.recorder.is_on = False
        files = Files(self.roots)
        with _silence(), contextlib.suppress(Exception):
            function, arguments, options = self.example(make)
            with _lines(files) as lines:
                for _ in range(self.job["calls"]):
                    function(*arguments, **options)
            self.result["lines"] = {path: sorted(each) for path, each in lines.items()}
        if self.result["calls"][0] == 1 and max(self.result["calls"][1:], default=0) < 2 and not self.recorder.messages:
            with _silence():
                self.result["fullgraph"] = self.is_whole(make)

    def made(self) -> Callable[[], Any]:
        """The factory.

        Raises:
            FailedError: it cannot be imported.
        """
        try:
            module = importlib.import_module(self.job["module"])
        except Exception as error:
            raise FailedError("import", _told(error)) from error
        self.add_package(self.job["module"])
        found: Any = module
        for name in self.job["attribute"].split("."):
            if not hasattr(found, name):
                raise FailedError("import", f"`{self.job['module']}` has no `{self.job['attribute']}`")
            found = getattr(found, name)
        if not callable(found):
            raise FailedError("import", f"it is no function but {_a(type(found))}")
        return found  # type: ignore[no-any-return]

    def example(self, make: Callable[[], Any]) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """What a factory gives: something to call, and what to call it with.

        Raises:
            FailedError: it fails or gives something else.
        """
        try:
            given = make()
        except Exception as error:
            raise FailedError("factory", f"it raised {_told(error)}") from error
        parts = given if isinstance(given, tuple) else (given,)
        function = parts[0] if parts else None
        if not callable(function) or len(parts) > 3:
            raise FailedError("factory", f"it returned {_a(type(given))}; {_CONTRACT}")
        arguments: Any = parts[1] if len(parts) > 1 else ()
        options: Any = parts[2] if len(parts) > 2 else {}
        if isinstance(arguments, dict) and len(parts) == 2:
            arguments, options = (), arguments
        if not isinstance(arguments, (tuple, list)) or not isinstance(options, dict):
            kinds = " and ".join(_a(type(part)) for part in parts[1:])
            raise FailedError("factory", f"what it returned besides what to call is {kinds}; {_CONTRACT}")
        return function, tuple(arguments), options

    def is_whole(self, make: Callable[[], Any]) -> bool:
        """Whether a call also works where no break is allowed."""
        import torch

        torch._dynamo.reset()
        try:
            function, arguments, options = self.example(make)
            torch.compile(function, fullgraph=True)(*arguments, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it does not work
            self.result["obstacle"] = _told(error)
            return False
        return True

    def program(self) -> None:
        """Runs a script or a module as Python would.

        Raises:
            FailedError: it ends with an exception, or an exit code other than 0.
        """
        target = self.job["target"]
        sys.argv = [target, *self.job["arguments"]]
        try:
            if self.job["kind"] == "script":
                runpy.run_path(target, run_name="__main__")
            else:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code not in (None, 0):
                code = f"code {end.code}" if isinstance(end.code, int) else f"a message: {end.code}"
                raise FailedError("program", f"it ended with exit {code}") from None
        except Exception as error:
            raise FailedError("program", f"it raised {_told(error)}") from error
        finally:
            self.result["calls"].append(self.graphs.count)
            if self.job["kind"] == "module":
                self.add_package(target)

    def main_files(self) -> Iterator[str]:
        """The file of a program itself, which is no imported module."""
        if self.job["kind"] == "script":
            yield os.path.realpath(self.job["target"])
        elif self.job["kind"] == "module":
            with contextlib.suppress(ImportError, AttributeError, ValueError):
                spec = importlib.util.find_spec(self.job["target"])
                if spec is not None and spec.submodule_search_locations is not None:
                    spec = importlib.util.find_spec(f"{spec.name}.__main__")
                if spec is not None and spec.origin is not None and spec.has_location:
                    yield os.path.realpath(spec.origin)

    def add_package(self, name: str) -> None:
        """Counts the package of a module as the user's own, wherever it is installed."""
        top: Any = sys.modules.get(name.partition(".")[0])
        if hasattr(top, "__path__"):
            self.roots += list(top.__path__)
        elif isinstance(getattr(top, "__file__", None), str):
            self.roots.append(top.__file__)

    def whole(self) -> dict[str, Any]:
        """Runs everything and returns the result."""
        try:
            self.watch()
            if self.job["kind"] == "factory":
                self.factory()
            else:
                self.program()
        except FailedError as error:
            if error.__cause__ is not None:
                _print_without_us(error.__cause__)
            self.result["failure"] = {"stage": error.stage, "message": str(error)}
        own = Files(self.roots)
        files = [*own.loaded(), *(path for path in self.main_files() if path in own)]
        self.result["files"] = sorted(set(files))
        self.result["messages"] = self.recorder.messages
        return self.result


_CONTRACT = (
    "it should return what to call, or a tuple of that, a tuple of positional arguments (or a dict of named ones), and "
    "a dict of named ones"
)


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[:1].lower() in tuple('aeiou') else 'a'} `{kind.__name__}`"


def _told(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _print_without_us(error: BaseException) -> None:
    """Prints a traceback without the frames of this file and of the modules that run programs."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        if where.tb_frame.f_code.co_filename not in (__file__, runpy.__file__, "<frozen runpy>", importlib.__file__):
            break
        where = where.tb_next
    print("".join(traceback.format_exception(type(error), error, where)), end="", file=sys.stderr)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing that is written reaches the outside: the program has already said it."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        for number, old in kept:
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)


@contextlib.contextmanager
def _lines(files: Files) -> Iterator[dict[str, set[int]]]:
    """Notes which lines of the user's files run in this thread."""
    lines: dict[str, set[int]] = {}

    def entered(frame: FrameType, _event: str, _argument: Any) -> Any:
        path = frame.f_code.co_filename
        if path not in files:
            return None
        seen = lines.setdefault(os.path.realpath(path), set())

        def ran(frame: FrameType, _event: str, _argument: Any) -> Any:
            seen.add(frame.f_lineno)
            return ran

        return ran

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield lines
    finally:
        sys.settrace(before)


def main(path: str) -> None:
    """Does a job."""
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    if os.path.realpath(sys.path[0]) == os.path.realpath(_OURS):
        del sys.path[0]
    sys.path.insert(0, job["path"])
    result = Run(job).whole()
    with open(job["result"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


if __name__ == "__main__":
    main(sys.argv[1])
