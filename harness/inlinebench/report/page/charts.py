"""The charts of a page, each in a wide and a narrow version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.report.page import curves, draw, roofline, strips
from inlinebench.report.rows import Row


@dataclass(frozen=True)
class Figure:
    """A chart with its title and caption."""

    key: str
    """The id of its HTML element."""
    title: str
    """Its title."""
    caption: str
    """Explains the chart, or why there is none."""
    wide: str = ""
    """The chart for wide screens, as SVG; empty if there is none."""
    narrow: str = ""
    """The chart for phones, as SVG; empty if there is none."""


def figures(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """Returns the charts of a page, in order."""
    names = sorted({row.solution for row in rows})
    return _speedups(rows, names), _curves(rows, names), _roofline(rows, names), _times(rows)


def _speedups(rows: Sequence[Row], names: list[str]) -> Figure:
    lines = strips.speedups(rows)
    if not lines:
        return Figure("speedups", "Speedups", "No result has a speedup.")
    return _figure(
        "speedups", "Speedups",
        "Reference time over solution time, with the 95 % interval. Right of the line at 1, a solution is faster.",
        lambda narrow: strips.chart(lines, "speedup over the reference", names, narrow=narrow, one=True),
    )


def _curves(rows: Sequence[Row], names: list[str]) -> Figure:
    found = curves.curves(rows)
    if not found:
        return Figure("fast-p", "fast_p", "No solution that passed a problem has a known speedup.")
    missing = [name for name in names if name not in {curve.solution for curve in found}]
    caption = "The share of tried problems that a solution passed with a speedup above p."
    if missing:
        caption += f" Not drawn, because nothing passed or a speedup is unknown: {', '.join(missing)}."
    return _figure("fast-p", "fast_p", caption, lambda narrow: curves.chart(found, names, narrow=narrow))


def _roofline(rows: Sequence[Row], names: list[str]) -> Figure:
    shown = roofline.points(rows)
    if not shown:
        return Figure("roofline", "Roofline", "No result has a roofline with counted bytes and operations.")
    timed = sum(row.timing is not None for row in rows)
    caption = "The rate of each solution. The lines are the rates of copies and matrix products on the same GPU."
    if timed > len(shown):
        caption += f" {timed - len(shown)} of {timed} results with times have no counted operations and are left out."
    return _figure("roofline", "Roofline", caption, lambda narrow: roofline.chart(shown, names, narrow=narrow))


def _times(rows: Sequence[Row]) -> Figure:
    lines = strips.times(rows)
    if not lines:
        return Figure("times", "Times", "No result has times on a GPU.")
    told = {mark.series for _, marks in lines for mark in marks}
    names: list[str] = [name for name in ("reference", "solution", "wall") if name in told]
    return _figure(
        "times", "Times", "Medians of one call with their quartiles. Wall time includes launches from Python.",
        lambda narrow: strips.chart(lines, "time of a call in ms", names, narrow=narrow),
    )


def _figure(key: str, title: str, caption: str, chart: Callable[[bool], dict[str, Any]]) -> Figure:
    wide, narrow = (draw.svg(chart(kind), title) for kind in (False, True))
    return Figure(key, title, caption, wide, narrow)
