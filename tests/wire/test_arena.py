from __future__ import annotations

import json
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.devices.cpu.arena import CpuArena, open_arena
from inlinebench.wire.arena import ALIGNMENT, TensorMeta, TensorSpec, is_dense, lay_out, view

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16,
          torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn)

shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
metas = st.builds(lambda dtype, shape: TensorMeta.of(torch.empty(shape, dtype=dtype)), st.sampled_from(DTYPES), shapes)


@given(st.lists(metas, max_size=6), st.integers(0, 3))
def test_tensors_are_laid_out_in_order_aligned_and_without_overlap(wanted: list[TensorMeta], blocks: int) -> None:
    specs, end = lay_out(wanted, blocks * ALIGNMENT)
    end_before = blocks * ALIGNMENT
    for spec, meta in zip(specs, wanted, strict=True):
        assert spec.offset % ALIGNMENT == 0 and spec.offset >= end_before
        assert (spec.dtype, spec.shape, spec.strides) == (meta.dtype, meta.shape, meta.strides)
        end_before = spec.offset + spec.bytes
    assert end % ALIGNMENT == 0 and end >= end_before


def opened(arena: CpuArena) -> torch.Tensor:
    """Opens an arena as another process does."""
    descriptor = arena.descriptor()
    found = open_arena(json.loads(json.dumps(arena.export())), descriptor)
    os.close(descriptor)
    return found


@given(st.lists(metas, max_size=6))
def test_values_written_through_a_view_are_read_by_another_mapping(wanted: list[TensorMeta]) -> None:
    specs, size = lay_out(wanted)
    arena = CpuArena(size)
    try:
        other = opened(arena)
        for number, spec in enumerate(specs):
            view(arena.bytes, spec).fill_(number % 2)
        for number, spec in enumerate(specs):
            mine = view(other, TensorSpec.from_json(json.loads(json.dumps(spec.to_json()))))
            assert (mine.shape, mine.stride(), mine.dtype) == (spec.shape, spec.strides, spec.torch_dtype)
            assert bool((mine.to(torch.complex128) == number % 2).all())
    finally:
        arena.close()


@pytest.mark.parametrize("tensor", [
    torch.rand(3, 4).t(), torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.rand(4, 1, 5),
    torch.rand(()), torch.rand(2, 3, 4).permute(2, 0, 1),
], ids=["transposed", "channels_last", "size_one", "single", "permuted"])
def test_a_dense_tensor_keeps_its_layout(tensor: torch.Tensor) -> None:
    (spec,), size = lay_out([TensorMeta.of(tensor)])
    arena = CpuArena(size)
    placed = view(arena.bytes, spec).copy_(tensor)
    arena.close()
    assert placed.stride() == tensor.stride()
    assert torch.equal(placed, tensor)


@pytest.mark.parametrize("tensor", [torch.rand(4, 4)[:, :2], torch.rand(3, 1).expand(3, 4), torch.rand(8)[::2]],
                         ids=["slice", "expanded", "step"])
def test_a_tensor_with_gaps_or_overlaps_becomes_contiguous(tensor: torch.Tensor) -> None:
    assert not is_dense(tensor)
    assert TensorMeta.of(tensor).strides == tensor.contiguous().stride()


def test_an_empty_arena_can_be_opened() -> None:
    arena = CpuArena(0)
    assert opened(arena).numel() == 1
    arena.close()


def test_closing_an_arena_closes_its_file() -> None:
    before = len(os.listdir("/proc/self/fd"))
    arena = CpuArena(10)
    opened(arena)
    arena.close()
    del arena  # its mapping has a descriptor, too
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_the_size_of_the_shared_memory_cannot_be_changed(size: int) -> None:
    arena = CpuArena(4096)
    descriptor = arena.descriptor()
    try:
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"behind", 1 << 21)
        assert os.fstat(descriptor).st_size == 4096
    finally:
        os.close(descriptor)
        arena.close()
