"""``graphmend lint``: finds graph breaks and mends them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.cli.output import complain, complain_about, wants_colour, write, write_source
from graphmend.cli.settings import add_settings, read_settings
from graphmend.config import Config
from graphmend.errors import UserError
from graphmend.findings import Seen

if TYPE_CHECKING:
    from graphmend.findings import Report
    from graphmend.rules.model import Rule

_DESCRIPTION = """\
Finds the statements that break the graph when the code is compiled with
torch.compile, says why and how they get into a compiled region, and with --fix
rewrites those for which the rewrite is proven to change nothing else.
"""

_EPILOG = """\
Options overrule the configuration file: `[tool.graphmend]` in pyproject.toml, or
graphmend.toml. Only there: `per-file-ignores` (a table from patterns to codes) and
`generated-markers` (what files that a program wrote say near their top). Left out
by default are the folders of tools, caches, builds and environments.
"""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "lint",
        help="find graph breaks, and fix them",
        usage="graphmend lint [OPTIONS] [PATH ...]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files, folders, or `-`: standard input (default: the working directory)",
    )
    parser.add_argument("--fix", action="store_true", help="apply safe fixes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with --fix or --diff, apply unsafe fixes too")
    parser.add_argument("--diff", action="store_true", help="show what --fix would change, and change nothing")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the output to a file")
    parser.add_argument("--show-proof", action="store_true", help="show why each fix is safe")
    parser.add_argument("--statistics", action="store_true", help="show only how often each rule was found")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    parser.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if something was fixed")
    parser.add_argument(
        "--trace", metavar="LOG", help="say what a run confirmed, by what it logged with TORCH_LOGS=graph_breaks"
    )
    parser.add_argument("--stdin-filename", metavar="NAME", help="read standard input, as the file of this name")
    parser.add_argument("--no-cache", action="store_true", help="use no cache; at present none is kept")
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="print findings only")
    volume.add_argument("-v", "--verbose", action="store_true", help="tell what is done")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command and returns its exit code.

    Raises:
        UserError: the options, the configuration or a rule pack cannot be used.
    """
    from graphmend import engine
    from graphmend.rules.loader import load_rules
    from graphmend.rules.select import select_rules

    stdin = _stdin_name(options)
    paths = (stdin,) if stdin else tuple(options.paths or ["."])
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise UserError("`--unsafe-fixes` needs `--fix` or `--diff`")
    if options.trace and (options.fix or options.diff):
        raise UserError("`--trace` cannot be combined with `--fix` or `--diff`: its lines are those of before")
    config, config_path = read_settings(options, paths)
    rules = select_rules(load_rules(config.packs), config)
    if options.verbose:
        complain(f"configuration: {config_path or 'none'}; {len(rules)} rules")
    text = _read_stdin(stdin) if stdin else None
    if stdin and text is not None and _left_out(stdin, config):
        if options.fix and not options.diff:
            write_source(text)
        return 0
    request = engine.Request(
        paths=() if stdin else paths,
        config=config,
        fix=options.fix or options.diff,
        unsafe=options.unsafe_fixes,
        write=options.fix and not options.diff and not stdin,
        stdin=None if stdin is None or text is None else (stdin, text),
    )
    report = engine.run(request)
    if options.trace:
        report = _against_log(report, options.trace, request.stdin)
    # What a run has confirmed is certain.
    shown = [
        finding
        for finding in report.findings
        if finding.confidence.rank <= config.min_confidence.rank or finding.seen is Seen.CONFIRMED
    ]
    report = replace(report, findings=tuple(shown))
    if not report.files and not report.errors and not options.quiet:
        complain(f"no Python files in {', '.join(f'`{path}`' for path in paths)}")
    _print(report, rules, config, options, source=text)
    if options.verbose:
        from graphmend.report import counted

        complain(f"{counted(report.files, 'file')} in {report.seconds:.2f} s")
    return _exit_code(report, config, options)


def _against_log(report: Report, path: str, stdin: tuple[str, str] | None) -> Report:
    """A report with what the log of a run says of it."""
    from graphmend.cli.trace import sources_of, tell_about_changes
    from graphmend.trace.explain import explain
    from graphmend.trace.log import read_log

    explanation = explain(read_log(path), report.findings, sources_of(report.paths, stdin))
    tell_about_changes(explanation, path)
    return replace(report, findings=explanation.findings, unexplained=explanation.unexplained)


def _stdin_name(options: argparse.Namespace) -> str | None:
    """Returns the name under which standard input is linted, or None if it is not read."""
    if options.paths == ["-"] or (options.stdin_filename and not options.paths):
        name: str = options.stdin_filename or "stdin.py"
        return name
    if "-" in options.paths:
        raise UserError("`-` cannot be combined with other paths")
    if options.stdin_filename:
        raise UserError("`--stdin-filename` cannot be combined with paths other than `-`")
    return None


def _read_stdin(name: str) -> str:
    from graphmend.source.text import DecodeError, SourceText

    try:
        source = SourceText.decode(name, sys.stdin.buffer.read())
    except DecodeError as error:
        raise UserError(f"cannot decode standard input: {error}", path=name) from None
    return source.text


def _left_out(name: str, config: Config) -> bool:
    from graphmend.discover import is_excluded

    return config.force_exclude and is_excluded(name, config)


def _print(
    report: Report, rules: tuple[Rule, ...], config: Config, options: argparse.Namespace, *, source: str | None
) -> None:
    from graphmend.report import Options, render, statistics
    from graphmend.report.diff import render_diff

    complain_about(report.errors)
    if options.diff:
        write(render_diff((*report.fixed, *report.runtimes)), options.output_file)
        _tell_about_diff(report, options)
        return
    details = Options(
        colour=wants_colour(options.output_file),
        proof=options.show_proof,
        quiet=options.quiet,
        rules=rules,
    )
    text = statistics(report) if options.statistics else render(report, config.output_format, details)
    if source is not None and options.fix:
        # Standard output is the fixed file, so that an editor can take it; the rest goes beside it.
        write_source(report.fixed[0].after if report.fixed else source)
        if options.output_file is None:
            sys.stderr.write(text)
            return
    write(text, options.output_file)


def _tell_about_diff(report: Report, options: argparse.Namespace) -> None:
    if options.quiet:
        return
    from graphmend.report import counted, unsuppressed

    count = sum(file.count for file in report.fixed)
    left = len(unsuppressed(report.findings))
    files = counted(len(report.fixed), "file")
    complain(f"would fix {counted(count, 'finding')} in {files}; {left} would be left")


def _exit_code(report: Report, config: Config, options: argparse.Namespace) -> int:
    if report.errors:
        return 2
    if options.exit_zero:
        return 0
    if report.fixed and (options.diff or options.exit_non_zero_on_fix):
        return 1
    if options.diff:
        return 0
    loud = [
        finding
        for finding in report.findings
        if not finding.suppressed and finding.severity.rank <= config.fail_on.rank
    ]
    return 1 if loud else 0
