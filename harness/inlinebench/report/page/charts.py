"""Which charts a page has, each drawn twice: for a desk and for a phone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.report.page import curves, draw, roofline, strips
from inlinebench.report.rows import Row


@dataclass(frozen=True)
class Figure:
    """A chart with what to know of it. `wide` and `narrow` are SVG, both empty where `caption` says why."""

    key: str
    title: str
    caption: str
    wide: str = ""
    narrow: str = ""


def figures(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """The charts of a page, in its order."""
    names = sorted({row.solution for row in rows})
    return _speedups(rows, names), _curves(rows, names), _roofline(rows, names), _times(rows)


def _speedups(rows: Sequence[Row], names: list[str]) -> Figure:
    lines = strips.speedups(rows)
    if not lines:
        return Figure("speedups", "Speedups", "No result has a speedup.")
    return _figure(
        "speedups", "Speedups",
        "Reference over solution, with the 95 % interval; right of the line at 1 is faster than the reference.",
        lambda narrow: strips.chart(lines, "speedup over the reference", names, narrow=narrow, one=True),
    )


def _curves(rows: Sequence[Row], names: list[str]) -> Figure:
    found = curves.curves(rows)
    if not found:
        return Figure("fast-p", "fast_p", "No solution passed a problem with a speedup that is known.")
    missing = [name for name in names if name not in {curve.solution for curve in found}]
    caption = "The share of the problems tried that a solution passed with a speedup above p."
    if missing:
        caption += f" Not drawn, because nothing passed or a speedup isn't known: {', '.join(missing)}."
    return _figure("fast-p", "fast_p", caption, lambda narrow: curves.chart(found, names, narrow=narrow))


def _roofline(rows: Sequence[Row], names: list[str]) -> Figure:
    shown = roofline.points(rows)
    if not shown:
        return Figure("roofline", "Roofline", "No result has a roofline with counted bytes and operations.")
    timed = sum(row.timing is not None for row in rows)
    caption = "What each solution achieves; the lines are what copies and matrix products reached on the same GPU."
    if timed > len(shown):
        caption += f" {timed - len(shown)} of {timed} results with times have no counted operations and aren't here."
    return _figure("roofline", "Roofline", caption, lambda narrow: roofline.chart(shown, names, narrow=narrow))


def _times(rows: Sequence[Row]) -> Figure:
    lines = strips.times(rows)
    if not lines:
        return Figure("times", "Times", "No result has times on a GPU.")
    told = {mark.series for _, marks in lines for mark in marks}
    names: list[str] = [name for name in ("reference", "solution", "wall") if name in told]
    return _figure(
        "times", "Times", "Medians of one call with their quartiles; wall time includes launches from Python.",
        lambda narrow: strips.chart(lines, "time of a call in ms", names, narrow=narrow),
    )


def _figure(key: str, title: str, caption: str, chart: Callable[[bool], dict[str, Any]]) -> Figure:
    wide, narrow = (draw.svg(chart(kind), title) for kind in (False, True))
    return Figure(key, title, caption, wide, narrow)
