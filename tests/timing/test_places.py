"""Outputs that lie elsewhere each time."""

from __future__ import annotations

import pytest
import torch

from harness.timing.places import MOST_BYTES, MOST_PLACES, Places

SIZE = 1 << 20


def addresses(places: Places, sizes: list[int], calls: int, device: str) -> list[tuple[int, ...]]:
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
    found = addresses(Places(sizes, torch.device("cuda")), sizes, 3 * MOST_PLACES, "cuda")
    for each in zip(*found, strict=True):
        assert len(set(each)) == MOST_PLACES
        assert list(each[:MOST_PLACES]) == list(each[MOST_PLACES : 2 * MOST_PLACES])


@pytest.mark.gpu
def test_what_streams_has_one_place() -> None:
    before = torch.cuda.memory_allocated()
    places = Places([MOST_BYTES], torch.device("cuda"))
    assert torch.cuda.memory_allocated() == before
    assert len(set(addresses(places, [MOST_BYTES], 3, "cuda"))) == 1


def test_the_cpu_needs_none() -> None:
    places = Places([SIZE], torch.device("cpu"))
    places.move_on()
    assert not places._blocks
