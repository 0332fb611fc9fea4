"""Keeps a workspace for each shape in a module-level dict.

Suspicious: memory that outlives the call and a key of the inputs' shape look like stored answers. Honest: the
workspace holds partial sums only, and each call writes all of it before it reads any.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "level1_matmul"

PARTS = 4
workspaces: dict[tuple[int, ...], torch.Tensor] = {}


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        shape = (PARTS, A.shape[0], B.shape[1])
        if shape not in workspaces:
            workspaces[shape] = torch.empty(shape, device=A.device)
        out = torch.empty(shape[1:], device=A.device)
        kernels.matmul_parts(A, B, workspaces[shape])
        kernels.sum_parts(workspaces[shape], out)
        return out
