"""Evaluations whose judge dies are repeated, but not without end."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.serve.executors import MOST_TRIES, WarmExecutor

JOB = Evaluate("axpy", "solution", ProblemAt(Path("axpy.py"), "full", {}), Path("solution.py"), "full")
PASSED = Result("axpy", "solution", "full", "cpu", Verdict.PASSED, "", check=Check(3, 1e-4, "float64", "by name"))
DEATH = replace(PASSED, verdict=Verdict.INTERNAL_ERROR, reason="the judge ended with status -9", check=None)


class Executor:
    """An executor with one worker, whose evaluations have the given results."""

    def __init__(self, *results: Result) -> None:
        self._results = list(results)
        self.workers = [SimpleNamespace(device="cpu")]

    def prebuild(self, jobs: Any, worker: Any) -> dict[Path, Future[None]]:
        return {}

    def evaluate(self, worker: Any, jobs: Any) -> list[Result]:
        return [self._results.pop(0)]


@pytest.mark.parametrize(("results", "answer"), [
    ([PASSED], PASSED),
    ([replace(PASSED, verdict=Verdict.WRONG, reason="it is wrong")],) * 2,
    ([DEATH] * (MOST_TRIES - 1) + [PASSED], PASSED),
    ([DEATH] * MOST_TRIES, DEATH),
], ids=["passed", "wrong", "repeated", "given up"])
def test_an_internal_error_is_repeated_a_few_times(results: list[Result], answer: Result | list[Result]) -> None:
    executor: Any = Executor(*results)
    warm = WarmExecutor(executor)
    assert warm.results((JOB,)) == [answer[0] if isinstance(answer, list) else answer] and not executor._results
    for each in warm.workers:
        each.thread.shutdown()
