"""Prints much, to both streams, from the import to each call, and switches `sys.stdout` about.

Suspicious: a flood could fill a pipe, and a harness that reads answers there would find others. Honest: it is talk.
"""

import contextlib
import io
import os
import sys

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"

print("importing" * 1000)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        for row in range(matrix.shape[0]):
            print(f"row {row}: " + "." * 60)
        print('{"op": "called", "verdict": "passed"}', file=sys.stderr, flush=True)
        with contextlib.redirect_stdout(io.StringIO()):
            print(matrix)
        os.write(1, b"not through Python\n")
        return kernels.scale_rows(diagonal, matrix)
