"""The judge's main loop: owns one device, and serves the scheduler's requests."""

from __future__ import annotations

import gc
import pickle
import shutil
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from inlinebench.builds.request import BuildOutcome, BuildRequest, RuntimeLibraries
from inlinebench.devices.base import UnusableDevice
from inlinebench.devices.registry import of, resolve
from inlinebench.evaluation.attempt import Attempt, Task, Tools
from inlinebench.evaluation.candidates import Candidates
from inlinebench.evaluation.evaluation import evaluate
from inlinebench.judge.derived import at_derived, confirmed
from inlinebench.judge.device_context import DeviceContext
from inlinebench.judge.fuzz import Fuzzing
from inlinebench.judge.problem_cache import PreparedWorkload, ProblemCache
from inlinebench.judge.skips import skipped
from inlinebench.messages import (
    Done,
    Evaluate,
    Hello,
    Init,
    Jobs,
    NeedBuild,
    NeedInit,
    NeedRuntimeLibraries,
    ProblemAt,
    Settings,
    Status,
)
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.forward import is_sticky
from inlinebench.problem.memory import describe_shortage
from inlinebench.problem.probe.process import ProbeProcess
from inlinebench.problem.probe.records import CannotRun
from inlinebench.problem.problem_file import ProblemError
from inlinebench.process.launcher import Launcher
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.version import __version__
from inlinebench.wire.arithmetic import exact_arithmetic
from inlinebench.wire.lacking_triton import LACKS_TRITON, lacks_triton

PROGRESS_EVERY_S = 0.1
"""The interval between progress messages of the same step, in seconds."""


