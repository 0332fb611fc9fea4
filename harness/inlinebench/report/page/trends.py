"""The chart of one row over many runs: its times, their levels, and where a verdict or a level changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

from inlinebench.foreign import one_line
from inlinebench.report.history.tracks import Track, TrackChange
from inlinebench.report.page import svg
from inlinebench.report.page.axes import drawable, log_axis
from inlinebench.report.text import significant
from inlinebench.results.result import Verdict

WIDTH, HEIGHT = 350, 150
"""The size of the drawing in pixels, for all widths of the page."""
LEAST_RANGE = 1.06
"""The axis extends each level by this factor at least, so that noise looks like noise."""
MOST_TICKS = 4
"""The most ticks of the axis."""
LABEL_PX = 58
"""The width of a change's label. One that is nearer to the last one is a line lower."""
LONGEST_NAME = 20
"""The longest name of a run below the axis."""


def chart(track: Track, runs: Sequence[str], label: str) -> str:
    """Returns the chart as SVG. `label` is its name for screen readers."""
    drawn = svg.drawing(WIDTH, HEIGHT, f"{label}: {len(runs)} runs")
    plot = svg.Plot(54, 32, WIDTH - 60, HEIGHT - 54)
    width = plot.width / len(runs)
    places = [plot.left + (run + 0.5) * width for run in range(len(runs))]
    _changes(drawn, plot, places, track.changes)
    _times(drawn, plot, places, track, runs)
    for run, verdict in track.verdicts:
        if verdict is not Verdict.PASSED:
            _mark(drawn, "failed", (places[run], plot.bottom - 6), f"{one_line(runs[run])}: {verdict}")
    svg.line(drawn, "ceiling", (plot.left, plot.bottom), (plot.right, plot.bottom))
    svg.text(drawn, "tick", (plot.left, plot.bottom + 16), _short(runs[0]))
    svg.text(drawn, "tick", (plot.right, plot.bottom + 16), _short(runs[-1]), "end")
    return svg.markup(drawn)


def _times(drawn: Element, plot: svg.Plot, places: Sequence[float], track: Track, runs: Sequence[str]) -> None:
    """Adds the axis, the levels and the times; nothing for a row without times."""
    points = [(run, ms) for run, ms in track.points if drawable(ms)]
    if not points:
        return
    ends = [level.ms * factor for level in track.levels for factor in (1 / LEAST_RANGE, LEAST_RANGE)]
    axis = log_axis([*ends, *(ms for _, ms in points)], room=1.01)
    for tick in axis.ticks[:: -(-len(axis.ticks) // MOST_TICKS)]:
        y = plot.y(axis.at(tick))
        svg.line(drawn, "grid", (plot.left, y), (plot.right, y))
        svg.text(drawn, "tick", (plot.left - 6, y + 4), f"{tick:g}", "end")
    svg.text(drawn, "tick", (plot.left - 6, plot.top - 14), "ms", "end")
    half = plot.width / len(runs) / 2
    for level in track.levels:
        y = plot.y(axis.at(level.ms))
        svg.line(drawn, "level", (places[level.first] - half, y), (places[level.last] + half, y))
    for run, ms in points:
        _mark(drawn, "point", (places[run], plot.y(axis.at(ms))), f"{one_line(runs[run])}: {significant(ms)} ms")


def _changes(drawn: Element, plot: svg.Plot, places: Sequence[float], changes: Sequence[TrackChange]) -> None:
    """Adds a line and a label where each change is."""
    last, low = -math.inf, False
    for change in sorted(changes, key=lambda each: each.after):
        x = (places[change.before] + places[change.after]) / 2
        low = x - last < LABEL_PX and not low
        last = x
        svg.line(drawn, f"began {kind(change)}", (x, plot.top - (4 if low else 16)), (x, plot.bottom))
        words = f"{100 * change.step:+.1f} %" if change.ms else str(change.new.verdict)
        at = min(max(x, plot.left + LABEL_PX / 2), plot.right - LABEL_PX / 2)
        svg.text(drawn, f"what {kind(change)}", (at, plot.top - (6 if low else 20)), words, "middle")


def kind(change: TrackChange) -> str:
    """Returns the class of a change, which gives it its colour."""
    if change.ms is None:
        return "now-passing" if change.new.verdict is Verdict.PASSED else "now-failing"
    return "slower" if change.step > 0 else "faster"


def _mark(drawn: Element, kind: str, at: svg.Place, told: str) -> None:
    """Adds a small mark with a tooltip."""
    found = svg.add(drawn, "circle", kind, cx=at[0], cy=at[1], r=2.5)
    SubElement(found, "title").text = told


def _short(name: str) -> str:
    shown = one_line(name)
    return shown if len(shown) <= LONGEST_NAME else f"…{shown[1 - LONGEST_NAME:]}"
