"""The local executor: a device worker for each device, and their shared build service."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType

from inlinebench.catalog import has_samples
from inlinebench.compile.architecture import runs_on
from inlinebench.device_kinds import kind_of
from inlinebench.devices.chosen import chosen, device_of
from inlinebench.errors import NoSandbox, UsageError
from inlinebench.messages import Evaluate, Hello, Init, Jobs, Settings
from inlinebench.options import ROOT, Options
from inlinebench.options.judge import HOST_MEMORY_SHARE
from inlinebench.process import sanitizer
from inlinebench.profiling import ncu
from inlinebench.results.result import Result, Verdict
from inlinebench.sandbox.policy import REQUIRED, Sandbox
from inlinebench.sandbox.self_test import available
from inlinebench.sandbox.watchdog import Limits, available_bytes
from inlinebench.scheduler.device_worker import DeviceWorker
from inlinebench.scheduler.identity import identity
from inlinebench.scheduler.judge_process import Scratch
from inlinebench.scheduler.observer import Observer


class LocalExecutor:
    """Evaluates on the devices that the options name. A context manager; on exit all its processes are ended.

    Entering raises NoSandbox if a required sandbox is not available, NoDevice if a device cannot be used, and
    UsageError if the cache cannot be written or a tool is missing. `device` is that of the first worker. A worker may
    be used by one thread at a time; `prebuild` may be called from any thread.
    """

    loses_workers = False
    """A worker replaces a dead judge itself, and the evaluation still has a result."""

    def __init__(self, options: Options, progress: Observer, scratch: Scratch | None = None) -> None:
        self._options, self._progress = options, progress
        self._given = scratch
        self._lock = Lock()
        self._init: dict[tuple[str, str, str], Init] = {}

    def __enter__(self) -> LocalExecutor:
        self._scratch = self._given or Scratch()
        self.workers = self._start_workers()  # importing torch takes seconds, and the rest runs meanwhile
        try:
            from inlinebench.compile.service import BuildService, default_jobs
            from inlinebench.devices.registry import target_for
            from inlinebench.scheduler.prebuild import Prebuilder, build_settings

            options = self._options
            settings = settings_for(options)
            hellos = [worker.open(settings) for worker in self.workers]
            self.device = hellos[0].device
            target = target_for(kind_of(self.device), _architectures(options, hellos))
            jobs = options.jobs or default_jobs(len(self.workers))
            self._service = BuildService(options.cache, target, build_settings(options, settings, jobs))
        except BaseException:
            self._end()
            raise
        for worker in self.workers:
            worker.use(self._service)
        self._prebuilder = Prebuilder(self._service, options.jobs, settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._prebuilder.close()
        self._end()

    def key(self, job: Evaluate, worker: DeviceWorker) -> str | None:
        """Returns the key of a job on a worker's device; see `inlinebench.scheduler.identity`."""
        return identity(job, self._options, worker.environment)

    def prebuild(self, jobs: Sequence[Evaluate], worker: DeviceWorker) -> dict[Path, Future[None]]:
        """Starts to build the solutions of jobs in parallel.

        Returns a future for each solution, which is done when its build has succeeded or failed. The worker's judge
        supplies the constructor arguments.
        """
        for job in jobs:
            if job.problem.key not in self._init:
                self._init[job.problem.key] = worker.init_arguments(job.problem)
        return self._prebuilder.start(jobs, {job.problem_name: self._init[job.problem.key].pickled for job in jobs})

    def evaluate(self, worker: DeviceWorker, jobs: Jobs) -> list[Result]:
        """Returns the results of jobs, one for each. Failures of a job are results, not exceptions."""
        keys = [self.key(job, worker) for job in jobs]  # before the evaluation: the files may change during it
        begin = time.monotonic()
        found = worker.evaluate(jobs)
        seconds = round((time.monotonic() - begin) / len(jobs), 3)
        results = [replace(result, level=job.level, key=key, weight=job.weight, seconds=seconds)
                   for job, key, result in zip(jobs, keys, found, strict=True)]
        for job, result in zip(jobs, results, strict=True):
            if self._options.verbose and result.log:
                self._say(f"--- {job.problem_name}/{job.solution_name} {job.shape_name}\n{result.log}")
        return [self._profile(worker, job, result) for job, result in zip(jobs, results, strict=True)]

    def replace(self, worker: DeviceWorker) -> bool:
        """Raises AssertionError: see `loses_workers`."""
        raise AssertionError(f"a local worker cannot be lost: {worker.device}")

    def _profile(self, worker: DeviceWorker, job: Evaluate, result: Result) -> Result:
        """Runs Nsight Compute on a passed solution, if `--profile` is set and `ncu` is installed. Returns the result
        with what the GPU counted."""
        wanted = self._options.profile is not None and result.verdict is Verdict.PASSED and job.solution is not None
        if wanted and (found := ncu.program()) is not None:
            worker.show("under Nsight Compute")
            said, result = ncu.report(found, job, result, self._options)
            self._say(said)
        return result

    def _start_workers(self) -> list[DeviceWorker]:
        devices = chosen(self._options, os.environ)
        return [DeviceWorker(self._scratch, self._show, device.gpu, device.label) for device in devices]

    def _end(self) -> None:
        for worker in self.workers:
            worker.kill()
        self._scratch.close()

    def _show(self, text: str) -> None:
        with self._lock:
            self._progress.update(text)

    def _say(self, text: str) -> None:
        with self._lock:
            self._progress.line(text)


def _architectures(options: Options, hellos: Sequence[Hello]) -> tuple[str, ...]:
    """Returns the architectures of `--arch`, else those of the devices.

    Raises UsageError if builds for these architectures do not run on one of the devices.
    """
    wanted = options.architectures or tuple(each for hello in hellos for each in hello.architectures)
    for hello in hellos if options.architectures else ():
        named = ",".join(wanted)
        if not hello.architectures:
            raise UsageError(f"--arch {named}: no GPU is in use; use --build-only to build for an absent GPU")
        if not runs_on(wanted, hello.architectures[0]):
            raise UsageError(f"--arch {named}: {hello.device} is a GPU of compute capability {hello.architectures[0]}, "
                             "which cannot run such builds; omit --arch, or add this one")
    return wanted


def _sandbox(options: Options) -> Sandbox:
    """Returns the sandbox of the run. Raises NoSandbox, and UsageError if the sanitizer is missing."""
    if options.sanitize is not None:
        sanitizer.command(options.sanitize)
    if options.trust:
        return Sandbox()
    protections = available()
    if options.require_sandbox and (missing := [name for name in REQUIRED if name not in protections]):
        raise NoSandbox(f"--require-sandbox: not available on this machine: {', '.join(missing)}; use Linux 6.12 or "
                        "newer on x86-64 or 64-bit Arm, with Landlock enabled")
    readable = [ROOT, options.cache, options.problems, *([] if has_samples(options.solutions) else [options.solutions])]
    return Sandbox(tuple(map(str, protections)), tuple(map(os.path.realpath, readable)))


def _limits(options: Options) -> Limits:
    if options.host_memory is not None:
        return Limits(int(options.host_memory * 2**30))
    return Limits(int(HOST_MEMORY_SHARE * available_bytes()))


def settings_for(options: Options) -> Settings:
    """Returns the settings of judges and builds. Raises NoSandbox, and UsageError if the sanitizer is missing."""
    return Settings(**vars(options.judge) | {
        "device": device_of(options),
        "seed": secrets.randbits(128) if options.seed is None else options.seed,
        "sandbox": _sandbox(options),
        "limits": _limits(options),
        "cache": options.cache,
    })
