"""What the page's table and charts are made from, before anything is drawn."""

from __future__ import annotations

import html
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.report import replay
from inlinebench.report.page import bars, curves, roofline, sets, shares, source
from inlinebench.report.page.axes import FEWEST, MARKS, drawable, log_axis
from inlinebench.report.page.charts import charts
from inlinebench.report.page.details import Facts
from inlinebench.report.page.entries import columns_of, entries
from inlinebench.report.page.matrix import MatrixLine, matrix
from inlinebench.report.rows import Row, arrange
from inlinebench.report.terminal.summary import summary
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.results.times import Roofline, Spread, Timing

from .samples import any_result, result
from .thirty import thirty

BOUND = Roofline(2_000_000, 8_000_000_000, 0.001, 0.04, "compute")  # 2 TB/s, 200 TFLOP/s
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
    drawn = bars.speedup(Spread(1.5, 0.0, math.inf), log_axis([1.0, 2.0]))
    assert not any(word in drawn for word in ("nan", "inf ", "inf\""))


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


def test_fast_p_is_not_drawn_for_library_solutions_beside_others() -> None:
    kernels = result("p/fast", speedup=2.0), result("p/naive", speedup=1.5)
    library = result("p/library", speedup=3.0)

    def curves_of(*results: Result) -> tuple[int, str]:
        (drawn,) = [each for each in charts(rows(*results)).figures if each.title == "fast_p"]
        return drawn.wide.count('class="curve'), drawn.caption

    drawn = curves_of(*kernels)
    assert curves_of(*kernels, library) == curves_of(*kernels, result("p/library", Verdict.WRONG)) == drawn
    assert drawn[0] == 2 and curves_of(library)[0] == 1


