from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.terminal.table import NO_SPEEDUP, remarks_on, table
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Kernels, Result, Verdict
from inlinebench.results.times import Baseline, PassTimes, Roofline, Spread, Timing

from ..hostile import faults
from .samples import FAILURES, any_result, check, result


def rows(text: str) -> list[list[str]]:
    """Returns the cells of the table's rows, which are separated by two spaces or more."""
    lines = text.partition("\n\n")[0].splitlines()
    return [[cell for cell in map(str.strip, line.split("  ")) if cell] for line in lines[2:]]


def test_a_passed_row_has_error_times_and_interval() -> None:
    timing = Timing(Spread(2.81, 2.79, 2.83), Spread(0.1049, 0.104, 0.106), Spread(26.81, 26.5, 27.13))
    assert rows(table([result(timing=timing)])) == [
        ["matmul_diag", "naive", "passed", "3.1e-07 / 1e-04", "2.81", "0.105", "26.8 [26.5, 27.1]"]
    ]


def test_absent_values_are_dashes() -> None:
    text = table([result(verdict=Verdict.SKIPPED, reason="needs 9 GiB, 8 GiB are there")])
    assert rows(text) == [["matmul_diag", "naive", "skipped", "—"]]
    timed = table([result("p/s", speedup=2.0), result("p/t", Verdict.SKIPPED, reason="no")])
    assert rows(timed)[1] == ["p", "t", "skipped", "—", "—", "—", "—"]


def test_the_share_of_own_kernels_is_shown_if_known() -> None:
    known = result("p/known", kernels=Kernels(0.0953))
    assert [row[-1] for row in rows(table([known, result("p/unknown")]))] == ["9.5%", "—"]
    assert "own kernels" not in table([result()])


