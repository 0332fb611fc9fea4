"""The charts of a page, each in a wide and a narrow version. A chart without anything to draw is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.report.page import curves, roofline, sets, shares, svg
from inlinebench.report.rows import Row
from inlinebench.results.library import LIBRARY

WIDE, NARROW = 640, 350
"""The widths of the drawings in pixels."""


@dataclass(frozen=True)
class Figure:
    """A chart with its title and caption."""

    key: str
    """The id of its HTML element."""
    title: str
    """Its title."""
    caption: str
    """Explains the chart."""
    wide: str
    """The chart for wide screens, as SVG."""
    narrow: str
    """The chart for phones, as SVG."""


@dataclass(frozen=True)
class Charts:
    """All charts of a page."""

    figures: tuple[Figure, ...]
    """The charts, in order."""
    legend: tuple[tuple[str, str], ...]
    """The mark of each series, as SVG, and its name; empty if there is only one."""


def charts(rows: Sequence[Row]) -> Charts:
    """Returns the charts of a page."""
    counts = Counter(row.solution for row in rows if row.timing is not None)
    names = sorted(counts, key=lambda name: (-counts[name], natural(name)))
    series = svg.series(names)
    return Charts(tuple(_figures(rows, series)), _legend(names) if len(names) > 1 else ())


def _legend(names: list[str]) -> tuple[tuple[str, str], ...]:
    own, others = names[: svg.OTHERS], names[svg.OTHERS :]
    last = others if len(others) == 1 else [f"{len(others)} others"] if others else []
    return tuple((svg.key(number), name) for number, name in enumerate([*own, *last]))


def _figures(rows: Sequence[Row], series: dict[str, int]) -> Iterator[Figure]:
    several = len({row.shape for row in rows}) > 1
    if lines := shares.shares(rows, with_shape=several):
        caption = ("The roofline time divided by each solution's time, lowest share first. The line to 100 % shows the "
                   "remaining headroom; the word at its end names the limiting resource.")
        yield Figure("shares", "% of roofline", caption, shares.chart(lines, series, width=WIDE, narrow=False),
                     shares.chart(lines, series, width=NARROW, narrow=True))
    if points := roofline.points(rows):
        timed = sum(row.timing is not None for row in rows)
        caption = "The rate of each solution. The lines are the rates of copies and matrix products on the same GPU."
        if timed > len(points):
            caption += f" {timed - len(points)} of {timed} results with times have no counted operations."
        yield Figure("roofline", "Roofline", caption, roofline.chart(points, series, width=WIDE, height=400, most=8),
                     roofline.chart(points, series, width=NARROW, height=320, most=5))
    for number, of in enumerate(sets.sets(rows)):
        caption = ("Speedups over the reference, one mark for each workload. Workloads are ordered by the reference's "
                   "time. Its name is in the tooltip.")
        yield Figure(f"set-{number}", f"Workloads of {one_line(of.problem)}", caption,
                     sets.chart(of, series, width=WIDE, height=320, most=8),
                     sets.chart(of, series, width=NARROW, height=260, most=5))
    kernels = [row for row in rows if row.result.solution != LIBRARY] or rows
    if found := curves.curves(kernels):
        missing = sorted({row.solution for row in kernels} - {curve.solution for curve in found})
        caption = "The share of tried problems that a solution name passed with a speedup above p."
        if missing:
            caption += f" Not drawn, because nothing passed or a speedup is unknown: {_some(missing)}."
        yield Figure("fast-p", "fast_p", caption, curves.chart(found, series, width=WIDE, height=400, most=8),
                     curves.chart(found, series, width=NARROW, height=320, most=6))


def _some(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