def test_the_roofline_has_rates_and_ceilings_of_the_work_that_was_counted() -> None:
    shown = roofline.points(rows(
        with_roofline("p/a", BOUND, 0.08, environment=H100), with_roofline("p/b", BOUND, 0.16, environment=H100),
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
    drawn = roofline.chart(shown, {"a": 0, "b": 1}, width=640, height=400, most=8)
    assert {name.strip() for name in re.findall(r"(?:GB|TFLOP)/s,([^<]*)</text>", drawn)} == {"B200", "H100"}


def workload(name: str, shape: str, reference_ms: float, speedup: float, **facts: Any) -> Result:
    reference, solution = (Spread(ms, ms, ms) for ms in (reference_ms, reference_ms / speedup))
    timing = Timing(reference, solution, Spread(speedup, speedup, speedup))
    return result(name, shape=shape, weight=1.0, timing=timing, **facts)


def test_a_set_has_a_curve_of_each_solution_over_the_references_time() -> None:
    found = rows(
        *(workload("norm/fast", f"{ms}", ms, 2.0) for ms in (3.0, 1.0, 2.0)),
        *(workload("norm/slow", f"{ms}", ms, 0.5) for ms in (1.0, 2.0)),  # too few for a curve
        *(workload("gemm/fast", f"{ms}", ms, 1.5) for ms in (1.0, 2.0)),
        workload("norm/fast", "2.0", 2.5, 4.0),  # a later result of the same workload
        result("norm/fast", shape="4.0", weight=1.0, verdict=Verdict.WRONG),
        with_roofline("norm/fast", BOUND),  # not of the set
    )
    (only,) = sets.sets(found)
    assert only.problem == "norm"
    assert {name: [(timing.reference_ms.median, timing.speedup.median) for _, timing in points]
            for name, points in only.solutions.items()} == {"fast": [(1.0, 2.0), (2.5, 4.0), (3.0, 2.0)]}
    drawn = ElementTree.fromstring(sets.chart(only, {"fast": 0}, width=640, height=320, most=8))
    (curve,) = drawn.iterfind("./path[@class='curve s0']")
    assert re.fullmatch(r"M[\d. ]+(L[\d. ]+){2}", curve.attrib["d"])
    assert len(drawn.findall("./g")) == 3
    assert [figure.title for figure in charts(found).figures if figure.key.startswith("set")] == ["Workloads of norm"]


@settings(max_examples=40)
@given(st.lists(any_result(), min_size=1, max_size=6))
def test_any_results_make_charts_and_bars_of_finite_numbers(results: list[Result]) -> None:
    arranged = arrange(results).rows
    axis = bars.speedup_axis(arranged)
    drawn = [svg for figure in charts(arranged).figures for svg in (figure.wide, figure.narrow)]
    drawn += [bars.speedup(row.timing.speedup, axis) for row in arranged if row.timing is not None]
    for each in drawn:
        for _, value in (pair for element in ElementTree.fromstring(each).iter() for pair in element.items()):
            assert not re.search(r"\b(nan|inf)\b", value)


def test_seven_solutions_have_a_series_each_and_the_others_share_one() -> None:
    found = charts(rows(*(with_roofline(f"p/s{number}", BOUND) for number in range(10))))
    assert [name for _, name in found.legend] == [*(f"s{number}" for number in range(7)), "3 others"]
    assert len({mark for mark, _ in found.legend}) == 8
    assert charts(rows(with_roofline("p/s", BOUND))).legend == ()


def test_a_drawing_is_static_and_has_no_element_that_could_do_more() -> None:
    found = charts(arrange(thirty()).rows).figures
    assert [figure.key for figure in found] == ["shares", "roofline", "fast-p"]
    for figure in found:
        for drawn in (figure.wide, figure.narrow):
            root = ElementTree.fromstring(drawn)
            assert {element.tag for element in root.iter()} <= {"svg", "g", "title", "path", "text"}
            assert not {name for element in root.iter() for name in element.attrib} & {"style", "id", "href", "onclick"}


def test_the_problem_farthest_from_the_roofline_comes_first_by_its_best_solution() -> None:
    found = shares.shares(rows(with_roofline("p/a", BOUND, 0.08), with_roofline("p/b", BOUND, 0.4),
                               with_roofline("q/a", BOUND, 0.16), result("r/a", speedup=2.0)), with_shape=False)
    assert [(line.label, [round(share, 3) for _, share in line.points]) for line in found] == [
        ("q", [0.25]), ("p", [0.5, 0.1])]


def cells(line: MatrixLine) -> list[tuple[str, bool] | None]:
    return [None if cell is None else (cell.text, cell.best) for cell in line.cells]


def test_the_matrix_marks_the_fastest_solution_and_says_by_how_much() -> None:
    found = matrix(rows(result("p/a", speedup=2.0), result("p/b", speedup=3.0), result("p/c", Verdict.WRONG),
                        result("q/b", speedup=0.5)))
    assert found.columns == ("a", "b", "c")
    assert [cells(line) for line in found.lines] == [
        [("2.00\N{MULTIPLICATION SIGN}", False), ("3.00\N{MULTIPLICATION SIGN}", True), ("wrong", False)],
        [None, ("0.500\N{MULTIPLICATION SIGN}", True), None]]
    assert [line.lead for line in found.lines] == ["1.50\N{MULTIPLICATION SIGN}", ""]
    assert [cell.kind for line in found.lines for cell in line.cells if cell] == ["faster", "faster", "red", "slower"]


def test_solutions_whose_intervals_overlap_are_equally_fast() -> None:
    (line,) = matrix(rows(result("p/a", speedup=2.0), result("p/b", speedup=2.01), result("p/c", speedup=1.0))).lines
    assert ([best for _, best in filter(None, cells(line))], line.lead) == ([True, True, False], "tie")


def test_a_matrix_of_many_solutions_lists_the_fastest_of_each_problem() -> None:
    found = matrix(rows(*(result(f"p/s{number}", speedup=1.0 + number) for number in range(12)),
                        result("p/bad", Verdict.WRONG)))
    (line,) = found.lines
    assert found.columns == ()
    assert [cell.row.solution for cell in line.cells if cell] == [f"s{number}" for number in range(11, 3, -1)]
    assert line.left_out == 5


def test_each_shape_has_its_line_in_the_matrix_and_the_cpu_too() -> None:
    found = matrix(rows(result("p/a", speedup=2.0), result("p/a", shape="odd"), result("p/a", device="cpu")))
    assert [line.shape for line in found.lines] == ["full on cpu", "full on cuda", "odd on cuda"]


def test_columns_of_the_page_begin_with_verdict_and_speedup() -> None:
    names = list(columns_of(arrange(thirty())))
    assert names == ["problem", "solution", "verdict", "speedup", "over compile", "% of roofline", "error / tolerance",
                     "reference ms", "solution ms", "wall ms", "own kernels"]


def test_memory_is_a_column_of_numbers_and_is_told_with_the_first_call_in_the_details() -> None:
    one = Spread(1.0, 1.0, 1.0)
    found = result("p/a", memory=Memory(100 * MIB, 0, 64 * MIB),
                   timing=Timing(one, one, one, first_call_ms=812.0, load_ms=35.0))
    (entry,) = entries(arrange([found]), {}, [])
    (cell,) = (cell for cell in entry.cells if cell.kind == "memory-MiB")
    assert (cell.text, cell.key) == ("100", "100.0")
    told = {name: text for each in entry.details.facts if isinstance(each, Facts) for name, text in each.pairs}
    assert (told["solution"], told["reference"]) == ("100 MiB", "0 MiB")
    assert told["of which not from PyTorch's allocator"] == "64.0 MiB"
    assert (told["first call in the process"], told["loading the solution"]) == (
        "812 ms by the host", "35.0 ms by the host")


SOURCE = '''import torch

CUDA = r"""
__global__ void scale(float* x) {
  x[blockIdx.x] = undeclared;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        raise ValueError(x)
'''


def test_a_source_is_highlighted_in_both_languages_and_keeps_its_text() -> None:
    found = source.lines(SOURCE, "", "s.py")
    assert "\n".join(html.unescape(re.sub(r"</?span[^>]*>", "", line.code)) for line in found) == SOURCE
    assert '<span class="k">import</span>' in found[0].code
    assert '<span class="t">float</span>' in found[3].code


@pytest.mark.parametrize(("reason", "named"), [
    ('cuda_sources:3: error: identifier "undeclared" is undefined\n    3 |   x[blockIdx.x] = undeclared;\n'
     "      |                   ^", [5]),
    ("ValueError: 1 (s.py, line 12)", [12]),
    ("ValueError: 1 (other.py, line 12)", []),
    ("no kernel of its own ran", []),
])
def test_the_lines_that_a_reason_names_are_found_in_the_source(reason: str, named: list[int]) -> None:
    found = source.lines(SOURCE, reason, "s.py")
    assert [line.number for line in found if line.named] == named
    shown = source.excerpt(found)
    assert [line.number for line in shown] == (list(range(named[0] - 4, min(named[0] + 4, 13) + 1)) if named else [])


def test_a_quoted_line_that_occurs_often_names_nothing() -> None:
    found = source.lines("}\n" * 9, "cuda_sources:3: error\n    3 | }", "s.py")
    assert not any(line.named for line in found)


@pytest.mark.parametrize(("found", "command"), [
    (result("p/s", seed=7), "inlinebench run --shape full --seed 7 p/s"),
    (result("p/s", shape="N=4,M=2", device="cpu"), "inlinebench run --set N=4 --set M=2 --device cpu p/s"),
    (result("p/s", shape="full+backward", backward=True), "inlinebench run --shape full --backward p/s"),
    (result("p; rm -r ~/s"), "inlinebench run --shape full 'p; rm -r ~/s'"),
    (result("-p/s"), "inlinebench run --shape full -- -p/s"),
])
def test_the_command_repeats_the_evaluation(found: Result, command: str) -> None:
    assert replay.command(found) == command
