"""Stands in for a solution before one is loaded, so that the judge can measure what a batch costs apart from calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch

from inlinebench.timing.call import Sample, held_batch, timed_call
from inlinebench.timing.gpu import GpuClock
from inlinebench.wire.arena import ALIGNMENT, BufferSet, TensorSpec

ALONE_BLOCKING_MS = 50.0


class StandIn:
    """Calls that read all inputs and write all outputs, in one kernel, and copy the outputs as a solution's are copied.

    Args:
        clock: times the calls and runs the kernel.
        arena: the judge's shared memory.
        sets: the buffers of each call.
        states: the regions of the states, which are copied as well.
    """

    def __init__(
        self, clock: GpuClock, arena: torch.Tensor, sets: Sequence[BufferSet], states: Sequence[TensorSpec]
    ) -> None:
        self._clock, self._base, self._sets, self._states = clock, arena.data_ptr(), sets, states
        sizes = [_aligned(spec.bytes) for spec in (*sets[0].outputs, *states)]
        *self._begins, self._output_bytes = accumulate(sizes, initial=0)
        self._output = torch.empty(max(ALIGNMENT, self._output_bytes), dtype=torch.uint8, device=arena.device)
        clock.start()
        self._call(0)  # here, because loading a kernel would wait for a blocking kernel
        clock.stop()
        clock.done()
        clock.drain()

    def alone(self) -> Sample:
        """Makes one timed call, as those of a solution are timed, and returns its sample."""
        for spec in self._sets[0].inputs:
            self._clock.touch(self._base + spec.offset, spec.bytes)
        return timed_call(self._clock, lambda: self._call(0), lambda _: self._copy(0), ALONE_BLOCKING_MS)[1]

    def batch(self, blocking_ms: float, on_queued: Callable[[], None]) -> Sample:
        """Makes one call on each set of buffers behind a blocking kernel, which the judge releases."""
        works = [lambda number=number: self._call(number) for number in range(len(self._sets))]
        return held_batch(self._clock, works, lambda number, _: self._copy(number), blocking_ms, on_queued)

    def _call(self, number: int) -> None:
        inputs = self._sets[number].inputs
        begin = inputs[0].offset if inputs else 0
        end = inputs[-1].offset + _aligned(inputs[-1].bytes) if inputs else 0
        self._clock.stand_in(self._base + begin, end - begin, self._output.data_ptr(), self._output_bytes)

    def _copy(self, number: int) -> None:
        regions = (*self._sets[number].outputs, *self._states)
        for spec, begin in zip(regions, self._begins, strict=True):
            self._clock.copy(self._base + spec.offset, self._output.data_ptr() + begin, spec.bytes)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
