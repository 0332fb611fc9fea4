"""The rows of the page's table: cells with bars, what is told below them, and the details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from inlinebench.report import mismatches, replay
from inlinebench.report.causes import groups
from inlinebench.report.changes import QUIET, state
from inlinebench.report.comparison import Change, ComparedRow
from inlinebench.report.page import bars
from inlinebench.report.page.axes import LogAxis
from inlinebench.report.page.details import Details, details, short_reason
from inlinebench.report.rows import Cell, Row, Table
from inlinebench.report.text import interval
from inlinebench.results.result import Result, Verdict

_FIRST = ("problem", "solution", "shape", "device", "verdict", "speedup")
_KINDS = {"% of roofline": "roofline", "error / tolerance": "error"}
_LAST = ("% of roofline", "error / tolerance", "bitwise equal", "reference ms", "solution ms", "wall ms", "memory MiB",
         "own kernels")


@dataclass(frozen=True)
class PageCell:
    """A cell of the table."""

    kind: str
    """Its class: the column's name in letters."""
    text: str
    """Its text."""
    key: str | None
    """The sort key of a number, empty if it is absent; None for texts."""
    aside: str
    """What is shown in small letters behind it."""
    bar: Markup
    """Its bar, as SVG, or nothing."""


@dataclass(frozen=True)
class Entry:
    """A result on the page."""

    row: Row
    """Its row."""
    cells: tuple[PageCell, ...]
    """Its cells, one for each column."""
    heading: str
    """What its group has in common, if it is the first one of a group."""
    group: int
    """The number of its group."""
    change: Change | None
    """How it changed; None if it did not, or without an earlier run."""
    changed: str
    """What it was before, in words; empty if there is nothing to tell."""
    reason: str
    """Why it did not pass."""
    remarks: tuple[str, ...]
    """Patterns of the values that differ, and notes of the check, of a failure."""
    details: Details
    """What is shown when it is opened."""
    command: str
    """The command that repeats it."""


def columns_of(table: Table) -> dict[str, bool]:
    """Returns whether a column has numbers, by name, in the page's order: what counts most comes first."""
    over = [name for name in table.columns if name not in (*_FIRST, *_LAST)]
    return {name: table.columns[name] for name in (*_FIRST, *over, *_LAST) if name in table.columns}


def kind_of(column: str) -> str:
    """Returns the class of a column. All columns of baselines share one."""
    return _KINDS.get(column, column.replace(" ", "-")) if column in (*_FIRST, *_LAST) else "over"


def entries(table: Table, sources: Mapping[str, str], compared: Sequence[ComparedRow]) -> list[Entry]:
    """Returns the rows of the page: what passed, the fastest first, then failures by their cause."""
    axis, columns = bars.speedup_axis(table.rows), columns_of(table)
    several = len({row.result.environment for row in table.rows}) > 1
    changes = {each.row: each for each in compared if each.after is not None}
    found, failed = list[Entry](), dict[tuple[str, str, str], str]()
    for number, group in enumerate(groups(table.rows)):
        for at, row in enumerate(group.rows):
            result = row.result
            cells = dict(row.named(table.columns))
            change = changes.get((result.problem, result.solution, result.shape))
            first = failed.setdefault((result.problem, result.solution, f"{number}"), result.shape)
            repeated = group.rows[0].result.verdict is not Verdict.PASSED and first != result.shape
            found.append(Entry(
                row, tuple(_cell(row, name, cells[name], numeric, axis)
                           for name, numeric in columns.items()),
                "" if at else group.heading, number,
                change.change if change and change.change not in QUIET else None, _changed(change),
                f"as at the shape {first}" if repeated else short_reason(result),
                () if repeated else tuple(_remarks(result)),
                details(result, sources.get(f"{result.problem}/{result.solution}"), environment=several),
                replay.command(result),
            ))
    return found


def _cell(row: Row, name: str, cell: Cell, numeric: bool, axis: LogAxis) -> PageCell:
    kind, timing, text, key = kind_of(name), row.timing, cell.text, cell.key
    figure, _, spread = text.partition(" [")
    bar = ""
    if kind == "speedup" and timing is not None:
        bar = bars.speedup(timing.speedup, axis)
    elif kind == "roofline" and key:
        bar = bars.share(float(key))
    aside = f"[{spread}" if spread and kind == "speedup" else ""
    return PageCell(kind, figure if numeric and kind != "error" else text, key if numeric else None, aside,
                    Markup(bar))


def _changed(change: ComparedRow | None) -> str:
    if change is None or change.before is None or change.change is Change.SAME:
        return ""
    if change.ratio is not None:
        return f"{interval(change.ratio)} of the speedup before, which was {state(change.before)}"
    was = str(change.before.verdict)
    return "" if change.after is not None and was == change.after.verdict else f"was {was} before"


def _remarks(result: Result) -> list[str]:
    if result.verdict is Verdict.PASSED:
        return []  # its details have them
    found = mismatches.patterns(result.mismatch) if result.mismatch else []
    return [*found, *(result.check.notes if result.check else ())]
