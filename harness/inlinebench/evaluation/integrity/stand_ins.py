"""Held calls of a stand-in: what a held call costs apart from the solution, at this moment.

The stand-in reads all inputs and writes all outputs. It runs in a process that never loads a solution, so its own time
is true, and the steps cost what they cost for a solution: the change from one process to another, the look-up of
addresses, the write-back of dirty L2 lines, the copies of inputs and outputs.
"""

from __future__ import annotations

from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.evaluation.candidates import ENDED, START_PATIENCE_S, Candidates, NoCandidate, open_arena
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.held_times import StandInTime
from inlinebench.evaluation.integrity.outside_clock import HeldRequest, OutsideClock
from inlinebench.problem.workload import Workload
from inlinebench.process.replies import read_rehearsed
from inlinebench.timing.overhead import overhead


class StandIns:
    """The stand-in for one workload. `candidates` has the process that runs it."""

    def __init__(self, workload: Workload, candidates: Candidates, clock: GpuClock) -> None:
        self._workload, self._process = workload, candidates.stand_in()
        self._process.workload = workload.name
        open_arena(self._process, workload.arena)
        self._clock = OutsideClock(workload, self._process, clock)
        costs, shown = workload.costs, self._process.shown_ms
        assert costs is not None and shown is not None  # both are measured for every workload with times
        self._overhead_ms = overhead(costs.empty_ms, costs.null_ms, costs.shown_ms, shown).of_solution_ms

    def time(self, number: int, *, on_host: bool) -> StandInTime | None:
        """Makes one held call on a set of buffers, and one that is not held, and returns both times.

        Returns None if the call was not released in time. Raises NoCandidate.
        """
        workload = self._workload
        self._process.workload, self._process.budget = workload.name, START_PATIENCE_S
        facts = {"buffers": workload.sets[number].to_json(),
                 "states": [spec.to_json() for spec in workload.state_specs.values()]}
        request = HeldRequest("rehearse", number, workload.private(number), tuple(workload.states), on_host, facts)
        try:
            took, rehearsed = self._clock.time(request, read_rehearsed)
        except (*ENDED, Failed) as error:
            raise NoCandidate(f"the stand-in for a solution failed: {error}\n{self._process.log()}") from error
        self._clock.release()
        alone = rehearsed.alone
        if took is None or not alone.blocked:
            return None
        return StandInTime(took, max(0.0, alone.device_ms - self._overhead_ms))

    def close(self) -> None:
        """Closes the memory of the process."""
        self._clock.close()
