"""The overhead that the clock adds to each call: the time stamps and the launch of the first kernel.

On H100s the overhead differs between processes by up to 0.25 µs. It is the same for all kernels that a process launches
on the legacy default stream. In 16 processes a product of 256 K elements took 1.341 µs ± 0.5 % by the GPU's own timer,
and 4.35 to 4.63 µs between two events. An empty kernel showed the same differences between these processes, up to
0.03 µs. So each process times an empty kernel before it loads anything of a solution. CUPTI measures how long the empty
kernel itself takes, once for each GPU, because that does not depend on the process. Without CUPTI only the time stamps
are known and subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.timing.statistics import midmean
from inlinebench.timing.trace import TraceError, Tracer

BLOCKS_AN_SM = (0, 4)
"""Grid sizes of the empty kernel: a single block, and 4 blocks per SM. Their mean predicts other kernels better than
either."""
CALLS, TRACED_CALLS, EMPTY_CALLS = 100, 25, 15
"""Calls for each grid size. A call scatters by 0.13 µs, so the result is known within 0.01 µs."""
BLOCKING_MS = 50.0
WAKING_S = 0.05
"""Time spent on uncounted calls first: an idle GPU runs at a lower clock rate."""
MOST_APART_MS = 0.001
"""Largest accepted difference between the processes, in ms. On H100s it was 0.00025 ms."""
NULL = "inlinebench_null"


@dataclass(frozen=True)
class Overhead:
    """The overhead that the clock adds to each call, in ms."""

    empty_ms: float
    """Time between two time stamps with nothing between them."""
    of_reference_ms: float
    """Time stamps and launch in the judge's process."""
    of_solution_ms: float
    """Time stamps and launch in the candidate's process."""
    doubtful: bool = False
    """Whether the candidate's own measurement was not plausible."""


def overhead(empty_ms: float, null_ms: float, judge_ms: float, candidate_ms: float) -> Overhead:
    """Computes the overhead from the duration of an empty kernel and the times that the clock shows for it, in ms.

    If the candidate's time is far from the judge's, the measurement was disturbed, and the judge's is used instead.
    """
    doubtful = abs(candidate_ms - judge_ms) > MOST_APART_MS
    return Overhead(empty_ms, judge_ms - null_ms, (judge_ms if doubtful else candidate_ms) - null_ms, doubtful)


def shown_ms(clock: Clock) -> float:
    """Returns the time that the clock shows in this process for an empty kernel, in ms.

    Raises ValueError if every blocking kernel ran out before its call was queued, and whatever the clock raises.
    """
    clock.null(0)  # without a blocking kernel, because loading a kernel waits for the device
    begin = time.perf_counter()
    while time.perf_counter() - begin < WAKING_S:
        _call(clock, 0)
    samples = {blocks: [_call(clock, blocks) for _ in range(CALLS)] for blocks in BLOCKS_AN_SM}
    return _mean({blocks: [each.device_ms for each in found if each.blocked] for blocks, found in samples.items()})


def empty_ms(clock: Clock) -> float:
    """Returns the time between two time stamps with nothing between them, in ms. Every sample includes it."""
    return median(timed_call(clock, lambda: None, lambda _: None, BLOCKING_MS)[1].device_ms for _ in range(EMPTY_CALLS))


def null_ms(clock: Clock, tracer: Tracer) -> float | None:
    """Returns the duration of an empty kernel by CUPTI, in ms, or None if CUPTI fails or does not report the kernel."""
    found: dict[int, list[float]] = {blocks: [] for blocks in BLOCKS_AN_SM}
    clock.null(0)
    try:
        for blocks, times in found.items():
            for _ in range(TRACED_CALLS):
                _, activities = tracer(partial(_call, clock, blocks))
                times += [(each.end_us - each.begin_us) / 1e3 for each in activities if each.name.startswith(NULL)]
    except TraceError:
        return None
    return _mean(found) if all(found.values()) else None


def _mean(times: Mapping[int, Sequence[float]]) -> float:
    return sum(map(midmean, times.values())) / len(times)


def _call(clock: Clock, blocks: int) -> Sample:
    return timed_call(clock, lambda: clock.null(blocks), lambda _: None, BLOCKING_MS)[1]
