"""Renders Vega-Lite charts as small static SVG for embedding in the page, with colours from the page's style."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import vl_convert

COLOURS = tuple(f"var(--series-{number})" for number in range(8))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
"""Their number has no common factor with the number of colours, so that the combinations distinguish many series."""
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
"""The allowed elements and attributes. All others are useless in the page, or active content."""
_DEFAULTS = {("opacity", "1"), ("stroke-width", "1"), ("stroke-opacity", "1"), ("fill-opacity", "1")}
_ROW = re.compile(r"#r[0-9]+$")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?")


def series(names: list[str], *, narrow: bool) -> dict[str, Any]:
    """Returns the encodings that distinguish series by colour and shape. A single series has no legend."""
    repeat = -(-len(names) // len(COLOURS)), -(-len(names) // len(SHAPES))
    colours, shapes = (COLOURS * repeat[0])[: len(names)], (SHAPES * repeat[1])[: len(names)]
    legend = {"columns": 2 if narrow else 3} if len(names) > 1 else None
    common: dict[str, Any] = {"field": "series", "type": "nominal", "legend": legend}
    return {
        "color": {**common, "scale": {"domain": names, "range": colours}},
        "shape": {**common, "scale": {"domain": names, "range": shapes}},
    }


def svg(spec: dict[str, Any], name: str) -> str:
    """Renders a chart as an `svg` element for HTML. `name` is its label for screen readers.

    Marks with an `href` of `#r` and a number become links to that row, with their description as a tooltip. Raises
    ValueError if the drawing has an element that is not allowed.
    """
    drawn = vl_convert.vegalite_to_svg({**spec, "config": _CONFIG}, allowed_base_urls=[])
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if element.tag not in _ELEMENTS:
            raise ValueError(f"the chart has an element {element.tag!r}, which is not allowed")
    for element in list(root.iter()):
        element[:] = [child for child in element if not _invisible(child)]
    for element in list(root.iter()):
        _plain(element)
    root.attrib |= {"role": "img", "aria-label": name}
    return ElementTree.tostring(root, encoding="unicode")


def _invisible(element: Element) -> bool:
    """Whether an element is an unpainted frame or background, or an empty group."""
    if element.tag == "path":
        return "fill" not in element.attrib and "stroke" not in element.attrib
    return element.tag == "g" and not any(child.tag != "g" for child in element.iter())


def _plain(element: Element) -> None:
    """Removes all attributes that are not allowed. A link keeps its row and gets a tooltip."""
    tooltip = next(_labels(element), None) if element.tag == "a" else None
    target = next((_ROW.search(value) for name, value in element.attrib.items() if name.endswith("href")), None)
    element.attrib = {
        name: _FRACTION.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        for name, value in element.attrib.items() if name in _ATTRIBUTES and (name, value) not in _DEFAULTS
    }
    if target:
        # Not in the tab order: the table has the same figures in a meaningful order.
        element.attrib |= {"href": target[0], "tabindex": "-1"}
    if tooltip:
        title = Element("title")
        title.text = tooltip
        element.insert(0, title)


def _labels(element: Element) -> Iterator[str]:
    return (child.attrib["aria-label"] for child in element.iter() if "aria-label" in child.attrib)
