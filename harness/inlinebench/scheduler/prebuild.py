"""Prebuilds solutions in parallel, before their evaluations.

A solution creates its sources at run time. To build them, its import and its constructor run in a candidate that sees
no GPU. A solution that needs a GPU for that is built when it is evaluated.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from inlinebench.builds.request import BuildOutcome, BuildRequest, NoRuntimeLibraries
from inlinebench.compile.service import BuildService, BuildSettings, default_jobs
from inlinebench.messages import CONSTRUCTION_SEED, Evaluate, Settings
from inlinebench.options import Options
from inlinebench.process.candidate_process import (
    CandidateCheated,
    CandidateDied,
    CandidateOverran,
    CandidateProcess,
    CandidateSpec,
    CandidateTimedOut,
)
from inlinebench.process.launcher import Launcher
from inlinebench.sandbox.policy import Sandbox
from inlinebench.scheduler.identity import written
from inlinebench.wire.channel import FrameTooLarge
from inlinebench.wire.own_python import PACKAGE


@dataclass(frozen=True)
class Prebuilt:
    """The outcome of constructing a solution once."""

    builds: tuple[BuildOutcome, ...] = ()
    """The outcomes of the builds that the solution asked for."""
    failure: str = ""
    """Why the construction failed; empty if it succeeded."""
    log: str = ""
    """The end of the candidate's output."""


class Prebuilder:
    """Constructs solutions in candidates, so that their builds are in the cache."""

    def __init__(self, service: BuildService, workers: int | None, settings: Settings) -> None:
        self._service, self._settings = service, settings
        self._pool = ThreadPoolExecutor(workers or 2 * default_jobs())
        self._launcher: Launcher | None = None
        self._lock = Lock()
        self._running: set[CandidateProcess] = set()
        self._closed = False

    def start(self, jobs: Sequence[Evaluate], init: Mapping[str, bytes | None]) -> dict[Path, Future[None]]:
        """Starts to prebuild the solutions of jobs. Returns a future for each, which ends when its build has ended.

        `init` has the pickled constructor arguments by problem name; None if a problem has none.
        """
        solutions = {job.solution: job for job in jobs if job.solution is not None}
        return {path: self._pool.submit(self._prebuild, job, init[job.problem_name]) for path, job in solutions.items()}

    def construct(self, job: Evaluate, init: bytes) -> Future[Prebuilt]:
        """Starts to construct a job's solution with these pickled arguments, even if an earlier run has built it."""
        return self._pool.submit(self._construct, job, init)

    def _get_launcher(self) -> Launcher:
        with self._lock:
            if self._launcher is None:
                self._launcher = Launcher(self._settings.sandbox)
            return self._launcher

    def close(self) -> None:
        """Cancels waiting constructions and kills running ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._closed = True
            for candidate in self._running:
                candidate.cut_short()
        if self._launcher is not None:
            self._launcher.close()
        self._pool.shutdown()  # its threads end after the killed candidates

    def _prebuild(self, job: Evaluate, init: bytes | None) -> None:
        if init is None or not _may_build(job.file):
            return
        if not self._service.has_built(self._service.solution_name(job.file.read_bytes(), init)):
            self._construct(job, init)  # a failure shows again in the evaluation, which reports it

    def _construct(self, job: Evaluate, init: bytes) -> Prebuilt:
        try:
            name = self._service.solution_name(job.file.read_bytes(), init)
            runtime_libraries = self._service.runtime_libraries().to_json()
            launcher = self._get_launcher()
        except (NoRuntimeLibraries, OSError) as error:
            return Prebuilt(failure=str(error))
        settings, given = self._settings, tuple(map(str, job.given))

        def build(request: BuildRequest) -> BuildOutcome:
            return self._service.build(replace(request, readable=given))

        spec = CandidateSpec(settings.timeout, settings.limits, tuple(job.given))
        try:
            started = CandidateProcess.start(launcher, spec, build)
        except OSError as error:  # a killed forkserver; the evaluation builds the solution itself
            return Prebuilt(failure=str(error))
        with started as candidate:
            with self._lock:
                if self._closed:
                    return Prebuilt(failure="the run has ended")
                self._running.add(candidate)
            try:
                reply = candidate.ask(
                    "prebuild", solution=str(job.solution), readable=given, text=None,
                    runtime_libraries=runtime_libraries, init=base64.b64encode(init).decode(),
                    seed=CONSTRUCTION_SEED, class_name="ModelNew",
                )
            except (CandidateTimedOut, CandidateDied, CandidateCheated, CandidateOverran, FrameTooLarge) as error:
                return Prebuilt(tuple(candidate.builds), _describe(error, settings), candidate.log())
            finally:
                with self._lock:
                    self._running.discard(candidate)
            self._service.note_built(name, candidate.builds)
            return Prebuilt(tuple(candidate.builds), _failure(reply), candidate.log())


def _describe(error: Exception, settings: Settings) -> str:
    if isinstance(error, CandidateTimedOut):
        return f"no answer within {settings.timeout:g} s while it was constructed (--timeout raises the limit)"
    subject = "the solution " if isinstance(error, CandidateDied) else ""
    return f"{subject}{error}"


def _failure(reply: Mapping[str, Any]) -> str:
    """Returns the failure that a candidate reports; empty if it reports none."""
    return "" if reply["op"] == "prebuilt" else str(reply.get("message")) or "the solution raised an exception"


def _may_build(solution: Path) -> bool:
    """Whether a file mentions `cpp_extension`. A solution that builds in another file is built when it is evaluated."""
    try:
        return b"cpp_extension" in solution.read_bytes()
    except OSError:
        return False


def build_settings(options: Options, settings: Settings, jobs: int | None) -> BuildSettings:
    """Returns how a run builds, with `jobs` builds at a time. Of the author's files, compilers may read those that the
    solution is given."""
    sandbox = Sandbox(settings.sandbox.protections, (PACKAGE,))
    return BuildSettings(options.build_timeout, jobs, options.full_headers, sandbox, options.cache_limit * 2**30,
                         written(options))
