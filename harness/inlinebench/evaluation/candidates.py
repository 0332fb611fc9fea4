"""Starts candidate processes. If there is room on the device, the next one starts before it is needed.

A waiting candidate has entered its sandbox and started torch and CUDA, but has not loaded a solution. Its sandbox lets
it read the files of one solution, so it can serve this solution or others that are given the same folder. A reference
that is evaluated as a solution is one here: its folder is the problem's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.devices.base import Arena, Device
from inlinebench.evaluation.failures import Failed, raise_failure
from inlinebench.messages import Settings
from inlinebench.process import sanitizer
from inlinebench.process.candidate_process import (
    Build,
    CandidateCheated,
    CandidateDied,
    CandidateOverran,
    CandidateProcess,
    CandidateSpec,
    CandidateTimedOut,
)
from inlinebench.process.launcher import Launcher
from inlinebench.process.replies import read_clocked
from inlinebench.results.result import Verdict

START_PATIENCE_S = 300.0
"""The time that torch and CUDA may take to start, in seconds. It does not count against the solution's time limit."""
ENDED = (CandidateTimedOut, CandidateDied, CandidateCheated, CandidateOverran)
"""Exceptions after which a candidate process cannot be used."""


class NoCandidate(Exception):
    """A candidate process did not start. This is never a solution's fault, because none was loaded."""


class Candidates:
    """The candidates of one device: at most one runs a solution, at most one waits, and one may run stand-ins.

    Args:
        launcher: starts the processes.
        settings: the options of the run.
        device: the device that all candidates use.
        runtime_libraries: the libraries that a candidate loads for the device.
        build: builds an extension that a candidate asks for.
        always: files and folders that every candidate may read.
        protected: returns the ids of further processes that a candidate must not send signals to.
    """

    def __init__(
        self, launcher: Launcher, settings: Settings, device: Device, *, runtime_libraries: RuntimeLibraries,
        build: Build, always: tuple[Path, ...], protected: Callable[[], tuple[int, ...]],
    ) -> None:
        self._launcher, self._settings, self._device = launcher, settings, device
        self._runtime_libraries, self._build, self._always = runtime_libraries, build, always
        self._protected, self._gpu = protected, device.under_test()
        self._waiting: Waiting | None = None
        self._stand_in: Waiting | None = None

    @property
    def torch_device(self) -> torch.device:
        """The device that all candidates use."""
        return self._device.torch_device

    def take(self, given: Sequence[Path]) -> CandidateProcess:
        """Returns a started candidate for a solution that is given these paths; the waiting one if it can serve.

        Raises Failed if the device has too little memory, and NoCandidate if a candidate does not start.
        """
        waiting = self._take_waiting(given)
        if waiting is not None:
            return waiting
        fresh = self._start(given)
        try:
            return self._get_ready(fresh)
        except BaseException:
            fresh.candidate.kill()
            raise

    def _take_waiting(self, given: Sequence[Path]) -> CandidateProcess | None:
        """Returns the waiting candidate if it can serve this solution. Ends it otherwise."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return None
        try:
            if waiting.serves(given) and waiting.is_up():
                return self._get_ready(waiting)
        except (Failed, NoCandidate):
            pass  # a fresh candidate fails for the same reason if the reason persists
        except BaseException:
            waiting.candidate.kill()
            raise
        waiting.candidate.kill()
        return None

    def _get_ready(self, started: Waiting) -> CandidateProcess:
        started.finish()
        if self._settings.timing and self._device.kind.times_are_comparable:
            # Now, because nothing disturbs the clock: no solution is loaded yet, and no other candidate is starting.
            started.measure_clock()
        started.candidate.budget = self._settings.timeout
        return started.candidate

    def prepare(self, given: Sequence[Path]) -> None:
        """Starts a candidate for the next solution, unless the waiting one can serve it or there is no room.

        Do not call this while one candidate runs and another one waits.
        """
        if self._waiting is not None and self._waiting.serves(given):
            return
        self.close()
        if self._settings.sanitize is None and self._device.has_room_for_waiting():
            self._waiting = self._start(given)

    def prepare_stand_in(self) -> None:
        """Starts the process that runs stand-ins (`inlinebench.evaluation.integrity.stand_ins`), unless it runs."""
        if self._stand_in is None:
            self._stand_in = self._start(())

    def stand_in(self) -> CandidateProcess:
        """Returns the process that runs stand-ins and never loads a solution. Raises NoCandidate, and Failed if the
        device has too little memory."""
        if self._stand_in is not None and not self._stand_in.is_up():
            self._stand_in.candidate.kill()
            self._stand_in = None
        self.prepare_stand_in()
        assert self._stand_in is not None
        if self._stand_in.candidate.shown_ms is None:
            self._get_ready(self._stand_in)
        self._stand_in.candidate.budget = START_PATIENCE_S
        return self._stand_in.candidate

    def unmap(self) -> None:
        """Has the process that runs stand-ins close the shared buffers, or ends it."""
        if self._stand_in is not None and self._stand_in.candidate.shown_ms is not None:
            try:
                self._stand_in.candidate.ask("unmap")
            except ENDED:
                self._end_stand_in()

    def wait_for_starts(self) -> None:
        """Waits until the other processes have started, because their start would disturb times."""
        for each in (self._waiting, self._stand_in):
            if each is not None:
                each.is_up()

    def close(self) -> None:
        """Ends the waiting candidate."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.candidate.kill()

    def end(self) -> None:
        """Ends all processes."""
        self.close()
        self._end_stand_in()

    def _end_stand_in(self) -> None:
        stand_in, self._stand_in = self._stand_in, None
        if stand_in is not None:
            stand_in.candidate.kill()

    def _own(self) -> tuple[int, ...]:
        return () if self._stand_in is None else (self._stand_in.candidate.pid,)

    def _start(self, given: Sequence[Path]) -> Waiting:
        settings = self._settings
        spec = CandidateSpec(
            START_PATIENCE_S, settings.limits, (*self._always, *given), self._device.flag_page(),
            (*self._protected(), *self._own()), self._gpu,
            () if settings.sanitize is None else tuple(sanitizer.command(settings.sanitize)),
        )
        candidate = CandidateProcess.start(self._launcher, spec, self._build)
        runtime_libraries = self._runtime_libraries
        if settings.sanitize is not None:
            # compute-sanitizer and CUPTI cannot both attach to a process.
            runtime_libraries = replace(runtime_libraries, trace=None)
        candidate.post(
            "start", device=self._gpu.device if self._gpu else str(self._device.torch_device), tf32=settings.tf32,
            runtime_libraries=runtime_libraries.to_json(),
        )
        return Waiting(candidate, given, self._device.torch_device)


