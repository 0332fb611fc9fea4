"""A thread watches the input buffers and does the work as soon as they change, before the call is asked for.

Mechanism: the judge writes the inputs, then asks; in between the buffers can be read already. A row tells the thread
that they changed, and `forward` that the output it finds belongs to what is there now; both read it with the copy
engine, for which no hold is in the way. Where nothing is ready the call is honest, and slow. Caught because the judge
also queues calls before it writes their inputs, and clocks these from outside.
"""

import ctypes
import threading

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "of a batch ("
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 200_000
SETTLED_US = 300

keep_lock = ctypes.PyDLL(None).usleep  # sleeps with Python's lock, so that the harness can't begin the call meanwhile


class Probe:
    """Reads the matrix's last row on a stream of its own."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self.stream, self.row = torch.cuda.Stream(), matrix[-1]
        self.host = torch.empty(self.row.shape, device="cpu").pin_memory()

    def read(self) -> torch.Tensor:
        with torch.cuda.stream(self.stream):
            self.host.copy_(self.row, non_blocking=True)
        self.stream.synchronize()
        return self.host.clone()


def slow_work(diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    kernels.spin(SLOW_CYCLES)
    return kernels.scale_rows(diagonal, matrix)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.probe: Probe | None = None
        self.busy = threading.Lock()
        self.ready: tuple[torch.Tensor, torch.Tensor] | None = None

    @torch.no_grad()
    def watch(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> None:
        probe = Probe(matrix)
        seen = probe.read()
        while True:
            row = probe.read()
            if torch.equal(row, seen) or row.isnan().any():
                continue
            with self.busy:
                keep_lock(SETTLED_US)  # a variant is made after the draw was written
                with torch.cuda.stream(probe.stream):
                    out = slow_work(diagonal, matrix)
                seen = probe.read()
                self.ready = (seen, out)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.probe is None:
            self.probe = Probe(matrix)
            threading.Thread(target=self.watch, args=(diagonal, matrix), daemon=True).start()
        with self.busy:
            ready, self.ready = self.ready, None
        known = ready is not None and matrix[-1].data_ptr() == self.probe.row.data_ptr()
        if not known or not torch.equal(ready[0], self.probe.read()):
            return slow_work(diagonal, matrix)
        kernels.scale_rows(diagonal, matrix)  # looks like the work
        return ready[1]
