#!/usr/bin/env python3
"""Checks and times CUDA kernels against their PyTorch references: `inlinebench run`, from this checkout."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "harness"))
if sys.path[1] == os.path.dirname(sys.path[0]):
    del sys.path[1]  # compilers may read what is on the path, but not the solutions in this folder

from inlinebench.cli.exits import ended


def main() -> int:
    """Imports the rest, where Ctrl-C is no traceback, and runs it."""
    from inlinebench.cli.arguments import RUN
    from inlinebench.cli.run import run

    return run(sys.argv[1:], RUN, "run_eval.py")


if __name__ == "__main__":
    sys.exit(ended("run_eval.py", main))
