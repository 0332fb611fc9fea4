"""Handles of CUDA IPC near those that a candidate has, and what they open."""

import ctypes
from collections.abc import Iterator

import torch

from inlinebench.devices.cuda.runtime import IpcHandle, cuda_runtime

HANDLE_BYTES, WORD_BYTES = 64, 4
TO_HOST = 2
"""cudaMemcpyDeviceToHost."""


def own_handle(device: torch.device, content: int = 0) -> bytes:
    """The handle of an allocation of this process, which stays allocated. All its bytes are `content`."""
    pointer, handle, size = ctypes.c_void_p(), IpcHandle(), ctypes.c_size_t(2 << 20)
    torch.cuda.set_device(device)
    cuda_runtime().cudaMalloc(ctypes.byref(pointer), size)
    cuda_runtime().cudaMemset(pointer, content, size)
    cuda_runtime().cudaIpcGetMemHandle(ctypes.byref(handle), pointer)
    return bytes(handle)


def guesses(handle: bytes, count: int) -> Iterator[bytes]:
    """Yields handles that differ from one in one of its words, the nearest ones first."""
    words = [handle[at : at + WORD_BYTES] for at in range(0, HANDLE_BYTES, WORD_BYTES)]
    for number in range(count):
        distance, at = number // (2 * len(words)) + 1, number // 2 % len(words)
        other = int.from_bytes(words[at], "little") + (distance if number % 2 else -distance)
        changed = (other % (1 << 8 * WORD_BYTES)).to_bytes(WORD_BYTES, "little")
        yield b"".join([*words[:at], changed, *words[at + 1 :]])


def beginning(handle: bytes, size: int) -> bytes | None:
    """The first bytes of the allocation of a handle, as many as can be read. None if it does not open."""
    pointer, runtime = ctypes.c_void_p(), cuda_runtime()
    if runtime.cudaIpcOpenMemHandle(ctypes.byref(pointer), IpcHandle.from_buffer_copy(handle), ctypes.c_uint(1)):
        runtime.cudaGetLastError()
        return None
    host = ctypes.create_string_buffer(size)
    read = runtime.cudaMemcpy(host, pointer, ctypes.c_size_t(size), TO_HOST) == 0
    runtime.cudaGetLastError()
    runtime.cudaIpcCloseMemHandle(pointer)
    return host.raw if read else b""
