"""Evaluations whose judge dies are repeated, but not without end, and builds do not wait for evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
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
        self.did: list[str] = []
        self.builds: dict[str, Future[None]] = {}
        """The builds that take time, by the solution's name."""
        self.may_evaluate = Event()
        self.may_evaluate.set()

    def prebuild(self, jobs: Any, worker: Any) -> dict[Path, Future[None]]:
        self.did.append(f"build {jobs[0].solution_name}")
        return {job.solution: self.builds[job.solution_name] for job in jobs if job.solution_name in self.builds}

    def evaluate(self, worker: Any, jobs: Any) -> list[Result]:
        self.did.append(f"evaluate {jobs[0].solution_name}")
        assert self.may_evaluate.wait(60)
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


def test_a_build_starts_before_evaluations_that_have_waited_longer() -> None:
    early = [f"early {number}" for number in range(4)]
    executor: Any = Executor(*[PASSED] * 6)
    executor.builds = {name: Future() for name in early}
    executor.may_evaluate.clear()
    warm = WarmExecutor(executor)
    waiting = warm._changed._waiters  # type: ignore[attr-defined]
    futures = []
    with ThreadPoolExecutor(6) as pool:
        def start(name: str) -> None:
            futures.append(pool.submit(warm.results, (replace(JOB, solution_name=name),)))

        for name in early:
            start(name)
        wait(lambda: len(executor.did) == 4 and len(warm._free) == 1)
        start("occupies")
        wait(lambda: executor.did[-1] == "evaluate occupies")
        for each in executor.builds.values():
            each.set_result(None)
        wait(lambda: len(waiting) == 4)
        start("late")
        wait(lambda: len(waiting) == 5)
        executor.may_evaluate.set()
        assert [future.result() for future in futures] == [[PASSED]] * 6
    assert executor.did[6] == "build late"
    for each in warm.workers:
        each.thread.shutdown()


def wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.001)
