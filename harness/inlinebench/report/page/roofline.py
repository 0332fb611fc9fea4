"""The roofline chart: the rate of each solution, below the measured peak rates of the hardware."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from inlinebench.report.page import svg
from inlinebench.report.page.axes import LogAxis, drawable, log_axis
from inlinebench.report.rows import Row
from inlinebench.report.text import significant

SAME = 0.02
"""Ceilings of a machine that differ by a smaller share count as the same."""
APART = 1.25
"""Labels of ceilings whose ratio is smaller would overlap."""


@dataclass(frozen=True)
class Point:
    """A solution in the chart."""

    row: Row
    """Its row."""
    intensity: float
    """Its work, in operations per byte."""
    rate: float
    """The rate that it achieved, in TFLOP/s."""


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of one machine, without duplicates."""

    machine: str
    """Its GPU, or the device if the GPU is unknown."""
    bytes_s: tuple[float, ...]
    """Bandwidths in bytes per second."""
    tflops: tuple[float, ...]
    """Compute rates in TFLOP/s, of several accuracies."""


def points(rows: Sequence[Row]) -> list[Point]:
    """Returns a point for every result with a roofline time, counted bytes and counted operations."""
    found = []
    for row in rows:
        roofline = row.timing.roofline if row.timing else None
        if row.timing is None or roofline is None or not (roofline.bytes and roofline.flops):
            continue
        milliseconds = row.timing.solution_ms.median
        if not drawable(milliseconds):
            continue
        found.append(Point(row, roofline.flops / roofline.bytes, roofline.flops / milliseconds / 1e9))
    return [point for point in found if drawable(point.rate)]


def ceilings(shown: Sequence[Point]) -> list[Ceilings]:
    """Returns the ceilings of each machine, computed from the roofline times of the points."""
    bandwidths: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    for point in shown:
        timing = point.row.timing
        assert timing is not None and timing.roofline is not None
        roofline, machine = timing.roofline, _machine(point.row)
        for kind, work, milliseconds in ((bandwidths, roofline.bytes * 1e3, roofline.memory_ms),
                                         (rates, roofline.flops / 1e9, roofline.compute_ms)):
            speed = work / milliseconds if milliseconds else 0.0
            if drawable(speed) and not any(math.isclose(speed, each, rel_tol=SAME) for each in kind.get(machine, [])):
                kind.setdefault(machine, []).append(speed)
    machines = sorted(bandwidths.keys() | rates.keys())
    return [Ceilings(name, tuple(sorted(bandwidths.get(name, []))), tuple(sorted(rates.get(name, []))))
            for name in machines]


def _machine(row: Row) -> str:
    environment = row.result.environment
    return (environment.gpu if environment else None) or row.result.device


def chart(shown: Sequence[Point], series: dict[str, int], *, width: float, height: float, most: int) -> str:
    """Returns the chart of at least one point, as SVG. Its axes have about `most` figures at most."""
    roofs = ceilings(shown)
    rates = [*(point.rate for point in shown), *(rate for roof in roofs for rate in roof.tflops)]
    ridges = [rate * 1e12 / speed for roof in roofs for speed in roof.bytes_s for rate in roof.tflops]
    x_axis = log_axis([*(point.intensity for point in shown), *ridges], room=2.5, most=most)
    y_axis = log_axis(rates, room=2.0, most=most)
    plot = svg.Plot(54, 26, width - 64, height - 70)
    drawn = svg.drawing(width, height, "Roofline")
    for tick in y_axis.ticks:
        y = plot.y(y_axis.at(tick))
        svg.line(drawn, "grid", (plot.left, y), (plot.right, y))
        svg.text(drawn, "tick", (plot.left - 8, y + 4), f"{tick:g}", "end")
    svg.text(drawn, "title", (0, 12), "achieved TFLOP/s")
    svg.grid_of_x(drawn, plot, x_axis, "operations per byte")
    _draw_ceilings(drawn, plot, roofs, x_axis, y_axis)
    for point in shown:
        told = f"{significant(point.rate)} TFLOP/s at {significant(point.intensity)} operations per byte"
        svg.mark(drawn, point.row, series[point.row.solution],
                 (plot.x(x_axis.at(point.intensity)), plot.y(y_axis.at(point.rate))), told)
    return svg.markup(drawn)


def _draw_ceilings(
    drawn: Element, plot: svg.Plot, roofs: Sequence[Ceilings], x_axis: LogAxis, y_axis: LogAxis
) -> None:
    """Draws the ceilings, clipped to the axes, with labels."""
    written: list[float] = []
    for roof in roofs:
        behind = f", {roof.machine}" if len(roofs) > 1 else ""
        fastest, top = max(roof.bytes_s, default=math.inf), max(roof.tflops, default=y_axis.high)
        for speed in roof.bytes_s:
            low, high = max(x_axis.low, y_axis.low * 1e12 / speed), min(x_axis.high, top * 1e12 / speed)
            if low < high:
                _ceiling(drawn, plot, (x_axis.at(low), y_axis.at(low * speed / 1e12)),
                         (x_axis.at(high), y_axis.at(high * speed / 1e12)))
                middle = math.sqrt(low * high)
                at = plot.x(x_axis.at(middle)) + 12, plot.y(y_axis.at(middle * speed / 1e12)) + 16
                svg.text(drawn, "label", at, f"{significant(speed / 1e9)} GB/s{behind}")
        for rate in roof.tflops:
            start = x_axis.inside(rate * 1e12 / fastest)
            _ceiling(drawn, plot, (x_axis.at(start), y_axis.at(rate)), (1.0, y_axis.at(rate)))
            if all(rate > APART * each or each > APART * rate for each in written):
                written.append(rate)
                svg.text(drawn, "label", (plot.right, plot.y(y_axis.at(rate)) - 6),
                         f"{significant(rate)} TFLOP/s{behind}", "end")


def _ceiling(drawn: Element, plot: svg.Plot, start: svg.Place, end: svg.Place) -> None:
    """Draws a line between two points, each given as shares of the axes."""
    svg.line(drawn, "ceiling", (plot.x(start[0]), plot.y(start[1])), (plot.x(end[0]), plot.y(end[1])))