class Waiting:
    """A candidate that was asked to start for a solution."""

    def __init__(self, candidate: CandidateProcess, given: Sequence[Path], device: torch.device) -> None:
        self.candidate, self._given, self._device = candidate, _outermost(given), device
        self._up: bool | None = None

    def finish(self) -> None:
        """Waits until it has started. Raises Failed if the device has too little memory, and NoCandidate."""
        if self._up is None:
            self._up = False
            with self._start_errors():
                raise_failure(self.candidate.collect(), self._device)
            self._up = True

    def measure_clock(self) -> None:
        """Measures the time that its clock reports for an empty kernel. Raises as `finish` does."""
        with self._start_errors():
            reply = self.candidate.ask("clock")
            raise_failure(reply, self._device)
            self.candidate.shown_ms = read_clocked(reply)

    @contextmanager
    def _start_errors(self) -> Iterator[None]:
        """Raises NoCandidate for failures before a solution is loaded. Only a lack of device memory stays a Failed."""
        try:
            yield
        except (*ENDED, Failed) as error:
            if isinstance(error, Failed) and error.verdict is Verdict.OUT_OF_MEMORY:
                raise
            raise NoCandidate(f"a candidate didn't start: {error}\n{self.candidate.log()}") from error

    def is_up(self) -> bool:
        """Waits until it has started. Returns whether it can be used."""
        try:
            self.finish()
        except (Failed, NoCandidate):
            return False  # `take` starts a fresh one, which fails for the same reason if the reason persists
        return bool(self._up) and self.candidate.is_running()

    def serves(self, given: Sequence[Path]) -> bool:
        """Whether it may read exactly what a candidate with these paths may read."""
        return self._given == _outermost(given)


def open_arena(process: CandidateProcess, arena: Arena) -> None:
    """Has a process that has loaded no solution open the shared memory of the workload that requests are about. Raises
    NoCandidate, and what `ask` does."""
    descriptor = arena.descriptor()
    try:
        reply = process.ask("open", descriptor=descriptor, arena=arena.export())
    finally:
        os.close(descriptor)
    if reply["op"] != "opened":
        raise NoCandidate(f"a candidate cannot open the shared memory: {reply.get('message')}\n{process.log()}")


def _outermost(given: Sequence[Path]) -> set[Path]:
    """Returns the paths that are not inside another one of them."""
    return {path for path in given if set(given).isdisjoint(path.parents)}
