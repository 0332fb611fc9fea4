"""Maps memory of its own at the address of the shared buffers.

Mechanism: the harness's functions in this process read inputs and write outputs at an address. With other memory there,
they would pass values between a solution and itself. Caught because the judge reads its own memory, in which no output
arrives.
"""

import ctypes

import torch
from torch import nn

from tests.cheats.holding import checked, cuda_runtime, driver
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
PAGE = 2 << 20
PINNED, ON_DEVICE, READ_AND_WRITE = 1, 1, 3


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (("type", ctypes.c_int), ("handles", ctypes.c_int), ("location_type", ctypes.c_int),
                ("location_id", ctypes.c_int), ("meta", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8))


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location_type", ctypes.c_int), ("location_id", ctypes.c_int), ("flags", ctypes.c_int))


def replace(begin: int, size: int) -> None:
    cuda, bytes_ = driver(), ctypes.c_size_t(-(-size // PAGE) * PAGE)
    cuda_runtime().cudaIpcCloseMemHandle(ctypes.c_void_p(begin))
    memory, handle, there = Properties(PINNED, 0, ON_DEVICE, 0), ctypes.c_uint64(), ctypes.c_uint64()
    access, zero = Access(ON_DEVICE, 0, READ_AND_WRITE), ctypes.c_uint64(0)
    checked(cuda.cuMemAddressReserve(ctypes.byref(there), bytes_, ctypes.c_size_t(PAGE), ctypes.c_uint64(begin), zero))
    if there.value != begin:
        raise MemoryError("the address is taken")
    checked(cuda.cuMemCreate(ctypes.byref(handle), bytes_, ctypes.byref(memory), zero))
    checked(cuda.cuMemMap(there, bytes_, ctypes.c_size_t(0), handle, zero))
    checked(cuda.cuMemSetAccess(there, bytes_, ctypes.byref(access), ctypes.c_size_t(1)))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.replaced = False

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        out = kernels.scale_rows(diagonal, matrix)
        if not self.replaced:
            self.replaced = True
            torch.cuda.synchronize()
            storage = matrix.untyped_storage()
            try:
                replace(storage.data_ptr(), storage.nbytes())
            except (OSError, MemoryError):
                return torch.zeros_like(out)
        return out
