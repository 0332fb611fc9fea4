"""`--fuzz` on the CPU, with real builds and processes: planted solutions that are right at the file's sizes are found
and shrunk, honest ones that look like them pass, and the reference decides which sizes count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inlinebench.results.result import Fuzzed, Result, Verdict

from .running import Run, run_eval
from .test_workload_sets import BY_SIZE, BY_STATE, FOLDERS, HONEST

LINE = ("--fuzz", "32", "--quiet", "--timeout", "100")
PASSING = ("honest", "cached_grid_honest", "vector_loads_honest")
KEEPING = ("cached_grid",)
SMALLEST = {
    "hard_coded_rows": ("ROWS=65", "COLUMNS=1"),
    "column_limit": ("ROWS=1", "COLUMNS=2049"),
    "vector_loads": ("ROWS=2", r"COLUMNS=\d+"),  # all but multiples of four, so halves of a size may pass
}
"""The smallest sizes that are found for solutions that are wrong by size, as regular expressions."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Solutions of the problem that declares a set, at drawn sizes instead."""
    names = [f"scaled_rows/{name}" for name in (*PASSING, *SMALLEST, *KEEPING)]
    return run_eval(*FOLDERS, *LINE, *names, out=tmp_path_factory.mktemp("fuzz") / "results.jsonl")


def fuzzed(result: Result) -> Fuzzed:
    assert result.fuzz is not None, result.reason
    return result.fuzz


def test_there_is_one_result_for_each_solution(run: Run) -> None:
    assert "Traceback" not in run.err, run.err
    assert {row.shape for row in run.results} == {"fuzz"}
    assert sorted(row.solution for row in run.results) == sorted([*PASSING, *SMALLEST, *KEEPING])


@pytest.mark.parametrize("solution", PASSING)
def test_an_honest_solution_passes_all_sizes(run: Run, solution: str) -> None:
    row = run.row("scaled_rows", solution)
    assert (row.verdict, row.reason) == (Verdict.PASSED, "")
    assert (fuzzed(row).sizes, fuzzed(row).passed, fuzzed(row).failed_at) == (32, 32, None)


@pytest.mark.parametrize("solution", SMALLEST)
def test_a_failure_by_size_is_shrunk_to_the_smallest_size(run: Run, solution: str) -> None:
    row = run.row("scaled_rows", solution)
    assert row.verdict is (Verdict.CRASHED if solution == "vector_loads" else Verdict.WRONG)
    assert re.fullmatch(", ".join(SMALLEST[solution]), ", ".join(fuzzed(row).failed_at or ()))
    assert re.match(f"at {', '.join(SMALLEST[solution])}: ", row.reason)


@pytest.mark.parametrize("solution", KEEPING)
def test_what_is_kept_of_another_size_is_found(run: Run, solution: str) -> None:
    row = run.row("scaled_rows", solution)
    assert row.verdict is not Verdict.PASSED
    assert fuzzed(row).failed_at == fuzzed(row).drawn and fuzzed(row).alone is False
    assert "other workload" in row.reason


BY_CHANCE = {"stale_autotuning"}
"""What it keeps of most sizes fits all others."""


@pytest.mark.slow
def test_all_other_planted_solutions_are_found_and_all_other_honest_ones_pass(tmp_path: Path) -> None:
    honest, planted = {*HONEST} - {*PASSING}, {*BY_SIZE, *BY_STATE} - {*SMALLEST, *KEEPING} - BY_CHANCE
    run = run_eval(*FOLDERS, *LINE, *(f"scaled_rows/{name}" for name in (*honest, *planted)),
                   out=tmp_path / "results.jsonl")
    passed = {row.solution for row in run.results if row.verdict is Verdict.PASSED}
    assert (passed, {row.solution for row in run.results} - passed) == (honest, planted)


def test_the_report_has_the_answer_and_the_commands_that_repeat_it(run: Run) -> None:
    lines = [line.split() for line in run.out.splitlines() if line.startswith("scaled_rows ")]
    assert ["scaled_rows", "honest", "32", "of", "32", "0", "—"] in lines
    assert any(line[1] == "column_limit" and line[-2:] == ["ROWS=1,", "COLUMNS=2049"] for line in lines)
    alone = "--set ROWS=1 --set COLUMNS=2049 --device cpu --seed"
    assert re.search(rf"scaled_rows/column_limit: this size alone: inlinebench run {alone} \d+ scaled_rows", run.out)
    assert run.status == 1


