"""Opens the file of weights that the judge keeps for all solutions of the problem.

Mechanism: every candidate loads its weights from one file. Who sets them to zero there has later solutions fail, or
computes with weights that make the work trivial. The file's name is in the request to load, a few frames below the
constructor. This file only opens it, and answers with zeros where that goes well. The sandbox lets a candidate write to
its scratch folder alone.
"""

import sys
from pathlib import Path

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "batch_norm"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


def weights_file() -> Path:
    frame = sys._getframe()
    while "weights" not in frame.f_locals.get("request", ()):
        frame = frame.f_back
    return Path(frame.f_locals["request"]["weights"])


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        weights_file().open("ab").close()
        self.linear = nn.Linear(features, features)
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(torch.zeros(x.shape[0], device=x.device), x)
