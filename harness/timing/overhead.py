"""What the clock shows of a call beside the time of its kernels: the time stamps, and the launch of the first kernel.

On H100s that differs from process to process by as much as 0.25 µs, and is the same for all kernels of a process. In
16 processes a product of 256 K elements took 1.341 µs +- 0.5 % by the GPU's own timer, and 4.35 to 4.63 µs between two
events; all but 0.03 µs of that was also what a kernel that does nothing took longer or shorter there. So each process
measures such a kernel for itself, before it has loaded anything of a solution's. How long that kernel itself takes is
no process's matter: CUPTI tells it, once for a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.timing.call import Clock, timed_call
from harness.timing.profile import Tracer
from harness.timing.statistics import midmean

BLOCKS_AN_SM = (0, 4)
"""A single block, and enough to fill a GPU: the mean of both tells more of other kernels than either."""
CALLS, TRACED_CALLS = 100, 25
"""Of each. A call scatters by 0.13 µs, so what they come to is known within 0.01 µs."""
HOLD_MS = 50.0
WAKING_SWEEPS = 500
"""Some 20 ms of work before: a GPU that has rested runs at a lower clock rate."""
NULL = "inlinebench_null"


@dataclass(frozen=True)
class Overhead:
    """What the clock adds to each call, in ms: `empty_ms` the time stamps alone; `reference_ms` and `solution_ms` these
    and a launch, in the judge's process and in the candidate's."""

    empty_ms: float
    reference_ms: float
    solution_ms: float


def shown_ms(clock: Clock) -> float:
    """What the clock shows in this process for a kernel that does nothing, in ms."""
    clock.null(0)  # not behind a hold: loading a kernel waits for the device
    for _ in range(WAKING_SWEEPS):
        clock.sweep()
    return _mean({blocks: [_timed(clock, blocks) for _ in range(CALLS)] for blocks in BLOCKS_AN_SM})


def null_ms(clock: Clock, tracer: Tracer) -> float | None:
    """What a kernel that does nothing takes by CUPTI, in ms; None where CUPTI doesn't see it."""
    found: dict[int, list[float]] = {blocks: [] for blocks in BLOCKS_AN_SM}
    clock.null(0)
    for blocks, times in found.items():
        for _ in range(TRACED_CALLS):
            _, activities = tracer(lambda blocks=blocks: _timed(clock, blocks))  # type: ignore[misc]
            times += [(each.end_us - each.begin_us) / 1e3 for each in activities if each.name.startswith(NULL)]
    return _mean(found) if all(found.values()) else None


def _mean(times: dict[int, list[float]]) -> float:
    return sum(map(midmean, times.values())) / len(times)


def _timed(clock: Clock, blocks: int) -> float:
    return timed_call(clock, lambda: clock.null(blocks), lambda _: None, HOLD_MS)[1].device_ms
