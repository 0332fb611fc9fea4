"""One run: a judge for the device, builds ahead, and results as they come."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from queue import Queue
from threading import Lock, Thread
from types import TracebackType

from harness.build.architecture import runs_on
from harness.build.service import BuildService, default_jobs
from harness.errors import NoSandbox, UsageError
from harness.judge import sanitizer
from harness.judge.messages import Evaluate, Hello, Settings
from harness.options import HOST_MEMORY_SHARE, ROOT, Options
from harness.result import Result, Verdict
from harness.run import ncu
from harness.run.against import Rivals
from harness.run.ahead import BuildAhead
from harness.run.identity import identity
from harness.run.lane import Lane
from harness.run.past import Past
from harness.run.places import places
from harness.run.plan import Choice, plan
from harness.run.progress import Progress
from harness.run.work_list import WorkList
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
        self._lock = Lock()

    def __enter__(self) -> Session:
        # What a killed judge leaves behind goes with this folder.
        self._scratch = tempfile.TemporaryDirectory(prefix="inlinebench-", ignore_cleanup_errors=True)
        self._lanes = self._start_lanes()  # which take seconds to import torch, while we look at the machine
        try:
            options = self._options
            self._settings = settings_for(options)
            hellos = [lane.open(self._settings) for lane in self._lanes]
            self._plan(hellos[0].device)
            self._service = BuildService(
                options.cache, _architectures(options, hellos), options.build_timeout,
                options.jobs or default_jobs(len(self._lanes)), options.full_headers, sandbox=self._settings.sandbox,
                cache_limit=options.cache_limit * 2**30,
            )
        except BaseException:
            self._end(Lane.kill)
            raise
        for lane in self._lanes:
            lane.use(self._service)
        self._ahead = BuildAhead(self._service, self._options.jobs, self._settings)
        return self

    def _start_lanes(self) -> list[Lane]:
        scratch = Path(self._scratch.name)
        return [Lane(scratch, self._show, place.gpu, place.label) for place in places(self._options, os.environ)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._ahead.close()
        self._end(Lane.close if kind is None else Lane.kill)

    def _end(self, end: Callable[[Lane], None]) -> None:
        for lane in self._lanes:
            end(lane)
        self._scratch.cleanup()

    def _plan(self, device: str) -> None:
        """What is to be evaluated, and what is known: without an evaluation, or from an earlier run."""
        options = self._options
        todo = plan(self._choices, options, device)
        past = Past.read(options.out) if options.resume and options.out else Past()
        recalled = [past.recall(job, [self._key(job, lane) for lane in self._lanes]) for job in todo.jobs]
        self._jobs = [job for job, result in zip(todo.jobs, recalled, strict=True) if result is None]
        self._known = [result for result in todo.known if result not in past]
        self.recalled = [result for result in todo.known if result in past] + list(filter(None, recalled))

    def _key(self, job: Evaluate, lane: Lane) -> str | None:
        return identity(job, self._options, lane.environment)

    def results(self) -> Iterator[Result]:
        """Every result of the run that isn't recalled from an earlier one, once, as it comes."""
        self._progress.start(len(self._jobs) + len(self._known))
        yield from self._known
        rivals = Rivals(self._options.baselines, self._jobs, self.recalled)
        for result in self._evaluations(WorkList(self._jobs, self._start_builds(self._jobs))):
            yield from rivals.release(result)

    def _start_builds(self, jobs: Sequence[Evaluate]) -> dict[Path, Future[None]]:
        solutions = {job.solution for job in jobs if job.solution is not None}
        if len(solutions) < 2:
            return {}
        self._progress.phase(f"building {len(solutions)} solutions")
        problems = {job.problem_name: job.problem for job in jobs}
        init = {name: self._lanes[0].init_arguments(problem).pickled for name, problem in problems.items()}
        return self._ahead.start(jobs, init)

    def _evaluations(self, work: WorkList) -> Iterator[Result]:
        """What all lanes find, as it comes; with several of them each works in a thread of its own."""
        if len(self._lanes) == 1:
            yield from self._results_of(self._lanes[0], work)
            return
        found: Queue[Result | BaseException | None] = Queue()

        def run(lane: Lane) -> None:
            try:
                for result in self._results_of(lane, work):
                    found.put(result)
                found.put(None)
            except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for the results
                found.put(error)

        for lane in self._lanes:
            Thread(target=run, args=(lane,), daemon=True).start()
        working = len(self._lanes)
        while working:
            result = found.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result

    def _results_of(self, lane: Lane, work: WorkList) -> Iterator[Result]:
        while (job := work.take(lane)) is not None:
            key = self._key(job, lane)  # of the files as they are now, not when it has ended
            result = replace(lane.evaluate(job), level=job.level, key=key)
            if self._options.verbose and result.log:
                self._say(f"--- {job.problem_name}/{job.solution_name} {job.shape_name}\n{result.log}")
            self._look_closer(lane, job, result)
            yield result

    def _look_closer(self, lane: Lane, job: Evaluate, result: Result) -> None:
        """A report on a solution that passed, where one is wanted and there is what makes it."""
        wanted = self._options.profile is not None and result.verdict is Verdict.PASSED and job.solution is not None
        if wanted and (found := ncu.program()) is not None:
            lane.show("under Nsight Compute")
            self._say(ncu.report(found, job, result, self._options))

    def _show(self, text: str) -> None:
        with self._lock:
            self._progress.update(text)

    def _say(self, text: str) -> None:
        with self._lock:
            self._progress.line(text)


def _architectures(options: Options, hellos: Sequence[Hello]) -> tuple[str, ...]:
    """Those of `--arch`, else those of the devices. Raises UsageError if a device runs nothing that is built for them.
    """
    wanted = options.architectures or tuple(each for hello in hellos for each in hello.architectures)
    for hello in hellos if options.architectures else ():
        named = ",".join(wanted)
        if not hello.architectures:
            raise UsageError(f"--arch {named}: no GPU is used here; --build-only builds for one that isn't there")
        if not runs_on(wanted, hello.architectures[0]):
            raise UsageError(f"--arch {named}: {hello.device} is a GPU of compute capability {hello.architectures[0]}, "
                             "which runs nothing that is built for that; leave --arch out, or name it as well")
    return wanted


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


def settings_for(options: Options) -> Settings:
    """What judges and builds are to go by. Raises NoSandbox, and UsageError if a tool is asked for that isn't there."""
    return Settings(
        device="cpu" if "cpu" in options.devices else options.device,
        sampling=Sampling(options.calls, options.most_calls, options.time_budget, options.half_width),
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
        sandbox=_sandbox(options),
        limits=_limits(options),
        max_memory=None if options.max_memory is None else int(options.max_memory * 2**30),
        cache=options.cache,
    )


def exit_status(results: Sequence[Result], strict: bool) -> int:
    """0 if everything passed (or was skipped, unless that counts as not passed), else 1."""
    fine = {Verdict.PASSED} if strict else {Verdict.PASSED, Verdict.SKIPPED}
    return 0 if all(result.verdict in fine for result in results) else 1


def complain(message: str) -> None:
    """One line for a person, on stderr."""
    print(f"run_eval.py: {message}", file=sys.stderr)
