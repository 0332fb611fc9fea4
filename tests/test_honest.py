"""Every file in `honest/` must pass. Each does something that looks suspicious but is allowed.

A normal run evaluates some of them on the CPU; `pytest -m slow` evaluates the rest.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inlinebench.records.result import Result

from .planted import Planted, evaluate_all, read_all

HONEST = read_all("honest/*.py")
ON_CPU = [solution for solution in HONEST if not solution.needs_gpu]
SOME, REST = ON_CPU[::8], [solution for index, solution in enumerate(ON_CPU) if index % 8]
CHECK = ("--check", "--devices", "cpu,cpu", "--calls", "6")
TRITON = importlib.util.find_spec("triton") is not None
ON_GPU = [solution for solution in HONEST if TRITON or not solution.needs_triton]


def by_name(solution: Planted) -> str:
    return solution.path.stem


@pytest.fixture(scope="module")
def some(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(SOME, tmp_path_factory.mktemp("some"), *CHECK, "--cache", cache)


@pytest.fixture(scope="module")
def rest(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(REST, tmp_path_factory.mktemp("rest"), *CHECK, "--cache", cache)


@pytest.fixture(scope="module")
def on_gpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all(ON_GPU, tmp_path_factory.mktemp("gpu"), "--device", "cuda", "--calls", "20", "--cache", cache)


@pytest.mark.parametrize("solution", SOME, ids=by_name)
def test_some_honest_solutions_pass(solution: Planted, some: dict[str, Result]) -> None:
    solution.assert_caught(some[solution.name])


@pytest.mark.slow
@pytest.mark.parametrize("solution", REST, ids=by_name)
def test_an_honest_solution_passes(solution: Planted, rest: dict[str, Result]) -> None:
    solution.assert_caught(rest[solution.name])


@pytest.mark.gpu
@pytest.mark.parametrize("solution", ON_GPU, ids=by_name)
def test_an_honest_solution_passes_on_a_gpu(solution: Planted, on_gpu: dict[str, Result]) -> None:
    solution.assert_caught(on_gpu[solution.name])


def test_there_are_enough_honest_solutions() -> None:
    assert len(HONEST) >= 25
