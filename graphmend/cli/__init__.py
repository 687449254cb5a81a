"""The command line: one module a command, each with its options and its output; the work is done elsewhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from graphmend.cli import lint, rule, rules, trace
from graphmend.cli.output import complain, tolerate_any_text
from graphmend.errors import UserError
from graphmend.version import __version__

_EPILOG = """\
exit codes:
  0  nothing was found, or everything was fixed
  1  findings are left
  2  something could not be done: bad options or configuration, an unreadable file, a crash
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Arguments:
        arguments: the words after the program's name; those of the process when left out.

    Returns:
        The exit code.
    """
    tolerate_any_text()
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except UserError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    except Exception as error:  # noqa: BLE001 - whatever goes wrong must become a message and the right exit code
        return _crashed(error)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="graphmend",
        description="Finds the code that breaks PyTorch graphs under torch.compile, and mends what can be proven safe.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"graphmend {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (lint, trace, rule, rules):
        module.add_command(commands)
    return parser


def _crashed(error: Exception) -> int:
    import traceback

    complain(f"internal error: {type(error).__name__}: {error}")
    print("".join(traceback.format_exception(error)), end="", file=sys.stderr)
    print("This is a defect of graphmend; please report it with the text above.", file=sys.stderr)
    return 2
