"""Writes a file at each call and reads it at the next; another one lies in its home.

Suspicious: files carry values from call to call, or from run to run. Honest: these carry a number of calls.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.notes = Path(tempfile.mkdtemp()) / "calls"
        self.notes.write_text("0")
        (Path.home() / ".honest_settings").write_text("tile = 32")
        Path("here").write_text("the working folder")

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        self.notes.write_text(str(int(self.notes.read_text()) + 1))
        return kernels.scale_rows(diagonal, matrix)
