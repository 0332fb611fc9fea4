"""Plots the figures of timing_accuracy.py. Only this module needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accuracy_bars import TRACED, Evaluated, Row, Traced, middle

WIDTH, HEIGHT = 7.0, 4.5
"""The size of a panel in inches."""
OTHERS: Mapping[str, Callable[[Traced], float | None]] = {
    "timer": lambda row: middle(row.timer_us),
    "events around the call": lambda row: row.events_us,
    "triton do_bench": lambda row: row.do_bench_us,
}


def plot(parts: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Plots the differences of all timing methods from CUPTI, and the intervals of `aa` and `differ`, if there are any.

    Raises ImportError if matplotlib is not installed.
    """
    import matplotlib  # type: ignore[import-not-found, unused-ignore]

    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found, unused-ignore]

    traced = [row for row in parts.get("cupti", ()) if isinstance(row, Traced)]
    compared = [row for part in ("aa", "differ") for row in parts.get(part, ()) if isinstance(row, Evaluated)]
    panels: list[Callable[[Any], None]] = []
    if traced:
        panels.append(lambda axes: _draw_traced(axes, traced))
    if compared:
        panels.append(lambda axes: _draw_intervals(axes, compared))
    if not panels:
        return
    figure, grid = pyplot.subplots(1, len(panels), figsize=(WIDTH * len(panels), HEIGHT), squeeze=False)
    for axes, draw in zip(grid[0], panels, strict=True):
        draw(axes)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_traced(axes: Any, rows: Sequence[Traced]) -> None:
    rows = sorted(rows, key=lambda row: middle(row.cupti_us))
    cupti = [middle(row.cupti_us) for row in rows]
    allowed = [TRACED.us(time) for time in cupti]
    axes.fill_between(cupti, [-each for each in allowed], allowed, color="0.88", label=f"bar: {TRACED}")
    for name, time_of in OTHERS.items():
        points = [(at, time - at) for at, row in zip(cupti, rows, strict=True) if (time := time_of(row)) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), "o", markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_xlabel("device time by CUPTI (µs)")
    axes.set_ylabel("difference from CUPTI (µs)")
    axes.legend()


def _draw_intervals(axes: Any, rows: Sequence[Evaluated]) -> None:
    for row in rows:
        ordered = sorted(row.intervals, key=lambda interval: interval[1])
        medians = [median for _, median, _ in ordered]
        ends = [[median - low for low, median, _ in ordered], [high - median for _, median, high in ordered]]
        axes.errorbar(range(len(ordered)), medians, yerr=ends, fmt=".", elinewidth=0.8, label=row.what)
    axes.axhline(1.0, color="0.4", linewidth=0.8)
    axes.set_xlabel("evaluation, by speedup")
    axes.set_ylabel("speedup and its 95 % interval")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
