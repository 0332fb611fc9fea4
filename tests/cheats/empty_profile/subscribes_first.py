"""Subscribes to CUPTI itself and turns its records off, so that a profile of the process is empty.

Mechanism: a process has one subscriber, and activities are turned on and off for all of it. With a subscription of the
solution's own the harness's fails, and records of kernels are disabled at each call. A harness that takes an empty
profile for a failed one lets the library's kernels pass. Caught because a profile without the solution's own kernels
is no proof of any.
"""

import ctypes
from pathlib import Path

import torch
from torch import nn

PROBLEM = "matmul_transposed_a"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "kernel"
NEEDS_GPU = True

KINDS = (1, 2, 3, 4, 5, 10)  # copies, fills, kernels, calls of the driver and of the runtime, concurrent kernels
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
ignore = Callback(lambda *_: None)


def loaded_cupti() -> ctypes.CDLL:
    lines = Path("/proc/self/maps").read_text().splitlines()
    loaded = [line.split()[-1] for line in lines if "libcupti.so" in line]
    return ctypes.CDLL(loaded[0] if loaded else f"libcupti.so.{str(torch.version.cuda).partition('.')[0]}")


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cupti, self.subscriber = loaded_cupti(), ctypes.c_void_p()
        self.cupti.cuptiSubscribe(ctypes.byref(self.subscriber), ignore, None)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        for kind in KINDS:
            self.cupti.cuptiActivityDisable(kind)
        return A.T @ B
