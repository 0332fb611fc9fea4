"""What the clock adds to each call: the time stamps, and the launch of the first kernel.

On H100s that differs from process to process by as much as 0.25 µs, and is the same for all kernels that a process
launches on the legacy default stream. In 16 processes a product of 256 K elements took 1.341 µs +- 0.5 % by the GPU's
own timer, and 4.35 to 4.63 µs between two events; all but 0.03 µs of that was also what a kernel that does nothing took
longer or shorter there. So each process measures such a kernel for itself, before it has loaded anything of a
solution's. How long that kernel itself takes is no process's matter: CUPTI tells it, once for a GPU. Where there is no
CUPTI only the time stamps are known, and are taken off.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.timing.profile import TraceError, Tracer
from inlinebench.timing.statistics import midmean

BLOCKS_AN_SM = (0, 4)
"""A single block, and some for every SM: the mean of both tells more of other kernels than either."""
CALLS, TRACED_CALLS = 100, 25
"""Of each. A call scatters by 0.13 µs, so what they come to is known within 0.01 µs."""
BLOCKING_MS = 50.0
WAKING_S = 0.05
"""Of such calls before, that don't count: a GPU that has rested runs at a lower clock rate."""
MOST_APART_MS = 0.001
"""By which a kernel that does nothing may take longer or shorter in another process. On H100s it was 0.25 µs."""
NULL = "inlinebench_null"


@dataclass(frozen=True)
class Overhead:
    """What the clock adds to each call, in ms: `empty_ms` the time stamps alone; the others these and a launch, in the
    judge's process and in the candidate's. `doubtful` says that the candidate's own word was no use."""

    empty_ms: float
    of_reference_ms: float
    of_solution_ms: float
    doubtful: bool = False


def overhead(empty_ms: float, null_ms: float, judge_ms: float, candidate_ms: float) -> Overhead:
    """From what a kernel that does nothing takes, and what the clock shows for it in both processes.

    What a candidate says that is far from what the judge sees was disturbed, and the judge's stands for it.
    """
    doubtful = abs(candidate_ms - judge_ms) > MOST_APART_MS
    return Overhead(empty_ms, judge_ms - null_ms, (judge_ms if doubtful else candidate_ms) - null_ms, doubtful)


def shown_ms(clock: Clock) -> float:
    """What the clock shows in this process for a kernel that does nothing, in ms.

    Raises ValueError if no hold lasted until a call was queued, and whatever the clock raises.
    """
    clock.null(0)  # not behind a hold: loading a kernel waits for the device
    begin = time.perf_counter()
    while time.perf_counter() - begin < WAKING_S:
        _call(clock, 0)
    samples = {blocks: [_call(clock, blocks) for _ in range(CALLS)] for blocks in BLOCKS_AN_SM}
    return _mean({blocks: [each.device_ms for each in found if each.blocked] for blocks, found in samples.items()})


def null_ms(clock: Clock, tracer: Tracer) -> float | None:
    """What a kernel that does nothing takes by CUPTI, in ms; None where CUPTI refuses or doesn't see it."""
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
