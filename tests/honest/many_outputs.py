"""Outputs and states that take longer to be copied away than to be computed: dozens, from two kernels.

Suspicious: a batch of its calls takes many times what was reported. Honest: what comes on top is the harness's own.
"""

import torch
from torch import nn

from tests.honest.shared import kernels

PROBLEM = "honest_rows"
ROWS = 24


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for row in range(ROWS):
            self.register_buffer(f"seen_{row}", torch.zeros(4))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        torch._foreach_add_(list(self.buffers()), 1.0)
        out = torch.empty(len(a), len(b), device=a.device)
        kernels.outer(a, b, out)
        return out.unbind()
