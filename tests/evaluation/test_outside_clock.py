from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from inlinebench.evaluation.integrity.outside_clock import (
    BLOCKING_MS,
    LATEST,
    BatchTime,
    Stopwatch,
    calls_in_batch,
    outside_ms,
)
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import BatchCosts, Surroundings

COSTS = BatchCosts(most=64, one_ms=0.4, more_ms=0.05, spread_ms=0.06, left_ms=0.0)


def batch(calls: int, true: float, reported: float, costs: BatchCosts = COSTS) -> BatchTime:
    """Returns the time of a batch whose calls take `true` ms each."""
    return BatchTime(calls, costs.of(calls) + calls * true, costs, reported)


@pytest.mark.parametrize(("calls", "ms"), [(64, 0.002), (20, 0.06), (2, 2.7), (1, 0.002), (1, 40.0)])
def test_a_true_time_explains_a_batch_whose_cost_scatters(calls: int, ms: float) -> None:
    took = batch(calls, ms, ms).took_ms
    for off in (-COSTS.spread_ms, 0.0, COSTS.spread_ms):
        assert BatchTime(calls, took + off, COSTS, ms).explained


@pytest.mark.parametrize(("calls", "reported", "true"), [(64, 0.002, 0.009), (40, 0.1, 0.108), (3, 2.0, 2.15)])
def test_a_time_that_is_a_little_too_short_is_replaced_by_nearly_the_true_one(
    calls: int, reported: float, true: float
) -> None:
    found = batch(calls, true, reported)
    assert not found.explained and not found.contradicted
    assert reported < found.least_ms <= true
    assert true - found.least_ms <= max(0.05 * true, 0.005)


@pytest.mark.parametrize(("calls", "reported", "true"), [(64, 0.001, 0.02), (64, 0.04, 0.06), (3, 2.0, 2.7),
                                                         (1, 0.118, 0.8)])
def test_a_time_that_is_far_too_short_is_contradicted(calls: int, reported: float, true: float) -> None:
    assert batch(calls, true, reported).contradicted


def test_a_batch_that_is_shorter_than_its_costs_contradicts_nothing() -> None:
    assert BatchTime(4, 0.1, COSTS, 0.01).explained


def test_dirty_l2_lines_add_at_most_the_time_of_the_call_that_wrote_them() -> None:
    dirty = BatchCosts(64, 0.4, 0.05, 0.06, left_ms=0.015)
    for reported, left in ((1.0, 0.015), (0.002, 0.002)):
        less = batch(2, 2.0, reported).least_ms - batch(2, 2.0, reported, dirty).least_ms
        assert less == pytest.approx(left / 2), "the first of two calls follows no other"
        assert batch(1, 2.0, reported).least_ms == batch(1, 2.0, reported, dirty).least_ms


def test_the_time_of_a_call_without_blocking_kernel_excludes_the_sweep() -> None:
    quiet = Surroundings(around_ms=0.12, writing_ms=0.02, left_ms=0.0)
    assert outside_ms(10, 31.0, quiet) == pytest.approx(3.0)
    assert outside_ms(10, 0.5, quiet) == 0.0


def test_a_batch_has_at_most_one_call_for_each_set_of_buffers() -> None:
    assert calls_in_batch(0.001, 64) == 64
    assert calls_in_batch(0.0, 64) == 64
    assert 1 <= calls_in_batch(0.1, 64) < 64
    assert calls_in_batch(1000.0, 64) == 1


class Judge:
    """Records the steps of the judge in order, and stands in for its clock."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def stamp_begin(self) -> None:
        self.steps.append("begin")

    def stamp_end(self) -> None:
        self.steps.append("end")

    def between_stamps(self) -> float:
        return 7.0

    def sweep(self) -> None:
        self.steps.append("sweep")

    def copy_rows(self, target: tuple[int, int], source: tuple[int, int], row_bytes: int, rows: int) -> None:
        raise AssertionError

    def stopwatch(self, page: FlagPage | None) -> Stopwatch:
        step = self.steps.append
        return Stopwatch(page, self, lambda: step("write"), lambda: step("read"), lambda: step("wait"))


@pytest.fixture
def page() -> Iterator[FlagPage]:
    page = FlagPage()
    yield page
    page.close()


def test_a_batch_is_timed_from_before_its_inputs_are_written_until_its_outputs_are_copied(page: FlagPage) -> None:
    judge, theirs = Judge(), FlagPage(page.fd)

    def device() -> None:
        while not theirs._flags.release:
            time.sleep(0.001)
        judge.steps.append("released")
        time.sleep(0.05)
        judge.steps.append("done")
        theirs._flags.done = 1

    worker = threading.Thread(target=device)
    worker.start()
    stopwatch = judge.stopwatch(page)
    stopwatch.start()
    worker.join()
    assert stopwatch.stop() == 7.0 and stopwatch.wrote
    assert judge.steps == ["begin", "write", "sweep", "wait", "released", "done", "read", "end"]


def test_inputs_are_not_written_after_the_blocking_kernel_timed_out(page: FlagPage) -> None:
    judge = Judge()
    page._flags.ran_out = 1
    stopwatch = judge.stopwatch(page)
    stopwatch.start()
    assert not stopwatch.wrote and not judge.steps and not page._flags.release
    stopwatch.stop()
    assert judge.steps == ["read", "wait"], "the outputs are compared all the same"


def test_inputs_are_not_written_when_the_blocking_kernel_may_soon_time_out(page: FlagPage) -> None:
    judge = Judge()
    stopwatch = judge.stopwatch(page)
    time.sleep(LATEST * BLOCKING_MS / 1e3)
    stopwatch.start()
    assert not stopwatch.wrote and not judge.steps and not page._flags.release


def test_without_a_blocking_kernel_the_time_ends_with_the_reply() -> None:
    judge = Judge()
    stopwatch = judge.stopwatch(None)
    stopwatch.start()
    time.sleep(0.02)
    assert stopwatch.stop() >= 20 and stopwatch.wrote
    assert judge.steps == ["write", "wait", "read", "wait"]
