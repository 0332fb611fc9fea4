"""Draws docs/roofline.svg: the kernels of docs/results.md below the peak rates of the GPU that they were measured on.

    python benchmarks/roofline_plot.py docs/roofline.svg

Times and peaks are those above the first section of docs/results.md. Operations and bytes come from a problem's `work`,
or are counted while its reference runs without values. Problems without counted operations, such as normalizations,
have no place in the picture.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch.utils.flop_counter import FlopCounterMode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness")]

from inlinebench.report.page import svg  # noqa: E402
from inlinebench.report.page.axes import log_axis  # noqa: E402

WIDTH, HEIGHT = 860, 520
LETTER, LINE = 6.5, 12  # of labels, in pixels: the width of a letter, and the distance of lines
STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fff; }
.grid { stroke: #e4e4e4; } .ceiling { stroke: #555; stroke-width: 1.5; } .dot { fill: #00796b; }
.leader { stroke: #9ab; }
.tick, .label, .title { fill: #555; } .name { fill: #222; font-size: 11px; }
"""
_ROW = re.compile(r"^\| \S+ \| `(\w+)` \| `fast` \| passed \|.*$", re.MULTILINE)


@dataclass(frozen=True)
class Point:
    """A kernel in the picture."""

    name: str
    """Its problem."""
    intensity: float
    """Its work, in operations per byte."""
    rate: float
    """What it achieves, in TFLOP/s."""


def milliseconds(page: str) -> dict[str, float]:
    """Returns the device time of each problem's solution `fast` in the tables of a page, in ms."""
    found = {}
    for table in page.split("\n\n"):
        heads = [cell.strip() for cell in table.partition("\n")[0].split("|")]
        for row in _ROW.finditer(table):
            found[row[1]] = float(row[0].split("|")[heads.index("solution ms")])
    return found


def work(problem: Path) -> tuple[float, float]:
    """Returns operations and bytes of one call of a problem's reference at its full size."""
    spec = importlib.util.spec_from_file_location(problem.stem, problem)
    assert spec and spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "work"):
        stated = module.work()
        return stated.get("flops", 0), stated["bytes"]
    with torch.device("meta"), torch.no_grad():
        model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
        with FlopCounterMode(display=False) as counter:
            outputs = model(*inputs)
    tensors = [*inputs, *model.parameters(), *(outputs if isinstance(outputs, tuple) else (outputs,))]
    moved = sum(each.numel() * each.element_size() for each in tensors if isinstance(each, torch.Tensor))
    return counter.get_total_flops(), moved


def points(page: str) -> Iterator[Point]:
    """Yields the kernels of a page whose problems have counted operations."""
    for name, time in milliseconds(page).items():
        flops, moved = work(ROOT / "problems" / f"{name}.py")
        if flops:
            yield Point(name, flops / moved, flops / time / 1e9)


def peaks(page: str) -> tuple[float, dict[str, float]]:
    """Returns the first bandwidth of a page in bytes/s, and the rates of float32 and float16 in TFLOP/s."""
    bandwidth = re.search(r"copy (\d+) GB/s", page)
    rates = {kind: re.search(rf"\b{kind} (\d+) TFLOP/s", page) for kind in ("float32", "float16")}
    assert bandwidth and all(rates.values())
    return float(bandwidth[1]) * 1e9, {kind: float(rate[1]) for kind, rate in rates.items() if rate}


def picture(shown: list[Point], bandwidth: float, rates: dict[str, float]) -> str:
    """Returns the picture as SVG."""
    x_axis = log_axis([point.intensity for point in shown], room=6.0)
    y_axis = log_axis([*(point.rate for point in shown), *rates.values()], room=1.8)
    plot = svg.Plot(54, 26, WIDTH - 74, HEIGHT - 74)
    drawn = svg.drawing(WIDTH, HEIGHT, "Roofline of the bundled kernels")
    drawn.set("xmlns", "http://www.w3.org/2000/svg")
    svg.add(drawn, "style", "").text = STYLE
    svg.grid_of_x(drawn, plot, x_axis, "operations per byte")
    for tick in y_axis.ticks:
        y = plot.y(y_axis.at(tick))
        svg.line(drawn, "grid", (plot.left, y), (plot.right, y))
        svg.text(drawn, "tick", (plot.left - 8, y + 4), f"{tick:g}", "end")
    svg.text(drawn, "title", (0, 12), "achieved TFLOP/s")
    low = max(x_axis.low, y_axis.low * 1e12 / bandwidth)
    top = max(rates.values()) * 1e12 / bandwidth

    def place(x: float, y: float) -> svg.Place:
        return plot.x(x_axis.at(x)), plot.y(y_axis.at(y))

    svg.line(drawn, "ceiling", place(low, low * bandwidth / 1e12), place(top, top * bandwidth / 1e12))
    svg.text(drawn, "label", place(low * 2, low * 3.2 * bandwidth / 1e12), f"{bandwidth / 1e9:g} GB/s", "end")
    for kind, rate in rates.items():
        svg.line(drawn, "ceiling", place(rate * 1e12 / bandwidth, rate), place(x_axis.high, rate))
        svg.text(drawn, "label", (plot.right, place(1, rate)[1] - 6), f"{kind}: {rate:g} TFLOP/s", "end")
    dots = [(point.name, *place(point.intensity, point.rate)) for point in shown]
    for _, x, y in dots:
        svg.add(drawn, "circle", "dot", cx=x, cy=y, r=4)
    for (name, x, y), beside in zip(dots, label_heights(dots), strict=True):
        svg.text(drawn, "name", (x + 8, beside + 4), name)
        if beside > y:
            svg.line(drawn, "leader", (x, y), (x + 7, beside))
    return svg.markup(drawn) + "\n"


def label_heights(dots: list[tuple[str, float, float]]) -> list[float]:
    """Returns the y of the label of each dot, the upper dots first: beside it, or further down if another is there."""
    placed: list[tuple[float, float, float]] = []
    for name, x, beside in dots:
        y, end = beside, x + LETTER * len(name)
        while any(abs(y - other) < LINE and x < right and left < end for left, right, other in placed):
            y += 1
        placed.append((x, end, y))
    return [y for _, _, y in placed]


def main() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    page = text.split("\n## ")[0]
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "roofline.svg"
    target.write_text(picture(sorted(points(page), key=lambda point: -point.rate), *peaks(page)), encoding="utf-8")


if __name__ == "__main__":
    main()
