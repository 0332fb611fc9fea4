"""One judge with its device: evaluates one job after the other, and gets another judge when its own dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from inlinebench.messages import Evaluate, Hello, Init, ProblemAt, Settings
from inlinebench.records.errors import JudgeDied, NoDevice
from inlinebench.records.result import Result, Verdict
from inlinebench.scheduler.judge_client import JudgeClient
from inlinebench.scheduler.judge_process import Scratch

if TYPE_CHECKING:
    from inlinebench.compile.service import BuildService


class DeviceWorker:
    """Its judge starts at once and imports torch, while others look at the machine; `open` tells it what to do.

    With `gpu` the judge sees that GPU alone (an entry of CUDA_VISIBLE_DEVICES; an empty one is none), and its results
    bear the name `label`.
    """

    def __init__(self, scratch: Scratch, show: Callable[[str], None], gpu: str | None = None, label: str = "") -> None:
        self._scratch, self._show, self._gpu, self._label = scratch, show, gpu, label
        self._now = ""
        self._judge = self._start()

    def open(self, settings: Settings) -> Hello:
        """What the judge says to its settings. Raises NoDevice."""
        self._settings = replace(settings, device="cuda:0") if self._gpu else settings
        try:
            hello = self._judge.hello(self._settings)
        except JudgeDied as error:
            last = self._judge.log().rpartition("\n")[2] or "it said nothing"
            raise NoDevice(f"the judge could not start: {last}; is PyTorch whole?") from error
        self.device, self.environment = self._label or hello.device, hello.environment
        return replace(hello, device=self.device)

    def use(self, service: BuildService) -> None:
        """Builds go to the service."""
        self._service = service
        self._judge.use(service)

    def init_arguments(self, problem: ProblemAt) -> Init:
        """The pickled arguments of a problem's constructor, or why it can't give them."""
        try:
            return self._judge.init_arguments(problem)
        except JudgeDied as error:
            self._restart()
            return Init(None, f"{problem.path}: {error} when it loaded this file")

    def evaluate(self, job: Evaluate) -> Result:
        """The result of a job; a judge that dies of it is an internal error of this one result."""
        self._now = f"{job.problem_name}/{job.solution_name} {job.shape_name}"
        self.show("")
        try:
            result = self._judge.evaluate(job)
            if not self._judge.usable:
                self._restart()
        except JudgeDied as error:
            log = self._judge.log()
            self._restart()
            reason = f"{error} in the middle of this evaluation; the log holds what it said last"
            return Result(job.problem_name, job.solution_name, job.shape_name, self.device, Verdict.INTERNAL_ERROR,
                          reason, seed=self._settings.seed, log=log or None)
        return replace(result, device=self.device)

    def show(self, text: str) -> None:
        """What it is doing now."""
        self._show(f"{self._now} {text}")

    def kill(self) -> None:
        """Ends the judge, with all that it started."""
        self._judge.kill()

    def _start(self) -> JudgeClient:
        more = {} if self._gpu is None else {"CUDA_VISIBLE_DEVICES": self._gpu}
        return JudgeClient(self._scratch, self.show, more)

    def _restart(self) -> None:
        self._judge.kill()
        self._judge = self._start()
        self._judge.hello(self._settings)
        self._judge.use(self._service)
