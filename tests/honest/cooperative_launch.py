"""One kernel that waits for all of its blocks, launched with `cudaLaunchCooperativeKernel`.

Suspicious: another way to launch than most, which who counts launches may miss. Honest: it is a kernel of its library.
"""

import torch
from torch import nn

from tests.honest.shared_gpu import kernels

PROBLEM = "honest_normalise"
NEEDS_GPU = True


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernels.normalise(x, out)
        return out
