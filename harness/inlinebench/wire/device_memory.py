"""Memory of the device that a candidate allocated and the judge reads.

A candidate says where its outputs are: in which allocation, by its CUDA IPC handle, and at which offset. The judge
opens the allocation and copies the outputs itself, so nothing has to be credited to a candidate for copies that it may
leave out. What a candidate says about places is checked against the size of the allocation.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inlinebench.wire.arena import IpcHandle, cuda_runtime

HANDLE = re.compile(r"(?:[0-9a-f]{128})?")
"""A CUDA IPC handle in hexadecimal digits, or nothing."""
PEER_ACCESS = 1
"""cudaIpcMemLazyEnablePeerAccess, the only flag that CUDA defines."""
MOST_OPEN = 8
"""The most allocations that stay open for later calls. Memory that a solution frees is not free while it is open here.
"""


class BadLocation(ValueError):
    """The candidate's description of a place is not one, or lies outside an allocation."""


@dataclass(frozen=True)
class Location:
    """A place in a candidate's memory on the device, or in the arena."""

    handle: str
    """The CUDA IPC handle of the allocation, in hexadecimal digits. Empty for the judge's arena."""
    offset: int
    """The offset of the place in the allocation, in bytes."""

    @classmethod
    def parse(cls, value: Any) -> Location:
        """Returns the location from the result of `to_json`. Raises BadLocation."""
        if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int):
            raise BadLocation("a location has another form")
        if not HANDLE.fullmatch(value[0]) or not 0 <= value[1] < 1 << 48:
            raise BadLocation("a location is out of range")
        return cls(*value)

    def to_json(self) -> list[Any]:
        """Returns the JSON form for a frame."""
        return [self.handle, self.offset]


Places = Sequence[Location | None]
"""The locations of a call's outputs and states. None for those that were copied to the judge's buffers."""


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
