#!/usr/bin/env python3
"""Checks and times CUDA kernels against their PyTorch references: `inlinebench run`, from this checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "harness"))

from inlinebench.cli.arguments import RUN
from inlinebench.cli.run import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], RUN, "run_eval.py"))
