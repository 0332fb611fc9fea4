"""The chart of fast_p: for each solution name, the share of tried problems that passed with a speedup above p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.records.result import Result
from inlinebench.report.page.axes import drawable, log_axis
from inlinebench.report.page.draw import QUIET, series
from inlinebench.report.rows import Row
from inlinebench.report.terminal.summary import attempt_of

WIDE, NARROW, HEIGHT = 500, 280, 260
"""The size of the plot in pixels, without the axes around it."""


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


def chart(found: Sequence[Curve], names: list[str], *, narrow: bool) -> dict[str, Any]:
    """Returns the chart of at least one curve, which steps down at each measured speedup."""
    axis = log_axis([0.5, 2.0, *(speedup for curve in found for speedup in curve.speedups)], room=1.25,
                    most=6 if narrow else 8)
    steps = [
        {"series": curve.solution, "p": p, "share": curve.above(p)}
        for curve in found for p in (axis.low, *curve.speedups, axis.high)
    ]
    x = {**axis.spec("p: speedup over the reference"), "field": "p"}
    share = {
        "field": "share", "type": "quantitative", "scale": {"domain": [0, 1]},
        "axis": {"title": "fast_p: share of tried problems", "format": ".0%", "tickCount": 5},
    }
    return {
        "width": NARROW if narrow else WIDE,
        "height": HEIGHT,
        "padding": 2,
        "layer": [
            {
                "data": {"values": [{"p": 1}]},
                "mark": {"type": "rule", "stroke": QUIET, "strokeWidth": 1.5, "strokeDash": [4, 3]},
                "encoding": {"x": x},
            },
            {
                "data": {"values": steps},
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                "encoding": {"x": x, "y": share, "color": _colour(names, narrow)},
            },
        ],
    }


def _colour(names: list[str], narrow: bool) -> dict[str, Any]:
    colour: dict[str, Any] = series(names, narrow=narrow)["color"]
    return {**colour, "legend": {**colour["legend"], "symbolType": "stroke"}} if colour["legend"] else colour
