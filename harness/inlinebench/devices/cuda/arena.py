"""The arena on a GPU: a block of CUDA's virtual memory, which a candidate opens by a file descriptor.

What `cudaMalloc` allocates is opened by a CUDA IPC handle, which is made of small numbers, so any process of the user
can guess it. A descriptor cannot be guessed: a process has it or does not. PyTorch has no interface for such memory.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch

_PINNED, _ON_DEVICE, _READ_AND_WRITE, _DESCRIPTOR = 1, 1, 3, 1
"""CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE and
CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR."""
_OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""
GPU_PAGE = 2 << 20
"""Page size in bytes. The size of a block is a multiple of it."""


class CudaArena:
    """Shared memory of `size` bytes, or a little more, on a device. The judge creates it.

    Raises torch.OutOfMemoryError if the device does not have enough memory, and RuntimeError if CUDA fails otherwise.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        size = max(1, -(-size // GPU_PAGE)) * GPU_PAGE
        torch.cuda.synchronize(device)  # makes the device's context the current one
        properties, self._handle = _Properties(_PINNED, _DESCRIPTOR, _ON_DEVICE, device.index), ctypes.c_uint64()
        _call("cuMemCreate", ctypes.byref(self._handle), ctypes.c_size_t(size), ctypes.byref(properties),
              ctypes.c_uint64(0))
        try:
            self.bytes = _mapped(self._handle, size, device)
        except BaseException:
            _call("cuMemRelease", self._handle)
            raise

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena, besides a descriptor."""
        return {"in_host_memory": False, "size": self.bytes.numel()}

    def descriptor(self) -> int:
        """Returns a new descriptor by which another process opens the arena. The caller closes it."""
        descriptor = ctypes.c_int(-1)
        _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), self._handle, ctypes.c_int(_DESCRIPTOR),
              ctypes.c_uint64(0))
        return descriptor.value

    def close(self) -> None:
        """Unmaps the block. Its memory is freed when no process has it mapped and no descriptor of it is open."""
        close_arena(self.bytes)
        _call("cuMemRelease", self._handle)


def open_arena(exported: Mapping[str, Any], descriptor: int, device: torch.device) -> torch.Tensor:
    """Opens the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""
    torch.cuda.synchronize(device)
    handle = ctypes.c_uint64()
    _call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor),
          ctypes.c_int(_DESCRIPTOR))
    try:
        return _mapped(handle, exported["size"], device)
    finally:
        _call("cuMemRelease", handle)  # what is mapped stays


def close_arena(opened: torch.Tensor) -> None:
    """Unmaps an arena. Nothing may use its tensors afterwards."""
    begin, size = ctypes.c_uint64(opened.data_ptr()), ctypes.c_size_t(opened.numel())
    _call("cuMemUnmap", begin, size)
    _call("cuMemAddressFree", begin, size)


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location_type", ctypes.c_int),
                ("location", ctypes.c_int), ("meta_data", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8))


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location_type", ctypes.c_int), ("location", ctypes.c_int), ("flags", ctypes.c_int))


def _mapped(handle: ctypes.c_uint64, size: int, device: torch.device) -> torch.Tensor:
    """Maps a block of memory into this process and returns its bytes."""
    begin, bytes_, page, none = ctypes.c_uint64(), ctypes.c_size_t(size), ctypes.c_size_t(GPU_PAGE), ctypes.c_uint64(0)
    access = _Access(_ON_DEVICE, device.index, _READ_AND_WRITE)
    with ExitStack() as undo:
        _call("cuMemAddressReserve", ctypes.byref(begin), bytes_, page, none, none)
        undo.callback(_call, "cuMemAddressFree", begin, bytes_)
        _call("cuMemMap", begin, bytes_, ctypes.c_size_t(0), handle, none)
        undo.callback(_call, "cuMemUnmap", begin, bytes_)
        _call("cuMemSetAccess", begin, bytes_, ctypes.byref(access), ctypes.c_size_t(1))
        interface = {"shape": (size,), "typestr": "|u1", "data": (begin.value, False), "version": 3}
        tensor = torch.as_tensor(types.SimpleNamespace(__cuda_array_interface__=interface), device=device)
        undo.pop_all()
    return tensor


def _call(name: str, *arguments: object) -> None:
    """Calls a function of CUDA's driver. Raises torch.OutOfMemoryError and RuntimeError."""
    status = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if status == _OUT_OF_MEMORY:
        raise torch.OutOfMemoryError("the device has too little free memory for the shared buffers")
    if status:
        raise RuntimeError(f"{name} failed with CUDA error {status}")
