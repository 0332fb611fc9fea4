"""Candidates that start before they are needed. The tests start real processes on the CPU."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from inlinebench.builds.request import BuildOutcome, BuildRequest, RuntimeLibraries
from inlinebench.devices.cpu.arena import CpuArena
from inlinebench.devices.cpu.device import CpuDevice
from inlinebench.evaluation.candidates import Candidates, NoCandidate, Waiting, open_arena
from inlinebench.messages import Settings
from inlinebench.options import Options
from inlinebench.process.launcher import Launcher
from inlinebench.sandbox.given import readable_for
from inlinebench.scheduler.executor import settings_for

TIMEOUT_S = 77.0


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_for(Options(device="cpu", timeout=TIMEOUT_S))


class Room(CpuDevice):
    """A CPU that may have room for a waiting candidate. Tests change that."""

    available = True

    def has_room_for_waiting(self) -> bool:
        return self.available


class Clocked(Room):
    """A CPU whose times are compared, so that its clock is measured."""

    kind = replace(CpuDevice.kind, times_are_comparable=True)


@pytest.fixture
def room() -> Room:
    return Room(torch.device("cpu"))


@pytest.fixture
def candidates(launcher: Launcher, settings: Settings, room: Room) -> Iterator[Candidates]:
    candidates = Candidates(
        launcher, settings, room, runtime_libraries=RuntimeLibraries(), build=no_build, always=(),
        protected=lambda: (launcher.pid,),
    )
    yield candidates
    candidates.close()


@pytest.fixture
def clocked(launcher: Launcher, settings: Settings) -> Iterator[Candidates]:
    device = Clocked(torch.device("cpu"))
    candidates = Candidates(
        launcher, settings, device, runtime_libraries=RuntimeLibraries(), build=no_build, always=(),
        protected=lambda: (launcher.pid,),
    )
    yield candidates
    candidates.close()


def no_build(request: BuildRequest) -> BuildOutcome:
    raise AssertionError(f"nothing here builds {request.name}")


def waiting_pid(candidates: Candidates) -> int:
    assert candidates._waiting is not None
    return candidates._waiting.candidate.pid


def solution(folder: Path, name: str) -> list[Path]:
    """Creates a solution and returns what it is given."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text("", encoding="utf-8")
    return readable_for(path)


