"""The matrix of problems and solutions: who is fastest, and by how much.

Two solutions are equally fast if the interval of the ratio of their speedups contains 1, as in
`inlinebench.report.comparison`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.catalog.natural_sort import natural
from inlinebench.report.comparison import Change, by_interval
from inlinebench.report.rows import Row
from inlinebench.report.text import significant
from inlinebench.results.result import Verdict
from inlinebench.results.times import Spread, ratio_of

MOST_COLUMNS = 8
"""With more solution names the matrix has no columns: each line lists its solutions, the fastest first."""
TIMES = "\N{MULTIPLICATION SIGN}"
MOST_LISTED = 8
"""The most solutions in such a line."""


@dataclass(frozen=True)
class MatrixCell:
    """A result in the matrix."""

    row: Row
    """Its row of the table."""
    best: bool
    """Whether no other solution of the problem is significantly faster."""

    @property
    def text(self) -> str:
        """Its speedup, or its verdict."""
        timing = self.row.timing
        return self.row.verdict if timing is None else f"{significant(timing.speedup.median)}{TIMES}"

    @property
    def kind(self) -> str:
        """`faster`, `slower` or `same` as the reference; without times the colour of the verdict."""
        timing = self.row.timing
        return self.row.result.verdict.colour if timing is None else str(by_interval(timing.speedup))


@dataclass(frozen=True)
class MatrixLine:
    """A problem at one shape, on a GPU or on the CPU."""

    problem: str
    """The problem."""
    shape: str
    """The shape, and the CPU if it is one of several kinds of devices; empty if all lines have the same."""
    cells: tuple[MatrixCell | None, ...]
    """The solutions in the order of the columns, or the fastest first; None where there is no result."""
    left_out: int
    """The number of results that are not listed."""
    lead: str
    """How many times as fast as the next one the best solution is; `tie` if the intervals do not tell."""


@dataclass(frozen=True)
class Matrix:
    """All problems and solutions."""

    columns: tuple[str, ...]
    """The solution names; empty if there are too many."""
    lines: tuple[MatrixLine, ...]
    """The problems, in the order of the table."""

    @property
    def shapes(self) -> bool:
        """Whether lines differ in their shape."""
        return any(line.shape for line in self.lines)

    @property
    def leads(self) -> bool:
        """Whether any problem has two solutions with times."""
        return any(line.lead for line in self.lines)

    @property
    def timed(self) -> bool:
        """Whether there are speedups."""
        return any(cell is not None and cell.row.timing is not None for line in self.lines for cell in line.cells)


def matrix(rows: Sequence[Row]) -> Matrix:
    """Returns the matrix. If a solution has several results at one shape, the last one counts."""
    shapes, kinds = {row.shape for row in rows}, {_kind(row) for row in rows}
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        shape = [row.shape] if len(shapes) > 1 else []
        device = [_kind(row)] if len(kinds) > 1 else []
        found.setdefault((row.problem, " on ".join([*shape, *device])), {})[row.solution] = row
    names = sorted({row.solution for row in rows}, key=natural)
    columns = tuple(names) if len(names) <= MOST_COLUMNS else ()
    return Matrix(columns, tuple(_line(*place, solutions, columns) for place, solutions in found.items()))


def _kind(row: Row) -> str:
    """Returns the kind of a result's device (`cuda` of `cuda:1`)."""
    return row.device.partition(":")[0]


def _line(problem: str, shape: str, solutions: dict[str, Row], columns: Sequence[str]) -> MatrixLine:
    ranked = sorted(solutions.values(), key=_rank)
    timed = [row for row in ranked if row.timing is not None]
    best = {row.number for row in timed if by_interval(_lead(timed[0], row)) is not Change.FASTER}
    cells = {row.solution: MatrixCell(row, row.number in best) for row in ranked}
    shown = [cells.get(name) for name in columns] if columns else list(cells.values())[:MOST_LISTED]
    left_out = 0 if columns else len(ranked) - len(shown)
    return MatrixLine(problem, shape, tuple(shown), left_out, _told(timed))


def _rank(row: Row) -> tuple[float, int]:
    """Sorts the fastest first, then what passed without times, then failures."""
    return -(row.timing.speedup.median if row.timing else 0.0), list(Verdict).index(row.result.verdict)


def _lead(first: Row, second: Row) -> Spread | None:
    """Returns how many times as fast as the second the first is."""
    assert first.timing is not None and second.timing is not None
    return ratio_of(second.timing.speedup, first.timing.speedup)


def _told(timed: Sequence[Row]) -> str:
    if len(timed) < 2 or (lead := _lead(timed[0], timed[1])) is None:
        return ""
    return f"{significant(lead.median)}{TIMES}" if by_interval(lead) is Change.FASTER else "tie"
