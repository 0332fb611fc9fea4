"""The bundled problems and solutions at full size on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.result import Verdict

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


def test_all_shapes_pass(cache: Path, tmp_path: Path) -> None:
    checked = run_eval("--device", "cuda", "--check", "--cache", cache, out=tmp_path / "out.jsonl")
    assert checked.status == 0, checked.out
