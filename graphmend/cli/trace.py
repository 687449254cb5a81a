"""``graphmend trace``: what breaks the graph when a program runs, and which finding says why."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.cli.output import complain, complain_about, wants_colour, write
from graphmend.cli.settings import add_settings, read_settings
from graphmend.config import Config, OutputFormat
from graphmend.errors import UserError

if TYPE_CHECKING:
    from graphmend.report.traced import Trace
    from graphmend.source.text import SourceText
    from graphmend.trace.explain import Explanation
    from graphmend.trace.launch import Observation

_DESCRIPTION = """\
Runs a program under torch.compile and lists where the graph breaks in your own
files, each place with the finding that says why, the breaks that no rule
explains, and the findings that this run did not confirm.

TARGET is one of

  package.module:factory    a function without arguments that returns what to
  path/to/file.py:factory   compile: a module or a function, or a tuple of that,
                            a tuple of positional arguments (or a dict of named
                            ones), and a dict of named ones; it is compiled and
                            called
  path/to/script.py ARG...  a program, run with its own calls of torch.compile
  -m package.module ARG...
"""

_EPILOG = """\
Graphs are counted and then run as they were captured, without a compiler, unless
--backend names one. What the program writes goes to standard error. Options of a
program's own come after it, those of graphmend before it. A factory is called
twice: what it makes is also run without torch.compile, silently, to know which
lines run, and a call that gave one graph is tried with fullgraph=True.

A call is whole if it gives one graph, nothing in it breaks, no function is left to
Python, and it works with fullgraph=True, too.

exit codes:
  0  nothing broke
  1  the graph broke, or a function was left to Python
  2  the program could not be run to its end, or something else could not be done
"""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "trace",
        help="run a program, and list what breaks and why",
        usage="graphmend trace [OPTIONS] TARGET\n       graphmend trace [OPTIONS] [-m] PROGRAM [ARG ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("target", metavar="TARGET", help="what to run")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="what a program is given")
    parser.add_argument("-m", dest="module", action="store_true", help="run TARGET as `python -m` does")
    parser.add_argument(
        "--path",
        dest="paths",
        metavar="PATH",
        action="append",
        help="files or folders that are your own (default: what is imported of TARGET's package and from below the "
        "working directory, but nothing that is installed)",
    )
    parser.add_argument(
        "--calls", metavar="N", type=_positive, default=2, help="how often what a factory makes is called (2)"
    )
    parser.add_argument("--backend", metavar="NAME", help="run the graphs on this backend of torch.compile")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="end the program after this long")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the output to a file")
    add_settings(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Runs the command and returns its exit code.

    Raises:
        UserError: the target cannot be run, or the options, the configuration or a rule pack cannot be used.
    """
    from graphmend.report import traced
    from graphmend.rules.loader import load_rules
    from graphmend.trace.launch import is_factory, job_of, observe

    if options.arguments and not options.module and is_factory(options.target):
        # A factory takes none, so that options may also come after it.
        target = options.target
        options = options.parser.parse_args([*options.arguments, target], options)
        if options.arguments:
            words = " ".join((options.target, *options.arguments[:-1]))
            raise UserError(f"a factory takes no arguments: `{words}`")
    config, _ = read_settings(options, tuple(options.paths or ["."]))
    output_format = options.output_format or OutputFormat.TEXT
    if output_format not in (OutputFormat.TEXT, OutputFormat.JSON):
        raise UserError("`graphmend trace` writes `text` or `json`", hint="`graphmend lint --trace` writes the others")
    load_rules(config.packs)  # before anything runs
    job = job_of(options.target, module=options.module, arguments=options.arguments)
    own = tuple(os.path.abspath(path) for path in options.paths or [os.getcwd()])
    job = replace(job, calls=options.calls, backend=options.backend, roots=own if options.paths else job.roots + own)
    observed = observe(job, options.timeout)
    trace = _joined(options, config, observed)
    complain_about(trace.errors)
    tell_about_changes(trace.explanation, options.target)
    if observed.failure:
        complain(observed.failure)
    is_coloured = wants_colour(options.output_file)
    text = traced.as_json(trace) if output_format is OutputFormat.JSON else traced.as_text(trace, is_coloured)
    write(text, options.output_file)
    if trace.errors or observed.failure:
        return 2
    return 1 if trace.is_broken else 0


def sources_of(paths: Iterable[str], stdin: tuple[str, str] | None = None) -> Mapping[str, SourceText]:
    """Returns the texts of linted files; those that cannot be read are errors of the report already.

    Arguments:
        paths: the files.
        stdin: the name and the text of standard input, if that was linted.
    """
    from graphmend.source.text import DecodeError, SourceText

    sources: dict[str, SourceText] = {}
    for path in paths:
        try:
            if stdin is not None:
                sources[path] = SourceText(path, stdin[1])
            else:
                with open(path, "rb") as file:
                    sources[path] = SourceText.decode(path, file.read())
        except (OSError, DecodeError):
            continue
    return sources


def tell_about_changes(explanation: Explanation, what: str) -> None:
    """Says which places of a log are of another text than the files'."""
    for place in explanation.changed:
        complain(f"{place.path}:{place.line}: {what} is of another text than this; the break there is left out")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _joined(options: argparse.Namespace, config: Config, observed: Observation) -> Trace:
    """What was observed, joined with what is found in the user's files."""
    from graphmend import engine
    from graphmend.discover import display_path, is_excluded
    from graphmend.report.traced import Trace
    from graphmend.trace.explain import explain
    from graphmend.trace.places import is_installed

    paths = options.paths
    if not paths:
        # What is installed is only among them if it is what was run.
        paths = [display_path(path) for path in observed.files if is_installed(path) or not is_excluded(path, config)]
    report = engine.run(engine.Request(tuple(paths), config))
    lines = observed.lines and {display_path(path): each for path, each in observed.lines.items()}
    explanation = explain(observed.log, report.findings, sources_of(report.paths), lines)
    shown = tuple(
        each
        for each in explanation.unconfirmed
        if each.finding.confidence.rank <= config.min_confidence.rank and not each.finding.suppressed
    )
    return Trace(options.target, observed, replace(explanation, unconfirmed=shown), report.errors, report.files)
