"""The roofline chart: the rate of each solution, below the measured peak rates of the hardware."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.report.page.axes import LogAxis, drawable, log_axis
from inlinebench.report.page.draw import INK, QUIET, series
from inlinebench.report.rows import Row
from inlinebench.report.text import significant

WIDE, NARROW, HEIGHT = 500, 280, 260
"""The size of the plot in pixels, without the axes around it."""
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


def chart(shown: Sequence[Point], names: list[str], *, narrow: bool) -> dict[str, Any]:
    """Returns the chart of at least one point."""
    roofs = ceilings(shown)
    most = 5 if narrow else 8
    rates = [*(point.rate for point in shown), *(rate for roof in roofs for rate in roof.tflops)]
    ridges = [rate * 1e12 / speed for roof in roofs for speed in roof.bytes_s for rate in roof.tflops]
    x_axis = log_axis([*(point.intensity for point in shown), *ridges], room=2.5, most=most)
    y_axis = log_axis(rates, room=2.0, most=most)
    lines, labels = _lines(roofs, x_axis, y_axis)
    x = {**x_axis.spec("operations per byte"), "field": "x"}
    y = {**y_axis.spec("achieved TFLOP/s"), "field": "y"}
    return {
        "width": NARROW if narrow else WIDE,
        "height": HEIGHT,
        "padding": 2,
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "rule", "stroke": QUIET, "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
            },
            {
                "data": {"values": labels},
                "mark": {"type": "text", "fontSize": 11, "fill": INK, "limit": NARROW - 60,
                         "align": {"expr": "datum.align"}, "dx": {"expr": "datum.dx"}, "dy": {"expr": "datum.dy"}},
                "encoding": {"x": x, "y": y, "text": {"field": "label"}},
            },
            {
                "data": {"values": [_point(point) for point in shown]},
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.9},
                "encoding": {"x": x, "y": y, **series(names, narrow=narrow), "href": {"field": "row"},
                             "description": {"field": "told"}},
            },
        ],
    }


def _point(point: Point) -> dict[str, Any]:
    row = point.row
    told = f"{row.label}\n{significant(point.rate)} TFLOP/s at {significant(point.intensity)} operations per byte"
    return {"series": row.solution, "x": point.intensity, "y": point.rate, "row": f"#r{row.number}",
            "told": told}


def _lines(roofs: Sequence[Ceilings], x_axis: LogAxis, y_axis: LogAxis) -> tuple[list[dict[str, Any]], ...]:
    """Returns the lines of the ceilings, clipped to the axes, and their labels."""
    lines: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    written: list[float] = []
    for roof in roofs:
        behind = f", {roof.machine}" if len(roofs) > 1 else ""
        for speed in roof.bytes_s:
            top = max(roof.tflops, default=y_axis.high)
            low = max(x_axis.low, y_axis.low * 1e12 / speed)
            high = min(x_axis.high, top * 1e12 / speed)
            if low < high:
                lines.append({"x": low, "y": low * speed / 1e12, "x2": high, "y2": high * speed / 1e12})
                labels.append(_on_slope(low, high, speed, behind))
        fastest = max(roof.bytes_s, default=math.inf)
        for rate in roof.tflops:
            lines.append({"x": x_axis.inside(rate * 1e12 / fastest), "y": rate, "x2": x_axis.high, "y2": rate})
            if all(rate > APART * each or each > APART * rate for each in written):
                written.append(rate)
                labels.append({"x": x_axis.high, "y": rate, "align": "right", "dx": 0, "dy": -8,
                               "label": f"{significant(rate)} TFLOP/s{behind}"})
    return lines, labels


def _on_slope(low: float, high: float, bytes_s: float, behind: str) -> dict[str, Any]:
    """Returns the label of a bandwidth's line between two intensities, below the middle of the line."""
    middle = math.sqrt(low * high)
    return {"x": middle, "y": middle * bytes_s / 1e12, "align": "left", "dx": 10, "dy": 12,
            "label": f"{significant(bytes_s / 1e9)} GB/s{behind}"}