class Judge:
    """Evaluates solutions on one device, with the workloads of one set at a time.

    Args:
        connection: to the scheduler.
        settings: the options of the run.
        context: the device.
        launcher: starts candidates.
        probe: probes references.
    """

    def __init__(
        self, connection: Connection, settings: Settings, context: DeviceContext, *, launcher: Launcher,
        probe: ProbeProcess,
    ) -> None:
        self._connection, self._settings, self._context = connection, settings, context
        self._launcher, self._probe = launcher, probe
        self._scratch = Path(tempfile.mkdtemp(prefix="inlinebench-judge-"))
        self._progress = _Progress(connection)
        self._runtime_libraries: RuntimeLibraries | str | None = None
        self._candidates: Candidates
        self._problems: ProblemCache

    def serve(self) -> None:
        """Serves requests until the scheduler closes the connection, or this process becomes unusable."""
        while True:
            try:
                request = self._connection.recv()
            except EOFError:
                return
            if isinstance(request, NeedInit):
                self._connection.send(_init(request.problem))
                continue
            done = self._evaluate(request)
            self._connection.send(done)
            if not done.usable:
                return

    def close(self) -> None:
        """Ends the waiting candidate, and removes the judge's files."""
        if isinstance(self._runtime_libraries, RuntimeLibraries):
            self._candidates.end()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _evaluate(self, jobs: Jobs) -> Done:
        """Returns the results, and whether this process can go on. After a CUDA error it cannot."""
        try:
            return Done(tuple(self._judge(jobs)))
        except ProblemError as error:
            results = [self._result(job, Verdict.PROBLEM_ERROR, str(error)) for job in jobs]
            return Done(tuple(results), usable="CUDA error" not in str(error))
        except Exception as error:  # noqa: BLE001
            # A bug of the harness in one evaluation must not stop the others.
            reason, log = f"{problem_file.describe(error)}; please report this with the log", traceback.format_exc()
            results = [self._result(job, Verdict.INTERNAL_ERROR, reason, log=log) for job in jobs]
            return Done(tuple(results), usable=not is_sticky(error))

    def _judge(self, jobs: Jobs) -> list[Result]:
        """Returns the results of one job, or of those of a set. Raises ProblemError and NoCandidate."""
        job = jobs[0]
        if job.solution is not None and lacks_triton(job.solution, without_cuda=True):
            return [self._result(each, Verdict.SKIPPED, LACKS_TRITON) for each in jobs]
        if self._runtime_libraries is None:
            self._runtime_libraries = self._start(job)
        if isinstance(self._runtime_libraries, str):
            return [self._result(each, Verdict.BUILD_FAILED, self._runtime_libraries) for each in jobs]
        self._candidates.prepare(job.given)  # the candidate starts while the problem is prepared
        if self._settings.holds_calls and self._context.device.holds_calls:
            self._candidates.prepare_stand_in()
        if job.fuzz is not None:
            return [self._fuzzed(job)]
        found = [self._prepared(each, jobs) for each in jobs]
        tasks = [each for each in found if isinstance(each, Task)]
        attempts = iter(evaluate(tasks) if tasks else ())
        results = [each if isinstance(each, Result) else self._judged(each, next(attempts)) for each in found]
        return [self._confirmed(each, result) if result.failed_derived else result
                for each, result in zip(jobs, results, strict=True)]

    def _prepared(self, job: Evaluate, jobs: Jobs) -> Task | Result:
        """Returns a job with its workload, or the result if the problem cannot run. Raises ProblemError."""
        try:
            found = self._task(job, [each.problem for each in jobs])
        except (torch.OutOfMemoryError, MemoryError):  # no solution runs yet
            device = self._context.device
            shortage = describe_shortage(None, device.free_bytes(), device.torch_device)
            return self._result(job, Verdict.SKIPPED, shortage)
        return self._cannot(job, found) if isinstance(found, CannotRun) else found

    def _task(self, job: Evaluate, among: Sequence[ProblemAt]) -> Task | CannotRun:
        """Returns a job with its workload. Raises ProblemError, torch.OutOfMemoryError and MemoryError."""
        prepared = self._problems.prepare(job.problem, among)
        return prepared if isinstance(prepared, CannotRun) else Task(
            prepared.workload, job, self._tools(prepared, job))

    def _cannot(self, job: Evaluate, why: CannotRun) -> Result:
        return self._result(job, Verdict.PROBLEM_ERROR if why.own_fault else Verdict.SKIPPED, why.reason)

    def _fuzzed(self, job: Evaluate) -> Result:
        """Evaluates a job at drawn sizes. Raises ProblemError."""
        outcome = Fuzzing(job, self._settings.seed, self._context.device.kind.runs_full_sizes, self._task).run()
        if isinstance(outcome, CannotRun):
            return self._cannot(job, outcome)
        attempt, failed_at = outcome.attempt, outcome.record.failed_at
        failure = attempt.failure = skipped(attempt.failure, job.solution)
        where = f"at {', '.join(failed_at)}: " if failed_at else ""
        result = self._result(job, failure.verdict if failure else Verdict.PASSED,
                              where + failure.reason if failure else "", log=attempt.log or None, attempt=attempt)
        return replace(result, fuzz=outcome.record)

    def _judged(self, task: Task, attempt: Attempt) -> Result:
        job = task.job
        failure = attempt.failure = skipped(attempt.failure, job.solution)
        result = self._result(job, failure.verdict if failure else Verdict.PASSED, failure.reason if failure else "",
                              log=attempt.log or None, attempt=attempt)
        return at_derived(result, task.workload.problem.constants) if job.problem.is_derived else result

    def _confirmed(self, job: Evaluate, failed: Result) -> Result:
        """Tries a solution that failed at a derived shape again, with sizes nearer to those of the file."""
        if not job.problem.confirming or failed.verdict is Verdict.REJECTED:
            return failed
        first, *others = job.problem.confirming
        nearer = replace(job, problem=replace(job.problem, constants=first, alternatives=tuple(others)))
        try:
            prepared = self._problems.prepare(nearer.problem)
        except (ProblemError, torch.OutOfMemoryError, MemoryError):
            return failed
        if isinstance(prepared, CannotRun):
            return failed
        task = Task(prepared.workload, nearer, self._tools(prepared, nearer))
        return confirmed(failed, self._judged(task, *evaluate([task])))

    def _tools(self, prepared: PreparedWorkload, job: Evaluate) -> Tools:
        context, libraries = self._context, self._runtime_libraries
        assert isinstance(libraries, RuntimeLibraries)  # they are built before a problem is prepared
        return Tools(
            settings=self._settings, clock=context.clock, tracer=context.tracer, watch=context.watch,
            peaks=context.peaks, baselines=prepared.baselines, runtime_libraries=libraries,
            candidates=self._candidates,
            progress=partial(self._progress, workload=job.shape_name) if job.in_set else self._progress,
        )

    def _result(
        self, job: Evaluate, verdict: Verdict, reason: str, *, log: str | None = None, attempt: Attempt | None = None
    ) -> Result:
        """Assembles the result of a job, with what an attempt yielded if there was one."""
        context, settings = self._context, self._settings
        found = attempt or Attempt()
        return Result(
            problem=job.problem_name, solution=job.solution_name, shape=job.shape_name,
            device=str(context.device.torch_device),
            verdict=verdict, reason=reason, check=found.check, timing=None if found.failure else found.timing,
            repeats=None if found.failure else found.repeats,
            memory=None if found.failure else found.memory, kernels=found.kernels, build=found.build,
            seed=settings.seed, environment=context.environment, log=log,
            protections=None if attempt is None else () if settings.sanitize else settings.sandbox.protections,
            mismatch=found.failure.mismatch if found.failure else None, backward=job.problem.backward or None,
        )

    def _start(self, job: Evaluate) -> RuntimeLibraries | str:
        """Gets the runtime libraries, creates the candidates, and starts the device.

        Returns the libraries, or the reason why they could not be built. Without timing, the first probe and the first
        candidate start meanwhile.
        """
        settings, context, problem = self._settings, self._context, replace(job.problem, alternatives=())
        if not settings.timing and job.fuzz is None:
            self._probe.begin(problem, settings.variants, settings.memory_bytes)
        self._connection.send(NeedRuntimeLibraries())
        libraries: RuntimeLibraries | str = self._connection.recv()
        if not isinstance(libraries, RuntimeLibraries):
            return libraries
        self._candidates = Candidates(
            self._launcher, settings, context.device, runtime_libraries=libraries, build=self._build,
            always=(self._scratch,), protected=lambda: (self._probe.pid,),
        )
        if not settings.timing:
            self._candidates.prepare(job.given)
        context.start(libraries, self._progress)
        self._problems = ProblemCache(context, settings, self._probe, candidates=self._candidates,
                                      scratch=self._scratch, progress=self._progress)
        return libraries

    def _build(self, request: BuildRequest) -> BuildOutcome:
        self._connection.send(NeedBuild(request))
        outcome = self._connection.recv()
        assert isinstance(outcome, BuildOutcome)
        return outcome


