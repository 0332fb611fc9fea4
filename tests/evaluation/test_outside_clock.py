from __future__ import annotations

import threading
import time

import pytest

from inlinebench.evaluation.integrity.outside_clock import (
    ANSWER_MS,
    BLOCKING_MS,
    LATEST,
    BatchTime,
    Stopwatch,
    calls_in_batch,
    most_plausible_ms,
    outside_ms,
)
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import Surroundings

QUIET = Surroundings(around_ms=0.12, writing_ms=0.02, copy_ms=0.0, left_ms=0.0)


def batch_of(calls: int, ms: float) -> float:
    """Returns the time of a batch in ms if each call takes `ms`."""
    return calls * (ms + QUIET.around_ms - QUIET.writing_ms)


@pytest.mark.parametrize("ms", [0.002, 0.06, 2.7])
def test_a_true_time_is_plausible(ms: float) -> None:
    assert batch_of(20, ms * 1.05) <= most_plausible_ms(20, ms, QUIET)


@pytest.mark.parametrize(("reported", "true"), [(0.001, 0.02), (0.04, 0.06), (2.0, 2.7)])
def test_a_time_that_is_too_short_is_not_plausible(reported: float, true: float) -> None:
    assert batch_of(20, true) > most_plausible_ms(20, reported, QUIET)


def test_dirty_l2_lines_add_at_most_the_time_of_the_call_that_wrote_them() -> None:
    dirty = Surroundings(0.12, 0.02, 0.0, left_ms=0.015)
    more = [most_plausible_ms(1, ms, dirty) - most_plausible_ms(1, ms, QUIET) for ms in (1.0, 0.002)]
    assert tuple(more) == (pytest.approx(0.015), pytest.approx(0.002))


def test_the_time_of_a_call_without_blocking_kernel_excludes_the_sweep() -> None:
    assert outside_ms(10, 31.0, QUIET) == pytest.approx(3.0)
    assert outside_ms(10, 0.5, QUIET) == 0.0


def test_a_batch_has_at_most_one_call_for_each_set_of_buffers() -> None:
    assert calls_in_batch(0.001, 64) == 64
    assert calls_in_batch(0.0, 64) == 64
    assert 1 <= calls_in_batch(0.1, 64) < 64
    assert calls_in_batch(1000.0, 64) == 1


@pytest.mark.parametrize(("done", "answer", "least"), [(5.0, 5.2, 5.0), (0.1, 5.0, 5.0 - ANSWER_MS)])
def test_one_forged_signal_does_not_shorten_the_time(done: float, answer: float, least: float) -> None:
    assert BatchTime(done, answer).least_ms == pytest.approx(least)


def test_the_inputs_are_written_before_the_release_and_the_time_ends_with_the_flag() -> None:
    page, order = FlagPage(), list[str]()
    theirs = FlagPage(page.fd)

    def device() -> None:
        while not theirs._flags.release:
            theirs._flags.beat += 1
            time.sleep(0.001)
        order.append("released")
        time.sleep(0.05)
        theirs._flags.done = 1

    worker = threading.Thread(target=device)
    worker.start()
    stopwatch = Stopwatch(page, lambda: order.append("written"), patience=5.0)
    stopwatch.start()
    worker.join()
    time.sleep(0.05)
    took = stopwatch.stop()
    assert order == ["written", "released"] and stopwatch.wrote
    assert 50 <= took.until_done < took.until_answer
    assert took.until_answer >= 100
    page.close()


def test_inputs_are_not_written_after_the_blocking_kernel_timed_out() -> None:
    page, order = FlagPage(), list[str]()
    page._flags.ran_out = 1
    stopwatch = Stopwatch(page, lambda: order.append("written"), patience=5.0)
    stopwatch.start()
    assert not stopwatch.wrote and not order and not page._flags.release
    page.close()


def test_inputs_are_not_written_when_the_blocking_kernel_may_soon_time_out() -> None:
    page, order = FlagPage(), list[str]()
    stopwatch = Stopwatch(page, lambda: order.append("written"), patience=5.0)
    time.sleep(LATEST * BLOCKING_MS / 1e3)
    stopwatch.start()
    assert not stopwatch.wrote and not order and not page._flags.release
    page.close()


def test_without_the_gpus_flag_the_reply_ends_the_time() -> None:
    page = FlagPage()
    stopwatch = Stopwatch(page, lambda: None, patience=0.02)
    begin = time.perf_counter()
    stopwatch.start()
    assert time.perf_counter() - begin >= (BLOCKING_MS + 20) / 1e3  # it also waits for the blocking kernel in vain
    took = stopwatch.stop()
    assert took.until_done == took.until_answer >= 20
    page.close()


def test_the_time_begins_when_the_blocking_kernel_runs_again() -> None:
    page = FlagPage()
    theirs = FlagPage(page.fd)
    preempted = 0.1

    def device() -> None:
        time.sleep(preempted)
        while not theirs._flags.release:
            theirs._flags.beat += 1
            time.sleep(0.001)
        theirs._flags.done = 1

    worker = threading.Thread(target=device)
    worker.start()
    stopwatch = Stopwatch(page, lambda: None, patience=5.0)
    begin = time.perf_counter()
    stopwatch.start()
    waited = time.perf_counter() - begin
    took = stopwatch.stop()
    worker.join()
    assert waited >= preempted
    assert took.until_done / 1e3 < waited - preempted + 0.05
    page.close()
