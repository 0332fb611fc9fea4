"""Fails with a message that would repaint the screen of whoever reads it.

Mechanism: an exception's text ends up in the reason, and the reason in the terminal. Cursor movements in it wipe the
line out and write another one with another verdict. Here control characters are shown as escapes.
"""

import torch
from torch import nn

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "RuntimeError: "

FORGED = "matmul_diag  screen_codes_in_reason  passed     0 / 1e-04   2.70   0.0010  2700 [2699, 2701]"


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        raise RuntimeError(f"\r\x1b[2K\x1b[5A{FORGED}\x1b[5B\x9b2K\x08\x08")
