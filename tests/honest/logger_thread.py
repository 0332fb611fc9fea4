"""A background thread writes a line now and then, between calls too.

Suspicious: a thread that is awake while nobody calls could do a call's work. Honest: it touches no tensor.
"""

import threading
import time

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

calls: list[int] = []


def report() -> None:
    while True:
        print(f"{len(calls)} calls so far", flush=True)
        time.sleep(0.02)


threading.Thread(target=report, name="logger", daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        calls.append(matrix.shape[0])
        return kernels.scale_rows(diagonal, matrix)
