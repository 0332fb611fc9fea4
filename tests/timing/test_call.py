from __future__ import annotations

import time

import pytest

from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.timing.call import Sample, timed_call


class FakeClock:
    """Records its calls."""

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps

    def flush(self) -> None:
        self.steps.append("flush")

    def sweep(self) -> None:
        self.steps.append("sweep")

    def copy(self, target: int, source: int, size: int) -> None:
        self.steps.append(f"copy {size}")

    def done(self) -> None:
        self.steps.append("done")

    def block(self, limit_ms: float) -> None:
        self.steps.append(f"block {limit_ms:g}")

    def start(self) -> None:
        self.steps.append("start")

    def mark(self) -> None:
        self.steps.append("mark")

    def stop(self) -> None:
        self.steps.append("stop")

    def release(self) -> None:
        self.steps.append("release")

    def drain(self) -> Sample:
        self.steps.append("drain")
        return Sample(1.0, 2.0, blocked=True)


def test_the_steps_of_a_timed_call_are_in_order() -> None:
    steps: list[str] = []

    def work() -> str:
        steps.append("work")
        return "output"

    output, sample = timed_call(FakeClock(steps), work, lambda out: steps.append(f"finish {out}"), 50)
    assert steps == ["flush", "block 50", "start", "work", "stop", "finish output", "release", "drain"]
    assert (output, sample) == ("output", Sample(1.0, 2.0, blocked=True))


def test_a_limit_of_zero_means_no_blocking_kernel() -> None:
    steps: list[str] = []
    timed_call(FakeClock(steps), lambda: None, lambda _: None, 0)
    assert steps == ["flush", "start", "stop", "release", "drain"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["work", "finish"])
def test_the_blocking_kernel_is_released_when_a_step_raises(where: str, error: type[BaseException]) -> None:
    steps: list[str] = []

    def step(name: str) -> None:
        if name == where:
            raise error

    with pytest.raises(error):
        timed_call(FakeClock(steps), lambda: step("work"), lambda _: step("finish"), 50)
    assert steps[-1] == "release"


def test_the_cpu_clock_times_the_work_and_not_the_finish() -> None:
    _, sample = timed_call(CpuClock(), lambda: time.sleep(0.02), lambda _: time.sleep(0.2), 50)
    assert 20 <= sample.device_ms < 150
    assert sample.blocked


def test_the_cpu_clock_takes_a_time_stamp_between_the_passes_of_a_call() -> None:
    clock = CpuClock()

    def two_passes() -> None:
        time.sleep(0.02)
        clock.mark()
        time.sleep(0.04)

    _, sample = timed_call(clock, two_passes, lambda _: None, 0)
    assert sample.forward_ms is not None and 20 <= sample.forward_ms <= sample.device_ms - 40
    assert timed_call(clock, lambda: None, lambda _: None, 0)[1].forward_ms is None  # one pass, after a call with two


def test_the_cpu_clock_ignores_a_patched_time_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter_ns", lambda: 0)
    _, sample = timed_call(CpuClock(), lambda: time.sleep(0.02), lambda _: None, 0)
    assert sample.device_ms >= 20
