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
from inlinebench.evaluation.integrity.outside_clock import HOLD_MS, BatchTime, Stopwatch
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Stage
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
    others: tuple[Any, ...]
    variant: Variant
    random_seed: int


class Batch:
    """Prepares inputs for calls and has them made: `run` leaves the time in `time`, `loop` in `wall_ms`.

    `chance` is the secret stream, `public` that of what the candidate is sent. Without a `page` the batch isn't held.
    `outputs` are those of each call, and `written_over` tells which of them a later call took the memory of. `known` is
    whether it is certain which inputs the calls found.
    """

    def __init__(
        self, stage: Stage, candidate: CandidateProcess, chance: random.Random, public: random.Random,
        page: FlagPage | None,
    ) -> None:
        self._stage, self._candidate, self._page = stage, candidate, page
        self._chance, self._public = chance, public
        self.calls: list[BatchCall] = []
        self.outputs: list[list[torch.Tensor]] = []
        self.written_over: tuple[bool, ...] = ()
        self.known = True
        self.time: BatchTime
        self.wall_ms: float

    def run(self, calls: int) -> tuple[bool, tuple[tuple[str, ...], ...]]:
        """Whether the hold lasted until it was released, and the outputs that are no tensors, for each call."""
        stage = self._stage
        self.calls = [self._prepare(number) for number in range(calls)]
        instead = [] if self._page is None or len(stage.sets) == 1 else [self._stand_in(call) for call in self.calls]
        self._write(instead)
        stage.poison(range(calls))
        stage.synchronize()
        stopwatch = Stopwatch(self._page, lambda: self._write(self.calls), PATIENCE_S)
        self._candidate.resume()
        answer = self._candidate.ask(
            "batch", on_queued=stopwatch.start, hold_ms=0.0 if self._page is None else HOLD_MS,
            calls=self._frames(seeded=True),
        )
        self.time = stopwatch.stop()
        self._take_outputs()
        raise_failure(answer, stage.device)
        batched = read_batched(answer, calls)
        self.written_over = (False,) * calls
        held = stopwatch.wrote and (batched.held or self._page is None)
        if not stopwatch.wrote and instead:
            self.calls = instead
        else:
            self.known = held
        return held, batched.others

    def loop(self, calls: int) -> tuple[tuple[str, ...], ...]:
        """The outputs that are no tensors, for each call of a loop."""
        stage = self._stage
        self.calls = [self._prepare(number) for number in range(calls)]
        stage.poison(range(calls))
        self._write(self.calls)
        self._candidate.resume()
        answer = self._candidate.ask("loop", calls=self._frames(seeded=stage.rehearsed.random))
        self._take_outputs()
        raise_failure(answer, stage.device)
        looped = read_looped(answer, calls)
        self.wall_ms, self.written_over = looped.wall_ms, looped.written_over
        return looped.others

    def _frames(self, seeded: bool) -> list[dict[str, Any]]:
        return [{"others": pack(call.others), "random_seed": call.random_seed if seeded else None}
                for call in self.calls]

    def _take_outputs(self) -> None:
        """At once: stopping a process doesn't stop its GPU, and what is still to be written now was late."""
        stage = self._stage
        self.outputs = [[tensor.clone() for tensor in stage.outputs(number)] for number in range(len(self.calls))]
        stage.synchronize()
        self._candidate.stop()

    def _prepare(self, number: int) -> BatchCall:
        tensors = [torch.empty_like(tensor) for tensor in self._stage.inputs(number)]
        variant = self._stage.source.choose_variant(self._chance)
        others = self._stage.source.write(self._chance.getrandbits(62), variant, tensors)
        return BatchCall(tensors, others, variant, self._public.getrandbits(62))

    def _stand_in(self, call: BatchCall) -> BatchCall:
        """The same call on other inputs."""
        tensors = [torch.empty_like(tensor) for tensor in call.tensors]
        variant = self._stage.source.choose_variant(self._chance)
        self._stage.source.write(self._chance.getrandbits(62), variant, tensors)
        return replace(call, tensors=tensors, variant=variant)

    def _write(self, calls: list[BatchCall]) -> None:
        for number, call in enumerate(calls):
            for target, tensor in zip(self._stage.inputs(number), call.tensors, strict=True):
                target.copy_(tensor)
        self._stage.synchronize()
