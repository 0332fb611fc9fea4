"""The order of a held call's steps, with made-up clocks over a real workload on the CPU."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.evaluation.comparing import Answer
from inlinebench.evaluation.draws import Drawn, Draws
from inlinebench.evaluation.integrity import held_calls as module
from inlinebench.evaluation.integrity.held_calls import MOST_LATE, QUIET, HeldCalls, NoTime
from inlinebench.evaluation.integrity.held_times import FEWEST, FEWEST_OF_A_KIND, HeldTimes, StandInTime
from inlinebench.evaluation.integrity.outside_clock import HeldRequest
from inlinebench.problem.workload import Received, Workload

from ..problem.test_workload import workload

STAND_IN = StandInTime(0.8, 0.2)


class StandIns:
    """Writes to the shared inputs, as a stand-in's call does."""

    def __init__(self, workload: Workload, *_: object) -> None:
        self.workload = workload
        self.modes: list[bool] = []

    late = False

    def time(self, number: int, *, on_host: bool) -> StandInTime | None:
        self.workload.hand_over(number)
        self.modes.append(on_host)
        return None if self.late and len(self.modes) % 20 == 0 else STAND_IN

    def close(self) -> None:
        """Does nothing."""


class OutsideClock:
    """Looks at the shared inputs when a call is asked for. `late` is for which calls the release comes too late."""

    late = staticmethod(lambda number, on_host: False)

    def __init__(self, workload: Workload, *_: object) -> None:
        self.workload, self.received, self.number = workload, Received(), 0

    def time(self, request: HeldRequest, _: object) -> tuple[float | None, Any]:
        shared = self.workload.inputs(request.number)
        assert not any(map(torch.equal, shared, request.inputs)), "the candidate could read the inputs before the stamp"
        self.number += 1
        took = None if self.late(self.number, request.on_host) else 1.6
        return took, SimpleNamespace(notes=("copied",), non_tensors=())

    def release(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class Session:
    """Held calls of a solution that reports 1 ms, as the judge's clock does."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        made = workload(folder)
        unused: Any = SimpleNamespace(
            resume=lambda: None, stop=lambda: None, candidates=None, progress=lambda text: None, clock=None)
        self.calls = HeldCalls(made, unused, unused, Draws(made, seed, "held"))
        self.kinds = made.source.kinds
        self.checked: list[Drawn] = []
        self.thorough: list[int] = []

    def measure(self) -> set[str]:
        return self.calls.measure(dict.fromkeys(map(str, self.kinds), 1.0), (), self.check)

    def check(self, call: Drawn, answer: Answer, what: str, *, thorough: bool = False) -> None:
        assert what == "a held call"
        self.thorough += [len(self.checked)] * thorough
        self.checked.append(call)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(module, "GpuClock", object)
    monkeypatch.setattr(module, "StandIns", StandIns)
    monkeypatch.setattr(module, "OutsideClock", OutsideClock)
    return Session(tmp_path)


def test_inputs_are_not_written_before_the_call_is_asked_for(session: Session) -> None:
    assert session.measure() == {"copied"}
    times = session.calls.decide()
    assert times is not None and times.judged is None and len(times.after) == QUIET
    assert len(session.checked) == len(times), "every call is compared"


def test_each_kind_of_inputs_is_called_however_long_it_takes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_S", 0.0)
    monkeypatch.setattr(OutsideClock, "late", staticmethod(lambda number, on_host: False))
    session.measure()
    made = Counter(call.variant for call in session.checked)
    assert set(made) == set(session.kinds) and min(made.values()) >= FEWEST_OF_A_KIND


def test_calls_are_made_on_the_kinds_of_inputs_that_are_wanted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = str(session.kinds[-1])
    monkeypatch.setattr(HeldTimes, "wanted", property(lambda times: [kind] if len(times) < 5 else []))
    session.measure()
    assert [str(call.variant) for call in session.checked] == [kind] * 5


def test_a_secret_call_is_judged_in_all_elements(tmp_path: Path, session: Session) -> None:
    session.measure()
    [first] = session.thorough
    assert 0 <= first < FEWEST
    numbers = [Session(tmp_path, seed).calls._thorough for seed in range(10)]
    assert len(set(numbers)) > 1


def test_a_call_that_cannot_be_queued_is_held_on_the_host(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutsideClock, "late", staticmethod(lambda number, on_host: not on_host))
    session.measure()
    assert session.calls.on_host
    session.calls.decide()
    stand_ins = session.calls._stand_ins
    assert isinstance(stand_ins, StandIns) and stand_ins.modes[2 + QUIET :] == [True] * (len(session.checked) + QUIET)


def test_a_stand_in_that_is_late_is_repeated(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIns, "late", True)
    session.measure()
    times = session.calls.decide()
    assert not session.calls.on_host and times is not None and len(session.checked) == len(times)


def test_a_machine_that_is_too_busy_gives_no_time(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutsideClock, "late", staticmethod(lambda number, on_host: True))
    with pytest.raises(NoTime, match=f"{MOST_LATE + 1} calls too late"):
        session.measure()
    assert not session.checked