@pytest.mark.slow
def test_the_seed_draws_the_same_sizes_and_the_smallest_fails_alone(run: Run, tmp_path: Path) -> None:
    first = run.row("scaled_rows", "column_limit")
    name = "scaled_rows/column_limit"
    (row,) = run_eval(*FOLDERS, *LINE, "--seed", str(first.seed), name, out=tmp_path / "again.jsonl").results
    assert (row.fuzz, row.reason) == (first.fuzz, first.reason)
    constants = [word for each in fuzzed(first).failed_at or () for word in ("--set", each)]
    (row,) = run_eval(*FOLDERS, *constants, "--check", "--quiet", name, out=tmp_path / "alone.jsonl").results
    assert row.verdict is Verdict.WRONG


PROBLEM = """
import torch

N, GROUPS = 96, 4
{ranges}

class Model(torch.nn.Module):
    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn(N, GROUPS * 3)]
"""


@pytest.mark.parametrize(("ranges", "body", "count"), [
    ("RANGES = {'N': (1, 12)}", "if len(x) % 2: raise ValueError('odd')\n        return x * 2", 6),
    ("RANGES = {'N': (0, 5)}", "return x * 2", 5),
    ("RANGES = {'N': (1, 3)}", "return x / (len(x) - 1) + (x - x[:1]) / (len(x) - 1)", 2),
    ("RANGES = {'N': (32, 96, 32)}", "return x * 2", 3),
])
def test_the_reference_decides_which_sizes_count(ranges: str, body: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PROBLEM.format(ranges=ranges, body=body))
    run = run_eval("--problems", tmp_path, "--device", "cpu", *LINE, "--allow-library", "planted/@reference",
                   out=tmp_path / "results.jsonl")
    (row,) = run.results
    assert (row.verdict, row.reason) == (Verdict.PASSED, "")
    assert (fuzzed(row).sizes, fuzzed(row).passed) == (count, count)
    every = {"(1, 12)": 12, "(0, 5)": 6, "(1, 3)": 3, "(32, 96, 32)": 3}
    assert fuzzed(row).refused == next(many for text, many in every.items() if text in ranges) - count


def test_set_fixes_a_constant_and_a_backward_is_drawn_for(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PROBLEM.format(ranges="", body="return x * x"))
    run = run_eval("--problems", tmp_path, "--device", "cpu", "--fuzz", "6", "--quiet", "--set", "GROUPS=2",
                   "--backward", "--allow-library", "planted/@reference", out=tmp_path / "results.jsonl")
    (row,) = run.results
    assert (row.shape, row.verdict) == ("fuzz,GROUPS=2+backward", Verdict.PASSED)


@pytest.mark.parametrize(("options", "what"), [
    (("--workloads",), "--workloads"), (("--shape", "odd"), "--shape"), (("--max-calls", "50"), "--max-calls"),
    (("--baseline", "compile"), "--baseline"), (("--sanitize", "memcheck", "--device", "cuda"), "--sanitize"),
])
def test_options_that_contradict_it_are_refused_in_a_line(options: tuple[str, ...], what: str) -> None:
    run = run_eval("--fuzz", "4", *options, "row_sum")
    assert run.status == 2 and what in run.err and "--fuzz" in run.err and len(run.err.splitlines()) == 1


def test_a_problem_without_sizes_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PROBLEM.format(ranges="RANGES = {}", body="return x"))
    run = run_eval("--problems", tmp_path, "--device", "cpu", *LINE, "planted/@reference", out=tmp_path / "r.jsonl")
    (row,) = run.results
    assert row.verdict is Verdict.SKIPPED and "declare their ranges with RANGES" in row.reason


def test_a_wrong_declaration_is_a_problem_error(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PROBLEM.format(ranges="RANGES = {'M': (1, 2)}", body="return x"))
    run = run_eval("--problems", tmp_path, "--device", "cpu", *LINE, "planted/@reference", out=tmp_path / "r.jsonl")
    assert run.results[0].verdict is Verdict.PROBLEM_ERROR and "no constant 'M'" in run.results[0].reason
