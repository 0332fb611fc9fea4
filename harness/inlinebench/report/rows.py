"""Rows of results for HTML and Markdown, with the same figures as the terminal's table, and with sort keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.report.terminal.summary import SolutionSummary
from inlinebench.report.terminal.table import cells_of, columns_of, over  # the same figures in every report
from inlinebench.report.text import ABSENT
from inlinebench.results.result import Result
from inlinebench.results.times import Timing

_TEXTS = ("problem", "solution", "shape", "device", "verdict")
LONGEST_NAME = 120


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    """The text that the cell shows."""
    key: str
    """The sort key: a number in JavaScript's syntax, or a text; empty if the value is absent."""


@dataclass(frozen=True)
class Row:
    """A result as a row of a table."""

    number: int
    """Its position in the table, from 1."""
    label: str
    """A unique name of the result."""
    result: Result
    """The result."""
    cells: tuple[Cell, ...]
    """Its cells, one for each column."""

    @property
    def timing(self) -> Timing | None:
        """The times of the result; None on the CPU."""
        return device_timing(self.result)

    @property
    def problem(self) -> str:
        return one_line(self.result.problem) or ABSENT

    @property
    def solution(self) -> str:
        return one_line(self.result.solution) or ABSENT

    @property
    def verdict(self) -> str:
        return str(self.result.verdict)

    @property
    def level(self) -> str:
        """The level of the problem; empty if it has none."""
        return "" if self.result.level is None else str(self.result.level)

    @property
    def shape(self) -> str:
        return one_line(self.result.shape)

    @property
    def device(self) -> str:
        return one_line(self.result.device)

    def named(self, columns: Iterable[str]) -> zip[tuple[str, Cell]]:
        """Pairs each cell with the name of its column."""
        return zip(columns, self.cells, strict=True)


@dataclass(frozen=True)
class Table:
    """A table of results."""

    columns: dict[str, bool]
    """Whether a column has numbers, by name of the column."""
    rows: tuple[Row, ...]
    """The rows."""
    own: frozenset[str]
    """Column names that the harness defines. Other columns are named after baselines, which are untrusted."""


def device_timing(result: Result) -> Timing | None:
    """Returns the times of a result; None on the CPU, whose times do not predict a GPU's."""
    return result.timing if result.times_are_comparable else None


def summary_label(entry: SolutionSummary) -> str:
    """Returns the label of a line of the summary: a solution name, with the level if the line is for one."""
    name = one_line(entry.solution) or ABSENT
    return name if entry.level is None else f"{name} (level {entry.level})"


def arrange(results: Sequence[Result]) -> Table:
    """Returns the table of all results, sorted by problem, solution, shape and device.

    Columns without any figure are left out. Shapes and devices have a column if there is more than one of them.
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
    """Returns a unique label for each result. A label that occurs again gets a number."""
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
    """Returns the number of a result in a numeric column."""
    if column == "error / tolerance":
        return result.check.worst_error if result.check else None
    if column == "bitwise equal":
        return result.repeats.equal / result.repeats.calls if result.repeats else None
    if column == "own kernels":
        return result.kernels.own_share if result.kernels else None
    if column == "memory MiB":
        return result.memory.solution_mib if result.memory else None
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
    if timing.roofline and timing.solution_ms.median:
        values["% of roofline"] = timing.roofline.ms / timing.solution_ms.median
    values |= {each.name: each.speedup.median for each in timing.passes}
    return {**values, **{over(each): each.speedup.median for each in timing.baselines}}
