"""Locations of a candidate's outputs. CUDA's functions are replaced by ones over two made-up allocations."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from inlinebench.devices.cuda import device_memory
from inlinebench.devices.cuda.device_memory import MOST_OPEN, Exporter, Importer
from inlinebench.wire.locations import BadLocation, Location

ARENA = (0x1000_0000, 4096)
SHARED, OTHER = (0x2000_0000, 1 << 21), (0x3000_0000, 512)
"""An allocation that CUDA can share, and one that it cannot."""


def handle(base: int) -> bytes:
    return base.to_bytes(64, "little")


class Cuda:
    """The two libraries. `opened` counts how often an allocation is open."""

    def __init__(self) -> None:
        self.opened: dict[int, int] = {}

    def cuMemGetAddressRange_v2(self, base: Any, size: Any, address: ctypes.c_void_p) -> int:
        for begin, length in (SHARED, OTHER):
            if begin <= (address.value or 0) < begin + length:
                base._obj.value, size._obj.value = begin, length
                return 0
        return 1

    def cudaIpcGetMemHandle(self, found: Any, base: ctypes.c_void_p) -> int:
        if base.value != SHARED[0]:
            return 1
        ctypes.memmove(found, handle(SHARED[0]), 64)
        return 0

    def cudaIpcOpenMemHandle(self, pointer: Any, wanted: Any, _: Any) -> int:
        base = int.from_bytes(bytes(wanted), "little")
        if base not in (SHARED[0], SHARED[0] + 1):
            return 1
        self.opened[base] = self.opened.get(base, 0) + 1
        pointer._obj.value = base
        return 0

    def cudaIpcCloseMemHandle(self, pointer: ctypes.c_void_p) -> int:
        self.opened[pointer.value or 0] -= 1
        return 0

    def cudaGetLastError(self) -> int:
        return 0


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setattr(device_memory, "cuda_runtime", lambda: made)
    # ctypes.byref of these, and everything else that the module uses, stays what it is.
    monkeypatch.setattr(device_memory, "ctypes", SimpleNamespace(**{**vars(ctypes), "CDLL": lambda name: made}))
    return made


def test_a_place_is_found_again_at_its_offset(cuda: Cuda) -> None:
    place = Exporter(ARENA).locate(SHARED[0] + 512)
    assert place is not None and Location.parse(place.to_json()) == place
    importer = Importer(ARENA)
    assert importer.address(place, SHARED[1] - 512) == SHARED[0] + 512
    assert importer.address(place, 4) == SHARED[0] + 512 and cuda.opened == {SHARED[0]: 1}
    importer.close()
    assert cuda.opened == {SHARED[0]: 0}


def test_a_place_in_the_arena_needs_no_handle(cuda: Cuda) -> None:
    place = Exporter(ARENA).locate(ARENA[0] + 1024)
    assert place == Location("", 1024)
    elsewhere = (0x7000_0000, 4096)  # the same memory has another address in the judge
    assert Importer(elsewhere).address(place, 3072) == elsewhere[0] + 1024
    with pytest.raises(BadLocation, match="outside"):
        Importer(elsewhere).address(place, 3073)


@pytest.mark.parametrize("address", [OTHER[0], 0x5000_0000])
def test_memory_that_cannot_be_shared_has_no_place(cuda: Cuda, address: int) -> None:
    assert Exporter(ARENA).locate(address) is None


@pytest.mark.parametrize(("place", "size"), [
    (Location(handle(SHARED[0]).hex(), SHARED[1] - 3), 4),   # reaches beyond the end
    (Location(handle(SHARED[0]).hex(), 1 << 40), 1),
    (Location(handle(OTHER[0]).hex(), 0), 1),                # CUDA refuses the handle
    (Location(handle(SHARED[0] + 1).hex(), 0), 1),           # its beginning is not that of an allocation
])
def test_a_forged_place_is_refused(cuda: Cuda, place: Location, size: int) -> None:
    importer = Importer(ARENA)
    with pytest.raises(BadLocation):
        importer.address(place, size)
    importer.close()
    assert not any(cuda.opened.values())


def test_allocations_do_not_stay_open_without_end(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    importer, places = Importer(ARENA), [Location(f"{number:0128x}", 0) for number in range(MOST_OPEN + 1)]
    monkeypatch.setattr(importer, "_map", lambda handle: SHARED)
    cuda.opened[SHARED[0]] = len(places)
    for number, place in enumerate(places, 1):
        importer.address(place, 1)
        importer.tidy()
        assert cuda.opened[SHARED[0]] == (len(places) if number <= MOST_OPEN else 0)
