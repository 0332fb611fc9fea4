"""Announces each held call twice, with other locations the second time.

Mechanism: whichever announcement releases the call, the other one may say where the outputs are when the work is done.
Caught because one announcement answers a request, and another one answers none.

True time: 0.06 ms.
"""

from typing import Any

import torch
from torch import nn

from inlinebench.candidate.candidate import Candidate
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "rejected"
CAUGHT_BY = "answers no request"
NEEDS_GPU = True
SHAPE = "full"
plain_report = Candidate._report_held


def report_twice(self: Candidate, nonce: str, places: Any = None) -> None:
    plain_report(self, nonce, places)
    plain_report(self, nonce, places)


Candidate._report_held = report_twice


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
