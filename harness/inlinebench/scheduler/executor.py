"""What evaluations need: a judge for each device, and the build service that they share."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType

from inlinebench.compile.architecture import runs_on
from inlinebench.messages import Evaluate, Hello, Init, Settings
from inlinebench.process import sanitizer
from inlinebench.profiling import ncu
from inlinebench.records.errors import NoSandbox, UsageError
from inlinebench.records.options import HOST_MEMORY_SHARE, ROOT, Options
from inlinebench.records.result import Result, Verdict
from inlinebench.report.terminal.progress import Progress
from inlinebench.sandbox.policy import REQUIRED, Sandbox
from inlinebench.sandbox.probe import available
from inlinebench.sandbox.watchdog import Limits, available_bytes
from inlinebench.scheduler.device_worker import Lane
from inlinebench.scheduler.devices import places
from inlinebench.scheduler.identity import identity
from inlinebench.scheduler.judge_process import Scratch
from inlinebench.timing.stopping import Sampling


class Bench:
    """The devices that the options name, ready for evaluations; a context manager that leaves no process behind.

    Entering raises NoSandbox if one is required and can't be had, NoDevice if the device can't be used, and UsageError
    if the cache can't be written or a tool isn't there. `device` is the first lane's. A lane is to be used by one
    thread at a time; building ahead is open to all.
    """

    loses_workers = False
    """A judge that dies is replaced on the spot, and its evaluation has a result."""

    def __init__(self, options: Options, progress: Progress, scratch: Scratch | None = None) -> None:
        self._options, self._progress = options, progress
        self._given = scratch
        self._lock = Lock()
        self._init: dict[tuple[str, str, str], Init] = {}

    def __enter__(self) -> Bench:
        self._scratch = self._given or Scratch(self._options.cache)
        self.lanes = self._start_lanes()  # which take seconds to import torch, while we look at the machine
        try:
            from inlinebench.compile.service import BuildService, default_jobs
            from inlinebench.scheduler.prebuild import BuildAhead

            options = self._options
            settings = settings_for(options)
            hellos = [lane.open(settings) for lane in self.lanes]
            self.device = hellos[0].device
            self._service = BuildService(
                options.cache, _architectures(options, hellos), options.build_timeout,
                options.jobs or default_jobs(len(self.lanes)), options.full_headers, sandbox=settings.sandbox,
                cache_limit=options.cache_limit * 2**30,
            )
        except BaseException:
            self._end()
            raise
        for lane in self.lanes:
            lane.use(self._service)
        self._ahead = BuildAhead(self._service, options.jobs, settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._ahead.close()
        self._end()

    def key(self, job: Evaluate, lane: Lane) -> str | None:
        """What tells a job from others, on the device of a lane; see `inlinebench.scheduler.identity`."""
        return identity(job, self._options, lane.environment)

    def build_ahead(self, jobs: Sequence[Evaluate], lane: Lane) -> dict[Path, Future[None]]:
        """Has the solutions of jobs built, several at once; gives for each what ends when it is built, or can't be
        built ahead. The lane's judge says what constructors get."""
        for job in jobs:
            if job.problem.key not in self._init:
                self._init[job.problem.key] = lane.init_arguments(job.problem)
        return self._ahead.start(jobs, {job.problem_name: self._init[job.problem.key].pickled for job in jobs})

    def evaluate(self, lane: Lane, job: Evaluate) -> Result:
        """The result of a job, whatever happens in it."""
        key = self.key(job, lane)  # of the files as they are now, not when it has ended
        result = replace(lane.evaluate(job), level=job.level, key=key)
        if self._options.verbose and result.log:
            self._say(f"--- {job.problem_name}/{job.solution_name} {job.shape_name}\n{result.log}")
        self._look_closer(lane, job, result)
        return result

    def replace(self, lane: Lane) -> bool:
        """Never needed: see `loses_workers`."""
        raise AssertionError(f"no lane of this machine is lost: {lane.device}")

    def _look_closer(self, lane: Lane, job: Evaluate, result: Result) -> None:
        """A report on a solution that passed, where one is wanted and there is what makes it."""
        wanted = self._options.profile is not None and result.verdict is Verdict.PASSED and job.solution is not None
        if wanted and (found := ncu.program()) is not None:
            lane.show("under Nsight Compute")
            self._say(ncu.report(found, job, result, self._options))

    def _start_lanes(self) -> list[Lane]:
        return [Lane(self._scratch, self._show, place.gpu, place.label) for place in places(self._options, os.environ)]

    def _end(self) -> None:
        for lane in self.lanes:
            lane.kill()
        self._scratch.close()

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
