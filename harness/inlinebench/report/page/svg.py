"""Builds the page's SVG. Colours and fonts come from classes of the style sheet, for both colour schemes."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from inlinebench.foreign import one_line
from inlinebench.report.page.axes import LogAxis
from inlinebench.report.rows import Row

_SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "M-4 -4h8v8h-8z",
    "M0 -5l5 9h-10z",
    "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
    "M0 5l5 -9h-10z",
    "M-5 -2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
    "M-5 -5h10l-5 5l5 5h-10l5 -5z",
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
)
"""The outlines of marks. Together with the colours of the classes `s0` to `s7` they distinguish the series."""
OTHERS = len(_SHAPES) - 1
"""The series of all solution names beyond the first seven."""


Place = tuple[float, float]
"""The x and y of a point in a drawing, in pixels."""


@dataclass(frozen=True)
class Plot:
    """The area of a chart between its axes, in pixels from the top left corner of the drawing."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, share: float) -> float:
        """Returns the x of a share of the width, from 0 at the left to 1 at the right."""
        return self.left + share * self.width

    def y(self, share: float) -> float:
        """Returns the y of a share of the height, from 0 at the bottom to 1 at the top."""
        return self.bottom - share * self.height


def series(names: list[str]) -> dict[str, int]:
    """Returns the series of each solution name. All names beyond the first seven share one."""
    return {name: min(number, OTHERS) for number, name in enumerate(names)}


def drawing(width: float, height: float, label: str) -> Element:
    """Returns an empty drawing. `label` is its name for screen readers."""
    return Element("svg", {"viewBox": f"0 0 {_px(width)} {_px(height)}", "width": _px(width), "height": _px(height),
                           "role": "img", "aria-label": label})


def add(parent: Element, tag: str, kind: str, **places: float | str) -> Element:
    """Adds an element of the class `kind` and returns it. Underscores in names of attributes become hyphens."""
    facts = {name.replace("_", "-"): place if isinstance(place, str) else _px(place) for name, place in places.items()}
    return SubElement(parent, tag, {"class": kind, **facts})


def line(parent: Element, kind: str, start: Place, end: Place) -> None:
    """Adds a straight line."""
    add(parent, "path", kind, d=f"M{_px(start[0])} {_px(start[1])}L{_px(end[0])} {_px(end[1])}")


def steps(parent: Element, kind: str, points: list[Place]) -> None:
    """Adds a line of horizontal and vertical steps through at least one point."""
    (x, y), *rest = points
    add(parent, "path", kind, d=f"M{_px(x)} {_px(y)}" + "".join(f"H{_px(x)}V{_px(y)}" for x, y in rest))


def polyline(parent: Element, kind: str, points: list[Place]) -> None:
    """Adds straight lines through the points."""
    add(parent, "path", kind, d="M" + "L".join(f"{_px(x)} {_px(y)}" for x, y in points))


def text(parent: Element, kind: str, at: Place, words: str, anchor: str = "start") -> None:
    """Adds a text. `anchor` is `start`, `middle` or `end`."""
    found = add(parent, "text", kind, x=at[0], y=at[1], **({} if anchor == "start" else {"text_anchor": anchor}))
    found.text = one_line(words)


def mark(parent: Element, row: Row, number: int, at: Place, told: str) -> None:
    """Adds the mark of a result in a series, with a tooltip. The page's script makes it a link to the row."""
    group = SubElement(parent, "g", {"class": f"mark s{number}", "data-row": f"r{row.number}"})
    SubElement(group, "title").text = f"{row.label}\n{told}"
    SubElement(group, "path", {"d": _SHAPES[number], "transform": f"translate({_px(at[0])},{_px(at[1])})"})


def key(number: int) -> str:
    """Returns the mark of a series for a legend."""
    found = Element("svg", {"viewBox": "-6 -6 12 12", "width": "12", "height": "12", "aria-hidden": "true"})
    add(found, "path", f"mark s{number}", d=_SHAPES[number])
    return markup(found)


def grid_of_x(parent: Element, plot: Plot, axis: LogAxis, title: str) -> None:
    """Adds a logarithmic axis at the bottom, with its grid lines and title."""
    for tick in axis.ticks:
        x = plot.x(axis.at(tick))
        line(parent, "grid", (x, plot.top), (x, plot.bottom))
        text(parent, "tick", (x, plot.bottom + 16), f"{tick:g}", "middle")
    text(parent, "title", (plot.x(0.5), plot.bottom + 36), title, "middle")


def markup(element: Element) -> str:
    """Returns an element as HTML."""
    return tostring(element, encoding="unicode")


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
