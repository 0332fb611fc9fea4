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

LOOPS, LOOP_CALLS, LOOP_MS = 4, 16, 20.0
"""Loops that are timed (the first one warms up), the most calls in each, and the target time of each in ms."""


@dataclass(frozen=True)
class Loop:
    """A loop of calls."""

    wall_ms: float
    """The time of one call in ms."""
    plain: tuple[tuple[str, ...], ...]
    """The non-tensor outputs of each call, as Python literals."""
    written_over: tuple[bool, ...]
    """For each call, whether a later one reused the memory of its output."""


def time_loops(
    workload: Workload, candidate: CandidateProcess, *, tools: Tools, draws: Draws, timings: Timings,
    check: CompareCall,
) -> None:
    """Measures the wall time of calls in a loop. `check` compares each of them. Raises Failed."""
    longest = int(LOOP_MS / (timings.solution_ms() or LEAST_MS)) + 1
    calls = min(LOOP_CALLS, longest, len(workload.sets))
    for number in range(LOOPS):
        tools.progress(f"timing loop {number + 1} of {LOOPS}")
        drawn = [draws.next(buffer_set) for buffer_set in range(calls)]
        loop = time_loop(workload, candidate, drawn)
        for index, call in enumerate(drawn):
            # A solution may reuse one buffer for its outputs, which then holds a later call's output.
            answer = Answer(workload.receive(index), loop.plain[index], outputs_written=not loop.written_over[index],
                            states_written=index == calls - 1)
            check(call, answer, f"call {index + 1} of a loop")
        if number > 0:  # the first loop allocates memory for all of its outputs
            timings.add_wall(loop.wall_ms)


def time_loop(workload: Workload, candidate: CandidateProcess, calls: Sequence[Drawn]) -> Loop:
    """Has the candidate make these calls in a loop, on their sets of buffers.

    Raises Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
    """
    page, wall_ms = candidate.page, 0.0
    assert page is not None

    def release(message: Mapping[str, object]) -> None:
        nonlocal wall_ms
        read_holding(message)
        begin = time.perf_counter_ns()
        page.release()
        page.wait_until_done()
        wall_ms = (time.perf_counter_ns() - begin) / 1e6 / len(calls)

    workload.hand_over(*(call.buffer_set for call in calls))
    facts = [call.facts() for call in calls]
    if not workload.probed.random:
        facts = [{**each, "random_seed": None} for each in facts]
    candidate.resume()
    reply = candidate.ask("loop", on_held=release, calls=facts)
    candidate.stop()
    raise_failure(reply, workload.device)
    looped = read_looped(reply, len(calls))
    return Loop(wall_ms, looped.non_tensors, looped.written_over)
