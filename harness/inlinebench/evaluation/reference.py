"""Runs and times the reference in the judge, with the same steps as a candidate runs the solution."""

from __future__ import annotations

from typing import Any

import torch

from inlinebench.devices.registry import of
from inlinebench.problem import own_code
from inlinebench.problem.forward import Output, Tensors
from inlinebench.problem.problem_file import raised
from inlinebench.problem.workload import Workload, snapshot
from inlinebench.timing.blocking_kernel import BlockingLimit
from inlinebench.timing.call import Clock, Sample, timed_call
from inlinebench.timing.trace import Activity, Tracer
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.backward import marked


class Reference:
    """The reference model for the calls of one candidate."""

    def __init__(self, workload: Workload, clock: Clock) -> None:
        self._workload, self._clock = workload, clock
        self._model = marked(workload.reference(), clock.mark)
        self._blocking = BlockingLimit()
        sizes = [spec.bytes for spec in workload.sets[0].outputs]
        self._output_bytes, self._before_call = sum(sizes), of(workload.device).before_call(clock, sizes)
        self._last: tuple[list[torch.Tensor], tuple[Any, ...], int]

    @property
    def synchronises(self) -> bool:
        """Whether the reference waits for the device, so that its calls cannot run behind the blocking kernel."""
        return self._blocking.synchronises

    def states(self) -> Tensors:
        """Returns copies of the model's buffers, by name."""
        return snapshot(self._model)

    def run(
        self, tensors: list[torch.Tensor], non_tensors: tuple[Any, ...], random_seed: int, *, blocked: bool
    ) -> tuple[Output, Sample]:
        """Makes one timed call and returns its output and its sample.

        With `blocked` it is queued behind the blocking kernel. Raises ProblemError if `forward` raises, and
        torch.OutOfMemoryError.
        """
        self._last = tensors, non_tensors, random_seed
        arguments = self._workload.probed.input_form.arguments(tensors, non_tensors)
        limit = self._blocking.limit_ms if blocked else 0.0
        with own_code.step(own_code.FORWARD):  # begins here, so that its message is read before the clock starts
            self._before_call.prepare(
                [(tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in tensors])
            seed_all(random_seed)
            try:
                with torch.no_grad():
                    output, sample = timed_call(
                        self._clock, lambda: Output.of(self._model(*arguments)).dense(), lambda _: None, limit
                    )
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                raise raised(self._workload.problem, error) from error
        if limit and not sample.blocked:
            self._blocking.ran_out()
        return output, sample

    def run_again(self) -> Sample:
        """Makes another timed call on the inputs of the last one and returns its sample. Raises as `run` does."""
        return self.run(*self._last, blocked=True)[1]

    def known_bytes(self) -> int:
        """Returns the bytes that a call of the solution takes at least, and that do not count as its memory: outputs,
        parameters and buffers, and the blocks that are kept for outputs."""
        weights = {id(tensor): tensor for tensor in (*self._model.parameters(), *self._model.buffers())}
        return (self._output_bytes + self._before_call.held_bytes
                + sum(tensor.numel() * tensor.element_size() for tensor in weights.values()))

    def memory_bytes(self) -> int | None:
        """Makes another call on the inputs of the last one. Returns by how many bytes it takes more memory at its peak
        than before, besides its outputs, or None if that is not counted. Workspaces of libraries count. Raises as
        `run` does."""
        meter = of(self._workload.device).allocator_meter()
        if meter is None:
            return None
        meter.free_workspaces()
        before = meter.begin()
        self.run(*self._last, blocked=False)
        peak = meter.peak()
        return None if peak is None else max(0, peak.peak_bytes - before - self._output_bytes)

    def profile(self, tracer: Tracer) -> list[Activity]:
        """Returns the GPU's activities during a call on the inputs of the last one. Raises as `run` does."""
        return tracer(self.run_again)[1]
