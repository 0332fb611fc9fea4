"""Launches a graph of its slow work from a thread when the clock's own work is done.

Mechanism: a graph launch is one step on the host, which a thread takes as soon as an event of the stream has happened,
and no stream of the call waits for it. Caught because outputs are copied when the call's own work is done, on the GPU,
and those of the graph are missing.

True time: 1.1 ms.
"""

import threading

import torch
from torch import nn

from tests.cheats.holding import SideStream
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True
SLOW_CYCLES = 2_000_000
side = SideStream()


class Launcher(threading.Thread):
    """Replays a graph each time that an event of another stream has happened."""

    def __init__(self, graph: torch.cuda.CUDAGraph) -> None:
        super().__init__(daemon=True)
        self.graph, self.event, self.there = graph, torch.cuda.Event(), threading.Semaphore(0)

    def run(self) -> None:
        while True:
            self.there.acquire()
            self.event.synchronize()
            with torch.cuda.stream(side()):
                self.graph.replay()


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.launchers: dict[int, tuple[Launcher, torch.Tensor]] = {}

    def prepare(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> tuple[Launcher, torch.Tensor]:
        out, graph = torch.empty_like(matrix), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            kernels.spin(SLOW_CYCLES)
            kernels.scale_rows_into(diagonal, matrix, out)
        launcher = Launcher(graph)
        launcher.start()
        return launcher, out

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        kernels.spin(1)
        if matrix.data_ptr() not in self.launchers:
            self.launchers[matrix.data_ptr()] = self.prepare(diagonal, matrix)
            return kernels.scale_rows(diagonal, matrix)
        launcher, out = self.launchers[matrix.data_ptr()]
        launcher.event.record()
        launcher.there.release()
        return out
