"""The rows that pages and comments show: figures as the terminal's table words them, and what each is sorted by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inlinebench.records.natural_sort import natural
from inlinebench.records.result import Result, Timing
from inlinebench.report.terminal.summary import SolutionSummary
from inlinebench.report.terminal.table import cells_of, columns_of  # one wording of every figure, wherever it is shown
from inlinebench.report.text import ABSENT, one_line

_TEXTS = ("problem", "solution", "shape", "device", "verdict")
LONGEST_NAME = 120


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it is sorted by: a number as JavaScript reads it, a text, or nothing if absent."""

    text: str
    key: str


@dataclass(frozen=True)
class Row:
    """One result. `number` counts from 1 in the order of the page; `label` names the result, and no other."""

    number: int
    label: str
    result: Result
    cells: tuple[Cell, ...]

    @property
    def timing(self) -> Timing | None:
        """Times that say something of a GPU's."""
        return device_timing(self.result)

    @property
    def solution(self) -> str:
        return one_line(self.result.solution) or ABSENT

    @property
    def verdict(self) -> str:
        return str(self.result.verdict)

    @property
    def level(self) -> str:
        """The problem's; empty if it has none."""
        return "" if self.result.level is None else str(self.result.level)

    @property
    def shape(self) -> str:
        return one_line(self.result.shape)

    @property
    def device(self) -> str:
        return one_line(self.result.device)

    @property
    def gist(self) -> str:
        """Why it didn't pass, in one line, or that there is more to see."""
        return one_line(self.result.reason) or "Details"

    def named(self, columns: Iterable[str]) -> zip[tuple[str, Cell]]:
        """Each cell with the name of its column."""
        return zip(columns, self.cells, strict=True)


@dataclass(frozen=True)
class Table:
    """Columns by name with whether they hold numbers, and the rows below them.

    `own` are the columns whose names aren't a stranger's, as those of baselines may be.
    """

    columns: dict[str, bool]
    rows: tuple[Row, ...]
    own: frozenset[str]


def device_timing(result: Result) -> Timing | None:
    """The times of a result, but none from the CPU, which say nothing of a GPU's."""
    return result.timing if result.device != "cpu" else None


def summary_label(entry: SolutionSummary) -> str:
    """What a line of the summary is about: a solution name, or one at the problems of a level."""
    name = one_line(entry.solution) or ABSENT
    return name if entry.level is None else f"{name} (level {entry.level})"


def arrange(results: Sequence[Result]) -> Table:
    """All results by problem, solution, shape and device; columns without a single figure are left out.

    The columns of shapes and devices are there if there is more than one of them.
    """
    ordered = sorted(results, key=lambda each: (
        natural(each.problem), natural(each.solution), each.shape, natural(each.device)))
    texts = [{**cells_of(result, verbose=False), "device": one_line(result.device)} for result in ordered]
    several = {name for name in ("shape", "device") if len({getattr(result, name) for result in ordered}) > 1}
    known = [name for name in columns_of(ordered) if name not in _TEXTS]
    told = [name for name in known if any(row.get(name, ABSENT) != ABSENT for row in texts)]
    names = [name for name in _TEXTS if name not in ("shape", "device") or name in several] + told
    rows = [
        Row(number, label, result, tuple(_cell(name, text.get(name, ABSENT), result) for name in names))
        for number, (label, result, text) in enumerate(zip(_labels(ordered, several), ordered, texts, strict=True), 1)
    ]
    return Table({name: name not in _TEXTS for name in names}, tuple(rows), frozenset([*_TEXTS, *columns_of([])]))


def _labels(results: Sequence[Result], several: set[str]) -> list[str]:
    """A name for each; a result of the same solution, shape and device as one before it gets a number behind it."""
    labels = []
    seen: Counter[str] = Counter()
    for result in results:
        label = f"{one_line(result.problem)}/{one_line(result.solution)}"
        label += f" ({one_line(result.shape)})" if "shape" in several else ""
        label += f" on {one_line(result.device)}" if "device" in several else ""
        label = one_line(label, LONGEST_NAME)
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} #{seen[label]}")
    return labels


def _cell(column: str, text: str, result: Result) -> Cell:
    if column in _TEXTS:
        return Cell(text, text)
    value = None if text == ABSENT else _value(column, result)
    if value is None or math.isnan(value):
        return Cell(text, "")
    return Cell(text, str(value).replace("inf", "Infinity"))


def _value(column: str, result: Result) -> float | None:
    """The number that a column of numbers shows of a result."""
    if column == "error / tolerance":
        return result.check.worst_error if result.check else None
    if column == "own kernels":
        return result.kernels.own_share if result.kernels else None
    if result.timing is None:
        return None
    return _times(result.timing).get(column)


def _times(timing: Timing) -> dict[str, float]:
    values = {
        "reference ms": timing.reference_ms.median,
        "solution ms": timing.solution_ms.median,
        "speedup": timing.speedup.median,
    }
    if timing.wall_ms:
        values["wall ms"] = timing.wall_ms.median
    if timing.roofline:
        values["% of roofline"] = timing.roofline.ms / timing.solution_ms.median
    return {**values, **{f"over {each.name}": each.speedup.median for each in timing.baselines}}
