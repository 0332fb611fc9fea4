"""`inlinebench report`: results as a page, as Markdown, CSV or JUnit, or as the table that a run prints."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from inlinebench.cli.files import read_all, write
from inlinebench.records.errors import UsageError
from inlinebench.records.result import Result
from inlinebench.report.comparison import latest
from inlinebench.report.formats import csv_file, html, junit, markdown
from inlinebench.report.terminal.outputs import report as as_text

TITLE = "inlinebench"


def main(arguments: Sequence[str]) -> int:
    """Writes the report, or prints it. Raises UsageError."""
    parser = argparse.ArgumentParser(prog="inlinebench report", description=__doc__)
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results, as --out wrote them; of a row that comes more "
        "than once the last one counts")
    add("-o", "--out", type=Path, metavar="FILE", help=f"where it goes, its kind by its end: {', '.join(KINDS)} "
        "(default: the table, on the screen)")
    add("--title", default=TITLE, help="the title of a page or a Markdown document")
    add("--sources", type=Path, metavar="DIR", help="a folder of solutions, whose sources the page shall show")
    add("--verbose", action="store_true", help="the CPU's times in the table, too")
    given = parser.parse_args(arguments)
    kind = None if given.out is None else KINDS.get(given.out.suffix)
    if given.out is not None and kind is None:
        raise UsageError(f"{given.out}: no kind of report ends like this; there are {', '.join(KINDS)}")
    results = latest(read_all(given.files))
    if kind is None:
        print(as_text(results, verbose=given.verbose))
    else:
        kind(results, given)
        print(f"{len(results)} results in {given.out}")
    return 0


def _html(results: Sequence[Result], given: argparse.Namespace) -> None:
    write(given.out, html.page(results, given.title, _sources(results, given.sources)))


def _sources(results: Sequence[Result], folder: Path | None) -> dict[str, str]:
    """The texts of those solutions of a folder that there are results of, by `problem/solution`."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UsageError(f"--sources {folder}: no such folder; name the one that --solutions named")
    files = {f"{each.problem}/{each.solution}": folder / each.problem / f"{each.solution}.py" for each in results}
    return {name: path.read_text(encoding="utf-8", errors="replace") for name, path in files.items()
            if path.resolve().is_relative_to(folder.resolve()) and path.is_file()}


def _junit(results: Sequence[Result], given: argparse.Namespace) -> None:
    junit.check_place(given.out)
    junit.write(results, given.out)


KINDS: dict[str, Callable[[Sequence[Result], argparse.Namespace], None]] = {
    ".html": _html,
    ".md": lambda results, given: write(given.out, markdown.document(results, given.title)),
    ".csv": lambda results, given: write(given.out, csv_file.table(results)),
    ".xml": _junit,
}
