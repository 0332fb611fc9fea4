"""The build service: builds libraries in parallel, each library once. All compilers of a run are started here."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import IO

from inlinebench.builds.request import (
    BadRequest,
    BuildOutcome,
    BuildRequest,
    NoRuntimeLibraries,
    RuntimeLibraries,
)
from inlinebench.compile import toolchain
from inlinebench.compile.cache import Cache
from inlinebench.compile.machine_faults import machine_fault
from inlinebench.compile.precompiled import PRECOMPILED_DIR
from inlinebench.compile.precompiled.builder import PrecompiledHeaders
from inlinebench.compile.reasons import reason
from inlinebench.compile.recipe import Recipe
from inlinebench.compile.slim.fallback import needs_full_headers
from inlinebench.compile.target import CannotTranslate, Target
from inlinebench.results.result import Verdict
from inlinebench.sandbox import supervisor
from inlinebench.sandbox.given import digest
from inlinebench.sandbox.policy import Sandbox, clean_environment
from inlinebench.sandbox.watchdog import Breach, Limits, Watchdog, available_bytes
from inlinebench.wire.own_python import own_python
from inlinebench.wire.processes import forks_so_far, kill_tree

BUILD_BYTES = 4 << 30
"""Limit of the files of one build while it runs."""
LOG_BYTES = 4 << 20
"""How much of a build's output is kept. The first error is near its start."""
CORES_OF_A_JUDGE, LARGE_MACHINE = 2, 3
"""Cores left to a judge and its candidate on a large machine, and how many times as many cores make it large."""
BYTES_PER_BUILD = 3 << 30
"""Peak memory of one build with torch's headers, for C++ and CUDA at the same time."""


@dataclass(frozen=True)
class BuildSettings:
    """How a run builds."""

    timeout: float
    """The limit for one build in seconds."""
    jobs: int | None = None
    """The number of parallel builds. None: as many as the machine is good for."""
    full_headers: bool = False
    """Whether to use only torch's full headers. Otherwise slim ones come first, and full ones if these lack something.
    """
    sandbox: Sandbox = field(default_factory=Sandbox)
    """Where compilers run, because sources and flags come from solutions."""
    cache_limit: float = float("inf")
    """The size of the cache in bytes."""
    written: Collection[str] = ()
    """The files and folders that the run writes, which no build depends on."""


CLOSED = BuildOutcome(None, "the run has ended", verdict=Verdict.INTERNAL_ERROR)
"""The outcome of a build that is asked for, or waits, when the run ends."""


