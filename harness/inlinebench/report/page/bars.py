"""Bars in the rows of the table. All rows share a scale."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from inlinebench.report.page import svg
from inlinebench.report.page.axes import LogAxis, drawable, log_axis
from inlinebench.report.rows import Row
from inlinebench.results.times import Spread

WIDTH, HEIGHT = 110, 14


def speedup_axis(rows: Sequence[Row]) -> LogAxis:
    """Returns the axis for the speedups of all rows, with 1 on it."""
    spreads = [row.timing.speedup for row in rows if row.timing is not None]
    return log_axis([1.0, *(spread.median for spread in spreads)], room=1.15)


def speedup(spread: Spread, axis: LogAxis) -> str:
    """Returns a bar from 1 to a speedup, on a logarithmic scale, with a line for its interval, as SVG."""
    plot, drawn = _bar("speedup")
    one = plot.x(axis.at(1.0))
    if drawable(spread.median):
        end = plot.x(axis.at(spread.median))
        kind = "faster" if spread.median >= 1 else "slower"
        svg.add(drawn, "rect", kind, x=min(one, end), y=3, width=max(abs(end - one), 0.5), height=8)
        svg.line(drawn, "interval", (plot.x(axis.at(spread.low)), 7), (plot.x(axis.at(spread.high)), 7))
    svg.line(drawn, "one", (one, 0), (one, HEIGHT))
    return svg.markup(drawn)


def share(part: float) -> str:
    """Returns a bar for a share of a whole, which is full from 1 on, as SVG."""
    plot, drawn = _bar("share")
    svg.add(drawn, "rect", "track", x=0, y=3, width=plot.width, height=8)
    svg.add(drawn, "rect", "part", x=0, y=3, width=plot.x(min(max(part, 0.0), 1.0)), height=8)
    return svg.markup(drawn)


def _bar(kind: str) -> tuple[svg.Plot, Element]:
    width = WIDTH if kind == "speedup" else WIDTH / 2
    drawn = Element("svg", {"class": f"bar {kind}", "viewBox": f"0 0 {width:g} {HEIGHT}", "width": f"{width:g}",
                                "height": str(HEIGHT), "aria-hidden": "true"})
    return svg.Plot(0, 0, width, HEIGHT), drawn
