"""A thread watches the input buffers and does the work as soon as they change, before the call is asked for.

Mechanism: the judge writes the inputs, then asks; in between the buffers can be read already, those of calls before and
those that lie as far behind. A row tells the thread that they changed, and `forward` that the output it finds belongs
to what is there now; both read it with the copy engine, for which no hold is in the way. Where nothing is ready the
call is honest, and slow. Caught because the judge also queues calls before it writes their inputs, and clocks these
from outside.
"""

import ctypes
import threading

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "its times don't add up"
NEEDS_GPU = True
SHAPE = "full"
SLOW_CYCLES = 200_000
SETTLED_US = 300
MOST_PLACES = 64

keep_lock = ctypes.PyDLL(None).usleep  # sleeps with Python's lock, so that the harness can't begin the call meanwhile


class Probe:
    """The inputs at one place; reads the matrix's last row on a stream of its own."""

    def __init__(self, diagonal: torch.Tensor, matrix: torch.Tensor, stream: torch.cuda.Stream) -> None:
        self.inputs, self.stream, self.row = (diagonal, matrix), stream, matrix[-1]
        self.host = torch.empty(self.row.shape, device="cpu").pin_memory()
        self.seen = self.read()
        self.ready: tuple[torch.Tensor, torch.Tensor] | None = None

    def read(self) -> torch.Tensor:
        with torch.cuda.stream(self.stream):
            self.host.copy_(self.row, non_blocking=True)
        self.stream.synchronize()
        return self.host.clone()


def slow_work(diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    kernels.spin(SLOW_CYCLES)
    return kernels.scale_rows(diagonal, matrix)


def moved(tensor: torch.Tensor, by: int) -> torch.Tensor | None:
    """The tensor that lies so many elements further on in the same memory, if that is as long."""
    begin = tensor.storage_offset() + by
    if begin < 0 or (begin + tensor.numel()) * tensor.element_size() > tensor.untyped_storage().nbytes():
        return None
    return tensor.as_strided(tensor.shape, tensor.stride(), begin)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.probes: dict[int, Probe] = {}
        self.first: tuple[torch.Tensor, torch.Tensor] | None = None
        self.stream: torch.cuda.Stream | None = None
        self.busy = threading.Lock()

    @torch.no_grad()
    def watch(self) -> None:
        while True:
            for probe in list(self.probes.values()):
                row = probe.read()
                if torch.equal(row, probe.seen) or row.isnan().any():
                    continue
                with self.busy:
                    keep_lock(SETTLED_US)  # a variant is made after the draw was written
                    with torch.cuda.stream(probe.stream):
                        out = slow_work(*probe.inputs)
                    probe.seen = probe.read()
                    probe.ready = (probe.seen, out)

    def find_places(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> None:
        """Adds probes for these inputs, and when they are the second ones, for all that lie as far apart."""
        if self.first is None:
            self.first, self.stream = (diagonal, matrix), torch.cuda.Stream()
            threading.Thread(target=self.watch, daemon=True).start()
        step = matrix.storage_offset() - self.first[1].storage_offset()
        for number in range(MOST_PLACES if step > 0 else 1):
            place = moved(self.first[0], number * step), moved(self.first[1], number * step)
            if None not in place and place[1].data_ptr() not in self.probes:
                self.probes[place[1].data_ptr()] = Probe(*place, self.stream)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with self.busy:
            if matrix.data_ptr() not in self.probes:
                self.find_places(diagonal, matrix)
            probe = self.probes[matrix.data_ptr()]
            ready, probe.ready = probe.ready, None
        if ready is None or not torch.equal(ready[0], probe.read()):
            return slow_work(diagonal, matrix)
        kernels.scale_rows(diagonal, matrix)  # looks like the work
        return ready[1]
