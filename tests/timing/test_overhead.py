from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from inlinebench.timing import overhead as module
from inlinebench.timing.call import Sample
from inlinebench.timing.cpu import CpuClock
from inlinebench.timing.overhead import BLOCKS_AN_SM, CALLS, TRACED_CALLS, null_ms, overhead, shown_ms
from inlinebench.timing.profile import Activity, TraceError

Value = TypeVar("Value")
SHOWN = {0: 0.0031, 4: 0.0035}
EVERY_FIFTH_LATE = 5


@pytest.fixture(autouse=True)
def wide_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAKING_S", 0.0)


class FakeClock(CpuClock):
    """Shows `SHOWN` for kernels that do nothing, but a millisecond for every fifth of them.

    Of every `ran_out` calls the hold of one ran out, which then took 7 ms.
    """

    def __init__(self, ran_out: int = 10**9) -> None:
        super().__init__()
        self.blocked = False
        self.queued: list[int] = []
        self.before_a_hold: list[int] = []
        self._ran_out = ran_out

    def null(self, blocks_an_sm: int) -> None:
        (self.queued if self.blocked else self.before_a_hold).append(blocks_an_sm)

    def block(self, limit_ms: float) -> None:
        self.blocked = True

    def drain(self) -> Sample:
        self.blocked = False
        if len(self.queued) % self._ran_out == 0:
            return Sample(7.0, 0.0, blocked=False)
        late = len(self.queued) % EVERY_FIFTH_LATE == 0
        return Sample(1.0 if late else SHOWN[self.queued[-1]], 0.0, blocked=True)


class FakeTracer:
    """Sees what a clock has queued: 1.0 µs for a block, 1.4 for many, beside the clock's other kernels."""

    def __init__(self, clock: FakeClock, name: str = "inlinebench_null") -> None:
        self._clock, self._name = clock, name

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        value = work()
        end = {0: 101.0, 4: 101.4}[self._clock.queued[-1]]
        return value, [Activity("inlinebench_block", 0.0, 99.0), Activity(self._name, 100.0, end),
                       Activity("inlinebench_stop", 102.0, 103.0)]


def test_what_a_clock_shows_is_the_mean_of_a_block_and_of_many_without_what_was_late() -> None:
    clock = FakeClock()
    assert shown_ms(clock) == pytest.approx(0.0033)
    assert {blocks: clock.queued.count(blocks) for blocks in BLOCKS_AN_SM} == {0: CALLS, 4: CALLS}


def test_the_kernel_is_loaded_before_it_is_held() -> None:
    clock = FakeClock()
    shown_ms(clock)
    assert clock.before_a_hold == [0]


def test_what_the_kernel_itself_takes_is_asked_of_the_tracer() -> None:
    clock = FakeClock()
    assert null_ms(clock, FakeTracer(clock)) == pytest.approx(0.0012)
    assert len(clock.queued) == TRACED_CALLS * len(BLOCKS_AN_SM)


def test_a_tracer_that_does_not_see_the_kernel_tells_nothing() -> None:
    clock = FakeClock()
    assert null_ms(clock, FakeTracer(clock, name="some other kernel")) is None


def test_a_cupti_that_refuses_tells_nothing() -> None:
    def refuse(_: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        raise TraceError("CUPTI gave status 15")

    assert null_ms(FakeClock(), refuse) is None


def test_calls_that_were_not_held_do_not_count() -> None:
    assert shown_ms(FakeClock(ran_out=3)) == pytest.approx(0.0033)  # a third of them: more than a midmean leaves out


def test_without_a_held_call_nothing_is_known() -> None:
    with pytest.raises(ValueError, match="no samples"):
        shown_ms(FakeClock(ran_out=1))


def test_a_gpu_is_woken_before_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAKING_S", 0.01)
    clock = FakeClock()
    assert shown_ms(clock) == pytest.approx(0.0033)
    assert clock.queued.count(0) > CALLS and clock.queued.count(4) == CALLS


def test_each_process_has_its_own_taken_off() -> None:
    found = overhead(empty_ms=0.0013, null_ms=0.001, judge_ms=0.0034, candidate_ms=0.0032)
    assert (found.empty_ms, found.doubtful) == (0.0013, False)
    assert (found.of_reference_ms, found.of_solution_ms) == (pytest.approx(0.0024), pytest.approx(0.0022))


@pytest.mark.parametrize("said", [0.0002, 0.0045, 3.0])
def test_what_is_far_from_what_the_judge_sees_is_not_believed(said: float) -> None:
    found = overhead(empty_ms=0.0013, null_ms=0.001, judge_ms=0.0034, candidate_ms=said)
    assert found.doubtful and found.of_solution_ms == found.of_reference_ms == pytest.approx(0.0024)
