"""`python -m benchmarks.signatures`: compares the tables of operations with the installed torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from benchmarks.signatures import behaviours, check
from benchmarks.signatures.calls import quiet
from benchmarks.signatures.missing import groups
from graphmend.signatures import torch as tables
from graphmend.signatures.behaviour import behaviour


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what does not hold, or what the tables lack.

    Args:
        arguments: the command line; that of the process if there is none.

    Returns:
        1 if a fact does not hold, else 0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signatures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="operations to look at instead of all")
    parser.add_argument("--missing", action="store_true", help="print operations that the tables lack, as groups")
    options = parser.parse_args(arguments)
    if options.missing:
        with quiet():
            lines = list(groups(tables()))
        print("\n".join(lines))
        return 0
    with quiet():
        found = list(check.mismatches(tables(), behaviour(), options.names))
        if not options.names:
            found += behaviours.mismatches(behaviour())
    for each in found:
        print(each)
    print(f"{len(found)} facts do not hold for torch {torch.__version__}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
