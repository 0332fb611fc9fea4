"""Makes the held calls of a candidate: pairs of a stand-in and a call of the solution, until it is known
whether the reported times stand."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.evaluation.attempt import Tools
from inlinebench.evaluation.comparing import Answer, CompareCall
from inlinebench.evaluation.draws import Draws
from inlinebench.evaluation.integrity.held_times import FEWEST, HeldTimes, StandInTime
from inlinebench.evaluation.integrity.outside_clock import HeldRequest, OutsideClock
from inlinebench.evaluation.integrity.stand_ins import StandIns
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.replies import read_held

QUIET = 8
"""The stand-ins before a solution is loaded, and as many after its process has ended."""
LONGEST_S = 5.0
"""The seconds after which the fewest calls suffice, which include some on each kind of inputs. Calls with a thousand
outputs take long to copy."""
MOST_LATE = 8
"""How many calls may be released too late before the evaluation is given up."""


class NoTime(RuntimeError):
    """The judge could not time calls."""


class HeldCalls:
    """The held calls of one candidate.

    Args:
        workload: the problem at its shape, with the shared buffers.
        tools: what the judge provides.
        candidate: the process that makes the calls. It has not loaded a solution yet.
        draws: draws what each call gets.
    """

    def __init__(self, workload: Workload, tools: Tools, candidate: CandidateProcess, draws: Draws) -> None:
        clock = tools.clock
        assert isinstance(clock, GpuClock)  # calls are held on a GPU only
        self._workload, self._tools, self._candidate = workload, tools, candidate
        self._draws, self._on_host, self._notes = draws, False, set[str]()
        self._thorough = draws.secret.randrange(FEWEST)
        """The number of the call that is judged by the rule in all elements, as secret ones of the other calls are. A
        solution can tell held calls from others."""
        self._stand_ins = StandIns(workload, tools.candidates, clock)
        self._times: HeldTimes | None = None
        try:
            self._stand_ins.time(draws.next_set(), on_host=False)  # it allocates its memory before the solution does
            self._before = self._quiet()
            self._outside = OutsideClock(workload, candidate, clock)
        except BaseException:
            self._stand_ins.close()
            raise

    def measure(self, allowed_ms: Mapping[str, float], states: tuple[str, ...], check: CompareCall) -> set[str]:
        """Makes calls until the judge knows whether the reported times stand. Returns notes on conversions of outputs.

        By the reported times, a call takes at most so many ms on each kind of inputs (`allowed_ms`).

        A solution that cannot be held in the device's queue waits for the device, and is held on the host. `states` are
        the names of the states that the candidate gives, and `check` compares what a call wrote. Raises Failed.
        """
        late, begin = 0, time.monotonic()
        self._times = HeldTimes(allowed_ms, self._before)
        while (wanted := self._times.wanted) and (not self._times.sufficient or time.monotonic() - begin < LONGEST_S):
            self._tools.progress(f"held call {len(self._times) + 1}")
            buffer_set = self._draws.next_set()
            # Before the inputs are drawn, because it writes to the shared ones.
            stand_in = self._stand_ins.time(buffer_set, on_host=self._on_host)
            if stand_in is not None and self._call(buffer_set, wanted, stand_in, states, check):
                continue
            late += 1
            if late > MOST_LATE:
                raise NoTime(f"the GPU or this machine is too busy: the judge released {late} calls too late to time "
                             "them; try again on an idle one")
            if stand_in is not None:  # not the machine, but the solution was late
                self._times, self._on_host = HeldTimes(allowed_ms), True
        return self._notes

    def decide(self) -> HeldTimes | None:
        """Returns the times, if there are any, with quiet stand-ins. The candidate has ended. Raises NoCandidate."""
        if self._times is not None:
            self._times.after = self._quiet()
        return self._times

    @property
    def on_host(self) -> bool:
        """Whether the calls were held on the host, so that their times contain the host's."""
        return self._on_host

    def close(self) -> None:
        """Closes the memory of the candidate and of the stand-in."""
        self._outside.close()
        self._stand_ins.close()

    def _quiet(self) -> list[StandInTime]:
        found = [self._stand_ins.time(self._draws.next_set(), on_host=self._on_host) for _ in range(QUIET)]
        return [each for each in found if each is not None]

    def _call(
        self, buffer_set: int, wanted: Collection[str], stand_in: StandInTime, states: tuple[str, ...],
        check: CompareCall,
    ) -> bool:
        """Makes one call on a wanted kind of inputs after one of the stand-in, compares its outputs, and adds it to the
        times.

        Returns whether it was released in time. Raises Failed.
        """
        assert self._times is not None
        call = self._draws.next(buffer_set, next(kind for kind in self._draws.variants if str(kind) in wanted))
        self._workload.poison([buffer_set])
        self._candidate.resume()
        took, held = self._outside.time(
            HeldRequest("hold", buffer_set, call.tensors, states, self._on_host, call.facts()), read_held)
        self._candidate.stop()
        self._notes |= set(held.notes)
        if took is None:
            return False
        check(call, Answer(self._outside.received, held.non_tensors), "a held call",
              thorough=len(self._times) == self._thorough)
        self._outside.release()
        self._times.add(str(call.variant), took, stand_in)
        return True
