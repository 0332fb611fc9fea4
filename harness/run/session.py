"""One run: a judge for the device, builds ahead, and results as they come."""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from harness.build.service import BuildService
from harness.errors import JudgeDied, NoDevice, NoSandbox
from harness.judge import sanitizer
from harness.judge.messages import Evaluate, Settings
from harness.options import HOST_MEMORY_SHARE, ROOT, Options
from harness.result import Result, Verdict
from harness.run import ncu
from harness.run.against import Rivals
from harness.run.ahead import BuildAhead
from harness.run.judge_client import JudgeClient
from harness.run.plan import Choice, plan
from harness.run.progress import Progress
from harness.sandbox.policy import REQUIRED, Sandbox
from harness.sandbox.probe import available
from harness.sandbox.watchdog import Limits, available_bytes
from harness.timing.stopping import Sampling


class Session:
    """Runs the choices on the device that the options name; a context manager that leaves no process behind.

    Entering raises NoSandbox if one is required and can't be had, NoDevice if the device can't be used, and UsageError
    if the cache can't be written or a tool isn't there.
    """

    def __init__(self, options: Options, choices: Sequence[Choice], progress: Progress) -> None:
        self._options, self._choices, self._progress = options, choices, progress
        self._now = ""

    def __enter__(self) -> Session:
        # What a killed judge leaves behind goes with this folder.
        self._scratch = tempfile.TemporaryDirectory(prefix="inlinebench-", ignore_cleanup_errors=True)
        self._judge = self._start_judge()  # which takes seconds to import torch, while we look at the machine
        try:
            options = self._options
            self._settings = _settings(options, _sandbox(options))
            hello = self._judge.hello(self._settings)
            self.device = hello.device
            self._service = BuildService(
                options.cache, hello.architectures, options.build_timeout, options.jobs, options.full_headers,
                sandbox=self._settings.sandbox,
            )
        except BaseException as error:
            log = self._judge.log()
            self._judge.kill()
            self._scratch.cleanup()
            if isinstance(error, JudgeDied):
                last = log.rpartition("\n")[2] or "it said nothing"
                raise NoDevice(f"the judge could not start: {last}; is PyTorch whole?") from error
            raise
        self._judge.use(self._service)
        self._ahead = BuildAhead(self._service, self._options.jobs, self._settings)
        return self

    def _start_judge(self) -> JudgeClient:
        return JudgeClient(Path(self._scratch.name), self._show)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._ahead.close()
        if kind is None:
            self._judge.close()
        else:
            self._judge.kill()
        self._scratch.cleanup()

    def results(self) -> Iterator[Result]:
        """Every result of the run, once, as it comes."""
        todo = plan(self._choices, self._options, self.device)
        self._progress.start(len(todo.jobs) + len(todo.known))
        yield from todo.known
        rivals = Rivals(self._options.baselines, todo.jobs)
        for job in self._in_order(todo.jobs):
            self._now = f"{job.problem_name}/{job.solution_name} {job.shape_name}"
            self._show("")
            result = self._evaluate(job)
            self._look_closer(job, result)
            yield from rivals.release(result)

    def _in_order(self, jobs: Sequence[Evaluate]) -> Iterator[Evaluate]:
        solutions = {job.solution for job in jobs if job.solution is not None}
        if len(solutions) < 2:
            return iter(jobs)
        self._progress.phase(f"building {len(solutions)} solutions")
        problems = {job.problem_name: job.problem for job in jobs}
        init = {name: self._init_arguments(name, jobs) for name in problems}
        return self._ahead.ready(jobs, init)

    def _init_arguments(self, problem_name: str, jobs: Sequence[Evaluate]) -> bytes | None:
        problem = next(job.problem for job in jobs if job.problem_name == problem_name)
        try:
            return self._judge.init_arguments(problem)
        except JudgeDied:
            self._restart_judge()
            return None  # the evaluation meets the same and reports it

    def _evaluate(self, job: Evaluate) -> Result:
        try:
            result = self._judge.evaluate(job)
            if not self._judge.usable:
                self._restart_judge()
        except JudgeDied as error:
            log = self._judge.log()
            self._restart_judge()
            reason = f"{error} in the middle of this evaluation; the log holds what it said last"
            result = Result(job.problem_name, job.solution_name, job.shape_name, self.device, Verdict.INTERNAL_ERROR,
                            reason, seed=self._settings.seed, log=log or None)
        if self._options.verbose and result.log:
            self._progress.line(f"--- {self._now}\n{result.log}")
        return result

    def _look_closer(self, job: Evaluate, result: Result) -> None:
        """A report on a solution that passed, where one is wanted and there is what makes it."""
        wanted = self._options.profile is not None and result.verdict is Verdict.PASSED and job.solution is not None
        if wanted and (found := ncu.program()) is not None:
            self._show("under Nsight Compute")
            self._progress.line(ncu.report(found, job, result, self._options))

    def _restart_judge(self) -> None:
        self._judge.kill()
        self._judge = self._start_judge()
        self._judge.hello(self._settings)
        self._judge.use(self._service)

    def _show(self, text: str) -> None:
        self._progress.update(f"{self._now} {text}")


def _sandbox(options: Options) -> Sandbox:
    """Raises NoSandbox, and UsageError if a tool is asked for that isn't there."""
    if options.sanitize is not None:
        sanitizer.command(options.sanitize)
    if options.trust:
        return Sandbox()
    protections = available()
    if options.require_sandbox and (missing := [name for name in REQUIRED if name not in protections]):
        raise NoSandbox(f"--require-sandbox: this machine doesn't offer {', '.join(missing)}; Linux 6.12 or newer on "
                        "x86-64 or 64-bit Arm, with Landlock switched on, does")
    places = (ROOT, options.cache, options.problems, options.solutions)
    return Sandbox(tuple(map(str, protections)), tuple(str(place.resolve()) for place in places))


def _limits(options: Options) -> Limits:
    if options.host_memory is not None:
        return Limits(int(options.host_memory * 2**30))
    return Limits(int(HOST_MEMORY_SHARE * available_bytes()))


def _settings(options: Options, sandbox: Sandbox) -> Settings:
    return Settings(
        device=options.device,
        sampling=Sampling(options.calls, options.most_calls, options.time_budget, options.precision),
        warmup=options.warmup,
        timing=not options.check and options.sanitize is None,
        baselines=options.baselines,
        tolerance=options.tolerance,
        seed=secrets.randbits(62) if options.seed is None else options.seed,
        variants=options.variants and options.sanitize is None,
        tf32=options.tf32,
        allow_library=options.allow_library,
        defended=not options.trust,
        sanitize=options.sanitize,
        timeout=options.timeout,
        sandbox=sandbox,
        limits=_limits(options),
        cache=options.cache,
    )


def exit_status(results: Sequence[Result], strict: bool) -> int:
    """0 if everything passed (or was skipped, unless that counts as not passed), else 1."""
    fine = {Verdict.PASSED} if strict else {Verdict.PASSED, Verdict.SKIPPED}
    return 0 if all(result.verdict in fine for result in results) else 1


def complain(message: str) -> None:
    """One line for a person, on stderr."""
    print(f"run_eval.py: {message}", file=sys.stderr)
