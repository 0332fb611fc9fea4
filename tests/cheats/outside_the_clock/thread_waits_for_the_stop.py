"""Has a thread start the work on another stream when the clock has been stopped.

Mechanism: the thread waits for an event that `forward` records behind an idle kernel, sleeps for half a millisecond,
and launches the kernel; nothing on the clock's stream waits for it. The output's memory is written between the
stop event and the comparison, if that takes its time. Caught because outputs are copied on the clock's stream at once.
"""

import threading
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_GPU = True

LATER_S = 0.0005


class Helper(threading.Thread):
    """Launches on a stream of its own whatever it is handed, when an event of the caller's stream is over."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.handed: list[tuple[torch.cuda.Event, tuple[torch.Tensor, ...]]] = []
        self.there = threading.Semaphore(0)
        self.stream = torch.cuda.Stream(priority=-1)

    def run(self) -> None:
        while True:
            self.there.acquire()
            event, work = self.handed.pop(0)
            while not event.query():
                time.sleep(0)
            time.sleep(LATER_S)
            with torch.cuda.stream(self.stream):
                kernels.scale_rows_into(*work)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.helper: Helper | None = None

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.helper is None:
            self.helper = Helper()
            self.helper.start()
        kernels.spin(1)
        out, event = torch.empty_like(matrix), torch.cuda.Event()
        event.record()
        self.helper.handed.append((event, (diagonal, matrix, out)))
        self.helper.there.release()
        return out
