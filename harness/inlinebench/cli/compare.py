"""`inlinebench compare`: compares two files of results. Its exit status is a gate in CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inlinebench.cli.exits import show
from inlinebench.cli.files import check_apart, read, read_all, write
from inlinebench.cli.parsing.parser import Parser
from inlinebench.report import changes
from inlinebench.report.comparison import WORSE, Change, compare
from inlinebench.report.formats.markdown import code
from inlinebench.report.workload_sets import compared
from inlinebench.results.library import LIBRARY

END = """\
A row is slower or faster if the intervals of its speedups do not overlap, a set of workloads if those of its mean
speedups do not. Exit status: 0 if nothing got worse; 1 if a row is slower, now failing, new and failing, or gone, or a
set is slower; 2 if the files cannot be compared. Rows of library solutions are shown and do not count.
"""
EXAMPLES = """\
old.jsonl new.jsonl                      what changed
old.jsonl new.jsonl --all                every row
old.jsonl new.jsonl --markdown t.md      also a table for a pull request
old.jsonl new.jsonl --allow-gone         solutions were removed on purpose
old.jsonl new.jsonl --any-gpu            times of different GPUs"""


def add_permissions(parser: Parser) -> None:
    """Adds the options that permit a comparison of unlike times."""
    parser.add_argument("--any-gpu", action="store_true", help="compare times of different GPUs")
    parser.add_argument("--any-version", action="store_true", help="compare times of versions that define times "
                        "differently")


def main(arguments: Sequence[str]) -> int:
    """Prints the comparison and returns the exit status. Raises UsageError."""
    given = parser().parse_args(arguments)
    if given.markdown:
        check_apart(given.markdown, given.before, given.after)
    before = read_all([given.before])  # nothing gets worse than an empty baseline, so it is an error
    after = read(given.after)
    found = compare(before, after, any_gpu=given.any_gpu, any_version=given.any_version)
    sets = compared(before, after)
    if given.markdown:
        listed = "".join(f"- {code(line)}\n" for _, line in sets)
        write(given.markdown, changes.markdown(found, everything=given.all) + listed)
    show("\n\n".join(filter(None, [changes.text(found, everything=given.all), "\n".join(line for _, line in sets)])))
    worse = WORSE - {Change.GONE} if given.allow_gone else WORSE
    slower = any(change is Change.SLOWER for change, _ in sets)  # other changes of sets are changes of rows
    return int(slower or any(each.change in worse for each in found if each.row[1] != LIBRARY))


def parser() -> Parser:
    found = Parser("inlinebench compare", "Compares two files of results. Its exit status is a gate in CI.",
                   end=END, examples=EXAMPLES)
    add = found.add_argument
    add("before", type=Path, help="results written by --out, the baseline")
    add("after", type=Path, help="results written by --out, to compare with the baseline")
    add("--all", action="store_true", help="also show unchanged rows")
    add("--allow-gone", action="store_true", help="do not count rows that are missing from the new results")
    add_permissions(found)
    add("--markdown", type=Path, metavar="FILE", help="also write the table to FILE, such as for a pull request")
    return found