class _Progress:
    """Sends the current step to the scheduler, each step at once, and what happens in it from time to time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._step, self._last = "", 0.0

    def __call__(self, text: str, workload: str = "") -> None:
        step = workload + text.partition(" ")[0]
        if step != self._step or time.monotonic() - self._last > PROGRESS_EVERY_S:
            self._step, self._last = step, time.monotonic()
            self._connection.send(Status(f"{workload}: {text}" if workload else text))


def _init(problem: ProblemAt) -> Init:
    """Returns the constructor arguments of a problem. An evaluation of the problem fails for the same reason."""
    settings = own_code.TorchSettings()
    try:
        module = problem_file.load_at(problem)
        return Init(pickle.dumps(problem_file.init_inputs(module)))
    except ProblemError as error:
        return Init(None, str(error))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        return Init(None, f"{problem.path}: get_init_inputs() returns a value that cannot be pickled: {error}")
    finally:
        settings.restore()  # those of the problem that is being evaluated


def serve(connection: Connection, settings: Settings, launcher: Launcher, probe: ProbeProcess) -> int:
    """Serves the scheduler until it closes the connection. Returns the exit status."""
    launcher.sandbox = settings.sandbox
    software = Environment(torch=str(torch.__version__), harness=__version__, tf32=settings.tf32)
    try:
        device = resolve(settings.device)
    except UnusableDevice as error:
        connection.send(Hello("", software, (), str(error)))
        return 1
    probe.use(str(device), settings.tf32)
    exact_arithmetic(tf32=settings.tf32)
    of(device).prepare_judge()
    own_code.report_steps(connection.send, device)
    environment = of(device).environment(software)
    connection.send(Hello(str(device), environment, of(device).architectures()))
    gc.freeze()  # excludes everything loaded so far from garbage collection, which would take 0.1 s each time
    context = DeviceContext(of(device), environment, settings)
    judge = Judge(connection, settings, context, launcher=launcher, probe=probe)
    try:
        judge.serve()
    finally:
        judge.close()
    return 0
