"""A problem at one shape, prepared for its solutions: reference, oracle, shared buffers and inputs."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.devices.base import Arena
from inlinebench.devices.registry import of
from inlinebench.messages import ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.forward import Tensors
from inlinebench.problem.inputs import InputSource
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.problem.variants import Variant
from inlinebench.timing.call import Clock
from inlinebench.timing.overhead import empty_ms, shown_ms
from inlinebench.timing.poison import POISON_BYTE
from inlinebench.wire.arena import (
    ALIGNMENT,
    BufferSet,
    TensorMeta,
    TensorSpec,
    lay_out,
    view,
)

MOST_SETS = 64
"""The most sets of input and output buffers."""
MOST_SETS_BYTES = 2 << 30
"""The most bytes for all sets together."""
SETS_MEMORY_SHARE = 0.1
"""The largest share of the free device memory for all sets together."""

@dataclass(frozen=True)
class Received:
    """What a candidate's call wrote, in the judge's private memory."""

    outputs: tuple[torch.Tensor, ...] = ()
    """The output tensors."""
    inputs: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """The inputs that the reference changes, by index."""
    states: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """The states, by the reference's names. What the solution has none of means nothing."""


class Workload:
    """A problem at one shape, with everything that its solutions share. Call `close` to free the shared buffers.

    Args:
        problem: the problem and its shape.
        probed: what the probe found out about the reference.
        device: where reference and solutions run.
        scratch: a folder for the file of weights.
        of_set: the number of workloads that share the device with this one, itself included.
        host_arena: whether to allocate the shared buffers in host memory, even on a GPU. compute-sanitizer needs this,
            because it cannot see what another process writes to GPU memory.

    Raises ProblemError if the file or the constructor fails, and torch.OutOfMemoryError if the buffers do not fit.
    """

    def __init__(
        self, problem: ProblemAt, probed: ProbeResult, device: torch.device, scratch: Path, *,
        host_arena: bool = False, of_set: int = 1,
    ) -> None:
        self.problem, self.probed, self.device = replace(problem, gradients=probed.gradients), probed, device
        self._of_set = of_set
        self.module: types.ModuleType = problem_file.load_at(self.problem)
        self._pristine = problem_file.construct(self.module)
        self.name = secrets.token_hex(8)
        """A name of this workload that no other one has had."""
        self.weights = scratch / self.name / "weights.pt"  # torch.save writes the name of the file into it
        """A file with the reference's parameters and buffers."""
        self._save_weights()
        self.states = {name: TensorMeta.of(buffer) for name, buffer in self._pristine.named_buffers()}
        """Dtype, shape and strides of each of the reference's buffers, by name."""
        state_specs, end = lay_out(list(self.states.values()))
        self.state_specs: dict[str, TensorSpec] = dict(zip(self.states, state_specs, strict=True))
        """The region of each of these buffers in the arena."""
        self.sets: list[BufferSet] = []
        """Sets of input and output buffers in the arena."""
        _, set_bytes = _lay_out_set(probed, 0)
        for _ in range(1 if host_arena else _how_many(set_bytes * of_set, device)):
            buffers, end = _lay_out_set(probed, end)
            self.sets.append(buffers)
        size = end
        self.arena: Arena = of(torch.device("cpu") if host_arena else device).create_arena(size)
        """The shared memory that contains all of these buffers."""
        self._private: list[list[torch.Tensor] | None] = [None] * len(self.sets)
        self.costs: Costs | None = None
        """The costs of the harness's own steps. Measured on a GPU with timing."""
        self.source = InputSource(self.module, device, probed.inputs, probed.variants, probed.continuous)
        """Draws the inputs."""

    @property
    def computes_nothing(self) -> bool:
        """Whether a call has no effect: its outputs have no elements, and it changes neither inputs nor states."""
        outputs = self.probed.outputs
        empty = bool(outputs) and all(0 in output.shape for output in outputs) and all(self.probed.output_is_tensor)
        return empty and not self.probed.mutated and not self.states

    @property
    def has_weights(self) -> bool:
        """Whether the reference has parameters or buffers, which are copied into solutions."""
        return bool(self.states or list(self._pristine.parameters()))

    def close(self) -> None:
        """Frees the shared buffers, and removes the file of weights."""
        self.arena.close()
        shutil.rmtree(self.weights.parent, ignore_errors=True)

    def model_key(self, init: str) -> str:
        """Returns the key of a solution's model. Workloads of a set with the same key share a model.

        These have the same constructor arguments `init` and weights. A model with buffers has a key of its own, because
        the buffers of the references would differ after calls at several workloads.
        """
        if self._of_set == 1 or self.states:
            return self.name
        return hashlib.sha256(init.encode() + self.weights.read_bytes()).hexdigest()

    def reference(self) -> torch.nn.Module:
        """Returns a new reference model on the device, in its initial state."""
        return self.pristine().to(self.device)

    def pristine(self) -> torch.nn.Module:
        """Returns a new reference model on the CPU, in its initial state."""
        return problem_file.second_model(self.module, self._pristine)

    def oracle(self) -> ReferenceCopy | None:
        """Returns the reference in float64, or None if it cannot be the oracle."""
        return self.copy(double=True) if self.probed.float64 else None

    def copy(self, *, double: bool = False) -> ReferenceCopy:
        """Returns a copy of the reference that computes calls again, in its own dtypes or in float64."""
        return ReferenceCopy(self.pristine, self.probed.input_form, self.device, double=double)

    def measure_costs(self, clock: Clock, null_ms: float | None) -> None:
        """Measures `costs` on a GPU. `null_ms` is the time of an empty kernel by CUPTI, or None without CUPTI."""
        shown, empty = shown_ms(clock), empty_ms(clock)  # `shown_ms` first, because it raises the GPU's clocks
        null = shown - empty if null_ms is None else null_ms  # without CUPTI, the launch counts as part of the kernel
        self.costs = Costs(empty, null, shown)

    def inputs(self, number: int) -> list[torch.Tensor]:
        """Returns views of the shared input buffers of a set."""
        return [view(self.arena.bytes, spec) for spec in self.sets[number].inputs]

    def outputs(self, number: int) -> list[torch.Tensor]:
        """Returns the contents of the output buffers of a set, on the device."""
        return [view(self.arena.bytes, spec).to(self.device) for spec in self.sets[number].outputs]

    def memory(self, spec: TensorSpec) -> torch.Tensor:
        """Returns the bytes of a region in the arena, including its padding (flat uint8)."""
        extent = -(-spec.bytes // ALIGNMENT) * ALIGNMENT
        return self.arena.bytes[spec.offset : spec.offset + extent]

    def state(self, name: str) -> torch.Tensor:
        """Returns the contents of the shared buffer of a state, on the device."""
        return view(self.arena.bytes, self.state_specs[name]).to(self.device)

    def draw(self, number: int, seed: int, variant: Variant) -> tuple[list[torch.Tensor], tuple[Any, ...]]:
        """Draws the inputs of a set in the judge's private memory. Returns them and the non-tensor arguments.

        Each set has private memory of its own, so that the addresses that the reference reads differ from call to call
        as a solution's do.
        """
        private = self.private(number)
        return private, self.source.write(seed, variant, private)

    def for_reference(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns inputs for a call of the reference: copies of those that it changes, and the others as they are."""
        mutated = self.probed.mutated
        return [tensor.clone() if index in mutated else tensor for index, tensor in enumerate(tensors)]

    def private(self, number: int) -> list[torch.Tensor]:
        """Returns the judge's private inputs of a set."""
        private = self._private[number]
        if private is None:
            private = self._private[number] = [torch.empty_like(tensor, device=self.device)
                                               for tensor in self.inputs(number)]
        return private

    def release(self) -> None:
        """Frees the private inputs, which the next draw allocates again, and the device memory of draws that are kept.
        """
        self._private = [None] * len(self.sets)
        self.source.release()

    @property
    def gradients_given(self) -> int:
        """The number of the last inputs that are gradients of the outputs. 0 without a backward."""
        return 0 if self.probed.gradients is None else len(self.probed.gradients.incoming)

    def hand_over(self, *numbers: int, gradients_late: bool = False) -> None:
        """Copies the private inputs of these sets to the shared ones. Poisons their outputs, and the states.

        With `gradients_late`, the gradients of the outputs are others of the same distribution, until
        `hand_over_gradients`.
        """
        own = len(self.probed.inputs) - self.gradients_given
        for number in numbers:
            for index, (target, tensor) in enumerate(zip(self.inputs(number), self.private(number), strict=True)):
                if gradients_late and index >= own:
                    target.copy_(tensor.roll(1)).neg_()
                else:
                    target.copy_(tensor)
        self.poison(numbers)
        self.synchronize()

    def hand_over_gradients(self, number: int) -> None:
        """Copies the private gradients of the outputs of a set to the shared ones."""
        own = len(self.probed.inputs) - self.gradients_given
        for target, tensor in zip(self.inputs(number)[own:], self.private(number)[own:], strict=True):
            target.copy_(tensor)
        self.synchronize()

    def inputs_equal(self, number: int, private: Sequence[torch.Tensor]) -> bool:
        """Whether the shared inputs of a set, except those that the reference changes, equal the private ones."""
        return all(same_bits(shared.to(self.device), private[index])
                   for index, shared in enumerate(self.inputs(number)) if index not in self.probed.mutated)

    def receive(self, number: int) -> Received:
        """Copies what a candidate wrote to a set of buffers, and its states, to private memory."""
        shared = self.inputs(number)
        return Received(
            tuple(tensor.clone() for tensor in self.outputs(number)),
            {index: shared[index].to(self.device, copy=True) for index in self.probed.mutated},
            {name: self.state(name).clone() for name in self.states},
        )

    def results(self) -> Received:
        """Returns private memory for what a candidate writes in a call."""
        first = self.sets[0]
        return Received(
            tuple(map(self._private_tensor, first.outputs)),
            {index: self._private_tensor(first.inputs[index]) for index in self.probed.mutated},
            {name: self._private_tensor(spec) for name, spec in self.state_specs.items()},
        )

    def _private_tensor(self, spec: TensorSpec) -> torch.Tensor:
        return torch.empty_strided(spec.shape, spec.strides, dtype=spec.torch_dtype, device=self.device)

    def clear(self) -> None:
        """Overwrites all shared buffers, so that nothing of an earlier candidate is left."""
        self.arena.bytes.fill_(POISON_BYTE)
        self.synchronize()

    def poison(self, numbers: Iterable[int]) -> None:
        """Fills the states and the outputs of these sets with NaN patterns, so that missing writes show."""
        specs = [*self.state_specs.values(), *(spec for number in numbers for spec in self.sets[number].outputs)]
        for spec in specs:
            self.memory(spec).fill_(POISON_BYTE)

    def synchronize(self) -> None:
        """Waits for the device."""
        of(self.device).synchronize()

    def _save_weights(self) -> None:
        parameters = {name: tensor.detach() for name, tensor in self._pristine.named_parameters()}
        self.weights.parent.mkdir()
        torch.save({"parameters": parameters, "buffers": dict(self._pristine.named_buffers())}, self.weights)


@dataclass(frozen=True)
class Costs:
    """The costs of the harness's own steps on a GPU. Times are in ms."""

    empty_ms: float
    """The time between two events without work in between."""
    null_ms: float
    """The time of an empty kernel."""
    shown_ms: float
    """The time that the judge's clock reports for an empty kernel."""


def _lay_out_set(probed: ProbeResult, begin: int) -> tuple[BufferSet, int]:
    inputs, middle = lay_out(probed.inputs, begin)
    outputs, end = lay_out(probed.outputs, middle)
    return BufferSet(tuple(inputs), tuple(outputs)), end


def _how_many(set_bytes: int, device: torch.device) -> int:
    """Returns the number of sets of buffers that take `set_bytes` each: as many as the limits above allow, or one if
    times are not compared."""
    if not of(device).kind.times_are_comparable:
        return 1
    room = min(MOST_SETS_BYTES, SETS_MEMORY_SHARE * of(device).free_bytes())
    return max(1, min(MOST_SETS, int(room // max(1, set_bytes))))


def snapshot(model: torch.nn.Module) -> Tensors:
    """Returns copies of a model's buffers, by name."""
    return {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
