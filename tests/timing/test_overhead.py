from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from harness.timing.call import Sample
from harness.timing.cpu import CpuClock
from harness.timing.overhead import BLOCKS_AN_SM, CALLS, TRACED_CALLS, null_ms, shown_ms
from harness.timing.profile import Activity

Value = TypeVar("Value")
SHOWN = {0: 0.0031, 4: 0.0035}
EVERY_FIFTH_LATE = 5


class FakeClock(CpuClock):
    """Shows `SHOWN` for kernels that do nothing, but a millisecond for every fifth of them."""

    def __init__(self) -> None:
        super().__init__()
        self.held = False
        self.queued: list[int] = []
        self.before_a_hold: list[int] = []

    def null(self, blocks_an_sm: int) -> None:
        (self.queued if self.held else self.before_a_hold).append(blocks_an_sm)

    def hold(self, limit_ms: float) -> None:
        self.held = True

    def drain(self) -> Sample:
        self.held = False
        late = len(self.queued) % EVERY_FIFTH_LATE == 0
        return Sample(1.0 if late else SHOWN[self.queued[-1]], 0.0, held=True)


class FakeTracer:
    """Sees what a clock has queued: 1.0 µs for a block, 1.4 for many, beside the clock's other kernels."""

    def __init__(self, clock: FakeClock, name: str = "inlinebench_null") -> None:
        self._clock, self._name = clock, name

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        value = work()
        end = {0: 101.0, 4: 101.4}[self._clock.queued[-1]]
        return value, [Activity("inlinebench_hold", 0.0, 99.0), Activity(self._name, 100.0, end),
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
