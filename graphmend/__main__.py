"""Runs the command line as ``python -m graphmend``."""

import sys

from graphmend.cli import main

if __name__ == "__main__":
    sys.exit(main())
