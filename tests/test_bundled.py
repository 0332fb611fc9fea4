"""What a newcomer's first command gives on a machine without a GPU: all that is bundled, on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.report.table import NO_SPEEDUP
from harness.result import Verdict

from .running import ROOT, Run, run_eval

SOLUTIONS = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "solutions").glob("*/*.py"))
SHAPES = ("odd", "small")


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`python run_eval.py`, with a cache and a file of its own; where there is a GPU, it is hidden."""
    out = tmp_path_factory.mktemp("bundled") / "out.jsonl"
    return run_eval("--cache", cache, out=out, environment={"CUDA_VISIBLE_DEVICES": ""})


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_bundled_solution_passes_on_the_cpu(run: Run, name: str, shape: str) -> None:
    row = run.row(*name.split("/"), shape)
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.device == "cpu"


def test_nothing_else_was_evaluated(run: Run) -> None:
    assert len(run.results) == len(SOLUTIONS) * len(SHAPES)
    assert run.status == 0, run.err


def test_the_table_claims_no_speedup_and_says_why_once(run: Run) -> None:
    rows = [line.split() for line in run.out.splitlines() if line.split()[:1] and line.split()[0] in
            {name.partition("/")[0] for name in SOLUTIONS}]
    assert len(rows) == len(run.results)
    assert "speedup" not in run.out.splitlines()[0] and " ms" not in run.out.splitlines()[0]
    assert run.out.count(NO_SPEEDUP) == 1
