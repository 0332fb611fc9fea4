"""Several calls with a set of buffers each: a batch behind one hold, or a loop as Python makes one.

The inputs of a batch are written only when all is queued. Until then there are others in the buffers: calls that can't
be held work on those, and have to get them right as well.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import torch

from inlinebench.evaluation.failures import raise_failure
from inlinebench.evaluation.integrity.outside_clock import BLOCKING_MS, BatchTime, Stopwatch
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.packing import pack
from inlinebench.process.replies import read_batched, read_looped
from inlinebench.timing.flags import FlagPage

PATIENCE_S = 10.0
"""For the GPU's word that a batch is done. It is a few milliseconds long, unless one call alone is longer."""


@dataclass(frozen=True)
class BatchCall:
    """One call of a batch: the judge's own copy of the inputs, and what was sent with them."""

    tensors: list[torch.Tensor]
    non_tensors: tuple[Any, ...]
    variant: Variant
    random_seed: int


class Batch:
    """Prepares inputs for calls and has them made: `run` leaves the time in `time`, `loop` in `wall_ms`.

    `chance` is the secret stream, `public` that of what the candidate is sent. Without a `page` the batch isn't held.
    `outputs` are those of each call, and `written_over` tells which of them a later call took the memory of. `known` is
    whether it is certain which inputs the calls found.
    """

    def __init__(
        self, workload: Workload, candidate: CandidateProcess, secret_random: random.Random, public: random.Random,
        page: FlagPage | None,
    ) -> None:
        self._workload, self._candidate, self._page = workload, candidate, page
        self._secret_random, self._public = secret_random, public
        self.calls: list[BatchCall] = []
        self.outputs: list[list[torch.Tensor]] = []
        self.written_over: tuple[bool, ...] = ()
        self.known = True
        self.time: BatchTime
        self.wall_ms: float

    def run(self, calls: int) -> tuple[bool, tuple[tuple[str, ...], ...]]:
        """Whether the hold lasted until it was released, and the outputs that are no tensors, for each call."""
        workload = self._workload
        self.calls = [self._prepare(number) for number in range(calls)]
        instead = [] if self._page is None or len(workload.sets) == 1 else [self._stand_in(call) for call in self.calls]
        self._write(instead)
        workload.poison(range(calls))
        workload.synchronize()
        stopwatch = Stopwatch(self._page, lambda: self._write(self.calls), PATIENCE_S)
        self._candidate.resume()
        reply = self._candidate.ask(
            "batch", on_queued=stopwatch.start, blocking_ms=0.0 if self._page is None else BLOCKING_MS,
            calls=self._frames(seeded=True),
        )
        self.time = stopwatch.stop()
        self._take_outputs()
        raise_failure(reply, workload.device)
        batched = read_batched(reply, calls)
        self.written_over = (False,) * calls
        blocked = stopwatch.wrote and (batched.blocked or self._page is None)
        if not stopwatch.wrote and instead:
            self.calls = instead
        else:
            self.known = blocked
        return blocked, batched.non_tensors

    def loop(self, calls: int) -> tuple[tuple[str, ...], ...]:
        """The outputs that are no tensors, for each call of a loop."""
        workload = self._workload
        self.calls = [self._prepare(number) for number in range(calls)]
        workload.poison(range(calls))
        self._write(self.calls)
        self._candidate.resume()
        reply = self._candidate.ask("loop", calls=self._frames(seeded=workload.probed.random))
        self._take_outputs()
        raise_failure(reply, workload.device)
        looped = read_looped(reply, calls)
        self.wall_ms, self.written_over = looped.wall_ms, looped.written_over
        return looped.non_tensors

    def _frames(self, seeded: bool) -> list[dict[str, Any]]:
        return [{"non_tensors": pack(call.non_tensors), "random_seed": call.random_seed if seeded else None}
                for call in self.calls]

    def _take_outputs(self) -> None:
        """At once: stopping a process doesn't stop its GPU, and what is still to be written now was late."""
        workload = self._workload
        self.outputs = [[tensor.clone() for tensor in workload.outputs(number)] for number in range(len(self.calls))]
        workload.synchronize()
        self._candidate.stop()

    def _prepare(self, number: int) -> BatchCall:
        tensors = [torch.empty_like(tensor) for tensor in self._workload.inputs(number)]
        variant = self._workload.source.choose_variant(self._secret_random)
        non_tensors = self._workload.source.write(self._secret_random.getrandbits(62), variant, tensors)
        return BatchCall(tensors, non_tensors, variant, self._public.getrandbits(62))

    def _stand_in(self, call: BatchCall) -> BatchCall:
        """The same call on other inputs."""
        tensors = [torch.empty_like(tensor) for tensor in call.tensors]
        variant = self._workload.source.choose_variant(self._secret_random)
        self._workload.source.write(self._secret_random.getrandbits(62), variant, tensors)
        return replace(call, tensors=tensors, variant=variant)

    def _write(self, calls: list[BatchCall]) -> None:
        for number, call in enumerate(calls):
            for target, tensor in zip(self._workload.inputs(number), call.tensors, strict=True):
                target.copy_(tensor)
        self._workload.synchronize()