class BuildService:
    """Builds libraries for a run. Thread-safe.

    `target` is what it builds for (`inlinebench.devices`). Raises UsageError if the cache cannot be written or trusted.
    """

    def __init__(self, cache: Path, target: Target, settings: BuildSettings) -> None:
        self._cache, self._target, self._settings = Cache(cache, settings.cache_limit), target, settings
        self._precompiled = PrecompiledHeaders(self._cache, self._ninja, target)
        self._slots = BoundedSemaphore(settings.jobs or default_jobs())
        self._lock = Lock()
        self._started: dict[str, Future[BuildOutcome]] = {}
        self._running: set[int] = set()
        self._closed = False

    def build(self, request: BuildRequest) -> BuildOutcome:
        """Builds a request, or finds its library in the cache, and returns the outcome. Failures do not raise."""
        if self._closed:
            return CLOSED
        if self._settings.full_headers:
            return self._build(request, slim=False)
        if not self._is_cached(request, slim=True) and self._is_cached(request, slim=False):
            return replace(self._build(request, slim=False), headers="full, as in an earlier run")
        outcome = self._build(request, slim=True)
        failed = outcome.library is None and outcome.verdict is Verdict.BUILD_FAILED
        if not failed or not needs_full_headers(outcome.log, request.texts):
            return replace(outcome, headers="slim")
        full = self._build(request, slim=False)
        lacking = outcome.reason.partition("\n")[0]
        return replace(full, headers=f"full, because with slim headers: {lacking}") if full.library else full

    def _recipe(self, request: BuildRequest, slim: bool) -> Recipe:
        """Returns the recipe of a request. If compilers can find the author's files, the key contains these as well.

        Raises MissingTool, BadRequest, CannotTranslate or NoRuntimeLibraries.
        """
        precompiled = self._precompiled.folder() if slim and request.uses_cuda else PRECOMPILED_DIR
        made = self._target.recipe(request, slim, precompiled, self.runtime_libraries)
        if not request.names_readable:
            return made
        return replace(made, key=hashlib.sha256(f"{made.key} {self._digest(request)}".encode()).hexdigest())

    def _digest(self, request: BuildRequest) -> str:
        """Returns a digest of the files that compilers can find, or a new text each time if one cannot be read."""
        try:
            return digest(request.readable, self._settings.written)
        except OSError:
            return secrets.token_hex()

    def precompile(self) -> bool:
        """Makes the precompiled headers now, instead of after several builds, and returns whether they exist.

        Raises MissingTool.
        """
        return self._precompiled.make()

    def _is_cached(self, request: BuildRequest, slim: bool) -> bool:
        try:
            return self._cache.find(self._recipe(request, slim).key) is not None
        except (toolchain.MissingTool, BadRequest, CannotTranslate, NoRuntimeLibraries):
            return False  # the build reports the error

    def _build(self, request: BuildRequest, slim: bool) -> BuildOutcome:
        try:
            return self._outcome(lambda: self._recipe(request, slim), precompiled=slim and request.uses_cuda)
        except CannotTranslate as error:
            verdict = Verdict.BUILD_FAILED if error.malformed else Verdict.SKIPPED
            return BuildOutcome(None, str(error), verdict=verdict, at=(error.source, error.line))
        except NoRuntimeLibraries as error:
            return BuildOutcome(None, str(error), verdict=Verdict.INTERNAL_ERROR)

    def runtime_libraries(self) -> RuntimeLibraries:
        """Returns the runtime libraries for the device, and builds them if necessary. They stay in the cache until
        `close`. Raises NoRuntimeLibraries."""
        return self._target.runtime_libraries(self._cache, self._outcome)

    def solution_name(self, solution: bytes, init: bytes) -> str:
        """Returns a hash of a solution's text, constructor arguments, torch's version and the architectures."""
        parts = [solution, init, toolchain.torch().version.encode(), repr(self._target.architectures).encode()]
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    def has_built(self, name: str) -> bool:
        """Whether a solution's libraries are known to be built in an earlier run. Does not run the solution."""
        return self._cache.recalls(name)

    def note_built(self, name: str, outcomes: Sequence[BuildOutcome]) -> None:
        """Records which libraries a solution was built into, if all its builds succeeded."""
        if all(outcome.library is not None for outcome in outcomes):
            self._cache.remember(name, [outcome.library for outcome in outcomes if outcome.library is not None])

    def close(self) -> None:
        """Kills the running compilers. Later builds fail."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for pid in running:
            kill_tree(pid)
        self._cache.close()

    def _outcome(self, make: Callable[[], Recipe], *, precompiled: bool = False) -> BuildOutcome:
        """Returns the outcome of a recipe, which is made again after headers are precompiled if `precompiled`."""
        try:
            planned = make()
        except BadRequest as error:
            return BuildOutcome(None, str(error))
        except toolchain.MissingTool as error:
            return BuildOutcome(None, str(error), verdict=Verdict.INTERNAL_ERROR)
        while True:
            with self._lock:
                future = self._started.get(planned.key)
                if future is None:
                    future = self._started[planned.key] = Future()
                    break
            outcome = future.result()
            if outcome.library is None or self._cache.find(planned.key) is not None:
                return outcome
            with self._lock:  # it was damaged or pruned since: the first thread here builds it again
                if self._started.get(planned.key) is future:
                    del self._started[planned.key]
        try:
            outcome = self._find_or_build(planned, make if precompiled else None)
        except BaseException as error:
            future.set_exception(error)
            raise
        if outcome.library is None and outcome.verdict is Verdict.INTERNAL_ERROR:
            with self._lock:  # the next request tries again
                del self._started[planned.key]
        future.set_result(outcome)
        return outcome

    def _find_or_build(self, planned: Recipe, again: Callable[[], Recipe] | None) -> BuildOutcome:
        if found := self._cache.find(planned.key):
            return BuildOutcome(found, cached=True)
        with self._slots:
            if self._closed:
                return CLOSED
            if again is not None and self._precompiled.ask():
                planned = again()  # the same except for the location of the headers
            begin = time.monotonic()
            outcome = self._try(planned)
            if outcome.library is None and outcome.verdict is Verdict.INTERNAL_ERROR:
                outcome = self._try(planned)  # other builds may have needed the memory or the disk
            return replace(outcome, seconds=time.monotonic() - begin)

    def _try(self, planned: Recipe) -> BuildOutcome:
        try:
            return self._run(planned)
        except UnicodeEncodeError as error:
            return BuildOutcome(None, f"the source cannot be written as UTF-8: {error}")
        except OSError as error:
            return BuildOutcome(None, f"could not write or start the build: {error}", verdict=Verdict.INTERNAL_ERROR)

    def _run(self, planned: Recipe) -> BuildOutcome:
        with self._cache.workshop() as folder:
            for name, text in planned.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            readable = () if planned.request is None else planned.request.readable
            status, log, breach = self._ninja(folder, readable)
            if breach is not None:
                return BuildOutcome(None, f"the build was stopped: {breach.text}", log)
            if status is None:
                limit = f"{self._settings.timeout:g} s"
                return BuildOutcome(None, f"the build took longer than {limit}; raise the limit with --build-timeout",
                                    log, verdict=Verdict.TIMED_OUT)
            if status and (fault := machine_fault(log)):
                return BuildOutcome(None, fault, log, verdict=Verdict.INTERNAL_ERROR)
            if status:
                return BuildOutcome(None, reason(log, planned), log)
            if not _is_library(folder / planned.library):
                return BuildOutcome(None, "the build did not produce a library of a reasonable size", log)
            return BuildOutcome(self._cache.store(planned.key, folder / planned.library), log=log)

    def _ninja(self, folder: Path, given: Sequence[str] = ()) -> tuple[int | None, str, Breach | None]:
        """Runs ninja. Returns its exit status (None: timeout), the output of all compilers, and a broken limit."""
        readable = [self._cache.folder, *map(Path, given)]
        policy = self._settings.sandbox.policy(folder, readable, (os.getpid(), os.getppid()))
        # -S skips site-packages, whose hooks are slow. PYTHONPATH names the harness.
        inside = supervisor.command(policy, "-S")
        before = forks_so_far()
        log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below; the watchdog limits its size
        process = subprocess.Popen(
            [*inside, toolchain.ninja(), "-C", str(folder), "--quiet"], stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True, env=_environment(folder),
        )
        watchdog = Watchdog(process.pid, folder, Limits(available_bytes(), scratch_bytes=BUILD_BYTES), before)
        with self._lock:
            self._running.add(process.pid)
            closed = self._closed
        if closed:
            kill_tree(process.pid)
        try:
            process.wait(self._settings.timeout)
            return process.returncode, _start_of(log), watchdog.breach
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)  # not only its process group: ninja starts each compiler in a separate one
            process.wait()
            return None, _start_of(log), watchdog.breach
        finally:
            log.close()
            watchdog.close()
            with self._lock:
                self._running.discard(process.pid)


def _start_of(log: IO[bytes]) -> str:
    """Returns the start of a build's output. It is limited because flags can make a compiler print forever."""
    log.seek(0)
    return log.read(LOG_BYTES).decode(errors="replace")


def _is_library(path: Path) -> bool:
    """Whether the build produced a regular file. Flags can make it a pipe, or a link to an endless file."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= BUILD_BYTES


def _environment(folder: Path) -> dict[str, str]:
    """Returns the variables that compilers get, with temporary files in the build's folder and messages in English."""
    here = {name: str(folder) for name in ("HOME", "TMPDIR")}
    english = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}
    return {**clean_environment(os.environ), **here, **english, **own_python()}


def default_jobs(judges: int = 0) -> int:
    """Returns the number of parallel builds: three quarters of the cores, or fewer if memory is short.

    A build starts two compilers, but runs a single one most of the time: on 16 cores 33 builds took 80 s with 14 in
    parallel and 110 s with 8. Where there are plenty of cores, some are left to the `judges` that take times meanwhile
    and to their candidates. The result is at least 1.
    """
    cores, kept = len(os.sched_getaffinity(0)), CORES_OF_A_JUDGE * judges
    if cores >= LARGE_MACHINE * kept:
        cores -= kept
    return max(1, min(cores * 3 // 4, available_bytes() // BYTES_PER_BUILD))
