"""The inputs, or the outputs, of all sets of buffers as rows, which one kernel of the judge's writes or copies away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from inlinebench.wire.arena import ALIGNMENT, BufferSet, TensorSpec, view


class RowCopier(Protocol):
    """Queues a kernel that copies rows of bytes (`GpuClock.copy_rows`)."""

    def copy_rows(self, target: tuple[int, int], source: tuple[int, int], row_bytes: int, rows: int) -> None: ...


@dataclass(frozen=True)
class Rows:
    """The same tensors of each set of buffers. The judge keeps copies of them in memory of its own, row by row."""

    specs: tuple[tuple[TensorSpec, ...], ...]
    """The positions of the tensors in the arena, for each set."""
    pitch: int
    """The distance between two sets in bytes."""

    @classmethod
    def inputs(cls, sets: Sequence[BufferSet]) -> Rows:
        """Returns the inputs of the sets."""
        return cls(tuple(each.inputs for each in sets), _pitch(sets))

    @classmethod
    def outputs(cls, sets: Sequence[BufferSet]) -> Rows:
        """Returns the outputs of the sets."""
        return cls(tuple(each.outputs for each in sets), _pitch(sets))

    @property
    def begin(self) -> int:
        """The offset of the first row in the arena, in bytes."""
        return self.specs[0][0].offset if self.specs[0] else 0

    @property
    def bytes(self) -> int:
        """The size of a row: the tensors of a set lie one after the other."""
        specs = self.specs[0]
        return specs[-1].offset + -(-specs[-1].bytes // ALIGNMENT) * ALIGNMENT - self.begin if specs else 0

    def allocate(self, rows: int, device: torch.device) -> torch.Tensor:
        """Returns memory for copies of the first rows (uint8, 2-d). Each row begins aligned, also if rows are empty."""
        return torch.empty((rows, max(self.bytes, ALIGNMENT)), dtype=torch.uint8, device=device)

    def tensors(self, memory: torch.Tensor, number: int) -> list[torch.Tensor]:
        """Returns views of the tensors of a set in such memory."""
        begin = self.begin + number * self.pitch
        return [view(memory[number], replace(spec, offset=spec.offset - begin)) for spec in self.specs[number]]

    def write(self, clock: RowCopier, arena: torch.Tensor, memory: torch.Tensor) -> None:
        """Queues the copy of such memory into the arena."""
        shared, own = (arena.data_ptr() + self.begin, self.pitch), (memory.data_ptr(), self.bytes)
        clock.copy_rows(shared, own, self.bytes, memory.shape[0])

    def read(self, clock: RowCopier, arena: torch.Tensor, memory: torch.Tensor) -> None:
        """Queues the copy of the rows in the arena into such memory."""
        shared, own = (arena.data_ptr() + self.begin, self.pitch), (memory.data_ptr(), self.bytes)
        clock.copy_rows(own, shared, self.bytes, memory.shape[0])


def _pitch(sets: Sequence[BufferSet]) -> int:
    """Returns the distance between two sets, which have one layout. 0 if there is one set or no tensor."""
    begins = [each.offset for buffers in sets[:2] for each in (*buffers.inputs, *buffers.outputs)[:1]]
    return begins[1] - begins[0] if len(begins) == 2 else 0
