"""The chart of a set of workloads: the speedup of each solution over the size of the workload.

The size is the reference's time. It orders workloads whose constants have nothing in common, and shows from which size
on a solution pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.catalog.natural_sort import natural
from inlinebench.report.page import svg
from inlinebench.report.page.axes import drawable, log_axis
from inlinebench.report.rows import Row
from inlinebench.report.text import interval, significant
from inlinebench.results.times import Timing

FEWEST = 3
"""The fewest workloads with times that make a curve."""


@dataclass(frozen=True)
class SetCurves:
    """The curves of one set."""

    problem: str
    """The problem."""
    solutions: dict[str, list[tuple[Row, Timing]]]
    """The rows of each solution with their times, the fastest reference first."""


def sets(rows: Sequence[Row]) -> list[SetCurves]:
    """Returns the curves of each set, in natural order of the problems. If a workload has several results of one
    solution, the last one counts."""
    found: dict[str, dict[str, dict[str, tuple[Row, Timing]]]] = {}
    for row in rows:
        timing = row.timing
        if row.result.weight is not None and timing is not None and drawable(timing.reference_ms.median) and drawable(
                timing.speedup.median):
            found.setdefault(row.result.problem, {}).setdefault(row.solution, {})[row.result.shape] = row, timing
    curves = {problem: {name: sorted(points.values(), key=lambda point: point[1].reference_ms.median)
                        for name, points in solutions.items() if len(points) >= FEWEST}
              for problem, solutions in found.items()}
    return [SetCurves(problem, curves[problem]) for problem in sorted(curves, key=natural) if curves[problem]]


def chart(of: SetCurves, series: dict[str, int], *, width: float, height: float, most: int) -> str:
    """Returns the chart of a set, as SVG. Its axes have about `most` figures at most."""
    points = [point for solution in of.solutions.values() for point in solution]
    x_axis = log_axis([timing.reference_ms.median for _, timing in points], room=1.25, most=most)
    y_axis = log_axis([1.0, *(timing.speedup.median for _, timing in points)], room=1.25, most=most)
    plot = svg.Plot(54, 26, width - 64, height - 70)
    drawn = svg.drawing(width, height, f"Speedups over the workloads of {of.problem}")
    for tick in y_axis.ticks:
        y = plot.y(y_axis.at(tick))
        svg.line(drawn, "grid", (plot.left, y), (plot.right, y))
        svg.text(drawn, "tick", (plot.left - 8, y + 4), f"{tick:g}", "end")
    one = plot.y(y_axis.at(1.0))
    svg.line(drawn, "limit", (plot.left, one), (plot.right, one))
    svg.text(drawn, "title", (0, 12), "speedup")
    svg.grid_of_x(drawn, plot, x_axis, "reference's time (ms)")
    for name, solution in of.solutions.items():
        places = [(plot.x(x_axis.at(timing.reference_ms.median)), plot.y(y_axis.at(timing.speedup.median)))
                  for _, timing in solution]
        svg.polyline(drawn, f"curve s{series[name]}", places)
        for (row, timing), place in zip(solution, places, strict=True):
            told = f"{interval(timing.speedup)}, reference {significant(timing.reference_ms.median)} ms"
            svg.mark(drawn, row, series[name], place, told)
    return svg.markup(drawn)
