"""The chart of the share of the roofline: for each problem, how near its solutions come to what the hardware allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.report.page import svg
from inlinebench.report.rows import Row
from inlinebench.report.text import significant

MOST, MOST_NARROW = 40, 20
"""The most problems that are drawn, and those on a phone."""
LINE_PX, LABEL_PX = 20, 36
"""The height of a problem's line; that of one with its label above it."""
LONGEST_LABEL = 34
CHARACTER_PX = 7.4
HIGHEST = 1.25
"""The largest share that is drawn in its place. A share above 1 has a roofline time that is too long, such as that of
inputs that stay in L2."""


@dataclass(frozen=True)
class ProblemShares:
    """The shares of a problem's solutions, at one shape."""

    label: str
    """The problem, with its shape if there are several."""
    binds: str
    """What bounds it: `memory` or `compute`."""
    points: tuple[tuple[Row, float], ...]
    """Each solution's row and share, the largest first."""


def shares(rows: Sequence[Row], *, with_shape: bool) -> list[ProblemShares]:
    """Returns the shares of all problems with a roofline time, the one farthest from it first."""
    found: dict[tuple[str, str], list[tuple[Row, float]]] = {}
    for row in rows:
        if row.timing is not None and row.timing.roofline is not None and row.timing.solution_ms.median > 0:
            share = row.timing.roofline.ms / row.timing.solution_ms.median
            found.setdefault((row.problem, row.shape), []).append((row, share))
    lines = [_line(f"{problem} ({shape})" if with_shape else problem, points)
             for (problem, shape), points in found.items()]
    return sorted(lines, key=lambda each: each.points[0][1])


def _line(label: str, points: list[tuple[Row, float]]) -> ProblemShares:
    points = sorted(points, key=lambda point: -point[1])
    timing = points[0][0].timing
    assert timing is not None and timing.roofline is not None
    return ProblemShares(label, timing.roofline.binds, tuple(points))


def chart(lines: Sequence[ProblemShares], series: dict[str, int], *, width: float, narrow: bool) -> str:
    """Returns the chart of the first lines, as SVG. It says how many are left out."""
    shown = lines[: MOST_NARROW if narrow else MOST]
    left_out = f"; {len(lines) - len(shown)} nearer ones are left out" if len(lines) > len(shown) else ""
    step = LABEL_PX if narrow else LINE_PX
    aside = 0.0 if narrow else CHARACTER_PX * max(len(_short(line.label)) for line in shown) + 12
    behind = 62.0
    plot = svg.Plot(max(aside, 12), 22, width - max(aside, 12) - behind, len(shown) * step)
    drawn = svg.drawing(width, plot.bottom + 42, "Share of the roofline of each problem")
    high = min(HIGHEST, max(1.0, *(share for line in shown for _, share in line.points))) + 0.02
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = plot.x(tick / high)
        svg.line(drawn, "limit" if tick == 1 else "grid", (x, plot.top), (x, plot.bottom))
        for y in (plot.top - 7, plot.bottom + 16):
            svg.text(drawn, "tick", (x, y), f"{tick:.0%}", "middle")
    svg.text(drawn, "title", (plot.x(0.5), plot.bottom + 36), f"roofline time over the solution's time{left_out}",
             "middle")
    for number, each in enumerate(shown):
        y = plot.top + (number + 1) * step - LINE_PX / 2
        best = min(each.points[0][1], high)
        if best < 1:
            svg.line(drawn, "gap", (plot.x(best / high), y), (plot.x(1 / high), y))
        if narrow:
            svg.text(drawn, "label", (plot.left, y - 10), _short(each.label))
        else:
            svg.text(drawn, "label", (plot.left - 10, y + 4), _short(each.label), "end")
        svg.text(drawn, "tick", (plot.right + 6, y + 4), each.binds)
        for row, share in reversed(each.points):
            svg.mark(drawn, row, series[row.solution], (plot.x(min(share, high) / high), y),
                     f"{share:.1%} of the roofline, bound by {each.binds}\n{_times(row)}")
    return svg.markup(drawn)


def _times(row: Row) -> str:
    assert row.timing is not None and row.timing.roofline is not None
    return f"{significant(row.timing.solution_ms.median)} ms; the roofline is {significant(row.timing.roofline.ms)} ms"


def _short(label: str) -> str:
    half = LONGEST_LABEL // 2
    return label if len(label) <= LONGEST_LABEL else f"{label[:half]}…{label[1 - half:]}"
