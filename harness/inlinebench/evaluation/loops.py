"""Times a Python loop of calls by the host's clock, from the judge's release to the GPU's flag that all are done."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inlinebench.evaluation.failures import raise_failure
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.packing import pack
from inlinebench.process.replies import read_holding, read_looped

PATIENCE_S = 10.0
"""How long to wait for that flag, in seconds."""


@dataclass(frozen=True)
class Drawn:
    """A call with the inputs that were drawn for it."""

    buffer_set: int
    """The set of buffers."""
    tensors: list[torch.Tensor]
    """The judge's private copy of the inputs."""
    non_tensors: tuple[Any, ...]
    """The non-tensor arguments."""
    variant: Variant
    """The variant of the inputs."""
    change: str
    """How the inputs differ from those drawn, in words."""
    random_seed: int
    """The seed that is set before `forward`."""

    def facts(self) -> dict[str, Any]:
        """Returns what the candidate needs to know about the call."""
        return {"set": self.buffer_set, "non_tensors": pack(self.non_tensors), "random_seed": self.random_seed}


@dataclass(frozen=True)
class Loop:
    """A loop of calls."""

    wall_ms: float
    """The time of one call in ms."""
    plain: tuple[tuple[str, ...], ...]
    """The non-tensor outputs of each call, as Python literals."""
    written_over: tuple[bool, ...]
    """For each call, whether a later one reused the memory of its output."""


def time_loop(workload: Workload, candidate: CandidateProcess, calls: Sequence[Drawn]) -> Loop:
    """Has the candidate make these calls in a loop, on their sets of buffers.

    Raises Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
    """
    page, wall_ms = candidate.page, 0.0
    assert page is not None

    def release(message: Mapping[str, Any]) -> None:
        nonlocal wall_ms
        read_holding(message)
        begin = time.perf_counter_ns()
        page.release()
        page.wait_until_done(PATIENCE_S)
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
