"""Every file in `honest/` must pass. Each does something that looks suspicious but is allowed.

All are evaluated by `pytest -m gate`; `test_pipeline.py` has honest solutions for every run.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inlinebench.results.result import Result

from .planted import Planted, evaluate_all, read_all

HONEST = read_all("honest/*.py")
ON_CPU = [solution for solution in HONEST if not solution.needs_gpu]
CHECK = ("--check", "--devices", "cpu,cpu", "--min-calls", "6")
TRITON = importlib.util.find_spec("triton") is not None
ON_GPU = [solution for solution in HONEST if TRITON or not solution.needs_triton]


def by_name(solution: Planted) -> str:
    return solution.path.stem


@pytest.fixture(scope="module")
def on_cpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(ON_CPU, tmp_path_factory.mktemp("cpu"), *CHECK, "--cache", cache)


@pytest.fixture(scope="module")
def on_gpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(ON_GPU, tmp_path_factory.mktemp("gpu"), "--device", "cuda", "--min-calls", "20",
                        "--cache", cache)


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.parametrize("solution", ON_CPU, ids=by_name)
def test_an_honest_solution_passes(solution: Planted, on_cpu: dict[str, Result]) -> None:
    solution.assert_caught(on_cpu[solution.name])


@pytest.mark.gpu
@pytest.mark.parametrize("solution", ON_GPU, ids=by_name)
def test_an_honest_solution_passes_on_a_gpu(solution: Planted, on_gpu: dict[str, Result]) -> None:
    solution.assert_caught(on_gpu[solution.name])


def test_there_are_enough_honest_solutions() -> None:
    assert len(HONEST) >= 25
