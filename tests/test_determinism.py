"""`--determinism` on the CPU, with real builds and processes: planted solutions whose bits vary pass and are described,
and honest ones are equal in all bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inlinebench.evaluation.repeats import STATEFUL
from inlinebench.results.repeats import Repeatability
from inlinebench.results.result import Verdict

from .running import TESTS, Run, run_eval

FOLDERS = ("--problems", TESTS / "determinism" / "problems", "--solutions", TESTS / "determinism" / "solutions",
           "--device", "cpu", "--check", "--min-calls", "6", "--allow-library")
CALLS = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All solutions."""
    out = tmp_path_factory.mktemp("determinism") / "results.jsonl"
    return run_eval(*FOLDERS, "--determinism", "--quiet", out=out)


def of(run: Run, solution: str, problem: str = "row_sums") -> Repeatability:
    row = run.row(problem, solution)
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.repeats is not None
    return row.repeats


@pytest.mark.parametrize(("problem", "rows"), [
    ("row_sums", True), ("scaled", True), ("column_softmax", None), ("added_in_place", None),
])
def test_an_honest_solution_is_equal_in_all_bits(run: Run, problem: str, rows: bool | None) -> None:
    assert of(run, "honest", problem) == Repeatability(CALLS, CALLS, 2, True, (), rows, rows)


@pytest.mark.parametrize("solution", ["atomics", "by_address", "by_process"])
def test_a_solution_whose_bits_vary_passes_and_is_described(run: Run, solution: str) -> None:
    found = of(run, solution)
    (varying,) = found.varying
    assert found.equal < found.calls == CALLS
    assert (varying.what, varying.count) == ("output", 48) and varying.ulps is not None and 1 <= varying.ulps < 600
    assert found.rows_equal is found.first_row_equal is None
    assert f"row_sums/{solution}: output: the bits of {varying.elements} of 48 elements vary" in run.out


def test_bits_of_another_process_are_compared_with_those_of_the_first(run: Run) -> None:
    assert of(run, "by_process").equal == CALLS // 2


def test_a_row_that_depends_on_its_place_is_found(run: Run) -> None:
    assert of(run, "by_place") == Repeatability(CALLS, CALLS, 2, True, (), False, True)
    assert "row_sums/by_place: a row has other bits if the rows of the batch are in another order" in run.out


def test_a_row_that_depends_on_the_number_of_rows_is_found(run: Run) -> None:
    assert of(run, "by_rows") == Repeatability(CALLS, CALLS, 2, True, (), True, False)
    assert "row_sums/by_rows: the first row has other bits in a batch of its own" in run.out


@pytest.mark.parametrize("solution", ["one_size", "dies_alone"])
def test_a_solution_need_not_compute_another_number_of_rows(run: Run, solution: str) -> None:
    assert of(run, solution) == Repeatability(CALLS, CALLS, 2, True, (), True, None)


def test_calls_on_the_same_inputs_must_be_right_as_all_others(run: Run) -> None:
    row = run.row("row_sums", "remembers")
    assert row.verdict is Verdict.WRONG and row.repeats is None
    assert "--determinism" in row.reason and "a call on the same inputs" in row.reason


def test_a_reference_that_changes_its_state_is_not_measured_and_a_remark_says_so(run: Run) -> None:
    row = run.row("running_mean", "honest")
    assert row.verdict is Verdict.PASSED and row.check is not None
    assert row.repeats is None and STATEFUL in row.check.notes


@pytest.mark.slow
def test_all_workloads_of_a_set_are_measured(tmp_path: Path) -> None:
    sets = tmp_path / "problems"
    sets.mkdir()
    text = (TESTS / "determinism" / "problems" / "row_sums.py").read_text(encoding="utf-8")
    (sets / "row_sums.py").write_text(text + "\nWORKLOADS = [{'ROWS': 48}, {'ROWS': 1}, {'ROWS': 9, 'COLUMNS': 70}]\n")
    run = run_eval("--problems", sets, *FOLDERS[2:], "--determinism", "--workloads", "row_sums/honest",
                   "row_sums/by_rows", "--quiet", out=tmp_path / "results.jsonl")
    rows = {(row.solution, row.shape): row for row in run.results}
    assert {row.verdict for row in rows.values()} == {Verdict.PASSED} and len(rows) == 6
    first = {key: row.repeats.first_row_equal for key, row in rows.items() if row.repeats is not None}
    assert first == {
        ("honest", "ROWS=48"): True, ("honest", "ROWS=1"): None, ("honest", "ROWS=9,COLUMNS=70"): True,
        ("by_rows", "ROWS=48"): False, ("by_rows", "ROWS=1"): None, ("by_rows", "ROWS=9,COLUMNS=70"): False}


def test_without_the_option_nothing_is_measured(tmp_path: Path) -> None:
    run = run_eval(*FOLDERS, "row_sums/honest", "--quiet", out=tmp_path / "results.jsonl")
    assert run.row("row_sums", "honest").repeats is None and "bitwise" not in run.out
    assert "repeats" not in json.loads((tmp_path / "results.jsonl").read_text())
