"""Where a judge's candidates come from: where there is room, the next one is started before it is needed.

It waits in its sandbox, with torch and CUDA up and nothing of a solution loaded. It may only read what the solution
needs that it was started for, so it serves that one, its neighbours in the same folder, or nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from inlinebench.evaluation.failures import Failed, raise_failure
from inlinebench.messages import Settings
from inlinebench.process import sanitizer
from inlinebench.process.candidate_process import (
    Build,
    CandidateCheated,
    CandidateDied,
    CandidateOverran,
    CandidateProcess,
    CandidateTimedOut,
)
from inlinebench.process.launcher import Launcher
from inlinebench.process.replies import read_clocked
from inlinebench.records.build_request import RuntimeLibraries
from inlinebench.records.result import Verdict
from inlinebench.sandbox.policy import readable_for
from inlinebench.timing.flags import FlagPage

START_PATIENCE_S = 300.0
"""For torch and CUDA to start, if need be under a tool: the harness's own time, not the solution's."""
ENDED = (CandidateTimedOut, CandidateDied, CandidateCheated, CandidateOverran)


class NoCandidate(Exception):
    """A candidate didn't start, which no solution had a part in."""


class Candidates:
    """For one device and one candidate at work at a time; beside it one may wait, where there is `room`.

    `always` are files or folders that all of them read. `kept` gives the processes below ours that a candidate's end
    must not touch. With `clocked` each says what its clock adds to a call.
    """

    def __init__(
        self, launcher: Launcher, settings: Settings, device: torch.device, runtime_libraries: RuntimeLibraries,
        build: Build, *,
        always: tuple[Path, ...], kept: Callable[[], tuple[int, ...]], room: Callable[[], bool], clocked: bool = False,
    ) -> None:
        self._launcher, self._settings, self._device = launcher, settings, device
        self._runtime_libraries, self._build, self._always = runtime_libraries, build, always
        self._given_kept, self._room, self._clocked = kept, room, clocked
        self._waiting: Waiting | None = None

    def take(self, solution: Path | None, shared: Mapping[str, int]) -> CandidateProcess:
        """A candidate that has started, for a solution's file (None: the reference); the one that waits, if it serves.

        It is given the descriptors `shared`, which a waiting one can't be. Raises Failed where the device has no memory
        left for it, and NoCandidate.
        """
        waiting = self._take_waiting(solution, shared)
        if waiting is not None:
            return waiting
        fresh = self._start(solution, shared)
        try:
            return self._get_ready(fresh)
        except BaseException:
            fresh.candidate.kill()
            raise

    def _take_waiting(self, solution: Path | None, shared: Mapping[str, int]) -> CandidateProcess | None:
        """The one that waits, if it serves; else it is ended."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return None
        try:
            if waiting.serves(solution) and waiting.is_up() and not shared:
                return self._get_ready(waiting)
        except (Failed, NoCandidate):
            pass  # a fresh one meets the reason if it lasts
        except BaseException:
            waiting.candidate.kill()
            raise
        waiting.candidate.kill()
        return None

    def _get_ready(self, started: Waiting) -> CandidateProcess:
        started.finish()
        if self._clocked:
            started.look_at_clock()  # now, while neither the next one starts nor a solution has been loaded
        started.candidate.budget = self._settings.timeout
        return started.candidate

    def prepare(self, solution: Path | None) -> None:
        """Has a candidate start for what comes next, unless the one that waits serves, or there is no room for it.

        To be called while none is at work, or none waits.
        """
        if self._waiting is not None and self._waiting.serves(solution):
            return
        self.close()
        if self._room():
            self._waiting = self._start(solution, {})

    def settle(self) -> None:
        """Waits until nothing starts any more that calls could be timed beside."""
        if self._waiting is not None:
            self._waiting.is_up()

    def close(self) -> None:
        """Ends the one that waits."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.candidate.kill()

    def _start(self, solution: Path | None, shared: Mapping[str, int]) -> Waiting:
        settings = self._settings
        readable = [*self._always, *([] if solution is None else readable_for(solution))]
        page = FlagPage() if self._device.type == "cuda" else None
        candidate = CandidateProcess(
            self._launcher, START_PATIENCE_S, settings.limits, self._build, readable=readable, shared=shared, page=page,
            keep=self._kept, under=() if settings.sanitize is None else sanitizer.command(settings.sanitize),
        )
        runtime_libraries = self._runtime_libraries
        if settings.sanitize is not None:
            # The tool and CUPTI can't both look into a process.
            runtime_libraries = replace(runtime_libraries, trace=None)
        candidate.post(
            "start", device=str(self._device), tf32=settings.tf32, runtime_libraries=runtime_libraries.to_json(),
        )
        return Waiting(candidate, tuple(path.resolve() for path in readable), self._device)

    def _kept(self) -> tuple[int, ...]:
        """What is left alone when a candidate is killed with all that it started."""
        waiting = () if self._waiting is None else (self._waiting.candidate.pid,)
        return (*self._given_kept(), *waiting)


class Waiting:
    """A candidate that was told to start, and what it may read."""

    def __init__(self, candidate: CandidateProcess, readable: tuple[Path, ...], device: torch.device) -> None:
        self.candidate, self._readable, self._device = candidate, readable, device
        self._up: bool | None = None

    def finish(self) -> None:
        """Waits until it has started. Raises Failed or NoCandidate if it can't."""
        if self._up is None:
            self._up = False
            with self._blaming():
                raise_failure(self.candidate.collect(), self._device)
            self._up = True

    def look_at_clock(self) -> None:
        """Has it say what its clock shows for a kernel that does nothing. Raises Failed or NoCandidate if it can't."""
        with self._blaming():
            reply = self.candidate.ask("clock")
            raise_failure(reply, self._device)
            self.candidate.shown_ms = read_clocked(reply)

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """What goes wrong before a solution was loaded is no solution's fault."""
        try:
            yield
        except (*ENDED, Failed) as error:
            if isinstance(error, Failed) and error.verdict is Verdict.OUT_OF_MEMORY:
                raise
            raise NoCandidate(f"a candidate didn't start: {error}\n{self.candidate.log()}") from error

    def is_up(self) -> bool:
        """Waits until it has started; False if it can't be used."""
        try:
            self.finish()
        except (Failed, NoCandidate):
            return False  # whoever needs one gets a fresh one, and meets the reason there if it lasts
        return bool(self._up) and self.candidate.is_running()

    def serves(self, solution: Path | None) -> bool:
        """Whether it may read all that this solution needs."""
        needed = [] if solution is None else [path.resolve() for path in readable_for(solution)]
        return all(any(path == given or given in path.parents for given in self._readable) for path in needed)
