"""Memory of the device that a candidate allocated and the judge reads.

A candidate says where its outputs are: in which allocation, by its CUDA IPC handle, and at which offset. The judge
opens the allocation and copies the outputs itself, so nothing has to be credited to a candidate for copies that it may
leave out. What a candidate says about places is checked against the size of the allocation.
"""

from __future__ import annotations

import ctypes

from inlinebench.devices.cuda.runtime import IpcHandle, cuda_runtime
from inlinebench.wire.locations import BadLocation, Location

PEER_ACCESS = 1
"""cudaIpcMemLazyEnablePeerAccess, the only flag that CUDA defines."""
MOST_OPEN = 8
"""The most allocations that stay open for later calls. Memory that a solution frees is not free while it is open here.
"""


class Exporter:
    """Finds the locations of a candidate's memory. `arena` is address and size in bytes of the judge's arena there."""

    def __init__(self, arena: tuple[int, int]) -> None:
        self._arena = arena
        self._runtime, self._driver = cuda_runtime(), ctypes.CDLL("libcuda.so.1")

    def locate(self, address: int) -> Location | None:
        """Returns the location of an address, or None if CUDA cannot share this kind of memory.

        It cannot share what comes from `cudaMallocAsync`, `cudaMallocManaged` or the virtual memory API.
        """
        begin, size = self._arena
        if begin <= address < begin + size:
            return Location("", address - begin)
        found = _range_of(self._driver, address)
        if found is None:
            return None
        handle = IpcHandle()
        if self._runtime.cudaIpcGetMemHandle(ctypes.byref(handle), ctypes.c_void_p(found[0])):
            self._runtime.cudaGetLastError()
            return None
        return Location(bytes(handle).hex(), address - found[0])


class Importer:
    """Opens allocations of candidates. They stay open until `close`, because opening takes a while.

    `arena` is address and size in bytes of the judge's arena.
    """

    def __init__(self, arena: tuple[int, int]) -> None:
        self._arena = arena
        self._runtime, self._driver = cuda_runtime(), ctypes.CDLL("libcuda.so.1")
        self._open: dict[str, tuple[int, int]] = {}

    def address(self, location: Location, size: int) -> int:
        """Returns the address of a place of `size` bytes in this process.

        Raises BadLocation if CUDA cannot open the allocation, or if the place is not inside it.
        """
        if location.handle and location.handle not in self._open:
            self._open[location.handle] = self._map(location.handle)
        base, bytes_ = self._open[location.handle] if location.handle else self._arena
        if location.offset + size > bytes_:
            raise BadLocation("a location is outside its allocation")
        return base + location.offset

    def tidy(self) -> None:
        """Closes the allocations if there are too many of them. Call it when none is being read."""
        if len(self._open) > MOST_OPEN:
            self.close()

    def close(self) -> None:
        """Closes all allocations."""
        for base, _ in self._open.values():
            self._runtime.cudaIpcCloseMemHandle(ctypes.c_void_p(base))
        self._open.clear()

    def _map(self, handle: str) -> tuple[int, int]:
        """Opens an allocation and returns its address and its size in bytes."""
        pointer = ctypes.c_void_p()
        opened = self._runtime.cudaIpcOpenMemHandle(
            ctypes.byref(pointer), IpcHandle.from_buffer_copy(bytes.fromhex(handle)), ctypes.c_uint(PEER_ACCESS))
        if opened or pointer.value is None:
            self._runtime.cudaGetLastError()
            raise BadLocation("an allocation cannot be opened")
        found = _range_of(self._driver, pointer.value)
        if found is None or found[0] != pointer.value:
            self._runtime.cudaIpcCloseMemHandle(pointer)
            raise BadLocation("the size of an allocation is unknown")
        return found


def _range_of(driver: ctypes.CDLL, address: int) -> tuple[int, int] | None:
    """Returns address and size in bytes of the allocation that contains an address, or None if there is none."""
    base, size = ctypes.c_void_p(), ctypes.c_size_t()
    if driver.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_void_p(address)):
        return None
    return (base.value, size.value) if base.value else None
