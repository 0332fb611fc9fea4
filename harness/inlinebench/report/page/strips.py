"""Charts with a line for each result: medians with their intervals on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.records.times import Spread
from inlinebench.report.page.axes import LogAxis, drawable, log_axis
from inlinebench.report.page.draw import INK, QUIET, RULE, series
from inlinebench.report.rows import Row
from inlinebench.report.text import significant

WIDE, NARROW = 1080, 330
"""The widths of a chart in pixels."""
MARK_PX, GAP_PX, LABEL_PX = 9, 9, 20
LONGEST_LABEL, CHARACTER_PX = 42, 7.6
"""The most characters of a label, and an upper bound of their average width in common fonts."""
MANY = 12
"""Charts with more rows have a second axis at the top."""


@dataclass(frozen=True)
class Mark:
    """A median with its interval in the line of a row."""

    series: str
    """The name of its series."""
    spread: Spread
    """The median and the interval."""
    unit: str
    """The unit after a space, or nothing."""

    @property
    def drawable(self) -> bool:
        return drawable(self.spread.median)


Line = tuple[Row, tuple[Mark, ...]]


def speedups(rows: Sequence[Row]) -> list[Line]:
    """Returns the speedups with their 95 % intervals, the highest first. Each solution name is a series."""
    lines: list[Line] = [
        (row, (Mark(row.solution, row.timing.speedup, ""),)) for row in rows if row.timing is not None
    ]
    shown = [line for line in lines if line[1][0].drawable]
    return sorted(shown, key=lambda line: -line[1][0].spread.median)


def times(rows: Sequence[Row]) -> list[Line]:
    """Returns the medians and quartiles of reference, solution and wall time, in the order of the rows."""
    lines: list[Line] = []
    for row in rows:
        if row.timing is None:
            continue
        found = {"reference": row.timing.reference_ms, "solution": row.timing.solution_ms, "wall": row.timing.wall_ms}
        marks = tuple(Mark(name, spread, " ms") for name, spread in found.items() if spread is not None)
        if shown := tuple(mark for mark in marks if mark.drawable):
            lines.append((row, shown))
    return lines


def chart(lines: Sequence[Line], title: str, names: list[str], *, narrow: bool, one: bool = False) -> dict[str, Any]:
    """Returns the chart of at least one line, with series `names` and axis title `title`. `one` draws a line at 1."""
    marks = [mark.spread for _, found in lines for mark in found]
    values = [figure for spread in marks for figure in (spread.median, spread.low, spread.high)]
    axis = log_axis([*values, 1.0] if one else values, most=6 if narrow else 9)
    step = max(len(found) for _, found in lines) * MARK_PX + GAP_PX + (LABEL_PX if narrow else 0)
    labels: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    for number, (row, found) in enumerate(lines):
        top = number * step + GAP_PX / 2 + (LABEL_PX if narrow else 0)
        middle = top + len(found) * MARK_PX / 2
        labels.append({"label": _short(row.label), "y": top - LABEL_PX / 2 - 1 if narrow else middle, "guide": middle})
        points += [_point(row, mark, top + (index + 0.5) * MARK_PX, axis) for index, mark in enumerate(found)]
    bottom = {**axis.spec(title, grid=True), "field": "low"}
    aside = 0 if narrow else 8 + CHARACTER_PX * max(len(label["label"]) for label in labels)
    return {
        "width": NARROW if narrow else WIDE - aside,
        "height": len(lines) * step,
        "padding": 2,
        "resolve": {"axis": {"x": "independent"}},
        "layer": [
            _guides(labels, aside),
            *([_line_at_one(axis)] if one else []),
            _labels(labels, narrow),
            *([_top_axis(axis, points)] if len(lines) > MANY else []),
            _intervals(points, bottom, names, narrow),
            _medians(points, axis, names, narrow),
        ],
    }


def _point(row: Row, mark: Mark, y: float, axis: LogAxis) -> dict[str, Any]:
    spread = mark.spread
    figures = f"{significant(spread.median)}{mark.unit} [{significant(spread.low)}, {significant(spread.high)}]"
    return {
        "series": mark.series,
        "median": spread.median,
        "low": axis.inside(spread.low),
        "high": axis.inside(spread.high),
        "y": y,
        "row": f"#r{row.number}",
        "told": f"{row.label}\n{mark.series}: {figures}",
    }


def _y() -> dict[str, Any]:
    return {"field": "y", "type": "quantitative", "scale": None, "axis": None}


def _short(label: str) -> str:
    """Shortens a label in the middle, because the solution's name is at its end."""
    half = LONGEST_LABEL // 2
    return label if len(label) <= LONGEST_LABEL else f"{label[:half]}…{label[1 - half:]}"


def _guides(labels: list[dict[str, Any]], aside: float) -> dict[str, Any]:
    """Draws a thin line for each row, and an invisible one that reserves space for the label in any font."""
    y = {**_y(), "field": "guide"}
    return {
        "data": {"values": labels},
        "layer": [
            {"mark": {"type": "rule", "stroke": RULE},
             "encoding": {"x": {"value": 0}, "x2": {"value": "width"}, "y": y}},
            {"mark": {"type": "rule", "opacity": 0}, "encoding": {"x": {"value": -aside}, "x2": {"value": 0}, "y": y}},
        ],
    }


def _labels(labels: list[dict[str, Any]], narrow: bool) -> dict[str, Any]:
    alignment = {"align": "left"} if narrow else {"align": "right", "dx": -8}
    return {
        "data": {"values": labels},
        "mark": {"type": "text", "baseline": "middle", "fontSize": 12, "fill": INK, **alignment},
        "encoding": {"x": {"value": 0}, "y": _y(), "text": {"field": "label"}},
    }


def _line_at_one(axis: LogAxis) -> dict[str, Any]:
    return {
        "data": {"values": [{"one": 1}]},
        "mark": {"type": "rule", "stroke": QUIET, "strokeWidth": 1.5, "strokeDash": [4, 3]},
        "encoding": {"x": {**axis.spec(""), "field": "one", "axis": None}},
    }


def _top_axis(axis: LogAxis, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Draws an axis at the top, for invisible marks: Vega-Lite does not draw an axis without marks."""
    return {
        "data": {"values": points[:1]},
        "mark": {"type": "rule", "stroke": RULE, "opacity": 0},
        "encoding": {"x": {**axis.spec("", orient="top", grid=False), "field": "low"}, "y": _y()},
    }


def _intervals(points: list[dict[str, Any]], x: dict[str, Any], names: list[str], narrow: bool) -> dict[str, Any]:
    return {
        "data": {"values": points},
        "mark": {"type": "rule", "strokeWidth": 2, "strokeOpacity": 0.55, "aria": False},
        "encoding": {
            "x": x, "x2": {"field": "high"}, "y": _y(), "color": series(names, narrow=narrow)["color"],
            "href": {"field": "row"},
        },
    }


def _medians(points: list[dict[str, Any]], axis: LogAxis, names: list[str], narrow: bool) -> dict[str, Any]:
    return {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
        "encoding": {
            "x": {**axis.spec(""), "field": "median", "axis": None}, "y": _y(),
            **series(names, narrow=narrow), "href": {"field": "row"}, "description": {"field": "told"},
        },
    }
