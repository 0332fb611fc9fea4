"""`python run_eval.py` without arguments on a machine without a GPU: it evaluates the bundled solutions on the CPU.

Building all of them takes minutes, so the `fast` solutions are tested only on a GPU, unless
INLINEBENCH_TEST_ALL is set. Library solutions are evaluated apart; most of them are compiled, which takes minutes too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inlinebench.report.terminal.table import NO_SPEEDUP
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Verdict

from .running import ROOT, Run, run_eval

pytestmark = pytest.mark.slow

ALL = bool(os.environ.get("INLINEBENCH_TEST_ALL"))
SOLUTIONS = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "solutions").glob("*/*.py")
                   if path.stem != LIBRARY and (ALL or path.stem != "fast"))
PROBLEMS = sorted(path.stem for path in (ROOT / "problems").glob("*.py"))
SHAPES = ("odd", "small")


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs `python run_eval.py` with a separate cache and result file. A GPU is hidden from it."""
    out = tmp_path_factory.mktemp("bundled") / "out.jsonl"
    names = [] if ALL else SOLUTIONS
    return run_eval(*names, "--cache", cache, out=out, environment={"CUDA_VISIBLE_DEVICES": ""})


@pytest.fixture(scope="module", params=SHAPES)
def libraries(request: pytest.FixtureRequest, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs the library solutions at a shape on the CPU."""
    return run_eval("*/library", "--shape", request.param, "--devices", "cpu,cpu", "--check", "--min-calls", "3",
                    "--cache", cache, out=tmp_path_factory.mktemp("libraries") / "out.jsonl")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_bundled_problem_has_a_library_solution_that_passes(libraries: Run, problem: str) -> None:
    row = libraries.row(problem, LIBRARY)
    assert row.verdict is Verdict.PASSED, row.reason


@pytest.mark.gate
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_bundled_solution_passes_on_the_cpu(run: Run, name: str, shape: str) -> None:
    row = run.row(*name.split("/"), shape)
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.device == "cpu"


@pytest.mark.parametrize(("problem", "sizes"), [
    *(("gemm_bias_gelu", {"TOKENS": tokens, "WIDTH": 264, "HIDDEN": 72}) for tokens in (1, 16, 27, 48, 61)),
    *(("softmax", {"ROWS": 9, "COLUMNS": columns}) for columns in (197, 1000, 2049, 4096, 92160)),
    *(("softmax", {"ROWS": rows, "COLUMNS": columns}) for rows, columns in ((1, 40001), (2, 530000), (2, 530001))),
    ("layer_norm", {"ROWS": 9, "COLUMNS": 1600}),
])
def test_kernels_for_sizes_that_no_shape_has_pass_on_the_cpu(
    cache: Path, tmp_path: Path, problem: str, sizes: dict[str, int]
) -> None:
    """Few rows of a product in tiles of 16 to 64, short rows in a warp or a small block, and long ones in parts."""
    changed = [part for name, size in sizes.items() for part in ("--set", f"{name}={size}")]
    run = run_eval(f"{problem}/fast", *changed, "--device", "cpu", "--check", "--cache", cache,
                   out=tmp_path / "out.jsonl")
    assert [row.verdict for row in run.results] == [Verdict.PASSED], run.err


@pytest.mark.gate
def test_nothing_else_is_evaluated(run: Run) -> None:
    assert len(run.results) == len(SOLUTIONS) * len(SHAPES)
    assert run.status == 0, run.err


@pytest.mark.gate
def test_the_table_has_no_speedups_and_says_why_once(run: Run) -> None:
    rows = [line.split() for line in run.out.splitlines() if line.split()[:1] and line.split()[0] in
            {name.partition("/")[0] for name in SOLUTIONS}]
    assert len(rows) == len(run.results)
    assert "speedup" not in run.out.splitlines()[0] and " ms" not in run.out.splitlines()[0]
    assert run.out.count(NO_SPEEDUP) == 1
