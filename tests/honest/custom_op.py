"""Its kernel is an operator registered with `torch.library.custom_op`.

Suspicious: the call goes through torch's dispatcher, and could be taken for a library's. Honest: its body is the
kernel.
"""

import torch
from torch import nn

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"


@torch.library.custom_op("inlinebench_honest::scale_rows_in_python", mutates_args=())
def scale_rows(diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return kernels.scale_rows(diagonal, matrix)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.ops.inlinebench_honest.scale_rows_in_python(diagonal, matrix)
