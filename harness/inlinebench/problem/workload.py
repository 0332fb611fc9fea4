"""A problem at one shape, made ready for its solutions: reference, oracle, shared buffers, inputs."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.forward import Output, run, to_double
from inlinebench.problem.inputs import InputSource
from inlinebench.problem.memory import free_bytes
from inlinebench.problem.probe import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.timing.before_call import POISON_BYTE
from inlinebench.timing.call import Clock
from inlinebench.timing.lower_bounds import Surroundings, empty_ms, least_write_ms, surroundings
from inlinebench.timing.overhead import shown_ms
from inlinebench.wire.arena import (
    ALIGNMENT,
    BufferSet,
    CpuArena,
    CudaArena,
    TensorMeta,
    TensorSpec,
    create,
    lay_out,
    view,
)

MOST_SETS = 64
MOST_SETS_BYTES = 2 << 30
SETS_MEMORY_SHARE = 0.1
"""Bounds of the sets of buffers that a batch of calls uses."""

Tensors = dict[str, torch.Tensor]


class Workload:
    """What all solutions of a problem at a shape share. Holds the arena; `close` frees it.

    With `host_arena` the shared buffers of a GPU lie in the host's memory, for tools that can't see what another
    process wrote to the GPU's.

    Raises ProblemError, or torch.OutOfMemoryError if the buffers don't fit.
    """

    def __init__(
        self, problem: ProblemAt, probed: ProbeResult, device: torch.device, scratch: Path, *,
        host_arena: bool = False,
    ) -> None:
        self.problem, self.probed, self.device = problem, probed, device
        self.module: types.ModuleType = problem_file.load_at(problem)
        self._pristine = problem_file.construct(self.module)
        self.weights = scratch / "weights.pt"
        self._save_weights()
        self.states = {name: TensorMeta.of(buffer) for name, buffer in self._pristine.named_buffers()}
        state_specs, end = lay_out(list(self.states.values()))
        self.state_specs: dict[str, TensorSpec] = dict(zip(self.states, state_specs, strict=True))
        self.sets: list[BufferSet] = []
        _, one = _lay_out_set(probed, 0)
        for _ in range(1 if host_arena else _how_many(one, device)):
            buffers, end = _lay_out_set(probed, end)
            self.sets.append(buffers)
        size = end
        self.arena: CpuArena | CudaArena = CpuArena(size) if host_arena else create(size, device)
        self.costs: Costs | None = None
        """What was measured of them, where times are taken on a GPU."""
        self.source = InputSource(self.module, device, probed.inputs, probed.variants)

    def close(self) -> None:
        """Frees the shared buffers."""
        self.arena.close()

    def reference(self) -> torch.nn.Module:
        """A reference model of its own for one evaluation, on the device, in its initial state."""
        return self.pristine().to(self.device)

    def pristine(self) -> torch.nn.Module:
        """The reference as it was constructed, on the CPU."""
        return problem_file.twin(self.module, self._pristine)

    def oracle(self) -> Oracle | None:
        """The reference in float64, if it runs there and its weights fit."""
        return Oracle(self) if self.probed.float64 else None

    def measure_costs(self, clock: Clock, null_ms: float | None) -> None:
        """What timing and the outputs cost by themselves, on a GPU where a kernel that does nothing takes so long."""
        shown, empty = shown_ms(clock), empty_ms(clock)  # the first of them wakes the GPU
        null = shown - empty if null_ms is None else null_ms  # without CUPTI the launch counts as the kernel's
        handed_in = [spec.bytes for spec in (*self.sets[0].outputs, *self.state_specs.values())]
        self.costs = Costs(
            empty, null, shown, least_write_ms(clock, self.device, self.probed.written_bytes),
            surroundings(clock, self.device, handed_in, shown - null),
        )

    def inputs(self, number: int) -> list[torch.Tensor]:
        """The shared input buffers of a set as tensors."""
        return [view(self.arena.bytes, spec) for spec in self.sets[number].inputs]

    def outputs(self, number: int) -> list[torch.Tensor]:
        """What lies in the output buffers of a set, on the device."""
        return [view(self.arena.bytes, spec).to(self.device) for spec in self.sets[number].outputs]

    def memory(self, spec: TensorSpec) -> torch.Tensor:
        """The bytes of a tensor in the arena with the padding behind it, flat."""
        extent = -(-spec.bytes // ALIGNMENT) * ALIGNMENT
        return self.arena.bytes[spec.offset : spec.offset + extent]

    def state(self, name: str) -> torch.Tensor:
        """What lies in the buffer of one of the reference's states, on the device."""
        return view(self.arena.bytes, self.state_specs[name]).to(self.device)

    def write_inputs(self, number: int, seed: int, variant: Variant) -> tuple[Any, ...]:
        """Fills the inputs of a set and poisons its outputs and the states; gives the other arguments."""
        non_tensors = self.source.write(seed, variant, self.inputs(number))
        self.poison([number])
        self.synchronize()
        return non_tensors

    def clear(self) -> None:
        """Forgets everything that an earlier candidate may have left in the shared buffers."""
        self.arena.bytes.fill_(POISON_BYTE)
        self.synchronize()

    def poison(self, numbers: Iterable[int]) -> None:
        """Makes states and outputs of these sets unlike anything that a solution should have written there."""
        specs = [*self.state_specs.values(), *(spec for number in numbers for spec in self.sets[number].outputs)]
        for spec in specs:
            self.memory(spec).fill_(POISON_BYTE)

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _save_weights(self) -> None:
        parameters = {name: tensor.detach() for name, tensor in self._pristine.named_parameters()}
        torch.save({"parameters": parameters, "buffers": dict(self._pristine.named_buffers())}, self.weights)


