"""The arena on a GPU: a separate `cudaMalloc`, opened through CUDA IPC.

An IPC handle always opens the whole allocation, so it must contain nothing else of the judge's, which torch's caching
allocator does not guarantee. Torch's own tensor sharing counts references across processes and would leak one with each
killed candidate; the plain runtime calls do not count references.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Mapping
from typing import Any

import torch

from inlinebench.devices.cuda.runtime import IpcHandle, checked, cuda_runtime

GPU_PAGE = 2 << 20
"""Page size in bytes. An allocation whose size is not a multiple of it is mapped with small pages in the process that
opens it: on an H100 a float32 matrix product that reads its input through such a mapping takes 1.4 % longer than in the
process that made the allocation, and a reference against itself came out at 0.988."""


class CudaArena:
    """A `cudaMalloc` of `size` bytes on a device.

    Raises torch.OutOfMemoryError if the device does not have enough memory.
    """

    fd: int | None = None

    def __init__(self, size: int, device: torch.device) -> None:
        size = max(1, -(-size // GPU_PAGE)) * GPU_PAGE
        self._runtime = cuda_runtime()
        torch.cuda.set_device(device)
        pointer = ctypes.c_void_p()
        status = self._runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
        if status:
            self._runtime.cudaGetLastError()
            raise torch.OutOfMemoryError(f"the device cannot allocate {size} bytes for the shared buffers")
        self._pointer, self._device = pointer, device
        self.bytes = _wrap_pointer(pointer.value, size, device)

    def export(self) -> dict[str, Any]:
        """Returns what the candidate needs to open the arena."""
        handle = (ctypes.c_char * 64)()
        checked(self._runtime.cudaIpcGetMemHandle(handle, self._pointer), "cudaIpcGetMemHandle")
        return {"in_host_memory": False, "handle": bytes(handle).hex(), "size": self.bytes.numel()}

    def close(self) -> None:
        checked(self._runtime.cudaFree(self._pointer), "cudaFree")


def open_arena(exported: Mapping[str, Any], device: torch.device) -> torch.Tensor:
    """Opens the judge's arena in the candidate and returns its bytes (uint8, 1-d)."""
    torch.cuda.set_device(device)
    handle = IpcHandle.from_buffer_copy(bytes.fromhex(exported["handle"]))
    pointer = ctypes.c_void_p()
    # 1 is cudaIpcMemLazyEnablePeerAccess, the only flag that CUDA defines.
    status = cuda_runtime().cudaIpcOpenMemHandle(ctypes.byref(pointer), handle, ctypes.c_uint(1))
    checked(status, "cudaIpcOpenMemHandle")
    return _wrap_pointer(pointer.value, exported["size"], device)


def close_arena(opened: torch.Tensor) -> None:
    """Closes an arena on a GPU that `open_arena` opened. Its memory is not freed before."""
    checked(cuda_runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(opened.data_ptr())), "cudaIpcCloseMemHandle")


def _wrap_pointer(pointer: int | None, size: int, device: torch.device) -> torch.Tensor:
    block = types.SimpleNamespace(
        __cuda_array_interface__={"shape": (size,), "typestr": "|u1", "data": (pointer, False), "version": 3}
    )
    return torch.as_tensor(block, device=device)
