"""Outputs at another address in each call, and memory whose addresses the GPU knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.devices.cuda import output_rotation as module
from inlinebench.devices.cuda.output_rotation import MOST_BLOCKS, MOST_BYTES, KnownMemory, OutputRotation

SIZE = 1 << 20


def addresses(rotation: OutputRotation, sizes: list[int], calls: int, device: str) -> list[tuple[int, ...]]:
    """Addresses of blocks of these sizes that are allocated for each call and freed after it."""
    found = []
    for _ in range(calls):
        rotation.move_on()
        outputs = [torch.empty(size, dtype=torch.uint8, device=device) for size in sizes]
        found.append(tuple(output.data_ptr() for output in outputs))
        del outputs
    return found


@pytest.mark.gpu
def test_outputs_rotate_through_all_blocks() -> None:
    sizes = [SIZE, 3 * SIZE]
    found = addresses(OutputRotation(sizes, torch.device("cuda")), sizes, 3 * MOST_BLOCKS, "cuda")
    for each in zip(*found, strict=True):
        assert len(set(each)) == MOST_BLOCKS
        assert list(each[:MOST_BLOCKS]) == list(each[MOST_BLOCKS : 2 * MOST_BLOCKS])


def test_the_bytes_that_are_held_in_a_call_are_those_of_all_blocks_but_one_of_each_size() -> None:
    rotation = OutputRotation([SIZE, 3 * SIZE], torch.device("cpu"))
    for _ in range(2 * MOST_BLOCKS):
        rotation.move_on()
        held = [block for blocks in rotation._blocks for block in blocks if block is not None]
        assert rotation.held_bytes == sum(block.numel() for block in held) == 4 * SIZE * (MOST_BLOCKS - 1)
    assert OutputRotation([MOST_BYTES], torch.device("cpu")).held_bytes == 0
    assert OutputRotation([], torch.device("cpu")).held_bytes == 0


@pytest.mark.gpu
def test_large_outputs_are_not_rotated() -> None:
    before = torch.cuda.memory_allocated()
    rotation = OutputRotation([MOST_BYTES], torch.device("cuda"))
    assert torch.cuda.memory_allocated() == before
    assert len(set(addresses(rotation, [MOST_BYTES], 3, "cuda"))) == 1


class Touching(CpuClock):
    """A clock that records which memory is touched."""

    def __init__(self) -> None:
        super().__init__()
        self.touched: list[tuple[int, int]] = []

    def touch(self, address: int, size: int) -> None:
        self.touched.append((address, size))


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Fakes PyTorch's allocator: its segments, how much was allocated and freed, and how often they were listed."""
    state: dict[str, Any] = {"segments": [], "allocated": 0, "freed": 0, "asked": 0, "backend": "native"}

    def segments() -> list[dict[str, int]]:
        state["asked"] += 1
        names = ("device", "address", "total_size")
        return [dict(zip(names, each, strict=True)) for each in state["segments"]]

    monkeypatch.setattr(module, "_segments", segments)
    monkeypatch.setattr(module, "_statistics", lambda _: {"reserved_bytes": {"all": state}})
    monkeypatch.setattr(module, "_backend", lambda: state["backend"])
    return state


def test_all_segments_of_the_device_are_touched_before_each_call(allocator: dict[str, Any]) -> None:
    allocator |= {"segments": [(0, 4096, 100), (1, 8192, 200), (0, 12288, 300)], "allocated": 3}
    clock = Touching()
    memory = KnownMemory(clock, torch.device("cuda:0"))
    for _ in range(3):
        memory.look_up()
    assert clock.touched == 3 * [(4096, 100), (12288, 300)]
    assert allocator["asked"] == 1


def test_freed_memory_is_not_touched_again(allocator: dict[str, Any]) -> None:
    """Touching it would be a GPU error, even if the same amount was allocated again elsewhere."""
    clock = Touching()
    memory = KnownMemory(clock, torch.device("cuda:0"))
    allocator |= {"segments": [(0, 4096, 100)], "allocated": 1}
    memory.look_up()
    allocator |= {"segments": [(0, 8192, 100)], "allocated": 2, "freed": 1}
    memory.look_up()
    assert clock.touched == [(4096, 100), (8192, 100)]


def test_segments_are_not_listed_if_the_allocator_does_not_report_them(allocator: dict[str, Any]) -> None:
    allocator["backend"] = "cudaMallocAsync"
    KnownMemory(Touching(), torch.device("cuda:0")).look_up()
    assert allocator["asked"] == 0


ALLOCATORS = ("expandable_segments:True", "expandable_segments:False", "backend:cudaMallocAsync")
SESSION = """
import torch
from inlinebench.devices.cpu.clock import CpuClock
from inlinebench.devices.cuda.output_rotation import KnownMemory

class Reading(CpuClock):
    def touch(self, address, size):
        held = [(each["address"], each["total_size"]) for each in torch.cuda.memory_snapshot()]
        assert (address, size) in held, (address, size, held)

memory = KnownMemory(Reading(), torch.device("cuda", 0))
kept = [torch.empty(30 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
memory.look_up()
for _ in range(2):
    kept.pop()
    torch.cuda.empty_cache()
    memory.look_up()
    torch.empty(70 << 20, dtype=torch.uint8, device="cuda")
    memory.look_up()
"""


@pytest.mark.gpu
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_only_allocated_segments_are_touched_with_every_allocator(allocator: str) -> None:
    subprocess.run([sys.executable, "-c", SESSION], check=True, env={
        **os.environ, "PYTORCH_CUDA_ALLOC_CONF": allocator, "PYTHONPATH": str(Path(__file__).parents[2] / "harness")})


@pytest.mark.gpu
def test_the_real_allocator_reports_its_segments_as_expected() -> None:
    clock = Touching()
    memory = KnownMemory(clock, torch.device("cuda", torch.cuda.current_device()))
    kept = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
    memory.look_up()
    assert any(address <= kept.data_ptr() < address + size for address, size in clock.touched)
    del kept
    torch.cuda.empty_cache()
    clock.touched.clear()
    memory.look_up()
    assert sum(size for _, size in clock.touched) == torch.cuda.memory_reserved()
