"""Charts in Vega-Lite's words become SVG that may stand inside a page: static, small, coloured by the page's style."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import vl_convert

COLOURS = tuple(f"var(--series-{number})" for number in range(8))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
"""As many as have no common factor with the colours, so that both together name many series."""
INK, QUIET, RULE = "var(--ink)", "var(--quiet)", "var(--rule)"

_CONFIG = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelColor": QUIET, "titleColor": INK,
        "gridColor": RULE, "domainColor": QUIET, "tickColor": QUIET, "titlePadding": 6,
    },
    "legend": {
        "labelFontSize": 12, "labelColor": INK, "title": None, "orient": "top", "labelLimit": 160, "symbolOpacity": 1,
        "columnPadding": 16,
    },
}
_ELEMENTS = frozenset({"svg", "g", "path", "line", "text", "tspan", "a", "rect"})
_ATTRIBUTES = frozenset({
    "width", "height", "viewBox", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "fill", "stroke",
    "stroke-width", "stroke-dasharray", "stroke-opacity", "fill-opacity", "opacity", "text-anchor", "font-size",
    "font-weight", "font-style", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
})
"""What is kept of a drawing. The rest is of no use in the page, or could do more than be looked at."""
_DEFAULTS = {("opacity", "1"), ("stroke-width", "1"), ("stroke-opacity", "1"), ("fill-opacity", "1")}
_ROW = re.compile(r"#r[0-9]+$")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?")


def series(names: list[str], *, narrow: bool) -> dict[str, Any]:
    """The encodings that tell series apart by colour and shape; a single one needs no legend."""
    repeat = -(-len(names) // len(COLOURS)), -(-len(names) // len(SHAPES))
    colours, shapes = (COLOURS * repeat[0])[: len(names)], (SHAPES * repeat[1])[: len(names)]
    legend = {"columns": 2 if narrow else 3} if len(names) > 1 else None
    common: dict[str, Any] = {"field": "series", "type": "nominal", "legend": legend}
    return {
        "color": {**common, "scale": {"domain": names, "range": colours}},
        "shape": {**common, "scale": {"domain": names, "range": shapes}},
    }


def svg(spec: dict[str, Any], name: str) -> str:
    """The chart as an element `svg` to stand in HTML; `name` is what a screen reader says it is.

    Marks that have an `href` of `#r` and a number become links to that row, with their description as a tooltip. Raises
    ValueError for a drawing with anything in it that a chart has no use for.
    """
    drawn = vl_convert.vegalite_to_svg({**spec, "config": _CONFIG}, allowed_base_urls=[])
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if element.tag not in _ELEMENTS:
            raise ValueError(f"a chart came out with an element {element.tag!r}")
    for element in list(root.iter()):
        element[:] = [child for child in element if not _invisible(child)]
    for element in list(root.iter()):
        _plain(element)
    root.attrib |= {"role": "img", "aria-label": name}
    return ElementTree.tostring(root, encoding="unicode")


def _invisible(element: Element) -> bool:
    """Frames and backgrounds that have no paint, and groups with nothing in them."""
    if element.tag == "path":
        return "fill" not in element.attrib and "stroke" not in element.attrib
    return element.tag == "g" and not any(child.tag != "g" for child in element.iter())


def _plain(element: Element) -> None:
    """Leaves what is to be seen; a link keeps its row, and tells what it stands for."""
    tooltip = next(_labels(element), None) if element.tag == "a" else None
    target = next((_ROW.search(value) for name, value in element.attrib.items() if name.endswith("href")), None)
    element.attrib = {
        name: _FRACTION.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        for name, value in element.attrib.items() if name in _ATTRIBUTES and (name, value) not in _DEFAULTS
    }
    if target:
        # Not a stop of the keyboard's: the table has the same figures, in an order that makes sense.
        element.attrib |= {"href": target[0], "tabindex": "-1"}
    if tooltip:
        title = Element("title")
        title.text = tooltip
        element.insert(0, title)


def _labels(element: Element) -> Iterator[str]:
    return (child.attrib["aria-label"] for child in element.iter() if "aria-label" in child.attrib)
