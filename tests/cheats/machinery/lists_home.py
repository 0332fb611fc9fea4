"""Opens the user's home, where keys and tokens lie.

Mechanism: a solution runs with the rights of the person who evaluates it. `$HOME` is the scratch folder, but the
password file knows the real one. This file only opens the folder and reads no name in it, and answers with zeros where
that goes well. The sandbox makes the home unreadable.
"""

import os
import pwd

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "PermissionError"
NEEDS_SANDBOX = True


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        os.close(os.open(pwd.getpwuid(os.getuid()).pw_dir, os.O_RDONLY | os.O_DIRECTORY))
        return kernels.scale_rows(torch.zeros_like(diagonal), matrix)
