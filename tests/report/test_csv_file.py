from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.foreign import one_line
from inlinebench.report.formats.csv_file import LONGEST, guarded, table
from inlinebench.results.memory import Memory
from inlinebench.results.result import Check, Environment, Result, Verdict
from inlinebench.results.times import Baseline, PassTimes, Spread, Timing

from .samples import any_result, result
from .thirty import thirty

ONE = Spread(1.0, 0.9, 1.1)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def text_of(cell: str) -> str:
    """Returns the text of a cell as a program should read it."""
    return cell.removeprefix("'")


def test_a_result_is_a_line_with_units_in_the_header() -> None:
    row, *others = rows(table(thirty()))
    assert len(others) == 29
    known = {name: row[name] for name in (
        "problem", "solution", "verdict", "reason", "worst_error", "reference_median_ms", "speedup_median", "build_s",
        "build_cached", "roofline_bytes", "temperature_c", "seed", "gpu", "tf32", "own_kernels_share")}
    assert known == {
        "problem": "gemm_scale_batchnorm", "solution": "naive", "verdict": "passed", "reason": "",
        "worst_error": "3.1e-07", "reference_median_ms": "2.78", "speedup_median": "0.925", "build_s": "31.4",
        "build_cached": "no", "roofline_bytes": "281018368", "temperature_c": "54.0", "seed": "8034576217",
        "gpu": "NVIDIA H100 80GB HBM3", "tf32": "no", "own_kernels_share": "0.982"}


def test_memory_has_columns_in_bytes_and_the_first_call_one_in_ms() -> None:
    timing = Timing(ONE, ONE, ONE, first_call_ms=812.0, load_ms=35.0)
    (row,) = rows(table([result(timing=timing, memory=Memory(100, 7, 60))]))
    assert (row["memory_bytes"], row["memory_outside_allocator_bytes"], row["reference_memory_bytes"]) == (
        "100", "60", "7")
    assert (row["first_call_ms"], row["load_ms"]) == ("812.0", "35.0")


def test_absent_values_are_empty_cells() -> None:
    (row,) = rows(table([result(verdict=Verdict.SKIPPED, reason="no")]))
    told = {"problem", "solution", "shape", "device", "verdict", "reason"}
    assert {name for name, cell in row.items() if cell} == told


def test_without_results_there_is_only_the_header() -> None:
    assert table([]).startswith('"problem","solution",') and table([]).count("\n") == 1


def test_columns_are_the_same_in_every_file_and_baselines_come_last() -> None:
    timing = Timing(ONE, ONE, ONE, baselines=(Baseline("compile", ONE, Spread(1.5, 1.4, 1.6)),))
    without, with_one = (table([each]).partition("\n")[0] for each in (result(), result(timing=timing)))
    assert with_one.startswith(without)
    assert with_one.removeprefix(without).count("over_compile_") == 4
    assert rows(table([result(timing=timing)]))[0]["over_compile_speedup_median"] == "1.5"


def test_the_passes_of_calls_with_a_backward_have_columns() -> None:
    passes = (PassTimes("forward", ONE, ONE, Spread(1.5, 1.4, 1.6)), PassTimes("backward", ONE, ONE, ONE))
    (row,) = rows(table([result("p/fast", backward=True, timing=Timing(ONE, ONE, ONE, passes=passes))]))
    assert (row["forward_solution_ms"], row["forward_speedup_low"], row["backward_speedup_median"]) == (
        "1.0", "1.4", "1.0")
    assert "forward_solution_ms" not in table([result(timing=Timing(ONE, ONE, ONE))])


def test_the_speedup_over_the_library_solution_has_columns() -> None:
    timing = Timing(ONE, ONE, ONE, baselines=(Baseline("library", ONE, Spread(1.5, 1.4, 1.6)),))
    (row,) = rows(table([result("p/fast", timing=timing)]))
    names = ("over_library_ms", *(f"over_library_speedup_{end}" for end in ("median", "low", "high")))
    assert [row[name] for name in names] == ["1.0", "1.5", "1.4", "1.6"]


def test_results_on_the_cpu_have_times_but_no_speedup() -> None:
    (row,) = rows(table([result(speedup=2.0, device="cpu")]))
    assert (row["solution_median_ms"], row["speedup_median"]) == ("0.1", "")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\u3000=1", "\uff1dcmd", "'=1"])
def test_a_text_that_a_spreadsheet_would_evaluate_is_guarded(text: str) -> None:
    (row,) = rows(table([Result(text, "s", "full", "cuda:0", Verdict.WRONG, text)]))
    assert row["problem"].startswith("'") and row["reason"].startswith("'")
    assert text_of(row["reason"]) == one_line(text)


def test_ordinary_texts_and_negative_numbers_are_unchanged() -> None:
    negative = Result("matmul_diag", "fast", "full", "cuda:0", Verdict.PASSED,
                      check=Check(5, 1e-4, "float64", "by name", worst_error=-2.5e-9))
    (row,) = rows(table([negative]))
    assert (row["problem"], row["oracle"], row["worst_error"]) == ("matmul_diag", "float64", "-2.5e-09")


def test_separators_and_quotes_stay_in_their_cell() -> None:
    (row,) = rows(table([Result('a,"b";=1', "s", "full", "cuda:0", Verdict.WRONG, 'x";=1,\n"y')]))
    assert (row["problem"], row["reason"]) == ('a,"b";=1', 'x";=1,\\n"y')
    assert '"a,""b"";=1"' in table([Result('a,"b";=1', "s", "full", "cuda:0", Verdict.WRONG, "no")])


@given(st.text())
def test_every_text_is_read_back_and_none_is_a_formula(text: str) -> None:
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert text_of(guarded(text)) == one_line(text, LONGEST)


@given(st.lists(any_result(), max_size=5))
def test_any_result_is_one_line_and_its_names_are_read_back(results: list[Result]) -> None:
    text = table(results)
    text.encode()
    assert text.count("\n") == len(results) + 1
    found = rows(text)
    assert [text_of(row["problem"]) for row in found] == [one_line(each.problem, LONGEST) for each in results]
    assert [row["verdict"] for row in found] == [str(each.verdict) for each in results]


def test_the_environment_has_flat_columns() -> None:
    (row,) = rows(table([result(environment=Environment("2.11", "0.1", cpu="-weird", tf32=True))]))
    known = [row[name] for name in ("torch", "inlinebench", "cpu", "tf32", "gpu")]
    assert known == ["2.11", "0.1", "'-weird", "yes", ""]
