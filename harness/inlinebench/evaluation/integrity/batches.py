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
from inlinebench.evaluation.integrity.outside_clock import BLOCKING_MS, Stamps, Stopwatch
from inlinebench.evaluation.integrity.rows import Rows
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.packing import pack
from inlinebench.process.replies import read_batched, read_looped
from inlinebench.timing.flags import FlagPage


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
        clock: writes inputs, copies outputs, and takes the GPU's time.
    """

    def __init__(
        self, workload: Workload, candidate: CandidateProcess, secret_random: random.Random, public: random.Random, *,
        variants: Iterator[Variant], page: FlagPage | None, clock: Stamps,
    ) -> None:
        self._workload, self._candidate, self._page, self._variants = workload, candidate, page, variants
        self._secret_random, self._public, self._clock = secret_random, public, clock
        self._inputs, self._outputs = Rows.inputs(workload.sets), Rows.outputs(workload.sets)
        self.calls: list[BatchCall] = []
        """The calls, with the inputs that they read."""
        self.outputs: list[list[torch.Tensor]] = []
        """Copies of each call's output tensors."""
        self.written_over: tuple[bool, ...] = ()
        """For each call, whether a later one reused the memory of its output."""
        self.known = True
        """Whether it is certain which inputs the calls read."""
        self.took_ms: float
        """The time of the whole batch in ms. `run` sets it."""
        self.wall_ms: float
        """The wall time of one call in ms. `loop` sets it."""

    def run(self, calls: int) -> tuple[bool, tuple[tuple[str, ...], ...]]:
        """Makes the calls behind one blocking kernel.

        Returns whether the blocking kernel lasted until it was released, and the non-tensor outputs of each call.
        Raises Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
        """
        workload = self._workload
        given = self._prepare(calls)
        instead: list[BatchCall] = []
        if self._page is not None and len(workload.sets) > 1:
            instead, before = self._prepare_instead()
            self._write(before)
        workload.poison(range(calls))
        got = self._outputs.allocate(calls, workload.arena.bytes.device)
        workload.synchronize()
        stopwatch = Stopwatch(
            self._page, self._clock, lambda: self._write(given), lambda: self._read(got), workload.synchronize)
        self._candidate.resume()
        reply = self._candidate.ask(
            "batch", on_queued=stopwatch.start, blocking_ms=0.0 if self._page is None else BLOCKING_MS,
            calls=self._requests(seeded=True),
        )
        self.took_ms = stopwatch.stop()
        self._take_outputs(got)
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
        given = self._prepare(calls)
        workload.poison(range(calls))
        self._write(given)
        got = self._outputs.allocate(calls, workload.arena.bytes.device)
        workload.synchronize()
        self._candidate.resume()
        reply = self._candidate.ask("loop", calls=self._requests(seeded=workload.probed.random))
        self._read(got)
        self._take_outputs(got)
        raise_failure(reply, workload.device)
        looped = read_looped(reply, calls)
        self.wall_ms, self.written_over = looped.wall_ms, looped.written_over
        return looped.non_tensors

    def _requests(self, seeded: bool) -> list[dict[str, Any]]:
        return [{"non_tensors": pack(call.non_tensors), "random_seed": call.random_seed if seeded else None}
                for call in self.calls]

    def _take_outputs(self, got: torch.Tensor) -> None:
        """Waits for the copies of the outputs, then stops the candidate.

        In this order, because stopping a process does not stop its work on the GPU. Work that has not written its
        results by now is too late.
        """
        self._workload.synchronize()
        self.outputs = [self._outputs.tensors(got, number) for number in range(len(self.calls))]
        self._candidate.stop()

    def _prepare(self, calls: int) -> torch.Tensor:
        """Draws the inputs of all calls. Returns the judge's private copy of them."""
        given = self._inputs.allocate(calls, self._workload.arena.bytes.device)
        self.calls = [self._draw(self._inputs.tensors(given, number), self._public.getrandbits(62))
                      for number in range(calls)]
        return given

    def _prepare_instead(self) -> tuple[list[BatchCall], torch.Tensor]:
        """Returns the same calls with other input tensors, and a private copy of these."""
        given = self._inputs.allocate(len(self.calls), self._workload.arena.bytes.device)
        return [replace(self._draw(self._inputs.tensors(given, number), call.random_seed), non_tensors=call.non_tensors)
                for number, call in enumerate(self.calls)], given

    def _draw(self, tensors: list[torch.Tensor], random_seed: int) -> BatchCall:
        """Writes new inputs to the tensors, and returns a call with them."""
        source = self._workload.source
        variant, seed = next(self._variants), self._secret_random.getrandbits(62)
        non_tensors = source.write(seed, variant, tensors)
        return BatchCall(tensors, non_tensors, variant, source.describe(variant, seed), random_seed)

    def _write(self, given: torch.Tensor) -> None:
        """Queues the copy of the inputs into the shared buffers."""
        self._inputs.write(self._clock, self._workload.arena.bytes, given)

    def _read(self, got: torch.Tensor) -> None:
        """Queues the copy of the outputs out of the shared buffers."""
        self._outputs.read(self._clock, self._workload.arena.bytes, got)
