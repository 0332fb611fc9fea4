"""Evaluates jobs one after the other on one device, with a judge that is replaced when it dies or hangs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench.catalog.traces.layout import name_of
from inlinebench.errors import JudgeDied, NoDevice
from inlinebench.messages import Hello, Init, Jobs, ProblemAt, Settings
from inlinebench.process.steps import FORWARD_IN_FLOAT64, FORWARD_TO_EXPLAIN, StepTimedOut
from inlinebench.results.result import Result, Verdict
from inlinebench.scheduler.judge_client import JudgeClient
from inlinebench.scheduler.judge_process import Scratch

if TYPE_CHECKING:
    from inlinebench.compile.service import BuildService

Key = tuple[str, str, str]
"""The key of a problem at a shape."""
MOST_LOADS = 2
"""A problem's file is at fault only if so many judges died while they loaded it."""
MOST_STARTS = 3
"""How many judges are started until one of them does not die before it has taken its settings."""


class DeviceWorker:
    """A judge on one device. The judge starts at once and imports torch; `open` sends its settings later.

    With `gpu` (an entry of CUDA_VISIBLE_DEVICES; empty for none) the judge sees only that GPU. With `label`, results
    have that device name.
    """

    def __init__(self, scratch: Scratch, show: Callable[[str], None], gpu: str | None = None, label: str = "") -> None:
        self._scratch, self._show, self._gpu, self._label = scratch, show, gpu, label
        self._now = ""
        self._timed_out: set[Key] = set()
        self._given_up: dict[Key, str] = {}
        self._judge = self._start()

    def open(self, settings: Settings) -> Hello:
        """Sends the settings to the judge and returns its reply. Raises NoDevice if the device cannot be used."""
        self._settings = replace(settings, device="cuda:0") if self._gpu else settings
        hello = self._greet()
        self.device, self.environment = self._label or hello.device, hello.environment
        return replace(hello, device=self.device)

    def use(self, service: BuildService) -> None:
        """Sets the service for the judge's builds."""
        self._service = service
        self._judge.use(service)

    def init_arguments(self, problem: ProblemAt) -> Init:
        """Returns the pickled constructor arguments of a problem, or the reason why it has none."""
        self._now = f"{name_of(problem.path)} {problem.shape}"
        reason = ""
        for _ in range(MOST_LOADS):
            try:
                return self._judge.init_arguments(problem)
            except JudgeDied as error:
                self._restart()
                reason = f"{problem.path}: {error} while it loaded this file"
            except StepTimedOut as error:
                self._restart()
                self._given_up[problem.key] = reason = f"{problem.path}: {error}"
                break
        return Init(None, reason)

    def evaluate(self, jobs: Jobs) -> list[Result]:
        """Returns the results of jobs that one process makes.

        If the judge dies, they are internal errors; if the problem's own code hangs in it, problem errors. A new judge
        then starts.
        """
        what = f"{len(jobs)} workloads" if jobs[0].in_set else jobs[0].shape_name
        self._now = f"{jobs[0].problem_name}/{jobs[0].solution_name} {what}"
        self.show("")
        for job in jobs:
            if job.problem.key in self._given_up:
                return self._failed(jobs, Verdict.PROBLEM_ERROR, self._given_up[job.problem.key])
        try:
            done = self._judge.evaluate(jobs)
            if not self._judge.usable:
                self._restart()
            return [replace(result, device=self.device) for result in done.results]
        except (JudgeDied, StepTimedOut) as error:
            if self._judge.step == FORWARD_TO_EXPLAIN:
                return self._unexplained(jobs)
            return self._ended(jobs, error)

    def _unexplained(self, jobs: Jobs) -> list[Result]:
        """Returns the results of jobs whose judge ended or hangs while it explained a wrong output.

        The output was wrong, so a repeated evaluation may say how, but not pass: a solution could slow down the GPU to
        be tried again.
        """
        self._restart()
        again = self.evaluate(tuple(replace(job, explains=False) for job in jobs))
        if any(result.verdict is not Verdict.PASSED for result in again):
            return again
        return self._failed(jobs, Verdict.WRONG, "an output was wrong, and the judge ended before it could say how; "
                            "repeated, the evaluation passed: outputs differ from run to run", again[0].log or "")

    def _ended(self, jobs: Jobs, error: JudgeDied | StepTimedOut) -> list[Result]:
        """Returns the results of jobs whose judge ended or hangs. A new judge starts."""
        log = self._restart()
        if isinstance(error, JudgeDied):
            reason = f"{error} during this evaluation; the log has its last output"
            return self._failed(jobs, Verdict.INTERNAL_ERROR, reason, log)
        if error.step == FORWARD_IN_FLOAT64:
            return self.evaluate(tuple(replace(job, problem=replace(job.problem, oracle=False)) for job in jobs))
        keys, reason = {job.problem.key for job in jobs}, f"{jobs[0].problem.path}: {error}"
        # A solution can slow down everything on its GPU, so the problem is given up only when this happens again.
        if keys <= self._timed_out:
            self._given_up |= dict.fromkeys(keys, reason)
        self._timed_out |= keys
        return self._failed(jobs, Verdict.PROBLEM_ERROR, reason, log)

    def _failed(self, jobs: Jobs, verdict: Verdict, reason: str, log: str = "") -> list[Result]:
        return [Result(job.problem_name, job.solution_name, job.shape_name, self.device, verdict, reason,
                       seed=self._settings.seed, log=log or None, backward=job.problem.backward or None)
                for job in jobs]

    def show(self, text: str) -> None:
        """Shows the current activity in the progress line."""
        self._show(f"{self._now} {text}")

    def kill(self) -> None:
        """Kills the judge and all its descendants."""
        self._judge.kill()

    def _start(self) -> JudgeClient:
        more = {} if self._gpu is None else {"CUDA_VISIBLE_DEVICES": self._gpu}
        return JudgeClient(self._scratch, self.show, more)

    def _restart(self) -> str:
        """Replaces the judge. Returns the end of the old one's output."""
        log = self._judge.log()
        self._judge.kill()
        self._judge = self._start()
        self._greet()
        self._judge.use(self._service)
        return log

    def _greet(self) -> Hello:
        """Returns the reply of the started judge to its settings. A judge that dies before is replaced.

        Raises NoDevice if the last one dies, too, or if the device cannot be used.
        """
        for _ in range(MOST_STARTS - 1):
            try:
                return self._judge.hello(self._settings)
            except JudgeDied:
                self._judge.kill()
                self._judge = self._start()
        try:
            return self._judge.hello(self._settings)
        except JudgeDied as error:
            last = self._judge.log().rpartition("\n")[2] or "it printed nothing"
            raise NoDevice(f"the judge could not start: {last}; {_why_no_torch()}") from error


def _why_no_torch() -> str:
    """Says what to do if the judge cannot import PyTorch."""
    hiding = [path for path in (Path("torch.py"), Path("torch", "__init__.py")) if path.exists()]
    if hiding:
        return f"{hiding[0].absolute()} is imported instead of PyTorch: rename it, or run in another folder"
    return "check the installation of PyTorch"
