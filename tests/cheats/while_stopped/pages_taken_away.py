"""Has the kernel drop the pages of the shared inputs, which then read as zeros.

Mechanism: madvise with MADV_REMOVE empties a shared mapping and its file at once. Caught because reference and
comparison read private inputs, and the judge compares the shared ones with them.
"""

import ctypes
import mmap

import torch

from tests.cheats.waking import LIBC, LateZeros, in_a_thread

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "


MADV_REMOVE = 9


class ModelNew(LateZeros):
    def start(self, values: torch.Tensor) -> None:
        begin = values.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
        size = values.data_ptr() + values.numel() * values.element_size() - begin
        in_a_thread(values, lambda: LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), MADV_REMOVE))