def state(pid: int) -> str:
    """Returns the state letter of a process that nobody has waited for yet, from /proc."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_waiting_candidate_is_taken(candidates: Candidates, tmp_path: Path) -> None:
    given = solution(tmp_path / "a", "one")
    candidates.prepare(given)
    pid = waiting_pid(candidates)
    with candidates.take(given) as candidate:
        assert candidate.pid == pid
        assert candidate.budget == TIMEOUT_S  # starting does not count
        assert candidate.ask("report")["launches"] == 0
    assert not is_alive(pid)


def test_a_waiting_candidate_serves_solutions_in_the_same_folder(candidates: Candidates, tmp_path: Path) -> None:
    one, other = solution(tmp_path / "a", "one"), solution(tmp_path / "a", "other")
    candidates.prepare(one)
    pid = waiting_pid(candidates)
    with candidates.take(other) as candidate:
        assert candidate.pid == pid


def test_a_waiting_candidate_does_not_serve_a_solution_that_may_read_less(
    candidates: Candidates, tmp_path: Path
) -> None:
    outer, inner = solution(tmp_path / "a", "one"), solution(tmp_path / "a" / "inner", "two")
    candidates.prepare(outer)
    pid = waiting_pid(candidates)
    with candidates.take(inner) as candidate:
        assert candidate.pid != pid


def test_a_waiting_candidate_does_not_serve_a_solution_without_its_folder(
    candidates: Candidates, tmp_path: Path
) -> None:
    given = solution(tmp_path / "a", "one")
    candidates.prepare(given)
    pid = waiting_pid(candidates)
    with candidates.take(given[:1]) as candidate:
        assert candidate.pid != pid


def test_a_solution_in_another_folder_gets_a_fresh_candidate(candidates: Candidates, tmp_path: Path) -> None:
    one, elsewhere = solution(tmp_path / "a", "one"), solution(tmp_path / "b", "two")
    candidates.prepare(one)
    pid = waiting_pid(candidates)
    with candidates.take(elsewhere) as candidate:
        assert candidate.pid != pid
        assert not is_alive(pid)


def test_preparing_for_another_folder_replaces_the_waiting_candidate(candidates: Candidates, tmp_path: Path) -> None:
    one, elsewhere = solution(tmp_path / "a", "one"), solution(tmp_path / "b", "two")
    candidates.prepare(one)
    first = waiting_pid(candidates)
    candidates.prepare(one)
    assert waiting_pid(candidates) == first
    candidates.prepare(elsewhere)
    assert waiting_pid(candidates) != first
    assert not is_alive(first)


@pytest.mark.parametrize("started", [True, False])
def test_a_candidate_that_died_while_waiting_is_replaced(candidates: Candidates, tmp_path: Path, started: bool) -> None:
    given = solution(tmp_path / "a", "one")
    candidates.prepare(given)
    pid = waiting_pid(candidates)
    if started:
        candidates.wait_for_starts()
    os.kill(pid, signal.SIGKILL)
    while state(pid) not in "Z":
        time.sleep(0.001)
    candidates.wait_for_starts()  # must not raise
    with candidates.take(given) as candidate:
        assert candidate.pid != pid
        assert candidate.ask("report")["launches"] == 0


def test_a_missing_device_is_not_a_failure_of_the_solution(launcher: Launcher, settings: Settings, room: Room) -> None:
    room.torch_device = torch.device("cuda", 99)
    candidates = Candidates(launcher, settings, room, runtime_libraries=RuntimeLibraries(), build=no_build, always=(),
                            protected=lambda: (launcher.pid,))
    with pytest.raises(NoCandidate, match="didn't start"):
        candidates.take([Path(__file__)])


def test_the_waiting_candidate_survives_the_end_of_the_running_one(candidates: Candidates, tmp_path: Path) -> None:
    given = solution(tmp_path / "a", "one")
    with candidates.take(given):
        candidates.prepare(given)
        pid = waiting_pid(candidates)
    with candidates.take(given) as candidate:
        assert candidate.pid == pid
        assert candidate.ask("report")["launches"] == 0


def test_a_waiting_candidate_opens_shared_memory(candidates: Candidates, tmp_path: Path) -> None:
    given, arena = solution(tmp_path / "a", "one"), CpuArena(100)
    candidates.prepare(given)
    pid = waiting_pid(candidates)
    with candidates.take(given) as candidate:
        assert candidate.pid == pid
        for _ in range(3):
            open_arena(candidate, arena)
    arena.close()


def test_a_candidate_that_cannot_open_the_shared_memory_is_no_solutions_fault(
    candidates: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = CpuArena(100)
    monkeypatch.setattr(arena, "export", lambda: {"in_host_memory": True})  # no size
    with (candidates.take(solution(tmp_path / "a", "one")) as candidate,
          pytest.raises(NoCandidate, match="cannot open the shared memory")):
        open_arena(candidate, arena)
    arena.close()


def test_without_room_no_candidate_waits(candidates: Candidates, room: Room, tmp_path: Path) -> None:
    room.available = False
    given = solution(tmp_path / "a", "one")
    candidates.prepare(given)
    assert candidates._waiting is None
    with candidates.take(given) as candidate:
        assert candidate.ask("report")["launches"] == 0


def test_closing_ends_the_waiting_candidate(candidates: Candidates, tmp_path: Path) -> None:
    candidates.prepare(solution(tmp_path / "a", "one"))
    pid = waiting_pid(candidates)
    candidates.close()
    assert not is_alive(pid)


@pytest.mark.parametrize("waited", [True, False])
def test_the_clock_is_measured_before_a_candidate_is_taken(clocked: Candidates, tmp_path: Path, waited: bool) -> None:
    given = solution(tmp_path / "a", "one")
    if waited:
        clocked.prepare(given)
    with clocked.take(given) as candidate:
        assert candidate.shown_ms is not None and candidate.shown_ms > 0
        assert candidate.budget == TIMEOUT_S


def test_the_clock_is_not_measured_without_timing(candidates: Candidates, tmp_path: Path) -> None:
    with candidates.take(solution(tmp_path / "a", "one")) as candidate:
        assert candidate.shown_ms is None


def test_a_waiting_candidate_whose_clock_fails_is_replaced(
    clocked: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = solution(tmp_path / "a", "one")
    clocked.prepare(given)
    pid, measure_clock = waiting_pid(clocked), Waiting.measure_clock

    def fail_once(waiting: Waiting) -> None:
        if waiting.candidate.pid == pid:
            raise NoCandidate("its clock failed")
        measure_clock(waiting)

    monkeypatch.setattr(Waiting, "measure_clock", fail_once)
    with clocked.take(given) as candidate:
        assert candidate.pid != pid and candidate.shown_ms is not None
    assert not is_alive(pid)


def test_a_clock_that_always_fails_is_not_a_failure_of_the_solution(
    clocked: Candidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def fail(waiting: Waiting) -> None:
        seen.append(waiting.candidate.pid)
        os.kill(waiting.candidate.pid, signal.SIGKILL)
        measure_clock(waiting)

    measure_clock = Waiting.measure_clock
    monkeypatch.setattr(Waiting, "measure_clock", fail)
    with pytest.raises(NoCandidate, match="SIGKILL"):
        clocked.take(solution(tmp_path / "a", "one"))
    assert not is_alive(seen[0])
