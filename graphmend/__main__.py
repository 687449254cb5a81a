"""The program: ``graphmend``, or ``python -m graphmend``."""

import gc
import sys
from typing import NoReturn

from graphmend.cli import main


def run() -> NoReturn:
    """Runs the command line of this process, and ends the process with its exit code.

    The memory of a run is given back by the end of the process: a collector that looks through it on the way, or at
    the end, takes seconds and finds nothing.
    """
    gc.disable()
    code = main()
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    run()
