"""Sets of workloads on the CPU, with real builds and processes: planted solutions that are right at the file's sizes
are found, and honest ones that look like them pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Result, Verdict

from .running import TESTS, Run, run_eval

FOLDERS = ("--problems", TESTS / "workload_sets" / "problems", "--solutions", TESTS / "workload_sets" / "solutions",
           "--device", "cpu")
WORKLOADS_IN_ORDER = ("decode", "prefill", "ragged", "odd", "long")
WORKLOADS = {*WORKLOADS_IN_ORDER}
HONEST = ("honest", "row_remainder_honest", "cached_grid_honest", "autotuning_honest", "output_reused", "folded_weight",
          "doubled_weight", "vector_loads_honest")
BY_SIZE = {
    "hard_coded_rows": {"prefill"},
    "hard_coded_columns": {"odd", "long"},
    "row_remainder": {"decode", "ragged", "odd", "long"},
    "column_remainder": {"odd"},
    "column_limit": {"long"},
    "raises": {"odd"},
    "vector_loads": {"odd"},
    "cached_by_pointer": WORKLOADS,
}
"""Solutions that are wrong at some sizes, with the workloads that they fail."""
BY_STATE = ("cached_grid", "cached_columns", "cached_weight", "stale_autotuning", "workspace", "worn_out")
"""Solutions that keep something of another size, so that they fail in some order only."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All solutions at all workloads."""
    out = tmp_path_factory.mktemp("sets") / "results.jsonl"
    return run_eval(*FOLDERS, "--workloads", "--check", "--min-calls", "6", "--timeout", "100", "--quiet", out=out)


def of(run: Run, solution: str) -> dict[str, Result]:
    return {row.shape: row for row in run.results if row.solution == solution}


def test_every_solution_has_a_result_for_each_workload(run: Run) -> None:
    assert "Traceback" not in run.err, run.err
    solutions = {row.solution for row in run.results}
    assert solutions == {*HONEST, *BY_SIZE, *BY_STATE, "doubled_weight_cached_grid"}
    assert all(of(run, solution).keys() == WORKLOADS for solution in solutions)
    assert {row.shape: row.weight for row in run.results} == {**dict.fromkeys(WORKLOADS, 1.0), "prefill": 2.0}


@pytest.mark.parametrize("solution", HONEST)
def test_an_honest_solution_passes_all_workloads(run: Run, solution: str) -> None:
    assert {row.verdict: row.reason for row in of(run, solution).values()} == {Verdict.PASSED: ""}


@pytest.mark.parametrize("solution", BY_SIZE)
def test_a_solution_fails_at_exactly_the_sizes_that_it_is_not_made_for(run: Run, solution: str) -> None:
    failed = {shape for shape, row in of(run, solution).items() if row.verdict is not Verdict.PASSED}
    assert failed == BY_SIZE[solution]


@pytest.mark.parametrize("solution", BY_STATE)
def test_what_is_kept_from_another_workload_is_found_in_any_order(run: Run, solution: str) -> None:
    failed = [row for row in of(run, solution).values() if row.verdict is not Verdict.PASSED]
    assert failed
    assert all(any(text in row.reason for text in ("other workload", "opposite")) for row in failed)


def test_what_is_kept_is_found_also_if_the_solution_needs_its_own_weights(run: Run) -> None:
    rows = of(run, "doubled_weight_cached_grid")
    assert {row.verdict for row in rows.values()} >= {Verdict.WRONG}
    noted = {name for name, row in of(run, "doubled_weight").items() if "the solution was wrong" in str(row.check)}
    assert noted == WORKLOADS - {"odd"}


def test_the_report_has_the_answer_for_each_set(run: Run) -> None:
    lines = {line.split()[1]: line.split() for line in run.out.splitlines() if line.startswith("scaled_rows ")
             and " of 5" in line}
    assert lines["honest"][2:5] == ["5", "of", "5"]
    assert lines["column_limit"][2:7] == ["4", "of", "5", "—", "long"]
    assert run.status == 1


