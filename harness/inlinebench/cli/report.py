"""`inlinebench report`: writes results as HTML, Markdown, CSV or JUnit XML, or prints the table of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from inlinebench.cli.compare import add_permissions
from inlinebench.cli.exits import show
from inlinebench.cli.files import check_apart, read, read_all, write
from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError
from inlinebench.foreign import one_line
from inlinebench.report.comparison import ComparedRow, compare, latest
from inlinebench.report.formats import csv_file, html, junit, markdown
from inlinebench.report.history.collected import ResultsOfRun, history
from inlinebench.report.terminal.history import report as as_history
from inlinebench.report.terminal.outputs import report as as_text
from inlinebench.report.terminal.screen import Screen
from inlinebench.results.result import Result

TITLE = "inlinebench"
EXAMPLES = """\
results.jsonl                                        the table of a run
results.jsonl -o report.html                         a page; also .md, .csv, .xml (JUnit)
results.jsonl -o report.html --sources solutions     with the sources of the solutions
before.jsonl after.jsonl -o report.html              the last run, and what changed since the one before
monday.jsonl tuesday.jsonl -o report.md              the last result of each row
runs/*.jsonl --history                               what changed between which runs; also -o history.html
results.jsonl -o r.md --title 'H100, nightly'        with a title"""


def parser() -> Parser:
    what = "Writes results as HTML, Markdown, CSV or JUnit XML, or prints a table."
    found = Parser("inlinebench report", what, examples=EXAMPLES)
    add = found.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results written by --out; the last result of each "
        "row is used. An HTML report of several files shows the last file and what changed since the others")
    add("-o", "--out", type=Path, metavar="FILE", help=f"file to write: {', '.join(KINDS)} (default: print the "
        "table)")
    add("--history", action="store_true", help="each FILE is a run, the earliest first: print each change of a verdict "
        "or a time, and between which runs it is; with -o FILE.html as a page with a chart for each row")
    add("--title", default=TITLE, help="title of an HTML or Markdown report")
    add("--sources", type=Path, metavar="DIR", help="folder of solutions, to show their sources in an HTML report")
    add("-v", "--verbose", action="store_true", help="also show times on the CPU")
    add_permissions(found)
    return found


def main(arguments: Sequence[str]) -> int:
    """Writes the report, or prints it. Raises UsageError."""
    given = parser().parse_args(arguments)
    kind = None if given.out is None else KINDS.get(given.out.suffix)
    if given.out is not None and kind is None:
        raise UsageError(f"{given.out}: unknown kind of report; choose from {', '.join(KINDS)}")
    if given.out is not None:
        check_apart(given.out, *given.files)
    if given.history:
        return _history(given)
    results = latest(read_all(given.files[-1:] if kind is _html else given.files))
    if kind is None:
        show(as_text(results, Screen.of(sys.stdout), verbose=given.verbose))
    else:
        kind(results, given)
        show(f"{len(results)} results in {given.out}")
    return 0


def _history(given: argparse.Namespace) -> int:
    """Writes or prints the history of the files, each of which is a run."""
    if given.out is not None and KINDS[given.out.suffix] is not _html:
        raise UsageError(f"{given.out}: --history is printed, or written as .html")
    if given.sources is not None:
        raise UsageError("--sources and --history exclude each other: the page of a history has no sources")
    if len(given.files) < 2:
        raise UsageError("--history needs several files, one for each run; name the earliest first")
    runs = zip(_names(given.files), map(read, given.files), strict=True)
    found = history([ResultsOfRun(name, results) for name, results in runs])
    if not found.tracks:
        raise UsageError("no results about a solution in these files; name files written by --out")
    if given.out is None:
        show(as_history(found))
    else:
        write(given.out, html.history_page(found, given.title))
        show(f"{len(found.tracks)} rows over {len(found.runs)} runs in {given.out}")
    return 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Returns the names of runs: those of their files without the suffix, or of their folders, or else the paths."""
    for names in ([path.stem for path in paths], [path.parent.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    return list(map(str, paths))


def _html(results: Sequence[Result], given: argparse.Namespace) -> None:
    path = given.files[-1]
    changed = date.fromtimestamp(path.stat().st_mtime) if path.is_file() else None
    files = one_line(path.name) + (f" of {changed}" if changed else "")
    write(given.out, html.page(results, given.title, _sources(results, given.sources), _since(given), files=files))


def _since(given: argparse.Namespace) -> tuple[str, tuple[ComparedRow, ...]] | None:
    """The names of the files before the last one, and what changed since them."""
    *before, after = given.files
    if not before:
        return None
    names = ", ".join(path.name for path in before)
    return names, compare(read_all(before), read(after), any_gpu=given.any_gpu, any_version=given.any_version)


def _sources(results: Sequence[Result], folder: Path | None) -> dict[str, str]:
    """The sources of the solutions that have results, by `problem/solution`."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UsageError(f"--sources {folder}: no such folder; name the folder of the solutions")
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