@dataclass(frozen=True)
class Costs:
    """Times in ms: what the clock shows for a call of nothing; what a kernel that does nothing takes, and what the
    judge's clock shows for it; the least in which the outputs can be written; and what a batch of calls costs beside
    the calls."""

    empty_ms: float
    null_ms: float
    shown_ms: float
    write_ms: float
    beside: Surroundings


def _lay_out_set(probed: ProbeResult, begin: int) -> tuple[BufferSet, int]:
    inputs, middle = lay_out(probed.inputs, begin)
    outputs, end = lay_out(probed.outputs, middle)
    return BufferSet(tuple(inputs), tuple(outputs)), end


def _how_many(set_bytes: int, device: torch.device) -> int:
    """Sets of buffers: several on a GPU, for calls that are queued together, as far as that takes little memory."""
    if device.type != "cuda":
        return 1
    room = min(MOST_SETS_BYTES, SETS_MEMORY_SHARE * free_bytes(device))
    return max(1, min(MOST_SETS, int(room // max(1, set_bytes))))


class Oracle:
    """The reference in float64; its states follow those of the reference."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._model = workload.pristine().double().to(workload.device)

    def run(
        self, states: Tensors, tensors: Sequence[torch.Tensor], non_tensors: Sequence[Any], seed: int
    ) -> Output | None:
        """The output for inputs, from the states that the reference had before the call; None if it doesn't fit.

        Its own states are then those after the call.
        """
        needed = 2 * sum(tensor.numel() * 8 for tensor in tensors)
        if needed > free_bytes(self._workload.device):
            return None
        with torch.no_grad():
            for name, buffer in self._model.named_buffers():
                buffer.copy_(states[name])
        arguments = self._workload.probed.input_form.arguments(to_double(tensors), non_tensors)
        try:
            return Output.of(run(self._model, arguments, seed))
        except torch.OutOfMemoryError:
            return None

    def states(self) -> Tensors:
        """The buffers of the oracle, which hold what the last run made of them."""
        return dict(self._model.named_buffers())


def snapshot(model: torch.nn.Module) -> Tensors:
    """Copies of a model's buffers."""
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
