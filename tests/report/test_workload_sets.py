"""Tests the answers for sets of workloads."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from inlinebench.report.comparison import Change
from inlinebench.report.terminal.outputs import report, sets
from inlinebench.report.terminal.summary import summary
from inlinebench.report.workload_sets import answers, compared
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.results.times import REPEATABILITY, Spread, Timing, mean_speedup

CHECK = Check(25, 1e-4, "float64", "by name")


def passed(shape: str, speedup: float, weight: float | None = 1.0, *, error: float = 0.1) -> Result:
    spread = Spread(speedup, speedup / (1 + error), speedup * (1 + error))
    timing = Timing(Spread(speedup, speedup, speedup), Spread(1.0, 1.0, 1.0), spread)
    return Result("rows", "fast", shape, "cuda:0", Verdict.PASSED, check=CHECK, timing=timing, weight=weight)


def failed(shape: str, verdict: Verdict = Verdict.WRONG) -> Result:
    return Result("rows", "fast", shape, "cuda:0", verdict, "it differs", weight=1.0)


def test_the_mean_is_the_weighted_geometric_mean() -> None:
    (answer,) = answers([passed("a", 1.0), passed("b", 8.0, 2.0)])
    assert answer.speedup is not None and answer.speedup.median == pytest.approx(4.0)
    assert (answer.passed, answer.workloads) == (2, 2)
    assert answer.worst is not None and answer.worst.shape == "a"


def test_independent_errors_add_up_in_quadrature_and_the_common_one_stays() -> None:
    def reach(count: int, error: float) -> float:
        spread = Spread(1.0, math.exp(-error), math.exp(error))
        mean = mean_speedup([(spread, 1.0)] * count)
        assert mean is not None
        return math.log(mean.high)

    assert reach(16, 0.1) == pytest.approx(0.1 / 4, rel=0.01)
    assert reach(1, 0.1) == pytest.approx(0.1, rel=0.01)
    assert reach(1000, REPEATABILITY) == pytest.approx(REPEATABILITY)


def test_a_mean_needs_positive_speedups() -> None:
    assert mean_speedup([]) is None
    assert mean_speedup([(Spread(1.0, 0.0, 2.0), 1.0)]) is None


def test_a_set_passes_only_if_all_workloads_pass_and_the_failed_one_is_the_worst() -> None:
    (answer,) = answers([passed("a", 0.5), failed("b"), passed("c", 2.0)])
    assert answer.speedup is None
    assert answer.share == "2 of 3"
    assert answer.worst is not None and answer.worst.shape == "b"
    assert [(each.passed, each.speedup) for each in summary([passed("a", 0.5), failed("b")])] == [(0, None)]


def test_a_set_without_a_workload_is_another_set_so_what_was_not_evaluated_is_not_passed() -> None:
    (answer,) = answers([passed("a", 2.0), failed("b", Verdict.SKIPPED), failed("c", Verdict.INTERNAL_ERROR)])
    assert (answer.share, answer.speedup) == ("1 of 3", None)
    (answer,) = answers([failed("a", Verdict.SKIPPED), failed("b"), passed("c", 2.0)])
    assert answer.worst is not None and answer.worst.shape == "b"


def test_shapes_are_no_set_and_the_report_without_sets_has_no_table_of_them() -> None:
    results = [passed("small", 2.0, None), passed("full", 2.0, None)]
    assert answers(results) == ()
    assert "worst workload" not in report(results)
    assert "worst workload" in sets([passed("a", 2.0)])


def test_the_summary_weights_the_workloads_of_a_set() -> None:
    (entry,) = summary([passed("a", 1.0), passed("b", 8.0, 2.0)])
    assert entry.speedup == pytest.approx(4.0)


def test_a_set_may_be_slower_although_no_workload_is() -> None:
    before = [passed(f"w{number}", 2.0, error=0.05) for number in range(16)]
    after = [passed(f"w{number}", 1.9, error=0.05) for number in range(16)]
    assert compared(before, before) == []
    ((change, line),) = compared(before, after)
    assert change is Change.SLOWER and "rows/fast" in line
    ((change, line),) = compared(before, [*after[1:], failed("w0")])
    assert change is Change.NOW_FAILING and "16 of 16 workloads passed before, 15 of 16 now" in line
    library = [replace(each, solution="library") for each in after]
    assert compared([replace(each, solution="library") for each in before], library) == []
