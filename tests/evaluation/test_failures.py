"""Failures that have another cause than the solution's outputs: the judge's memory, and builds that failed before."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.builds.request import BuildOutcome
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.own_kernels import NONE_OF_ITS_OWN
from inlinebench.evaluation.one_process import _failure, _prefer_build_failure
from inlinebench.results.result import Verdict

NOBODY: Any = SimpleNamespace(settings=None)


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_judge_without_memory_does_not_skip_the_solution(error: type[Exception]) -> None:
    def step() -> None:
        raise error

    failure = _failure(step, candidate=NOBODY, tools=NOBODY)
    assert failure is not None and failure.verdict is Verdict.OUT_OF_MEMORY


def test_a_failure_keeps_no_tensors_of_the_step_that_failed() -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def step() -> None:
        batch = torch.empty(4)
        held.append(weakref.ref(batch))
        raise Failed(Verdict.REJECTED, "no")

    failure = _failure(step, candidate=NOBODY, tools=NOBODY)
    assert failure is not None and held[0]() is None


FAILS = BuildOutcome(None, "cuda_sources:3:1: error: no\n    3 | no")
UNSUPPORTED = BuildOutcome(None, "inline PTX `cp.async` (line 3): cannot run on the CPU", verdict=Verdict.SKIPPED)


TOO_LONG = BuildOutcome(None, "the build took longer than 600 s", verdict=Verdict.TIMED_OUT)


def preferred(verdict: Verdict, reason: str, *builds: BuildOutcome) -> tuple[Verdict, str]:
    candidate = SimpleNamespace(builds=list(builds))
    found = _prefer_build_failure(Failed(verdict, reason), candidate, None)  # type: ignore[arg-type]
    return found.verdict, found.reason


def test_a_solution_without_a_kernel_of_its_own_because_its_source_cannot_run_here_is_skipped() -> None:
    assert preferred(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN, UNSUPPORTED) == (Verdict.SKIPPED, UNSUPPORTED.reason)


def test_a_solution_that_hides_a_build_that_took_too_long_has_timed_out() -> None:
    assert preferred(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN, TOO_LONG) == (Verdict.TIMED_OUT, TOO_LONG.reason)


def test_a_solution_that_hides_its_failed_build_fails_with_the_compilers_error() -> None:
    verdict, reason = preferred(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN, FAILS)
    assert verdict is Verdict.NO_OWN_KERNEL
    assert reason == f"{NONE_OF_ITS_OWN}; one of its builds failed: cuda_sources:3:1: error: no"


def test_builds_that_failed_change_no_other_verdict_on_outputs() -> None:
    for builds in ((FAILS,), (UNSUPPORTED,), ()):
        assert preferred(Verdict.WRONG, "values differ", *builds) == (Verdict.WRONG, "values differ")
    assert preferred(Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN) == (Verdict.NO_OWN_KERNEL, NONE_OF_ITS_OWN)
