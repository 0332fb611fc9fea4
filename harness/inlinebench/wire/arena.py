"""The layout of the arena: one block of shared memory for inputs, outputs and states.

The judge owns it and the candidate maps it. What the block is made of differs between devices (`inlinebench.devices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

ALIGNMENT = 512
"""Alignment in bytes, as from cudaMalloc and torch's allocator, so that vector loads work as usual."""


@dataclass(frozen=True)
class TensorSpec:
    """The position and layout of a tensor in the arena."""

    dtype: str
    """Dtype name (`float32`)."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in elements."""
    offset: int
    """Offset into the arena in bytes."""

    @property
    def torch_dtype(self) -> torch.dtype:
        return _torch_dtype(self.dtype)

    @property
    def bytes(self) -> int:
        """The size of the dense tensor in bytes."""
        count = 1
        for size in self.shape:
            count *= size
        return count * self.torch_dtype.itemsize

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TensorSpec:
        return cls(data["dtype"], tuple(data["shape"]), tuple(data["strides"]), data["offset"])


@dataclass(frozen=True)
class TensorMeta:
    """Dtype name, shape and strides of a tensor, without a position."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def torch_dtype(self) -> torch.dtype:
        return _torch_dtype(self.dtype)

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorMeta:
        """Returns the metadata of a tensor, with its strides if it is dense, and contiguous strides otherwise."""
        strides = tensor.stride() if is_dense(tensor) else _contiguous_strides(tensor.shape)
        return cls(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tuple(strides))


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is an ordinary one with strides: not sparse, nested or quantized."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a block of memory without gaps or overlaps, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def used_strides(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Returns the strides of dimensions with more than one element. The others do not matter."""
    if 0 in shape:
        return []
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]


def lay_out(metas: Sequence[TensorMeta], start: int = 0) -> tuple[list[TensorSpec], int]:
    """Lays tensors out one after the other, aligned. Returns the specs and the end of the last tensor in bytes."""
    specs = []
    for meta in metas:
        spec = TensorSpec(meta.dtype, meta.shape, meta.strides, start)
        specs.append(spec)
        start += -(-spec.bytes // ALIGNMENT) * ALIGNMENT
    return specs, start


@dataclass(frozen=True)
class BufferSet:
    """The positions of one call's inputs and outputs."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form for a frame."""
        return {name: [spec.to_json() for spec in specs] for name, specs in vars(self).items()}

    @staticmethod
    def from_json(frame: dict[str, Any]) -> BufferSet:
        """Returns the buffer set from the result of `to_json`."""
        return BufferSet(**{name: tuple(map(TensorSpec.from_json, specs)) for name, specs in frame.items()})


def view(arena: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """Returns a new tensor object over the part of the arena (uint8, 1-d) that `spec` describes."""
    flat = arena[spec.offset : spec.offset + spec.bytes].view(spec.torch_dtype)
    return flat.as_strided(spec.shape, spec.strides)


def _torch_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
