"""Checks a candidate's times with the judge's own clock, the GPU's time in kernels of the judge.

A candidate's times come from its own process, where a solution could falsify them. So after the counted calls, the
candidate queues a batch of calls behind one blocking kernel, and only then does the judge write the inputs. Nothing can
be computed earlier. A kernel of the judge's takes the GPU's time before the first input is written, and another one
when all outputs have been copied away; all outputs are compared. So the work was done between these two stamps,
whatever the candidate says about its progress. What a batch costs apart from its calls is known from a rehearsal with a
stand-in of known duration (`inlinebench.evaluation.integrity.rehearsal`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from inlinebench.evaluation.integrity.rows import RowCopier
from inlinebench.timing.flags import FlagPage
from inlinebench.timing.lower_bounds import BatchCosts, Surroundings

BATCH_MS = 4.0
"""The least time of a batch by the reported times, in ms. A long batch makes fixed costs negligible."""
BLOCKING_MS = 500.0
"""The limit of the blocking kernel of a batch."""
LATEST = 0.8
"""The share of this limit after which the judge no longer writes inputs, because the blocking kernel could time out
meanwhile."""
PATIENCE_S = 10.0
"""How long to wait for the GPU's flag that a batch is done, in seconds. A batch takes a few milliseconds, unless a
single call takes longer."""

TOLERANCE, SLACK_MS = 0.05, 0.005
"""How far the least time of a call may exceed the reported time, which then stands: the larger of a share and ms."""
FAR_TOLERANCE, FAR_SLACK_MS, FAR_SPREADS = 0.25, 0.01, 2.0
"""Beyond this, times are rejected: the larger of a share and ms, and so many spreads of a batch more."""


class Stamps(RowCopier, Protocol):
    """The operations of `GpuClock` that write, time and read a batch in the judge's process."""

    def stamp_begin(self) -> None: ...
    def stamp_end(self) -> None: ...
    def between_stamps(self) -> float: ...
    def sweep(self) -> None: ...


class Stopwatch:
    """Times a batch. Call `start` when the candidate has queued it and `stop` when it has replied.

    Args:
        page: the flags of the blocking kernel. None: there is no blocking kernel, and time runs on the host's clock,
            from the construction to the reply.
        stamps: takes the GPU's time.
        write: queues the copy of the inputs into the shared buffers.
        read: queues the copy of the outputs out of the shared buffers.
        synchronize: waits for the device.

    `wrote` is whether the inputs were written. They are not if the blocking kernel timed out, because calls may have
    started by then.
    """

    def __init__(
        self, page: FlagPage | None, stamps: Stamps, write: Callable[[], None], read: Callable[[], None],
        synchronize: Callable[[], None],
    ) -> None:
        self._page, self._stamps, self._write, self._read = page, stamps, write, read
        self._synchronize = synchronize
        self._took_ms: float | None = None
        self.wrote = page is None
        if page is None:
            write()
            synchronize()
        self._begin = time.perf_counter_ns()

    def start(self) -> None:
        """Writes the inputs, releases the blocking kernel, waits for the GPU's flag, and copies the outputs.

        The flag only says when to look. It may be forged: outputs that are not complete when they are copied are wrong.
        """
        if self._page is None:
            return
        if self._page.ran_out or time.perf_counter_ns() - self._begin > LATEST * BLOCKING_MS * 1e6:
            return  # without releasing it, so that all calls run on the same inputs
        self._stamps.stamp_begin()  # first, because a solution can wait for the first input by itself
        self._write()
        self._stamps.sweep()
        self._synchronize()
        self.wrote = True
        self._page.release()
        self._page.wait_until_done(PATIENCE_S)
        self._read()
        self._stamps.stamp_end()  # last, because work goes on while another process preempts the copy
        self._took_ms = self._stamps.between_stamps()

    def stop(self) -> float:
        """Returns the time of the batch in ms, and has copied the outputs. Call it when the candidate has replied."""
        now = time.perf_counter_ns()
        if self._took_ms is None:
            self._read()
            self._synchronize()
        return (now - self._begin) / 1e6 if self._took_ms is None else self._took_ms


@dataclass(frozen=True)
class BatchTime:
    """The time of a batch behind a blocking kernel, and what follows from it. All times are in ms."""

    calls: int
    took_ms: float
    """The time between the judge's stamps."""
    costs: BatchCosts
    """The costs of a batch apart from its calls."""
    reported_ms: float
    """The reported time of a call."""

    @property
    def least_ms(self) -> float:
        """The least time of a call that explains the batch."""
        costs = self.costs
        # The dirty L2 lines of a call slow down the next one, by at most the time in which it can have written them.
        left = min(costs.left_ms, self.reported_ms) * (self.calls - 1) / self.calls
        return (self.took_ms - costs.of(self.calls) - costs.spread_ms) / self.calls - left

    @property
    def explained(self) -> bool:
        """Whether the reported time explains the batch, so that it stands."""
        return self.least_ms <= self.reported_ms + max(TOLERANCE * self.reported_ms, SLACK_MS)

    @property
    def contradicted(self) -> bool:
        """Whether the reported time is so far from the least one that no disturbance explains it."""
        far = max(FAR_TOLERANCE * self.reported_ms, FAR_SLACK_MS) + FAR_SPREADS * self.costs.spread_ms / self.calls
        return self.least_ms > self.reported_ms + far


def calls_in_batch(reported_ms: float, most: int) -> int:
    """Returns how many calls a batch should have, given the reported time of a call and the most calls."""
    return max(1, min(most, int(BATCH_MS / max(reported_ms, 1e-4)) + 1))


def outside_ms(calls: int, took_ms: float, surroundings: Surroundings) -> float:
    """Returns the time in ms of one call of a batch without a blocking kernel, including the host's work between calls.

    For solutions that wait for the device themselves. Their calls cannot be queued in advance, so no tighter bound on
    their times is available. `surroundings` is the cost of the harness's own steps.
    """
    return max(0.0, took_ms / calls - (surroundings.around_ms - surroundings.writing_ms))
