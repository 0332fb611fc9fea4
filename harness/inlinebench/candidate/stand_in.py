"""Stands in for a solution before one is loaded, so that the judge can measure what a held call costs apart from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch

from inlinebench.candidate.held_call import hold
from inlinebench.devices.base import Locator
from inlinebench.devices.cuda.clock import GpuClock
from inlinebench.timing.call import Sample, timed_call
from inlinebench.wire.arena import ALIGNMENT, BufferSet, TensorSpec
from inlinebench.wire.locations import Places

ALONE_BLOCKING_MS = 50.0


class StandIn:
    """A call that reads all inputs and writes all outputs and states, in one kernel.

    Args:
        clock: times the calls and runs the kernel.
        arena: the judge's shared memory.
        locator: says where its outputs are.
        buffers: the buffers of the next call. May be replaced.
        states: the regions of the states.
    """

    def __init__(
        self, clock: GpuClock, arena: torch.Tensor, locator: Locator, buffers: BufferSet, states: Sequence[TensorSpec]
    ) -> None:
        self._clock, self._base, self.buffers = clock, arena.data_ptr(), buffers
        self._sizes = [spec.bytes for spec in (*buffers.outputs, *states)]
        *self._begins, self._output_bytes = accumulate(map(_aligned, self._sizes), initial=0)
        self._output = torch.empty(max(ALIGNMENT, self._output_bytes), dtype=torch.uint8, device=arena.device)
        self._locator = locator
        clock.start()
        self._call()  # here, because loading a kernel would wait for a blocking kernel
        clock.stop()
        clock.done()
        clock.drain()

    def alone(self) -> Sample:
        """Makes one timed call, as those of a solution are timed, and returns its sample."""
        for spec in self.buffers.inputs:
            self._clock.touch(self._base + spec.offset, spec.bytes)
        return timed_call(self._clock, self._call, lambda _: None, ALONE_BLOCKING_MS)[1]

    def hold(self, on_host: bool, on_held: Callable[[Places | None], None]) -> None:
        """Makes one call that the judge releases and times, with the steps of a solution's but for copies."""
        hold(self._clock, self._call, lambda _: self._places(), on_host, on_held)

    def _call(self) -> None:
        inputs = self.buffers.inputs
        begin = inputs[0].offset if inputs else 0
        end = inputs[-1].offset + _aligned(inputs[-1].bytes) if inputs else 0
        self._clock.stand_in(self._base + begin, end - begin, self._output.data_ptr(), self._output_bytes)

    def _places(self) -> Places:
        return [self._locator.locate(self._output.data_ptr() + begin) if size else None
                for size, begin in zip(self._sizes, self._begins, strict=True)]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
