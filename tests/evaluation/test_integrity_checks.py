from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.evaluation.attempt import Attempt
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.checks import IntegrityChecks, leaves_work_to_library
from inlinebench.records.result import Verdict
from inlinebench.timing.lower_bounds import Surroundings

REFERENCE = {"gemm": 2.68, "scale": 0.02, "normalise": 0.02}


@pytest.mark.parametrize(("library", "leaves"), [
    ({"gemm": 2.68, "scale": 0.02, "normalise": 0.02}, True),   # all kernels of the reference ran
    ({"gemm": 2.68}, False),                                    # own kernels replace the smaller ones
    ({"gemm": 2.68, "scale": 0.02}, True),                      # own kernels replace only 0.7 %
    ({"another gemm": 2.5}, False),                             # a library kernel that the reference does not run
    ({}, False),
])
def test_own_kernels_that_take_no_time_must_replace_kernels_of_the_reference(
    library: dict[str, float], leaves: bool
) -> None:
    assert leaves_work_to_library(library, REFERENCE) is leaves


@pytest.mark.parametrize(("blocked", "reason"), [(True, "by the judge's clock"), (False, "could be queued in advance")])
def test_implausible_times_are_rejected_and_the_reason_mentions_other_processes(blocked: bool, reason: str) -> None:
    def batch(calls: int) -> tuple[SimpleNamespace, bool]:
        return SimpleNamespace(time=SimpleNamespace(least_ms=1000.0)), blocked

    timings: Any = SimpleNamespace(solution_ms=lambda: 1.0, in_doubt="{}; or not".format)
    requests: Any = SimpleNamespace(synchronises=False)
    unused: Any = None
    costs = SimpleNamespace(write_ms=0.1, surroundings=Surroundings(0.12, 0.02, 0.0, 0.0))
    workload: Any = SimpleNamespace(device=SimpleNamespace(type="cuda"), sets=[None] * 4, costs=costs)
    tools: Any = SimpleNamespace(settings=SimpleNamespace(timing=True), progress=lambda text: None)
    with pytest.raises(Failed) as failure:
        IntegrityChecks(
            workload=workload, job=unused, tools=tools, attempt=Attempt(), timings=timings, requests=requests,
            reference=unused, batch=batch, profile=unused,  # type: ignore[arg-type]
        ).run()
    assert failure.value.verdict is Verdict.REJECTED
    assert reason in failure.value.reason and failure.value.reason.endswith("; or not")
