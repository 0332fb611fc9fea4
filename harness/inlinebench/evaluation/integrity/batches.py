"""Has the candidate make several calls on one set of buffers each: a batch behind one blocking kernel, or a loop.

The judge writes the inputs of a batch only when all calls are queued. Until then the buffers contain other inputs. If
the blocking kernel times out early, the calls run on these, and their outputs must be right for them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
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
"""How long to wait for the GPU's flag that a batch is done, in seconds. A batch takes a few milliseconds, unless a
single call takes longer."""


@dataclass(frozen=True)
class BatchCall:
    """One call of a batch."""

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


class Batch:
    """Several calls of one candidate, made either by `run` or by `loop`.

    Args:
        workload: the problem at its shape, with the shared buffers.
        candidate: the process that makes the calls.
        secret_random: draws the inputs.
        public: draws the seeds that the candidate is sent.
        variants: the variants of the inputs, one call after the other.
        page: the flags of the candidate's blocking kernel. With None, `run` uses no blocking kernel.
    """

    def __init__(
        self, workload: Workload, candidate: CandidateProcess, secret_random: random.Random, public: random.Random, *,
        variants: Iterator[Variant], page: FlagPage | None,
    ) -> None:
        self._workload, self._candidate, self._page, self._variants = workload, candidate, page, variants
        self._secret_random, self._public = secret_random, public
        self.calls: list[BatchCall] = []
        """The calls, with the inputs that they read."""
        self.outputs: list[list[torch.Tensor]] = []
        """Copies of each call's output tensors."""
        self.written_over: tuple[bool, ...] = ()
        """For each call, whether a later one reused the memory of its output."""
        self.known = True
        """Whether it is certain which inputs the calls read."""
        self.time: BatchTime
        """The time of the whole batch. `run` sets it."""
        self.wall_ms: float
        """The wall time of one call in ms. `loop` sets it."""

    def run(self, calls: int) -> tuple[bool, tuple[tuple[str, ...], ...]]:
        """Makes the calls behind one blocking kernel.

        Returns whether the blocking kernel lasted until it was released, and the non-tensor outputs of each call.
        Raises Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
        """
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
            calls=self._requests(seeded=True),
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
        """Makes the calls in a Python loop. Returns the non-tensor outputs of each call. Raises as `run` does."""
        workload = self._workload
        self.calls = [self._prepare(number) for number in range(calls)]
        workload.poison(range(calls))
        self._write(self.calls)
        self._candidate.resume()
        reply = self._candidate.ask("loop", calls=self._requests(seeded=workload.probed.random))
        self._take_outputs()
        raise_failure(reply, workload.device)
        looped = read_looped(reply, calls)
        self.wall_ms, self.written_over = looped.wall_ms, looped.written_over
        return looped.non_tensors

    def _requests(self, seeded: bool) -> list[dict[str, Any]]:
        return [{"non_tensors": pack(call.non_tensors), "random_seed": call.random_seed if seeded else None}
                for call in self.calls]

    def _take_outputs(self) -> None:
        """Copies the outputs, then stops the candidate.

        In this order, because stopping a process does not stop its work on the GPU. Work that has not written its
        results by now is too late.
        """
        workload = self._workload
        self.outputs = [[tensor.clone() for tensor in workload.outputs(number)] for number in range(len(self.calls))]
        workload.synchronize()
        self._candidate.stop()

    def _prepare(self, number: int) -> BatchCall:
        return self._draw([torch.empty_like(tensor) for tensor in self._workload.inputs(number)],
                          self._public.getrandbits(62))

    def _stand_in(self, call: BatchCall) -> BatchCall:
        """Returns the same call with other input tensors."""
        drawn = self._draw([torch.empty_like(tensor) for tensor in call.tensors], call.random_seed)
        return replace(drawn, non_tensors=call.non_tensors)

    def _draw(self, tensors: list[torch.Tensor], random_seed: int) -> BatchCall:
        """Writes new inputs to the tensors, and returns a call with them."""
        source = self._workload.source
        variant, seed = next(self._variants), self._secret_random.getrandbits(62)
        non_tensors = source.write(seed, variant, tensors)
        return BatchCall(tensors, non_tensors, variant, source.describe(variant, seed), random_seed)

    def _write(self, calls: list[BatchCall]) -> None:
        for number, call in enumerate(calls):
            for target, tensor in zip(self._workload.inputs(number), call.tensors, strict=True):
                target.copy_(tensor)
        self._workload.synchronize()
