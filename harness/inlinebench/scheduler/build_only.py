"""Implements `--build-only`: builds solutions without evaluating them, for GPUs that may be absent, or for the CPU.

Solutions are constructed as in an evaluation, but in candidates that see no GPU. A judge on the CPU, which sees no GPU
either, supplies the constructor arguments. The cache then has the same content as after a run on the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from inlinebench.builds.report import BuildReport, State
from inlinebench.compile import toolchain
from inlinebench.compile.architecture import in_order
from inlinebench.compile.service import BuildService
from inlinebench.device_kinds import kind_of
from inlinebench.devices.cuda.driver import NoGpu
from inlinebench.devices.registry import installed, target_for
from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate, Init, ProblemAt
from inlinebench.options import Options
from inlinebench.options.kinds import DEVICE, DEVICES_TEXT
from inlinebench.scheduler.build_report import summed_up
from inlinebench.scheduler.device_worker import DeviceWorker
from inlinebench.scheduler.executor import settings_for
from inlinebench.scheduler.judge_process import Scratch
from inlinebench.scheduler.observer import Observer
from inlinebench.scheduler.plan import Choice, plan
from inlinebench.scheduler.prebuild import Prebuilder, Prebuilt, build_settings

NO_GPU = ""
"""The value of CUDA_VISIBLE_DEVICES that hides all GPUs."""


@dataclass(frozen=True)
class _Started:
    """A solution whose builds were started."""

    job: Evaluate
    """One of the solution's jobs."""
    parts: tuple[Future[Prebuilt], ...]
    """The outcome for each distinct set of constructor arguments, or the failure to get these."""


class BuildOnly:
    """Builds the chosen solutions. A context manager; on exit all its processes are ended.

    Raises UsageError if the architectures to build for are unknown. Entering raises NoSandbox if a required sandbox is
    not available, NoDevice if PyTorch cannot be started, and UsageError if the cache cannot be written.
    """

    def __init__(self, options: Options, choices: Sequence[Choice], progress: Observer) -> None:
        self._options, self._choices, self._progress = options, choices, progress
        self.architectures = architectures(options)

    def __enter__(self) -> BuildOnly:
        self._scratch = Scratch()
        self._worker = DeviceWorker(self._scratch, self._progress.update, gpu=NO_GPU)
        options = self._options
        try:
            settings = replace(settings_for(options), device="cpu")
            self._worker.open(settings)
            self._service = BuildService(
                options.cache, target_for(kind_of(options.device), self.architectures),
                build_settings(options, settings, options.jobs))
        except BaseException:
            self._worker.kill()
            self._scratch.close()
            raise
        self._worker.use(self._service)
        self._prebuilder = Prebuilder(self._service, options.jobs, settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service.close()
        self._prebuilder.close()
        self._worker.kill()
        self._scratch.close()

    def builds(self) -> Iterator[BuildReport]:
        """Yields a report for each solution as soon as it is known. References are skipped.

        For a GPU, solutions are constructed for all shapes, because builds may depend on the constructor arguments.
        """
        todo = plan(self._choices, replace(self._options, check=True), kind_of(self._options.device).name)
        for known in todo.known:
            yield BuildReport(known.problem, known.solution, State.FAILED, known.reason)
        self._init: dict[tuple[str, str, str], Init] = {}
        by_solution: dict[Path, list[Evaluate]] = {}
        for job in todo.jobs:
            if job.solution is not None:
                by_solution.setdefault(job.solution, []).append(job)
        self._progress.phase(f"building {len(by_solution)} solutions")
        started = [self._start(jobs) for jobs in by_solution.values()]
        for each in started:
            parts = [part.result() for part in each.parts]
            built = summed_up(each.job.problem_name, each.job.solution_name, parts, for_gpu=bool(self.architectures))
            self._progress.line(f"{built.problem}/{built.solution}: {built.state}")
            yield built

    def notes(self) -> list[str]:
        """Returns remarks on the cache: its architectures and folder, and whether it serves GPU machines."""
        if not self.architectures:
            return [f"Built for the CPU, in {self._options.cache}"]
        notes = [f"Built for {', '.join(f'sm_{each}' for each in self.architectures)}, in {self._options.cache}"]
        torch = toolchain.torch()
        if torch.cuda is None:
            notes.append(f"This PyTorch ({torch.version}) is built without CUDA. It lacks headers and libraries that "
                         "solutions need for a GPU, and a GPU machine does not find these builds in the cache. "
                         "Install the same PyTorch as on the GPU machine.")
        return notes

    def _start(self, jobs: Sequence[Evaluate]) -> _Started:
        found = [self._init_arguments(job.problem) for job in jobs]
        parts = [self._prebuilder.construct(jobs[0], init) for init in dict.fromkeys(init.pickled for init in found)
                 if init is not None]
        for reason in dict.fromkeys(init.reason for init in found if init.pickled is None):
            failed: Future[Prebuilt] = Future()
            failed.set_result(Prebuilt(failure=reason))
            parts.append(failed)
        return _Started(jobs[0], tuple(parts))

    def _init_arguments(self, problem: ProblemAt) -> Init:
        if problem.key not in self._init:
            self._init[problem.key] = self._worker.init_arguments(problem)
        return self._init[problem.key]


def architectures(options: Options) -> tuple[str, ...]:
    """Returns the architectures to build for: those of `--arch`, else that of the installed GPU. None means the CPU.

    Raises UsageError if there is neither `--arch` nor a GPU.
    """
    if options.architectures:
        return in_order(options.architectures)
    if not re.fullmatch(DEVICE, options.device):
        raise UsageError(f"--device {options.device}: write {DEVICES_TEXT}")
    try:
        return installed(options.device)
    except NoGpu as error:
        raise UsageError(f"--build-only: {error}; set what to build for, such as --arch 90 for a GPU of compute "
                         "capability 9.0, or --device cpu") from error
