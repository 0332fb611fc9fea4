"""Outputs that lie elsewhere each time, and memory that the GPU knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from inlinebench.timing import output_rotation as module
from inlinebench.timing.cpu import CpuClock
from inlinebench.timing.output_rotation import MOST_BYTES, MOST_PLACES, KnownMemory, OutputRotation

SIZE = 1 << 20


def addresses(places: OutputRotation, sizes: list[int], calls: int, device: str) -> list[tuple[int, ...]]:
    """Where blocks of these sizes lie that are allocated for one call after the other, and freed behind it."""
    found = []
    for _ in range(calls):
        places.move_on()
        outputs = [torch.empty(size, dtype=torch.uint8, device=device) for size in sizes]
        found.append(tuple(output.data_ptr() for output in outputs))
        del outputs
    return found


@pytest.mark.gpu
def test_outputs_take_their_places_in_turn() -> None:
    sizes = [SIZE, 3 * SIZE]
    found = addresses(OutputRotation(sizes, torch.device("cuda")), sizes, 3 * MOST_PLACES, "cuda")
    for each in zip(*found, strict=True):
        assert len(set(each)) == MOST_PLACES
        assert list(each[:MOST_PLACES]) == list(each[MOST_PLACES : 2 * MOST_PLACES])


@pytest.mark.gpu
def test_what_streams_has_one_place() -> None:
    before = torch.cuda.memory_allocated()
    places = OutputRotation([MOST_BYTES], torch.device("cuda"))
    assert torch.cuda.memory_allocated() == before
    assert len(set(addresses(places, [MOST_BYTES], 3, "cuda"))) == 1


def test_the_cpu_needs_none() -> None:
    places = OutputRotation([SIZE], torch.device("cpu"))
    places.move_on()
    assert not places._blocks


class Touching(CpuClock):
    """A clock that notes what is touched."""

    def __init__(self) -> None:
        super().__init__()
        self.touched: list[tuple[int, int]] = []

    def touch(self, address: int, size: int) -> None:
        self.touched.append((address, size))


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What PyTorch's allocator is made to say: its segments, and how often they changed; and how often it was asked."""
    said: dict[str, Any] = {"segments": [], "allocated": 0, "freed": 0, "asked": 0,
                            "backend": "native"}

    def segments() -> list[dict[str, int]]:
        said["asked"] += 1
        names = ("device", "address", "total_size")
        return [dict(zip(names, each, strict=True)) for each in said["segments"]]

    monkeypatch.setattr(module, "_segments", segments)
    monkeypatch.setattr(module, "_statistics", lambda _: {"reserved_bytes": {"all": said}})
    monkeypatch.setattr(module, "_backend", lambda: said["backend"])
    return said


def test_all_that_is_held_on_the_device_is_touched_before_each_call(allocator: dict[str, Any]) -> None:
    allocator |= {"segments": [(0, 4096, 100), (1, 8192, 200), (0, 12288, 300)], "allocated": 3}
    clock = Touching()
    memory = KnownMemory(clock, torch.device("cuda:0"))
    for _ in range(3):
        memory.look_up()
    assert clock.touched == 3 * [(4096, 100), (12288, 300)]
    assert allocator["asked"] == 1


def test_what_was_freed_is_never_touched_again(allocator: dict[str, Any]) -> None:
    """Touching it would be an error of the GPU's, also where as much was allocated anew elsewhere."""
    clock = Touching()
    memory = KnownMemory(clock, torch.device("cuda:0"))
    allocator |= {"segments": [(0, 4096, 100)], "allocated": 1}
    memory.look_up()
    allocator |= {"segments": [(0, 8192, 100)], "allocated": 2, "freed": 1}
    memory.look_up()
    assert clock.touched == [(4096, 100), (8192, 100)]


@pytest.mark.parametrize(("device", "backend"), [("cpu", "native"), ("cuda:0", "cudaMallocAsync")])
def test_nothing_is_asked_where_nothing_is_told(allocator: dict[str, Any], device: str, backend: str) -> None:
    allocator["backend"] = backend
    KnownMemory(Touching(), torch.device(device)).look_up()
    assert allocator["asked"] == 0


ALLOCATORS = ("expandable_segments:True", "expandable_segments:False", "backend:cudaMallocAsync")
SESSION = """
import torch
from inlinebench.timing.cpu import CpuClock
from inlinebench.timing.output_rotation import KnownMemory

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
def test_only_what_is_held_is_touched_with_every_allocator(allocator: str) -> None:
    subprocess.run([sys.executable, "-c", SESSION], check=True, env={
        **os.environ, "PYTORCH_CUDA_ALLOC_CONF": allocator, "PYTHONPATH": str(Path(__file__).parents[2] / "harness")})


@pytest.mark.gpu
def test_the_allocator_s_own_words_are_as_they_are_read() -> None:
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
