"""Checks a candidate's times with the judge's own clock.

A candidate's times come from its own process, where a solution could falsify them. So after the counted calls, the
candidate queues a batch of calls behind one blocking kernel, and only then does the judge write the inputs. Nothing can
be computed earlier. The judge releases the blocking kernel and measures, with its own clock, the time until the GPU
sets a flag and the time until the candidate replies. All outputs are compared, so no work can be skipped. The reported
times of the calls must add up to the time of the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import Surroundings

BATCH_MS = 4.0
"""The least time of a batch by the reported times, in ms. A long batch makes fixed costs negligible."""
BLOCKING_MS = 500.0
"""The limit of the blocking kernel of a batch."""
LATEST = 0.8
"""The share of this limit after which the judge no longer writes inputs, because the blocking kernel could time out
meanwhile."""

TOLERANCE, SLACK_MS = 0.25, 0.004
"""How far a call may exceed its reported time: the larger of a quarter and 4 µs. Honest calls take longer in a batch
than alone: on an H200 a kernel that moves 134 MB took 58 µs alone and 70 µs in a batch."""
COPY_TOLERANCE = 0.25
"""The share by which copies into another process's memory may take longer than the measured copies."""
FIXED_MS = 0.03
"""The fixed cost of a batch: the blocking kernel's last poll, the first launch, the flag's way to the host."""
ANSWER_MS = 0.3
"""How long after the GPU's flag a candidate may reply: it waits for the device and sends a message."""


@dataclass(frozen=True)
class BatchTime:
    """The time of a batch by the judge's clock, in ms."""

    until_done: float
    """The time until the GPU's flag."""
    until_answer: float
    """The time until the candidate's reply."""

    @property
    def least_ms(self) -> float:
        """The least time that the work took, even if the candidate forged one of the two signals."""
        return max(self.until_done, self.until_answer - ANSWER_MS)


class Stopwatch:
    """Times a batch. Call `start` when the candidate has queued it and `stop` when it has replied.

    Args:
        page: the flags of the blocking kernel. None: there is no blocking kernel, and time runs from the construction.
        write_inputs: writes the inputs that the calls must read.
        patience: how long to wait for the GPU's flag, in seconds.

    `wrote` is whether the inputs were written. They are not if the blocking kernel timed out, because calls may have
    started by then.
    """

    def __init__(self, page: FlagPage | None, write_inputs: Callable[[], None], patience: float) -> None:
        self._page, self._write_inputs, self._patience = page, write_inputs, patience
        self._done: int | None = None
        self.wrote = page is None
        if page is None:
            write_inputs()
        self._begin = time.perf_counter_ns()

    def start(self) -> None:
        """Writes the inputs, waits until the blocking kernel runs again, releases it, and waits for the GPU's flag."""
        if self._page is None:
            return
        if self._page.ran_out or time.perf_counter_ns() - self._begin > LATEST * BLOCKING_MS * 1e6:
            return  # without releasing it, so that all calls run on the same inputs
        self._write_inputs()
        self.wrote = True
        # Writing preempts the blocking kernel. If it has timed out, this wait is in vain, and the reply says so.
        self._page.wait_until_running(BLOCKING_MS / 1e3)
        self._begin = time.perf_counter_ns()
        self._page.release()
        self._done = self._page.wait_until_done(self._patience)

    def stop(self) -> BatchTime:
        """Returns the time of the batch. Call it when the candidate has replied."""
        now = time.perf_counter_ns()
        reply = (now - self._begin) / 1e6
        return BatchTime(reply if self._done is None else (self._done - self._begin) / 1e6, reply)


def calls_in_batch(reported_ms: float, sets: int) -> int:
    """Returns how many calls a batch should have, given the reported time of a call and the number of buffer sets."""
    return max(1, min(sets, int(BATCH_MS / max(reported_ms, 1e-4)) + 1))


def most_plausible_ms(calls: int, reported_ms: float, surroundings: Surroundings) -> float:
    """Returns the longest plausible time in ms of a batch behind a blocking kernel, given the reported time of a call.

    A call's dirty L2 lines slow down what follows, but by no more than the time in which the call can have written
    them. `surroundings` is the cost of the harness's own steps.
    """
    call = reported_ms + max(TOLERANCE * reported_ms, SLACK_MS) + min(surroundings.left_ms, reported_ms)
    call += COPY_TOLERANCE * surroundings.copy_ms
    return calls * (call + surroundings.around_ms - surroundings.writing_ms) + FIXED_MS


def outside_ms(calls: int, took_ms: float, surroundings: Surroundings) -> float:
    """Returns the time in ms of one call of a batch without a blocking kernel, including the host's work between calls.

    For solutions that wait for the device themselves. Their calls cannot be queued in advance, so no tighter bound on
    their times is available. `surroundings` is the cost of the harness's own steps.
    """
    return max(0.0, took_ms / calls - (surroundings.around_ms - surroundings.writing_ms))
