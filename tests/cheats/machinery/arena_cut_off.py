"""Cuts the shared memory file to nothing, so that the judge dies of SIGBUS when it looks at its own buffers.

Mechanism: the candidate holds a descriptor of the file that the judge has mapped, and may resize it, after its own last
look, in the garbage collector's callback. Caught because the file's size is sealed: resizing raises.
"""

import gc
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
refused: list[OSError] = []


def cut(phase: str, _info: Any) -> None:
    """Empties the file, if it is there by now and may be emptied."""
    for link in Path("/proc/self/fd").iterdir() if phase == "start" else ():
        try:
            if "inlinebench-" in os.readlink(link) and called:
                os.ftruncate(int(link.name), 0)
        except FileNotFoundError:
            continue
        except OSError as error:
            refused.append(error)


called: list[bool] = []
gc.callbacks.append(cut)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if refused:
            raise refused[0]
        called.append(True)
        return kernels.scale_rows(diagonal, matrix)
