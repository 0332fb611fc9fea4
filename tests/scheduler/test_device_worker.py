"""A worker whose judge ends: in its start, while it loads a problem, or while it explains a wrong output."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inlinebench.errors import JudgeDied, NoDevice
from inlinebench.messages import Done, Evaluate, Hello, Init, Jobs, ProblemAt, Settings
from inlinebench.process.steps import FORWARD_TO_EXPLAIN, StepTimedOut
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.sandbox.policy import Sandbox
from inlinebench.sandbox.watchdog import Limits
from inlinebench.scheduler.device_worker import MOST_LOADS, MOST_STARTS, DeviceWorker

from ..report.samples import result

JOB = Evaluate("softmax", "naive", ProblemAt(Path("softmax.py"), "full", {}), Path("naive.py"), "full")
SETTINGS = Settings(device="cpu", seed=1, sandbox=Sandbox(), limits=Limits(1 << 30), cache=Path("cache"))
WRONG = replace(result(verdict=Verdict.WRONG, reason="all elements differ"), device="cpu")


class Judge:
    """Ends in a step, and then returns a result."""

    usable = True

    def __init__(self, step: str, error: Exception, then: Result) -> None:
        self.step, self._error, self._then = step, error, then
        self.asked: list[Evaluate] = []

    def evaluate(self, jobs: Jobs) -> Done:
        self.asked += jobs
        if len(self.asked) == 1:
            raise self._error
        return Done((self._then,))


class Worker(DeviceWorker):
    """A worker with a planted judge."""

    device = "cpu"

    def __init__(self, judge: Judge) -> None:
        self._planted: Any = judge
        super().__init__(None, lambda text: None)  # type: ignore[arg-type]
        self._settings = SETTINGS

    def _start(self) -> Any:
        return self._planted

    def _restart(self) -> str:
        return ""


@pytest.mark.parametrize("error", [StepTimedOut(FORWARD_TO_EXPLAIN, 10.0), JudgeDied("the judge ended")])
def test_a_wrong_solution_is_not_tried_again_until_it_passes(error: Exception) -> None:
    judge = Judge(FORWARD_TO_EXPLAIN, error, replace(result(), device="cpu"))
    (found,) = Worker(judge).evaluate((JOB,))
    assert found.verdict is Verdict.WRONG and "outputs differ from run to run" in found.reason
    assert [job.explains for job in judge.asked] == [True, False]


def test_a_repeated_evaluation_says_how_the_output_is_wrong() -> None:
    judge = Judge(FORWARD_TO_EXPLAIN, StepTimedOut(FORWARD_TO_EXPLAIN, 10.0), WRONG)
    assert Worker(judge).evaluate((JOB,)) == [WRONG]


def test_a_step_that_hangs_before_anything_was_wrong_is_the_problem_s() -> None:
    judge = Judge("the reference's forward", StepTimedOut("the reference's forward", 60.0), WRONG)
    (found,) = Worker(judge).evaluate((JOB,))
    assert found.verdict is Verdict.PROBLEM_ERROR and len(judge.asked) == 1


class Mortal(Worker):
    """A worker whose first judges die whenever they are asked."""

    def __init__(self, deaths: int) -> None:
        self.started = 0
        self._deaths = deaths
        self._service: Any = None
        super().__init__(self)  # type: ignore[arg-type]

    def _start(self) -> Any:
        self.started += 1
        return self

    def _restart(self) -> str:
        return DeviceWorker._restart(self)

    def hello(self, settings: Settings) -> Hello:
        return self._die_or(Hello("cpu", Environment(torch="2", harness="1"), ()))

    def use(self, service: Any) -> None:
        pass

    def kill(self) -> None:
        pass

    def log(self) -> str:
        return "its last words"

    def _die_or(self, answer: Any) -> Any:
        if self._deaths:
            self._deaths -= 1
            raise JudgeDied("the judge ended with status -9")
        return answer


@pytest.mark.parametrize(("deaths", "starts"), [(0, 1), (MOST_STARTS - 1, MOST_STARTS)])
def test_a_judge_that_is_killed_in_its_start_is_replaced(deaths: int, starts: int) -> None:
    worker = Mortal(deaths)
    assert worker.open(SETTINGS).device == "cpu" and worker.started == starts


def test_a_judge_that_never_starts_is_a_device_that_cannot_be_used() -> None:
    with pytest.raises(NoDevice, match="the judge could not start: its last words"):
        Mortal(MOST_STARTS).open(SETTINGS)


@pytest.mark.parametrize("deaths", [0, MOST_STARTS - 1, MOST_STARTS])
def test_a_judge_that_does_not_start_again_is_a_device_that_cannot_be_used(deaths: int) -> None:
    worker = Mortal(0)
    worker.open(SETTINGS)
    worker._deaths = deaths
    with pytest.raises(NoDevice, match="its last words") if deaths == MOST_STARTS else nullcontext():
        worker._restart()


class Loader:
    """A judge that fails when it first loads a problem."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def init_arguments(self, problem: ProblemAt) -> Init:
        if self.errors:
            raise self.errors.pop(0)
        return Init(b"arguments")


KILLED = JudgeDied("the judge ended with status -9")


def test_a_judge_that_is_killed_once_while_it_loads_a_problem_says_nothing_about_the_problem() -> None:
    worker = Worker(Loader(KILLED))  # type: ignore[arg-type]
    assert worker.init_arguments(JOB.problem) == Init(b"arguments")


def test_a_problem_that_kills_each_judge_that_loads_it_is_named() -> None:
    judge = Loader(*[KILLED] * (MOST_LOADS + 1))
    found = Worker(judge).init_arguments(JOB.problem)  # type: ignore[arg-type]
    assert found.pickled is None and found.reason == f"softmax.py: {KILLED} while it loaded this file"
    assert len(judge.errors) == 1


def test_a_problem_that_hangs_is_loaded_once() -> None:
    judge = Loader(StepTimedOut("the constructor", 10.0), KILLED)
    assert Worker(judge).init_arguments(JOB.problem).pickled is None  # type: ignore[arg-type]
    assert judge.errors == [KILLED]
