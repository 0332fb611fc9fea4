"""Times Python loops of calls by the host's clock, from the judge's release to the GPU's flag that all are done."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inlinebench.evaluation.attempt import Tools
from inlinebench.evaluation.comparing import Answer, CompareCall
from inlinebench.evaluation.draws import Drawn, Draws
from inlinebench.evaluation.failures import raise_failure
from inlinebench.evaluation.timings import LEAST_MS, Timings
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.replies import read_holding, read_looped

PAIRS, LOOP_CALLS, LOOP_MS = 4, 16, 20.0
"""Pairs of loops that are timed (the first one warms up), the most calls in the longer loop, and its target time in ms.
"""


@dataclass(frozen=True)
class Loop:
    """A loop of calls."""

    ms: float
    """The time from its release to the end of its last call."""
    plain: tuple[tuple[str, ...], ...]
    """The non-tensor outputs of each call, as Python literals."""
    written_over: tuple[bool, ...]
    """For each call, whether a later one reused the memory of its output."""


def time_loops(
    workload: Workload, candidate: CandidateProcess, *, tools: Tools, draws: Draws, timings: Timings,
    check: CompareCall,
) -> None:
    """Measures the wall time of a call in a loop: how much longer several calls take than one. `check` compares them.

    The difference does not contain what a loop takes once: its release, waking up, and the flag at its end, which
    together take longer than many kernels. Measures nothing if there are buffers for a single call only.
    Raises Failed.
    """
    longest = int(LOOP_MS / (timings.solution_ms() or LEAST_MS)) + 1
    calls = min(LOOP_CALLS, max(2, longest), len(workload.sets))
    if calls < 2:
        return
    for number in range(PAIRS):
        tools.progress(f"timing loops, pair {number + 1} of {PAIRS}")
        several, one = (_checked_loop(workload, candidate, draws, check, count) for count in (calls, 1))
        # The first loop allocates memory for all of its outputs, and a disturbance can make the shorter one longer.
        if number > 0 and several.ms > one.ms:
            timings.add_wall((several.ms - one.ms) / (calls - 1))


def _checked_loop(
    workload: Workload, candidate: CandidateProcess, draws: Draws, check: CompareCall, calls: int
) -> Loop:
    """Times a loop of calls and compares each of them. Raises as `time_loop` does."""
    drawn = [draws.next(buffer_set) for buffer_set in range(calls)]
    loop = time_loop(workload, candidate, drawn)
    for index, call in enumerate(drawn):
        # A solution may reuse one buffer for its outputs, which then holds a later call's output.
        answer = Answer(workload.receive(index), loop.plain[index], outputs_written=not loop.written_over[index],
                        states_written=index == calls - 1)
        check(call, answer, f"call {index + 1} of a loop")
    return loop


def time_loop(workload: Workload, candidate: CandidateProcess, calls: Sequence[Drawn]) -> Loop:
    """Has the candidate make these calls in a loop, on their sets of buffers.

    Raises Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
    """
    page, ms = candidate.page, 0.0
    assert page is not None

    def release(message: Mapping[str, object]) -> None:
        nonlocal ms
        read_holding(message)
        begin = time.perf_counter_ns()
        page.release()
        page.wait_until_done()
        ms = (time.perf_counter_ns() - begin) / 1e6

    workload.hand_over(*(call.buffer_set for call in calls))
    facts = [call.facts() for call in calls]
    if not workload.probed.random:
        facts = [{**each, "random_seed": None} for each in facts]
    candidate.resume()
    reply = candidate.ask("loop", on_held=release, calls=facts)
    candidate.stop()
    raise_failure(reply, workload.device)
    looped = read_looped(reply, len(calls))
    return Loop(ms, looped.non_tensors, looped.written_over)
