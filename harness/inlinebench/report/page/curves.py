"""The chart of fast_p: for each solution name, the share of tried problems that passed with a speedup above p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.report.page import svg
from inlinebench.report.page.axes import drawable, log_axis
from inlinebench.report.rows import Row
from inlinebench.report.terminal.summary import attempt_of
from inlinebench.results.result import Result


@dataclass(frozen=True)
class Curve:
    """The curve of one solution name."""

    solution: str
    """The solution name."""
    tried: int
    """The number of problems that were tried."""
    speedups: tuple[float, ...]
    """The speedups of the problems that passed, sorted."""

    def above(self, p: float) -> float:
        """Returns fast_p: the share of tried problems that passed with a speedup above p, from 0 to 1."""
        return sum(speedup > p for speedup in self.speedups) / self.tried


def curves(rows: Sequence[Row]) -> list[Curve]:
    """Returns a curve for each solution name that passed a problem and has a speedup for every passed problem.

    What counts as tried and passed, and the speedup of a problem, are as in the summary.
    """
    problems: dict[str, dict[str, list[Result]]] = {}
    for row in rows:
        problems.setdefault(row.solution, {}).setdefault(row.result.problem, []).append(row.result)
    found = (_curve(name, list(results.values())) for name, results in sorted(problems.items()))
    return [curve for curve in found if curve is not None]


def _curve(solution: str, problems: list[list[Result]]) -> Curve | None:
    attempts = [attempt for attempt in map(attempt_of, problems) if attempt is not None]
    known = [attempt.speedup for attempt in attempts if attempt.passed]
    speedups = tuple(sorted(speedup for speedup in known if speedup is not None and drawable(speedup)))
    return Curve(solution, len(attempts), speedups) if speedups and len(speedups) == len(known) else None


def chart(found: Sequence[Curve], series: dict[str, int], *, width: float, height: float, most: int) -> str:
    """Returns the chart of at least one curve, as SVG. Each curve steps down at each measured speedup."""
    axis = log_axis([0.5, 2.0, *(speedup for curve in found for speedup in curve.speedups)], room=1.25, most=most)
    plot = svg.Plot(44, 26, width - 56, height - 70)
    drawn = svg.drawing(width, height, "fast_p")
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        svg.line(drawn, "grid", (plot.left, plot.y(tick)), (plot.right, plot.y(tick)))
        svg.text(drawn, "tick", (plot.left - 8, plot.y(tick) + 4), f"{tick:.0%}", "end")
    svg.text(drawn, "title", (0, 12), "share of tried problems")
    svg.grid_of_x(drawn, plot, axis, "p: speedup over the reference")
    one = plot.x(axis.at(1.0))
    svg.line(drawn, "limit", (one, plot.top), (one, plot.bottom))
    for curve in reversed(found):
        points = [(plot.x(axis.at(p)), plot.y(curve.above(p))) for p in (axis.low, *curve.speedups, axis.high)]
        svg.steps(drawn, f"curve s{series[curve.solution]}", points)
    return svg.markup(drawn)
