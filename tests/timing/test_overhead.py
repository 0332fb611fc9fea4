from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.timing import overhead as module
from inlinebench.timing.call import Sample
from inlinebench.timing.overhead import BLOCKS_AN_SM, CALLS, TRACED_CALLS, null_ms, overhead, shown_ms
from inlinebench.timing.trace import Activity, TraceError

Value = TypeVar("Value")
SHOWN = {0: 0.0031, 4: 0.0035}
EVERY_FIFTH_LATE = 5


@pytest.fixture(autouse=True)
def wide_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAKING_S", 0.0)


class FakeClock(CpuClock):
    """Shows `SHOWN` for empty kernels, and 1 ms for every fifth of them.

    In one of `ran_out` calls the blocking kernel reaches its limit, and the call takes 7 ms.
    """

    def __init__(self, ran_out: int = 10**9) -> None:
        super().__init__()
        self.blocked = False
        self.queued: list[int] = []
        self.not_blocked: list[int] = []
        self._ran_out = ran_out

    def null(self, blocks_an_sm: int) -> None:
        (self.queued if self.blocked else self.not_blocked).append(blocks_an_sm)

    def block(self, limit_ms: float) -> None:
        self.blocked = True

    def drain(self) -> Sample:
        self.blocked = False
        if len(self.queued) % self._ran_out == 0:
            return Sample(7.0, 0.0, blocked=False)
        late = len(self.queued) % EVERY_FIFTH_LATE == 0
        return Sample(1.0 if late else SHOWN[self.queued[-1]], 0.0, blocked=True)


class FakeTracer:
    """Reports the kernels that a clock has queued: 1.0 µs for one block, 1.4 for several, and the clock's own kernels.
    """

    def __init__(self, clock: FakeClock, name: str = "inlinebench_null") -> None:
        self._clock, self._name = clock, name

    def __call__(self, work: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        value = work()
        end = {0: 101.0, 4: 101.4}[self._clock.queued[-1]]
        return value, [Activity("inlinebench_block", 0.0, 99.0), Activity(self._name, 100.0, end),
                       Activity("inlinebench_stop", 102.0, 103.0)]


def test_the_shown_time_is_the_mean_of_both_grid_sizes_without_late_calls() -> None:
    clock = FakeClock()
    assert shown_ms(clock) == pytest.approx(0.0033)
    assert {blocks: clock.queued.count(blocks) for blocks in BLOCKS_AN_SM} == {0: CALLS, 4: CALLS}


def test_the_empty_kernel_is_loaded_before_a_blocking_kernel_is_queued() -> None:
    clock = FakeClock()
    shown_ms(clock)
    assert clock.not_blocked == [0]


def test_the_duration_of_the_empty_kernel_comes_from_the_tracer() -> None:
    clock = FakeClock()
    assert null_ms(clock, FakeTracer(clock)) == pytest.approx(0.0012)
    assert len(clock.queued) == TRACED_CALLS * len(BLOCKS_AN_SM)


def test_a_trace_without_the_empty_kernel_gives_no_duration() -> None:
    clock = FakeClock()
    assert null_ms(clock, FakeTracer(clock, name="some other kernel")) is None


def test_a_failing_cupti_gives_no_duration() -> None:
    def fail(_: Callable[[], Value]) -> tuple[Value, list[Activity]]:
        raise TraceError("CUPTI failed with status 15")

    assert null_ms(FakeClock(), fail) is None


def test_calls_whose_blocking_kernel_ran_out_do_not_count() -> None:
    # A third of them: more than a midmean leaves out.
    assert shown_ms(FakeClock(ran_out=3)) == pytest.approx(0.0033)


def test_the_shown_time_is_unknown_if_every_blocking_kernel_ran_out() -> None:
    with pytest.raises(ValueError, match="no samples"):
        shown_ms(FakeClock(ran_out=1))


def test_an_idle_gpu_is_warmed_up_before_calls_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAKING_S", 0.01)
    clock = FakeClock()
    assert shown_ms(clock) == pytest.approx(0.0033)
    assert clock.queued.count(0) > CALLS and clock.queued.count(4) == CALLS


def test_each_process_has_its_own_overhead() -> None:
    found = overhead(empty_ms=0.0013, null_ms=0.001, judge_ms=0.0034, candidate_ms=0.0032)
    assert (found.empty_ms, found.doubtful) == (0.0013, False)
    assert (found.of_reference_ms, found.of_solution_ms) == (pytest.approx(0.0024), pytest.approx(0.0022))


@pytest.mark.parametrize("reported_ms", [0.0002, 0.0045, 3.0])
def test_an_implausible_overhead_of_a_candidate_is_replaced_by_the_judges(reported_ms: float) -> None:
    found = overhead(empty_ms=0.0013, null_ms=0.001, judge_ms=0.0034, candidate_ms=reported_ms)
    assert found.doubtful and found.of_solution_ms == found.of_reference_ms == pytest.approx(0.0024)
