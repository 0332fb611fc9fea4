"""`inlinebench check`: checks correctness only."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.cli.arguments import CHECK
from inlinebench.cli.run import run


def main(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit status, as `inlinebench run` does."""
    return run(arguments, CHECK, "inlinebench check")
