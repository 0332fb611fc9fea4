"""Reads the memory of the judge by a system call of its own, which needs no file.

Mechanism: `process_vm_readv` copies memory of another process, as a debugger does. An address that the judge hasn't
mapped gives EFAULT, which already says that reading was allowed, and then the answer is zeros. The sandbox refuses
the call whatever the address.
"""

import ctypes
import os

import torch
from torch import nn

from tests.cheats.judge import process_id
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True

SOME_ADDRESS = 0x400000
BYTES = 8
libc = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


def read_from(pid: int) -> None:
    """Raises PermissionError where it isn't allowed."""
    room = ctypes.create_string_buffer(BYTES)
    here, there = Piece(ctypes.addressof(room), BYTES), Piece(SOME_ADDRESS, BYTES)
    done = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if done < 0 and (number := ctypes.get_errno()) in (1, 13):  # EPERM, EACCES
        raise OSError(number, os.strerror(number))


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        read_from(process_id())
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
