"""What the page's table and charts are made from, before anything is drawn."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.records.result import Environment, Result, Verdict
from inlinebench.records.times import Roofline, Spread, Timing
from inlinebench.report.page import curves, draw, roofline, strips
from inlinebench.report.page.axes import FEWEST, MARKS, drawable, log_axis
from inlinebench.report.page.charts import figures
from inlinebench.report.rows import Row, arrange
from inlinebench.report.terminal.summary import summary

from .samples import any_result, result
from .thirty import thirty

H100, B200 = (Environment("2.11", "0.1", gpu=name) for name in ("H100", "B200"))


def rows(*results: Result) -> tuple[Row, ...]:
    return arrange(results).rows


def with_roofline(name: str, bound: Roofline, solution_ms: float = 1.0, **facts: Any) -> Result:
    spread = Spread(solution_ms, solution_ms, solution_ms)
    return result(name, timing=Timing(spread, spread, Spread(1.0, 1.0, 1.0), roofline=bound), **facts)


def test_rows_come_in_natural_order_with_numbers_to_link_to() -> None:
    table = arrange([result("10_gelu/naive"), result("9_relu/naive"), result("9_relu/fast")])
    assert [(row.number, row.label) for row in table.rows] == [
        (1, "9_relu/fast"), (2, "9_relu/naive"), (3, "10_gelu/naive")]


def test_labels_name_what_differs_and_no_two_are_the_same() -> None:
    found = rows(result("p/s"), result("p/s"), result("p/s", shape="odd"), result("p/s", device="cuda:1"))
    assert [row.label for row in found] == [
        "p/s (full) on cuda:0", "p/s (full) on cuda:0 #2", "p/s (full) on cuda:1", "p/s (odd) on cuda:0"]


def test_columns_that_say_nothing_are_left_out() -> None:
    assert list(arrange([result()]).columns) == ["problem", "solution", "verdict", "error / tolerance"]
    table = arrange([result(speedup=2.0), result(shape="odd", device="cuda:1")])
    assert list(table.columns)[:5] == ["problem", "solution", "shape", "device", "verdict"]
    assert table.columns["speedup"] and not table.columns["device"]


def test_cells_are_sorted_by_what_they_show_and_the_absent_by_nothing() -> None:
    table = arrange([result("p/a", speedup=2.0), result("p/b", Verdict.WRONG)])
    keys = [dict(row.named(table.columns))["speedup"].key for row in table.rows]
    assert keys == ["2.0", ""]


@given(st.lists(any_result(), max_size=5))
def test_keys_of_numbers_are_numbers_to_javascript(results: list[Result]) -> None:
    table = arrange(results)
    for row in table.rows:
        for name, cell in row.named(table.columns):
            if table.columns[name] and cell.key:
                assert not math.isnan(float(cell.key)) and "inf" not in cell.key


_positive = st.floats(1e-99, 1e99)


@given(st.lists(_positive, min_size=1, max_size=5), st.integers(5, 12))
def test_an_axis_holds_all_values_and_a_few_marks(values: list[float], most: int) -> None:
    axis = log_axis(values, most=most)
    assert all(axis.low < value < axis.high for value in values)
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 1 <= len(axis.ticks) <= max(most, MARKS + FEWEST)


@pytest.mark.parametrize(("low", "high", "ticks"), [
    (0.5, 2.0, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0)),
    (0.06, 40.0, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)),
    (0.006, 40.0, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)),
    (0.99, 1.01, (0.99, 0.995, 1.0, 1.005, 1.01)),
    (1e-4, 1e6, (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6)),
])
def test_marks_are_round(low: float, high: float, ticks: tuple[float, ...]) -> None:
    assert log_axis([low, high], room=1.0).ticks == ticks


def test_what_has_no_place_on_a_logarithmic_axis_is_not_drawn() -> None:
    assert [value for value in (0.0, -1.0, math.inf, math.nan, 1e-200, 1.0) if drawable(value)] == [1.0]
    odd = Timing(Spread(0.0, -0.1, 0.1), Spread(1.0, -1.0, 2.0), Spread(1.5, 0.0, 3.0))
    ((_, marks),) = strips.times(rows(result(timing=odd)))
    assert [mark.series for mark in marks] == ["solution"]
    chart = strips.chart(strips.times(rows(result(timing=odd))), "ms", ["solution"], narrow=False)
    (point,) = chart["layer"][-1]["data"]["values"]
    assert 0 < point["low"] < point["median"] < point["high"]


def test_speedups_come_highest_first_and_never_from_the_cpu() -> None:
    found = strips.speedups(rows(result("p/a", speedup=0.5), result("p/b", speedup=2.0), result("p/c"),
                                 result("p/d", speedup=9.0, device="cpu")))
    assert [row.label for row, _ in found] == ["p/b on cuda:0", "p/a on cuda:0"]


def test_a_long_label_keeps_both_ends() -> None:
    chart = strips.chart(strips.speedups(rows(result("p" * 60 + "/fast", speedup=2.0))), "x", ["fast"], narrow=True)
    (label,) = chart["layer"][1]["data"]["values"]
    assert label["label"].endswith("p/fast") and len(label["label"]) == strips.LONGEST_LABEL


@settings(max_examples=40)
@given(st.lists(any_result(), max_size=6))
def test_a_curve_says_at_each_p_what_the_summary_says(results: list[Result]) -> None:
    known = {entry.solution: entry for entry in summary(results) if entry.level is None}
    for curve in curves.curves(arrange(results).rows):
        entries = [entry for name, entry in known.items() if (" ".join(name.split()) or "—") == curve.solution]
        if len(entries) == 1:  # names that look the same share a curve
            assert {p: curve.above(p) for p in entries[0].fast} == pytest.approx(dict(entries[0].fast))


def test_a_solution_without_known_speedups_has_no_curve() -> None:
    found = curves.curves(rows(result("p/a", speedup=2.0), result("q/a"), result("p/b", speedup=2.0),
                               result("q/b", Verdict.WRONG), result("p/c", Verdict.WRONG)))
    assert [(curve.solution, curve.tried, curve.speedups) for curve in found] == [("b", 2, (2.0,))]


def test_the_roofline_has_rates_and_ceilings_of_the_work_that_was_counted() -> None:
    bound = Roofline(2_000_000, 8_000_000_000, 0.001, 0.04, "compute")  # 2 TB/s, 200 TFLOP/s
    shown = roofline.points(rows(
        with_roofline("p/a", bound, 0.08, environment=H100), with_roofline("p/b", bound, 0.16, environment=H100),
        with_roofline("q/a", Roofline(2_000_000, 0, 0.001, 0.0, "memory"), environment=H100),
        result("q/b", speedup=2.0),
    ))
    assert [(point.row.label, point.intensity, pytest.approx(point.rate)) for point in shown] == [
        ("p/a", 4000.0, 100.0), ("p/b", 4000.0, 50.0)]
    (machine,) = roofline.ceilings(shown)
    assert (machine.machine, machine.bytes_s, machine.tflops) == (
        "H100", (pytest.approx(2e12),), (pytest.approx(200.0),))


def test_each_machine_has_its_own_ceilings() -> None:
    shown = roofline.points(rows(
        with_roofline("p/a", Roofline(2_000_000, 8_000_000, 0.001, 0.04, "compute"), environment=H100),
        with_roofline("p/b", Roofline(2_000_000, 8_000_000, 0.0005, 0.02, "compute"), environment=B200),
    ))
    assert [each.machine for each in roofline.ceilings(shown)] == ["B200", "H100"]
    labels = roofline.chart(shown, ["a", "b"], narrow=False)["layer"][1]["data"]["values"]
    assert {label["label"].partition(", ")[2] for label in labels} == {"B200", "H100"}


@settings(max_examples=40)
@given(st.lists(any_result(), min_size=1, max_size=6))
def test_any_results_make_charts_of_finite_numbers(results: list[Result]) -> None:
    arranged = arrange(results).rows
    names = sorted({row.solution for row in arranged})
    made = [(strips.speedups, strips.chart), (strips.times, strips.chart)]
    for lines, chart in made:
        if found := lines(arranged):
            json.dumps(chart(found, "title", names, narrow=False), allow_nan=False)
    if curved := curves.curves(arranged):
        json.dumps(curves.chart(curved, names, narrow=True), allow_nan=False)


def test_many_solutions_are_told_apart_by_colour_and_shape() -> None:
    names = [f"sample_{number}" for number in range(30)]
    encoding = draw.series(names, narrow=False)
    pairs = set(zip(encoding["color"]["scale"]["range"], encoding["shape"]["scale"]["range"], strict=True))
    assert len(pairs) == len(names)
    assert draw.series(["only"], narrow=False)["color"]["legend"] is None


def test_a_drawing_is_static_and_has_no_element_that_could_do_more() -> None:
    for figure in figures(arrange(thirty()).rows):
        for drawing in (figure.wide, figure.narrow):
            assert drawing.startswith("<svg ") and 'role="img"' in drawing
            assert not any(word in drawing for word in ("<image", "<script", "url(", "style=", "id=", "NaN", "xmlns"))


def test_a_drawing_with_a_foreign_element_is_refused() -> None:
    spec: dict[str, Any] = {"data": {"values": [{"address": "data:image/png;base64,"}]},
                            "mark": {"type": "image", "width": 9, "height": 9},
                            "encoding": {"url": {"field": "address"}}}
    with pytest.raises(ValueError, match="image"):
        draw.svg(spec, "planted")
    assert draw.svg({**spec, "mark": "point", "encoding": {}}, "honest").startswith("<svg ")