def test_the_memory_of_a_call_is_shown_if_known() -> None:
    known = [result(f"p/{name}", memory=Memory(size, 0), kernels=Kernels(1.0))
             for name, size in (("a", 0), ("b", 100 * MIB), ("c", 3 * MIB // 2))]
    text = table([*known, result("p/unknown", kernels=Kernels(1.0))])
    assert [row[-2:] for row in rows(text)] == [["0", "100.0%"], ["100", "100.0%"], ["1.50", "100.0%"], ["—", "100.0%"]]
    assert "memory MiB" in text and "memory MiB" not in table([result()])


def test_flags_and_notes_of_passed_results_come_last() -> None:
    timing = Timing(Spread(2.0, 1.9, 2.1), Spread(1.0, 0.9, 1.1), Spread(2.0, 1.9, 2.1), flags=("it waits",))
    text = table([result("p/s", timing=timing, check=check(notes=("output converted",))), result("p/t")])
    assert text.splitlines()[-2:] == ["p/s: it waits", "p/s: output converted"]
    assert "it waits" not in table([result("p/s", timing=timing, device="cpu")])  # times on the CPU are not shown


def test_rows_are_sorted_by_problem_solution_and_shape() -> None:
    names = [("b/x", "full"), ("a/y", "small"), ("a/y", "full"), ("a/x", "full")]
    text = table([result(name, shape=shape) for name, shape in names])
    assert [row[:3] for row in rows(text)] == [
        ["a", "x", "full"],
        ["a", "y", "full"],
        ["a", "y", "small"],
        ["b", "x", "full"],
    ]


def test_there_is_a_shape_column_only_for_several_shapes() -> None:
    assert "shape" not in table([result()])
    assert "shape" in table([result(), result(shape="odd")]).splitlines()[0]


def test_a_single_shape_that_is_not_full_is_named() -> None:
    assert "Shape: small" in table([result(shape="small")]).splitlines()


@pytest.mark.parametrize("verdict", FAILURES)
def test_each_failure_and_skip_has_a_line_with_its_reason(verdict: Verdict) -> None:
    text = table([result("p/good"), result("p/bad", verdict, reason="first part\nsecond part")])
    assert text.splitlines()[-1] == f"p/bad: {verdict}: first part"
    assert "p/good:" not in text


def test_a_failure_names_its_shape_if_there_are_several() -> None:
    text = table([result("p/s"), result("p/s", Verdict.WRONG, shape="odd")])
    assert text.splitlines()[-1] == "p/s (odd): wrong: because"


def test_a_blank_reason_still_gives_a_line() -> None:
    assert table([result("p/s", Verdict.CRASHED, reason=" \n")]).endswith("p/s: crashed: no reason given")


def test_results_on_the_cpu_have_no_speedup_and_one_line_says_why() -> None:
    text = table([result("a/naive", speedup=2.0, device="cpu"), result("b/naive", speedup=3.0, device="cpu")])
    assert "speedup" not in text.splitlines()[0] and " ms" not in text
    assert text.count(NO_SPEEDUP) == 1
    assert NO_SPEEDUP not in table([result(speedup=2.0)])


def test_verbose_shows_times_on_the_cpu() -> None:
    text = table([result("a/naive", speedup=2.0, device="cpu")], verbose=True)
    assert "solution ms" in text.splitlines()[0] and "speedup" not in text.splitlines()[0]


def test_wall_time_roofline_and_baselines_have_columns_if_known() -> None:
    one = Spread(1.0, 0.9, 1.1)
    timing = Timing(one, one, one, wall_ms=Spread(2.5, 2.4, 2.6), roofline=Roofline(8, 8, 0.25, 0.5, "compute"),
                    baselines=(Baseline("compile", one, Spread(1.5, 1.4, 1.6)),))
    text = table([result("p/a", timing=timing), result("p/b", timing=Timing(one, one, one))])
    header = [cell for cell in map(str.strip, text.splitlines()[0].split("  ")) if cell]
    assert header[-4:] == ["wall ms", "speedup", "over compile", "% of roofline"]
    assert [row[-4:] for row in rows(text)] == [
        ["2.50", "1.00 [0.900, 1.10]", "1.50 [1.40, 1.60]", "50.0%"], ["—", "1.00 [0.900, 1.10]", "—", "—"]
    ]


def test_the_speedups_of_forward_and_backward_have_columns_if_a_result_has_them() -> None:
    one = Spread(1.0, 0.9, 1.1)
    passes = (PassTimes("forward", one, one, Spread(1.5, 1.4, 1.6)), PassTimes("backward", one, one, one))
    split = result("p/a", backward=True, timing=Timing(one, one, one, (), passes=passes))
    plain = result("p/b", timing=Timing(one, one, one))
    text = table([split, plain])
    header = [cell for cell in map(str.strip, text.splitlines()[0].split("  ")) if cell]
    assert header[-3:] == ["speedup", "forward", "backward"]
    assert [row[-2:] for row in rows(text)] == [["1.50 [1.40, 1.60]", "1.00 [0.900, 1.10]"], ["—", "—"]]
    assert "forward  " not in table([plain]).splitlines()[0]
    assert "forward  " not in table([replace(split, device="cpu")], verbose=True).splitlines()[0]


def over_library(low: float, median: float, high: float) -> Timing:
    one = Spread(1.0, 0.9, 1.1)
    return Timing(one, one, one, baselines=(Baseline("library", one, Spread(median, low, high)),))


def test_a_kernel_that_is_slower_than_the_library_solution_says_so() -> None:
    slower = result("p/fast", timing=over_library(0.8, 0.85, 0.9))
    assert remarks_on(slower) == ["slower than the library solution: 0.850 [0.800, 0.900] times as fast"]
    text = table([slower, result("p/library", speedup=1.2)])
    assert "over library" in text.splitlines()[0]
    assert "p/fast: slower than the library solution: 0.850 [0.800, 0.900] times as fast" in text.splitlines()


@pytest.mark.parametrize("found", [
    result("p/fast", timing=over_library(0.9, 0.98, 1.01)), result("p/fast", timing=over_library(1.1, 1.2, 1.3)),
    result("p/fast", timing=over_library(0.8, 0.85, 0.9), device="cpu"), result("p/fast", speedup=0.5),
])
def test_a_kernel_that_may_be_as_fast_as_the_library_solution_is_not_blamed(found: Result) -> None:
    assert remarks_on(found) == []


@pytest.mark.parametrize(
    ("error", "tolerance", "shown"),
    [
        (0.0, 1e-4, "0 / 1e-04"),
        (-1e-9, 1e-4, "0 / 1e-04"),
        (3.14159e-7, 2.5e-4, "3.1e-07 / 2.5e-04"),
        (1.001e-4, 1e-4, "1.001e-04 / 1e-04"),
        (12.0, 0.0, "1.2e+01 / 0"),
        (float("inf"), 1e-4, "inf / 1e-04"),
        (float("nan"), 1e-4, "nan / 1e-04"),
    ],
)
def test_the_error_has_enough_digits_to_compare_with_the_tolerance(error: float, tolerance: float, shown: str) -> None:
    facts = check(worst_error=error, tolerance=tolerance)
    assert rows(table([result(verdict=Verdict.WRONG, check=facts)]))[0][3] == shown


def test_without_results_the_table_says_so() -> None:
    assert table([]) == "Nothing was evaluated."


@given(st.lists(any_result(), max_size=6))
def test_any_results_make_a_table_with_a_line_for_each_failure(results: list[Result]) -> None:
    text = table(results)
    assert faults(text) == []
    failed = [found for found in results if found.verdict is not Verdict.PASSED]
    if failed:
        lines = text.split("\n\n")[-1].split("\n")
        assert len([line for line in lines if not line.startswith(" ")]) == len(failed)


def test_the_source_line_that_a_reason_quotes_is_below_it() -> None:
    reason = "a:2:5: error: x\n    2 |   \ty;\x1b[2J\n      |   ^\nb:3: error: y\n    3 | z"
    text = table([result("p/s", Verdict.BUILD_FAILED, reason=reason)])
    assert text.endswith(
        "p/s: build_failed: a:2:5: error: x\n  |     2 |         y;\\x1b[2J\n  |       |   ^")


def test_the_table_says_which_calls_have_a_backward() -> None:
    both, forward = result("softmax_backward/fast", backward=True), result("softmax/fast")
    assert "Calls are forward and backward: gradients are compared" in table([both])
    assert "Calls of softmax_backward are forward and backward: gradients" in table([both, forward])
    assert "backward" not in table([forward])
