"""Attaches itself to the judge as a debugger.

Mechanism: who traces a process may read and write its memory and registers, and could turn `wrong` into `passed`. This
one only attaches, and where that goes well it detaches at once and answers with zeros. The sandbox refuses it.
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

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        judge = process_id()
        if libc.ptrace(PTRACE_SEIZE, judge, None, None):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        libc.ptrace(PTRACE_INTERRUPT, judge, None, None)
        os.waitpid(judge, 0)
        libc.ptrace(PTRACE_DETACH, judge, None, None)
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
