"""Has the stream wake a thread, by a host function, that launches the work on another stream.

Mechanism: a host function is work of the stream, so what it starts seems to belong to the call, but nothing waits for
the thread that it wakes. Caught because outputs are copied on the call's stream, when the work is not done.
"""

import ctypes
import threading

import torch
from torch import nn

from tests.cheats.holding import SideStream, cuda_runtime
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SLOW_CYCLES = 2_000_000
side = SideStream()


class Helper(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.work: list[tuple[torch.Tensor, ...]] = []
        self.woken = threading.Semaphore(0)
        self.wake = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self.woken.release())

    def run(self) -> None:
        while True:
            self.woken.acquire()
            with torch.cuda.stream(side()):
                kernels.spin(SLOW_CYCLES)
                kernels.scale_rows_into(*self.work.pop(0))


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.helper: Helper | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.helper is None:
            self.helper = Helper()
            self.helper.start()
        out = torch.empty_like(matrix)
        kernels.spin(1)
        self.helper.work.append((diagonal, matrix, out))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cuda_runtime().cudaLaunchHostFunc(stream, self.helper.wake, None)
        return out
