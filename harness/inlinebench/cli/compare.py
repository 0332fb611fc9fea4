"""`inlinebench compare`: what changed from one file of results to another, and whether a gate should let it pass."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from inlinebench.cli.files import read, write
from inlinebench.report import changes
from inlinebench.report.comparison import WORSE, compare

EPILOG = """\
A row is slower or faster where the intervals of its speedups don't overlap. exit status: 0 nothing got worse, 1 a row
is slower or fails now, 2 the files can't be compared.
"""


def main(arguments: Sequence[str]) -> int:
    """Prints the comparison; 1 if something got worse. Raises UsageError."""
    parser = argparse.ArgumentParser(prog="inlinebench compare", description=__doc__, epilog=EPILOG)
    add = parser.add_argument
    add("before", type=Path, help="results of the state to compare with, as --out wrote them")
    add("after", type=Path, help="results of the state in question")
    add("--all", action="store_true", help="show rows that didn't change, too")
    add("--any-gpu", action="store_true", help="compare times of different GPUs")
    add("--markdown", type=Path, metavar="FILE", help="also write the table to FILE, for a pull request's comment")
    given = parser.parse_args(arguments)
    found = compare(read(given.before), read(given.after), any_gpu=given.any_gpu)
    if given.markdown:
        write(given.markdown, changes.markdown(found, everything=given.all))
    print(changes.text(found, everything=given.all))
    return int(any(each.change in WORSE for each in found))
