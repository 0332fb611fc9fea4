"""The bundled problems and solutions at full size on a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from .running import ROOT, Run, run_eval

pytestmark = pytest.mark.gpu

PROBLEMS = sorted(path.stem for path in (ROOT / "problems").glob("*.py"))
SOLUTIONS = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "solutions").glob("*/*.py"))


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("gpu") / "out.jsonl"
    return run_eval("*", "*/@reference", "--allow-library", "--device", "cuda", "--cache", cache, out=out)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_bundled_solution_passes_at_full_size_and_is_timed(run: Run, name: str) -> None:
    row = run.row(*name.split("/"), "full")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.timing is not None and row.timing.solution_ms.median > 0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_is_as_fast_as_itself(run: Run, problem: str) -> None:
    row = run.row(problem, "@reference", "full")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.timing is not None
    speedup = row.timing.speedup
    assert speedup.low / 1.01 <= 1 <= speedup.high * 1.01


def test_all_bundled_solutions_pass_at_all_shapes(cache: Path, tmp_path: Path) -> None:
    checked = run_eval("*", "*/library", "--device", "cuda", "--check", "--cache", cache, out=tmp_path / "out.jsonl")
    assert all(row.verdict is Verdict.PASSED for row in checked.results) and checked.status == 0, checked.out


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_record_of_times_is_complete_and_consistent(run: Run, name: str) -> None:
    timing = run.row(*name.split("/"), "full").timing
    assert timing is not None and timing.roofline is not None
    if timing.wall_ms is None:  # a single set of buffers takes a gigabyte
        assert timing.roofline.bytes > 1e9
    else:
        assert timing.wall_ms.median >= 0.9 * timing.solution_ms.median
    assert not [flag for flag in timing.flags if "faster than its bytes" in flag]
    assert timing.empty_ms and timing.reference_overhead_ms and timing.solution_overhead_ms
    assert 0 < timing.empty_ms < min(timing.reference_overhead_ms, timing.solution_overhead_ms) < 0.01
    assert abs(timing.reference_overhead_ms - timing.solution_overhead_ms) < 0.0005
    assert timing.stopped_by
    assert (timing.gpu is None) == (timing.gpu_unknown is not None)


@pytest.mark.parametrize("problem", [name for name in PROBLEMS if name.endswith("_backward")])
def test_the_kernels_of_forward_and_backward_are_told_apart(run: Run, problem: str) -> None:
    row = run.row(problem, "fast", "full")
    assert row.backward and row.kernels is not None and row.timing is not None
    forward, backward = row.kernels.passes
    assert min(forward.own_share, backward.own_share) > 0.9
    assert 1 < backward.ms / forward.ms < 3
    assert 0.8 < (forward.ms + backward.ms) / row.timing.solution_ms.median < 1.2


@pytest.mark.parametrize("problem", [name for name in PROBLEMS if name.endswith("_backward")])
def test_the_times_of_the_passes_are_those_of_their_kernels_and_add_up(run: Run, problem: str) -> None:
    row = run.row(problem, "fast", "full")
    assert row.timing is not None and row.kernels is not None
    both, passes = row.timing, row.timing.passes
    assert [each.name for each in passes] == ["forward", "backward"]
    for each, kernels in zip(passes, row.kernels.passes, strict=True):
        assert 0.85 < kernels.ms / each.solution_ms.median < 1.15
    # Both together contain the third time stamp.
    assert -0.01 < both.solution_ms.median - sum(each.solution_ms.median for each in passes) < 0.02
    assert -0.01 < both.reference_ms.median - sum(each.reference_ms.median for each in passes) < 0.02


def test_baselines_and_kernels_are_shown(cache: Path, tmp_path: Path) -> None:
    compared = run_eval("matmul_diag/naive", "--baseline", "compile", "--profile", "--device", "cuda", "--cache", cache,
                        out=tmp_path / "out.jsonl")
    timing = compared.row("matmul_diag", "naive", "full").timing
    assert timing is not None
    library, compiled = timing.baselines
    assert library.name == "library" and 0.5 < library.speedup.median < 2
    assert compiled.name == "compile" and compiled.speedup.median > 25
    assert "over library" in compared.out and "over compile" in compared.out
    assert "matmul_diag/naive (full), one call:" in compared.out


def test_the_slowest_kind_of_inputs_decides_the_time(cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "solutions" / "matmul_diag"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "honest" / "slow_on_mixed_signs.py", folder)
    run = run_eval("matmul_diag/slow_on_mixed_signs", "--solutions", folder.parent, "--device", "cuda",
                   "--cache", cache, out=tmp_path / "out.jsonl")
    timing = run.results[0].timing
    assert timing is not None and timing.inputs[0].inputs == "random signs"
    assert timing.solution_ms == timing.inputs[0].solution_ms and timing.solution_ms.calls >= 16
    assert all(timing.solution_ms.median > 3 * kind.solution_ms.median for kind in timing.inputs[1:])


def test_the_wall_time_is_that_of_a_call_in_a_long_loop(cache: Path, tmp_path: Path) -> None:
    """A solution whose call takes 50 µs of the host, much longer than on the GPU."""
    folder = tmp_path / "solutions" / "matmul_diag"
    folder.mkdir(parents=True)
    text = (ROOT / "solutions" / "matmul_diag" / "fast.py").read_text()
    head, forward, tail = text.partition("        return extension.")
    assert forward
    spin = "        end = time.perf_counter() + 50e-6\n        while time.perf_counter() < end:\n            pass\n"
    (folder / "spins.py").write_text(f"import time\n{head}{spin}{forward}{tail}".replace(
        "Path(__file__).resolve().parents[1]", f"Path({str(ROOT / 'solutions')!r})"))
    run = run_eval("matmul_diag/spins", "--solutions", folder.parent, "--set", "N=128", "--device", "cuda", "--trust",
                   "--cache", cache, out=tmp_path / "out.jsonl")
    timing = run.results[0].timing
    assert timing is not None and timing.wall_ms is not None, run.out
    assert 0.05 < timing.wall_ms.median < 0.07
