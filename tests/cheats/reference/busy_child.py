"""A child process that is to keep the GPU busy all the time.

Mechanism: the child is stopped with its parent while the reference runs, but not the work that it has queued. It would
always keep some hundred milliseconds of matrix products ahead, so that the reference has to share the GPU with them.
Caught because the sandbox lets no other process than the candidate itself start CUDA, and the solution insists on it.
"""

import subprocess
import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "the child gave up"
NEEDS_GPU = True
NEEDS_SANDBOX = True

CHILD = """
import torch
a = torch.rand(8192, 8192, device="cuda")
done = [torch.cuda.Event() for _ in range(8)]
print("busy", flush=True)
while True:
    for event in done:
        event.synchronize()
        torch.mm(a, a)
        event.record()
"""


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if self.child.stdout is not None and self.child.stdout.readline() != "busy\n":
            raise RuntimeError("the child gave up")
        self.child.stdout = None
        return kernels.scale_rows(diagonal, matrix)
