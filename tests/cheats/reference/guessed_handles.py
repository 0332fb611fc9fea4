"""Searches memory that opens by guessed IPC handles for a finished output.

Mechanism: a handle of CUDA IPC is made of a process's id and small numbers, and it opens a whole allocation, whoever
made it. Handles near the arena's would open the judge's other allocations: private inputs and the reference's outputs.
Caught because the judge's tensors are in memory that no handle opens.
"""

import ctypes

import torch
from torch import nn

from inlinebench.candidate import candidate as harness
from inlinebench.wire.arena import IpcHandle, cuda_runtime
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
GUESSES = 2000
handles: list[bytes] = []
plain_open = harness.open_arena


def open_arena(exported: dict[str, object], *rest: object) -> torch.Tensor:
    handles.append(bytes.fromhex(str(exported.get("handle", ""))))
    return plain_open(exported, *rest)  # type: ignore[arg-type]


harness.open_arena = open_arena  # type: ignore[attr-defined]


def guesses(handle: bytes) -> list[bytes]:
    """Handles that differ in one of their words by a little."""
    words = [int.from_bytes(handle[at : at + 4], "little") for at in range(0, len(handle), 4)]
    found = []
    for distance in range(1, GUESSES // (2 * len(words)) + 1):
        for at, word in enumerate(words):
            for other in (word + distance, word - distance):
                changed = [*words[:at], other & 0xFFFFFFFF, *words[at + 1 :]]
                found.append(b"".join(each.to_bytes(4, "little") for each in changed))
    return found


def opened(handle: bytes, size: int, device: torch.device) -> torch.Tensor | None:
    """The first bytes of the allocation of a handle, if it opens."""
    pointer, runtime = ctypes.c_void_p(), cuda_runtime()
    if runtime.cudaIpcOpenMemHandle(ctypes.byref(pointer), IpcHandle.from_buffer_copy(handle), ctypes.c_uint(1)):
        runtime.cudaGetLastError()
        return None
    host = ctypes.create_string_buffer(size)
    read = runtime.cudaMemcpy(host, pointer, ctypes.c_size_t(size), 2) == 0
    runtime.cudaIpcCloseMemHandle(pointer)
    return torch.frombuffer(host, dtype=torch.float32).to(device) if read else None


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        first, last = float(diagonal[0] * matrix[0, 0]), float(diagonal[-1] * matrix[-1, -1])
        for handle in guesses(handles[0]) if handles and handles[0] else []:
            found = opened(handle, matrix.numel() * matrix.element_size(), matrix.device)
            if found is not None and float(found[0]) == first and float(found[-1]) == last:
                return found.reshape(matrix.shape)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