@pytest.mark.slow
def test_no_solution_is_found_by_its_file_as_written(tmp_path: Path) -> None:
    names = [f"scaled_rows/{name}" for name in (*BY_SIZE, *BY_STATE) if name != "cached_by_pointer"]
    run = run_eval(*FOLDERS, "--shape", "full", "--check", "--min-calls", "6", "--quiet", *names,
                   out=tmp_path / "full.jsonl")
    assert {row.verdict for row in run.results} == {Verdict.PASSED}


@pytest.mark.slow
def test_a_workload_can_be_evaluated_alone_and_with_other_constants(tmp_path: Path) -> None:
    honest = ("scaled_rows/honest", "--check", "--min-calls", "6", "--quiet")
    (row,) = run_eval(*FOLDERS, *honest, "--shape", "decode", out=tmp_path / "alone.jsonl").results
    assert (row.shape, row.verdict, row.weight) == ("decode", Verdict.PASSED, None)
    run = run_eval(*FOLDERS, *honest, "--workloads", "--set", "ROWS=2", out=tmp_path / "smaller.jsonl")
    assert {row.shape for row in run.results} == {f"{name},ROWS=2" for name in WORKLOADS}
    assert {row.verdict for row in run.results} == {Verdict.PASSED}


@pytest.mark.slow
def test_a_set_is_recalled_as_a_whole(tmp_path: Path) -> None:
    line = (*FOLDERS, "scaled_rows/honest", "--workloads", "--check", "--min-calls", "6", "--quiet", "--resume")
    out = tmp_path / "results.jsonl"
    assert len(run_eval(*line, out=out).results) == 5
    assert len(run_eval(*line, out=out).results) == 5
    out.write_text("".join(text for text in out.read_text().splitlines(keepends=True) if '"ragged"' not in text))
    assert [row.shape for row in run_eval(*line, out=out).results[4:]] == [*WORKLOADS_IN_ORDER]


def test_a_set_needs_a_problem_that_declares_one(tmp_path: Path) -> None:
    run = run_eval("--problems", TESTS / "problems", "--solutions", TESTS / "solutions", "--workloads", "axpy")
    assert run.status == 2 and "--workloads" in run.err and "declares no WORKLOADS" in run.err
    for option in (("--shape", "decode"), ("--shard", "1/2")):
        run = run_eval(*FOLDERS, "--workloads", *option)
        assert run.status == 2 and option[0] in run.err


@pytest.mark.parametrize("when", ["self.calls > 12", "self.calls > 3 and x.dtype == torch.float64"])
def test_a_reference_that_fails_at_one_workload_is_named_with_it(tmp_path: Path, when: str) -> None:
    (tmp_path / "rows.py").write_text("""
import torch

ROWS = 4
WORKLOADS = [{"ROWS": 2}, {"ROWS": 3}, {"ROWS": 5}]


class Model(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if len(x) == 3 and WHEN:
            raise RuntimeError("planted")
        return x * 2


def get_inputs():
    return [torch.randn(ROWS, 8)]
""".replace("WHEN", when))
    (tmp_path / "solution.py").write_text("""
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2
""")
    run = run_eval("--problems", tmp_path, "--device", "cpu", "--workloads", "rows", "--solution",
                   tmp_path / "solution.py", "--check", "--allow-library", "--quiet", out=tmp_path / "results.jsonl")
    assert {row.shape: row.verdict for row in run.results} == dict.fromkeys(
        ("ROWS=2", "ROWS=3", "ROWS=5"), Verdict.PROBLEM_ERROR)
    assert all("planted" in row.reason and "at the workload ROWS=3" in row.reason for row in run.results)
    assert "0 of 3" in run.out and run.status == 1


@pytest.mark.slow
def test_a_set_may_have_a_backward(tmp_path: Path) -> None:
    line = (*FOLDERS, "scaled_rows/@reference", "scaled_rows/honest", "--workloads", "--check", "--min-calls", "6",
            "--quiet", "--backward", "--allow-library")
    run = run_eval(*line, out=tmp_path / "results.jsonl")
    assert {row.shape for row in run.results} == {f"{name}+backward" for name in WORKLOADS}
    assert {row.verdict for row in of(run, "@reference").values()} == {Verdict.PASSED}
    assert all("no grad_fn" in row.reason for row in of(run, "honest").values())
