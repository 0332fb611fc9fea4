"""Measures what a batch costs apart from its calls: batches of a stand-in, whose time is known, through all its steps.

The stand-in reads all inputs and writes all outputs. It runs in a candidate that has not loaded a solution yet, so its
times are true, and the steps cost what they cost in a batch of a solution: the change from one process to another, the
look-up of addresses, the write-back of dirty L2 lines, the copies of inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from inlinebench.evaluation.failures import raise_failure
from inlinebench.evaluation.integrity.outside_clock import BLOCKING_MS, Stopwatch
from inlinebench.evaluation.integrity.rows import Rows
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.replies import read_rehearsed
from inlinebench.timing.call import Sample
from inlinebench.timing.gpu import GpuClock
from inlinebench.timing.lower_bounds import QUEUED, BatchCosts
from inlinebench.timing.statistics import quartiles

REPEATS, TRIES = 9, 18
"""Batches of each length, and how many are tried at most, because a blocking kernel may time out."""
SPREAD, LEAST_SPREAD_MS = 3.0, 0.06
"""The spread of a batch's time: this many distances of its quartiles, and at least so many ms. Of 1,000 batches without
work on an H100, 98 % were within 0.07 ms, and half within 0.02 ms."""


class NoRehearsal(RuntimeError):
    """Too many blocking kernels timed out, so the costs of a batch are unknown."""


def rehearse(
    workload: Workload, candidate: CandidateProcess, clock: GpuClock, own_ms: Callable[[Sample], float]
) -> BatchCosts:
    """Returns the costs of a batch. `own_ms` subtracts the overhead of the candidate's clock from a sample.

    Raises NoRehearsal, Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
    """
    assert workload.costs is not None
    steps = len(workload.probed.outputs) + len(workload.states) + 1
    most = max(1, min(len(workload.sets), QUEUED // steps))
    rehearsal = _Rehearsal(workload, candidate, clock)
    one = rehearsal.times(1)
    many = rehearsal.times(most) if most > 1 else one
    alone = own_ms(Sample(median(rehearsal.alone_ms), 0.0, blocked=True))
    return BatchCosts(
        most=most,
        one_ms=median(one) - alone,
        more_ms=(median(many) - median(one)) / max(1, most - 1) - alone if most > 1 else 0.0,
        spread_ms=max(LEAST_SPREAD_MS, *(SPREAD * _between_quartiles(times) for times in (one, many))),
        left_ms=workload.costs.surroundings.left_ms,
    )


class _Rehearsal:
    """Batches of the stand-in. `alone_ms` has the time of a single call for each, by the candidate's clock."""

    def __init__(self, workload: Workload, candidate: CandidateProcess, clock: GpuClock) -> None:
        self._workload, self._candidate, self._clock = workload, candidate, clock
        self.alone_ms: list[float] = []

    def times(self, calls: int) -> list[float]:
        """Returns the times of several batches of this many calls, in ms."""
        found: list[float] = []
        for _ in range(TRIES):
            took = self._time(calls)
            if took is not None:
                found.append(took)
            if len(found) == REPEATS:
                return found
        raise NoRehearsal(f"only {len(found)} of {TRIES} batches of {calls} calls without a solution could be timed: "
                          "their blocking kernels timed out; try again on an idle GPU")

    def _time(self, calls: int) -> float | None:
        workload, arena = self._workload, self._workload.arena.bytes
        inputs, outputs = Rows.inputs(workload.sets), Rows.outputs(workload.sets)
        given, got = inputs.allocate(calls, arena.device), outputs.allocate(calls, arena.device)
        given.zero_()
        workload.synchronize()
        stopwatch = Stopwatch(
            self._candidate.page, self._clock, lambda: inputs.write(self._clock, arena, given),
            lambda: outputs.read(self._clock, arena, got), workload.synchronize)
        reply = self._candidate.ask(
            "rehearse", on_queued=stopwatch.start, blocking_ms=BLOCKING_MS, arena=workload.arena.export(),
            sets=[buffers.to_json() for buffers in workload.sets[:calls]],
            states=[spec.to_json() for spec in workload.state_specs.values()],
        )
        took = stopwatch.stop()
        raise_failure(reply, workload.device)
        rehearsed = read_rehearsed(reply)
        if not (stopwatch.wrote and rehearsed.blocked and rehearsed.alone.blocked):
            return None
        self.alone_ms.append(rehearsed.alone.device_ms)
        return took


def _between_quartiles(times: list[float]) -> float:
    low, _, high = quartiles(times)
    return high - low
