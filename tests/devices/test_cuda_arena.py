"""The arena on a GPU, over a made-up driver that records its calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch

from inlinebench.devices.cuda import arena
from inlinebench.devices.cuda.arena import GPU_PAGE, CudaArena, close_arena, open_arena

GPU = torch.device("cuda", 3)
ADDRESS, HANDLE, DESCRIPTOR = 0x7000_0000_0000, 77, 42
OPENED = {"in_host_memory": False, "size": GPU_PAGE}


class Block:
    """The bytes of a block of memory."""

    def __init__(self, address: int, size: int) -> None:
        self.data_ptr, self.numel = lambda: address, lambda: size


class Driver:
    """Records the functions that are called. `failing` returns `status`."""

    def __init__(self) -> None:
        self.called, self.failing, self.status = list[str](), "", 0
        self.properties: Any = None

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.called.append(name.removeprefix("cuMem"))
            if name == self.failing:
                return self.status
            if name in ("cuMemCreate", "cuMemImportFromShareableHandle"):
                arguments[0]._obj.value = HANDLE
            if name == "cuMemCreate":
                self.properties = arguments[2]._obj
            if name == "cuMemAddressReserve":
                arguments[0]._obj.value = ADDRESS
            if name == "cuMemExportToShareableHandle":
                assert arguments[1].value == HANDLE
                arguments[0]._obj.value = DESCRIPTOR
            return 0

        return function


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: made)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)

    def as_tensor(block: Any, device: torch.device) -> Block:
        interface = block.__cuda_array_interface__
        return Block(interface["data"][0], interface["shape"][0])

    monkeypatch.setattr(torch, "as_tensor", as_tensor)
    return made


@pytest.mark.parametrize(("size", "pages"), [(0, 1), (1, 1), (GPU_PAGE, 1), (GPU_PAGE + 1, 2)])
def test_an_arena_is_created_shared_and_closed(driver: Driver, size: int, pages: int) -> None:
    made = CudaArena(size, GPU)
    assert (made.bytes.data_ptr(), made.descriptor()) == (ADDRESS, DESCRIPTOR)
    assert made.export() == {"in_host_memory": False, "size": pages * GPU_PAGE}
    assert (driver.properties.location, driver.properties.handle_types) == (3, 1)
    made.close()
    assert driver.called == ["Create", "AddressReserve", "Map", "SetAccess", "ExportToShareableHandle",
                             "Unmap", "AddressFree", "Release"]


def test_an_arena_is_opened_by_its_descriptor(driver: Driver) -> None:
    opened = open_arena(OPENED, DESCRIPTOR, GPU)
    assert opened.data_ptr() == ADDRESS
    close_arena(opened)
    assert driver.called == ["ImportFromShareableHandle", "AddressReserve", "Map", "SetAccess", "Release",
                             "Unmap", "AddressFree"]


@pytest.mark.parametrize("begin", [lambda: CudaArena(1, GPU), lambda: open_arena(OPENED, DESCRIPTOR, GPU)],
                         ids=["created", "opened"])
@pytest.mark.parametrize(("failing", "undone"), [
    ("cuMemAddressReserve", ["Release"]), ("cuMemMap", ["AddressFree", "Release"]),
    ("cuMemSetAccess", ["Unmap", "AddressFree", "Release"]),
])
def test_what_was_done_before_a_failure_is_undone(
    driver: Driver, begin: Callable[[], object], failing: str, undone: list[str]
) -> None:
    driver.failing, driver.status = failing, 1
    with pytest.raises(RuntimeError, match=failing):
        begin()
    assert driver.called[driver.called.index(failing.removeprefix("cuMem")) + 1 :] == undone


def test_a_lack_of_memory_is_told_apart(driver: Driver) -> None:
    driver.failing, driver.status = "cuMemCreate", arena._OUT_OF_MEMORY
    with pytest.raises(torch.OutOfMemoryError, match="shared buffers"):
        CudaArena(1, GPU)


def test_the_structures_have_the_sizes_of_cudas() -> None:
    assert ctypes.sizeof(arena._Properties) == 32
    assert ctypes.sizeof(arena._Access) == 12
