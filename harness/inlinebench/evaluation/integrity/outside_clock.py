"""A candidate's times, held against a clock of the judge's.

A candidate's times come from its own process, where a solution could bend them. So after the counted calls the judge
has a batch of them queued behind one hold, and only then writes the inputs: nothing can have been computed before.
It releases the hold, and takes the time until the GPU says that all is done, and until the candidate has answered, on
its own clock. Every output is compared, so that no work can have been left out. What the batch took is then what its
calls' times have to add up to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import Surroundings

BATCH_MS = 4.0
"""What a batch should at least take by the reported times, so that what is off by a fixed amount matters little."""
BLOCKING_MS = 500.0
LATEST = 0.8
"""Of a hold's time; after that its inputs are written no more, since it could run out meanwhile."""

TOLERANCE, SLACK_MS = 0.25, 0.004
"""How far a call may exceed its reported time: the larger of a quarter and 4 µs. Calls of a batch take longer than
single ones, without any cheating: on an H200 a kernel that moves 134 MB took 58 µs by itself and 70 µs in a batch."""
COPY_TOLERANCE = 0.25
"""Copies into memory of another process may take that much longer than those that were measured, as a share."""
FIXED_MS = 0.03
"""Begin and end of a batch: the hold's last poll, the first launch, the flag's way to the host."""
ANSWER_MS = 0.3
"""How long after the GPU's own word a candidate's answer may come: it waits for the device and sends a frame."""


@dataclass(frozen=True)
class BatchTime:
    """How long a batch took by the judge's clock, in ms: until the GPU's flag, and until the answer."""

    until_done: float
    until_answer: float

    @property
    def least_ms(self) -> float:
        """The time that the work must have taken, whichever of the two signals was sent too early."""
        return max(self.until_done, self.until_answer - ANSWER_MS)


class Stopwatch:
    """Takes the time of a batch; `start` is called when the candidate has queued a held one.

    `patience` is how long to wait for the GPU's word, in seconds. Without a `page` the batch isn't held, and its time
    runs from the making of this object. `wrote` tells whether the inputs were written: not if the hold had run out, as
    the calls may have begun then.
    """

    def __init__(self, page: FlagPage | None, write_inputs: Callable[[], None], patience: float) -> None:
        self._page, self._write_inputs, self._patience = page, write_inputs, patience
        self._done: int | None = None
        self.wrote = page is None
        if page is None:
            write_inputs()
        self._begin = time.perf_counter_ns()

    def start(self) -> None:
        """Writes the inputs, waits until the GPU is back at the hold, lets it go, and waits for its word."""
        if self._page is None:
            return
        if self._page.ran_out or time.perf_counter_ns() - self._begin > LATEST * BLOCKING_MS * 1e6:
            return  # it isn't released either: all of it is to run on the same inputs
        self._write_inputs()
        self.wrote = True
        self._page.wait_until_running(BLOCKING_MS / 1e3)  # in vain for a hold that ran out: the answer says so
        self._begin = time.perf_counter_ns()
        self._page.release()
        self._done = self._page.wait_until_done(self._patience)

    def stop(self) -> BatchTime:
        """Called when the answer is there."""
        now = time.perf_counter_ns()
        reply = (now - self._begin) / 1e6
        return BatchTime(reply if self._done is None else (self._done - self._begin) / 1e6, reply)


def calls_in_batch(reported_ms: float, sets: int) -> int:
    """How many calls of a reported time a batch should have, where there are so many sets of buffers."""
    return max(1, min(sets, int(BATCH_MS / max(reported_ms, 1e-4)) + 1))


def most_plausible_ms(calls: int, reported_ms: float, beside: Surroundings) -> float:
    """The longest that a held batch of calls may take in ms, if each takes the reported time.

    What a call may have left behind in L2 is bounded by what it could write in that time.
    """
    call = reported_ms + max(TOLERANCE * reported_ms, SLACK_MS) + min(beside.left_ms, reported_ms)
    call += COPY_TOLERANCE * beside.copy_ms
    return calls * (call + beside.around_ms - beside.writing_ms) + FIXED_MS


def outside_ms(calls: int, took_ms: float, beside: Surroundings) -> float:
    """What one call of a batch took that wasn't held, in ms, with all that the host did in between.

    For solutions that wait for the device themselves: their calls can't be queued in advance, so their own times can't
    be held against anything sharper than this.
    """
    return max(0.0, took_ms / calls - (beside.around_ms - beside.writing_ms))
