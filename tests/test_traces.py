"""Problems in the formats of FlashInfer-Trace and SOL-ExecBench on the CPU, with real builds and processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from .running import Run, run_eval
from .traces.files import FOLDER, OFFSETS, SEGMENTS, change, copy_sets

HONEST = FOLDER / "solutions" / "segment_sums" / "honest.py"
PLANTED = {
    "absolute_scale": ("float(scale)", "fabsf(scale)"),
    "nine_rows": ("row < offsets[segment + 1]", "row < min(offsets[segment + 1], 9)"),
}
"""Wrong solutions of `segment_sums`, right at its first workload: what they replace in the honest one."""


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sets, and the solutions with the planted ones."""
    folder = copy_sets(tmp_path_factory.mktemp("traces"))
    shutil.copytree(FOLDER / "solutions", folder / "solutions")
    for name, (old, new) in PLANTED.items():
        text = HONEST.read_text()
        assert old in text
        (folder / "solutions" / "segment_sums" / f"{name}.py").write_text(text.replace(old, new))
    return folder


def evaluate(*names: str, problems: Path, solutions: Path, out: Path) -> Run:
    return run_eval(*names, "--problems", problems, "--solutions", solutions, "--device", "cpu", "--check",
                    "--min-calls", "5", "--quiet", out=out)


@pytest.fixture(scope="module")
def run(sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All solutions of `segment_sums` at all workloads."""
    return evaluate("segment_sums", "--workloads", problems=sets, solutions=sets / "solutions",
                    out=tmp_path_factory.mktemp("runs") / "results.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["3f9a1c02", "7b00d4e1"])
def test_an_honest_solution_passes_each_workload(run: Run, workload: str) -> None:
    row = run.row("segment_sums", "honest", workload)
    assert (row.verdict, row.reason) == (Verdict.PASSED, "")


@pytest.mark.slow
@pytest.mark.parametrize("solution", PLANTED)
def test_a_solution_that_is_right_at_one_workload_only_is_wrong(run: Run, solution: str) -> None:
    assert run.row("segment_sums", solution, "3f9a1c02").verdict is Verdict.PASSED
    assert run.row("segment_sums", solution, "7b00d4e1").verdict is Verdict.WRONG


@pytest.mark.slow
def test_without_workloads_the_smallest_one_is_the_shape_of_the_cpu(sets: Path, tmp_path: Path) -> None:
    run = evaluate("segment_sums/@reference", "segment_sums/absolute_scale", "--allow-library", problems=sets,
                   solutions=sets / "solutions", out=tmp_path / "out.jsonl")
    assert {(row.solution, row.shape, row.verdict) for row in run.results} == {
        ("@reference", "small", Verdict.PASSED), ("absolute_scale", "small", Verdict.PASSED)}, run.err


@pytest.mark.slow
def test_a_folder_of_sol_execbench_is_a_problem_with_inputs_that_its_reference_draws(
    sets: Path, tmp_path: Path
) -> None:
    run = evaluate("swap_halves/honest", "swap_halves/@reference", "--workloads", "--allow-library",
                   problems=sets / "pairs", solutions=sets / "solutions", out=tmp_path / "out.jsonl")
    assert {(row.solution, row.shape): row.reason for row in run.results} == dict.fromkeys(
        [(solution, name) for solution in ("honest", "@reference") for name in ("a5c1", "b7d2")], ""), run.err


@pytest.mark.slow
def test_sizes_are_drawn_for_the_variable_axes(sets: Path, tmp_path: Path) -> None:
    run = evaluate("swap_halves/honest", "--fuzz", "3", problems=sets / "pairs", solutions=sets / "solutions",
                   out=tmp_path / "out.jsonl")
    row = run.row("swap_halves", "honest")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.fuzz is not None and row.fuzz.passed == 3


def test_what_is_not_on_this_machine_is_skipped_and_named(tmp_path: Path) -> None:
    folder = copy_sets(tmp_path / "sets")
    (folder / OFFSETS).unlink()
    run = evaluate("segment_sums/@reference", "--allow-library", problems=folder, solutions=folder,
                   out=tmp_path / "out.jsonl")
    row = run.row("segment_sums", "@reference")
    assert row.verdict is Verdict.SKIPPED
    assert row.reason.endswith("the recorded input ./blob/segment/offsets.safetensors is not on this machine; download "
                               "it with its set")


def test_a_reference_that_imports_a_missing_package_is_skipped_and_the_package_is_named(tmp_path: Path) -> None:
    folder = copy_sets(tmp_path / "sets")
    change(folder / SEGMENTS, lambda given: given.update(reference="import flashinfer_absent\n" + given["reference"]))
    run = evaluate("segment_sums/@reference", "--allow-library", problems=folder, solutions=folder,
                   out=tmp_path / "out.jsonl")
    row = run.row("segment_sums", "@reference")
    assert row.verdict is Verdict.SKIPPED and "install the package flashinfer_absent" in row.reason


def test_a_constraint_that_fails_is_a_problem_error_that_quotes_it(tmp_path: Path) -> None:
    folder = copy_sets(tmp_path / "sets")
    change(folder / SEGMENTS, lambda given: given.update(constraints=["rows == offsets[-1].item() + 1"]))
    run = evaluate("segment_sums/@reference", "--allow-library", problems=folder, solutions=folder,
                   out=tmp_path / "out.jsonl")
    row = run.row("segment_sums", "@reference")
    assert row.verdict is Verdict.PROBLEM_ERROR
    assert "the constraint rows == offsets[-1].item() + 1 does not hold" in row.reason
