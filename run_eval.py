#!/usr/bin/env python3
"""Evaluates CUDA kernels against their PyTorch references, with the inlinebench of this checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "harness"))

from inlinebench.cli.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
