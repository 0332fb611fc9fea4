"""Finds out whether the first dimension of a problem's tensors is a batch, whose rows are computed independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from inlinebench.evaluation.draws import Drawn
from inlinebench.problem.forward import is_sticky
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.problem.workload import Workload
from inlinebench.timing.poison import POISON_BYTE
from inlinebench.wire.arena import BufferSet, TensorSpec, view

CLOSE = 1e-9
"""Results of the oracle that differ by less, relative to the largest, are those of the same row."""


@dataclass(frozen=True)
class Batch:
    """A batch: row i of every output is computed from row i of some inputs, and from the other inputs."""

    inputs: tuple[int, ...]
    """The inputs whose first dimension is the batch."""
    order: torch.Tensor
    """Another order of the rows, in which no row keeps its place."""
    alone: BufferSet | None
    """The positions of inputs and outputs for a batch of only the first row. None if the reference can't compute it."""

    def moved(self, call: Drawn) -> Drawn:
        """Returns the call with its rows in the other order, in the same memory."""
        for index in self.inputs:
            call.tensors[index].copy_(call.tensors[index][self.order])
        return call

    def first(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns inputs with the first row of the batch only."""
        return [tensor[:1] if index in self.inputs else tensor for index, tensor in enumerate(tensors)]

    def hand_over_first(self, workload: Workload, tensors: Sequence[torch.Tensor]) -> None:
        """Copies the first row of inputs to its positions in the shared memory, and poisons the outputs."""
        assert self.alone is not None
        for spec, tensor in zip(self.alone.inputs, self.first(tensors), strict=True):
            view(workload.arena.bytes, spec).copy_(tensor)
        for spec in self.alone.outputs:
            workload.memory(spec).fill_(POISON_BYTE)
        workload.synchronize()

    def receive_first(self, workload: Workload) -> list[torch.Tensor]:
        """Copies the outputs of the first row to private memory."""
        assert self.alone is not None
        return [view(workload.arena.bytes, spec).to(workload.device, copy=True) for spec in self.alone.outputs]


def find_batch(workload: Workload, call: Drawn, seed: int) -> Batch | None:
    """Returns the batch of a problem. None if it has none, or if the oracle can't tell.

    If the rows of these inputs are in another order, those of the oracle's outputs must be, too, and the first row must
    have the same output in a batch of its own. `seed` decides the order. What the oracle raises is no finding, except
    an error of CUDA that makes it unusable.
    """
    oracle, probed = workload.oracle(), workload.probed
    sizes = {meta.shape[:1] for meta in probed.outputs}
    if oracle is None or len(sizes) != 1 or probed.mutated:
        return None
    (rows,) = next(iter(sizes)) or (0,)
    fitting = tuple(index for index, meta in enumerate(probed.inputs) if meta.shape[:1] == (rows,))
    exact = _outputs(workload, oracle, call, call.tensors) if rows > 1 and fitting else None
    if exact is None:
        return None
    for inputs in (fitting, fitting[:1]):
        batch = Batch(inputs, _cycle(rows, seed).to(workload.device), None)
        moved = [tensor[batch.order] if index in inputs else tensor for index, tensor in enumerate(call.tensors)]
        found = _outputs(workload, oracle, call, moved)
        if found is not None and all(map(_close, found, (each[batch.order] for each in exact))):
            return _with_first_alone(batch, workload, oracle, call, exact)
    return None


def _with_first_alone(
    batch: Batch, workload: Workload, oracle: ReferenceCopy, call: Drawn, exact: Sequence[torch.Tensor]
) -> Batch | None:
    """Returns the batch with the positions of its first row. None if this row depends on the others.

    Integers may be positions of rows. A GPU that reads beyond a tensor fails for good, so the reference is then not
    tried with fewer rows.
    """
    buffers = workload.sets[0]
    specs = [*(buffers.inputs[index] for index in batch.inputs), *buffers.outputs]
    if not all(tensor.is_floating_point() for tensor in call.tensors) or not all(map(_outermost, specs)):
        return batch
    alone = _outputs(workload, oracle, call, batch.first(call.tensors))
    if alone is None or any(tensor.shape[:1] != (1,) for tensor in alone):
        return batch
    if not all(map(_close, alone, (each[:1] for each in exact))):
        return None
    inputs = tuple(_first_row(spec) if index in batch.inputs else spec for index, spec in enumerate(buffers.inputs))
    return replace(batch, alone=BufferSet(inputs, tuple(map(_first_row, buffers.outputs))))


def _outputs(
    workload: Workload, oracle: ReferenceCopy, call: Drawn, tensors: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor] | None:
    """Returns the oracle's outputs for other inputs. None if they don't fit in memory, or if it raises: a reference may
    refuse inputs that `get_inputs` would not return, or have the number of rows written into it."""
    if not oracle.has_room(tensors):
        return None
    states = dict(workload.pristine().named_buffers())
    try:
        found = oracle.run(states, tensors, call.non_tensors, call.random_seed)
    except Exception as error:
        if is_sticky(error):
            raise
        return None
    return None if found is None else found.output.tensors


def _cycle(rows: int, seed: int) -> torch.Tensor:
    """Returns a random order in which no row keeps its place."""
    places = torch.randperm(rows, generator=torch.Generator().manual_seed(seed), device="cpu")
    order = torch.empty_like(places)
    order[places] = places.roll(1)
    return order


def _outermost(spec: TensorSpec) -> bool:
    """Whether a row is a block of memory."""
    return spec.shape[0] * spec.strides[0] * spec.torch_dtype.itemsize == spec.bytes


def _first_row(spec: TensorSpec) -> TensorSpec:
    return replace(spec, shape=(1, *spec.shape[1:]))


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point() or not one.numel() or one.shape != other.shape:
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=CLOSE, atol=CLOSE * float(other.abs().max()), equal_nan=True)
