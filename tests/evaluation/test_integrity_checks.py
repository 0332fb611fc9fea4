from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.evaluation.attempt import Attempt
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.checks import IntegrityChecks, is_fig_leaf
from inlinebench.records.result import Verdict
from inlinebench.timing.lower_bounds import Surroundings

REFERENCE = {"gemm": 2.68, "scale": 0.02, "normalise": 0.02}


@pytest.mark.parametrize(("library", "leaf"), [
    ({"gemm": 2.68, "scale": 0.02, "normalise": 0.02}, True),   # all of the reference, and something useless beside it
    ({"gemm": 2.68}, False),                                    # its own kernels replace what else there was
    ({"gemm": 2.68, "scale": 0.02}, True),                      # they replace 0.7 %
    ({"another gemm": 2.5}, False),                             # the library, but not the reference's way of calling it
    ({}, False),
])
def test_own_kernels_without_a_time_of_their_own_must_replace_something(library: dict[str, float], leaf: bool) -> None:
    assert is_fig_leaf(library, REFERENCE) is leaf


@pytest.mark.parametrize(("blocked", "reason"), [(True, "by the judge's clock"), (False, "could be queued in advance")])
def test_times_that_do_not_add_up_are_in_doubt_where_others_work(blocked: bool, reason: str) -> None:
    def batch(calls: int) -> tuple[SimpleNamespace, bool]:
        return SimpleNamespace(time=SimpleNamespace(least_ms=1000.0)), blocked

    timings: Any = SimpleNamespace(solution_ms=lambda: 1.0, in_doubt="{}; or not".format)
    requests: Any = SimpleNamespace(synchronises=False)
    unused: Any = None
    costs = SimpleNamespace(write_ms=0.1, beside=Surroundings(0.12, 0.02, 0.0, 0.0))
    workload: Any = SimpleNamespace(device=SimpleNamespace(type="cuda"), sets=[None] * 4, costs=costs)
    tools: Any = SimpleNamespace(settings=SimpleNamespace(timing=True), progress=lambda text: None)
    with pytest.raises(Failed) as failure:
        IntegrityChecks(
            workload=workload, job=unused, tools=tools, attempt=Attempt(), timings=timings, requests=requests,
            reference=unused, batch=batch, profile=unused,  # type: ignore[arg-type]
        ).run()
    assert failure.value.verdict is Verdict.REJECTED
    assert reason in failure.value.reason and failure.value.reason.endswith("; or not")
