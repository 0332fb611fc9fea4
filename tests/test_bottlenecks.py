"""Every file in `bottlenecks/` is right, and slow for the reason that it declares.

`pytest -m slow` evaluates them on the CPU, where only the first can be seen, `pytest -m gpu` on a GPU.
`benchmarks/bottlenecks.py` has those that only counters tell.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bottlenecks import COUNTED
from inlinebench.report.bottlenecks import RULES, bottlenecks
from inlinebench.results.result import Result, Verdict

from .planted import Planted, evaluate_all, read_all
from .running import ROOT

SLOW = read_all("bottlenecks/*.py")
SEEN = [case for case in SLOW if case.bottleneck not in COUNTED]
GOOD = [Planted(ROOT / "solutions" / name / "fast.py", name, shape="full") for name in ("transpose", "row_sum", "gelu")]


def by_name(case: Planted) -> str:
    return case.name


@pytest.fixture(scope="module")
def on_cpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    small = [replace(case, shape="small") for case in SLOW]
    return evaluate_all(small, tmp_path_factory.mktemp("cpu"), "--check", "--device", "cpu", "--min-calls", "6",
                        "--cache", cache)


@pytest.fixture(scope="module")
def on_gpu(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return evaluate_all([*SEEN, *GOOD], tmp_path_factory.mktemp("gpu"), "--device", "cuda", "--min-calls", "20",
                        "--max-calls", "20", "--cache", cache)


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=by_name)
def test_a_slow_kernel_is_right(case: Planted, on_cpu: dict[str, Result]) -> None:
    case.assert_caught(on_cpu[case.name])


@pytest.mark.gpu
@pytest.mark.parametrize("case", SEEN, ids=by_name)
def test_a_bottleneck_is_named_on_a_gpu(case: Planted, on_gpu: dict[str, Result]) -> None:
    case.assert_caught(on_gpu[case.name])
    assert case.bottleneck in [each.name for each in bottlenecks(on_gpu[case.name])]


@pytest.mark.gpu
@pytest.mark.parametrize("case", GOOD, ids=by_name)
def test_a_good_kernel_has_no_bottleneck_on_a_gpu(case: Planted, on_gpu: dict[str, Result]) -> None:
    assert on_gpu[case.name].verdict is Verdict.PASSED
    assert bottlenecks(on_gpu[case.name]) == ()


def test_the_planted_bottlenecks_are_those_of_rules() -> None:
    assert len(SLOW) == 12
    assert {case.bottleneck for case in SLOW} == {rule.name for rule in RULES}
