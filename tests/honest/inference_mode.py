"""Runs in inference mode, so that its output is an inference tensor, and so is a part of its state.

Suspicious: such a tensor refuses to be changed outside that mode. Honest: nobody has to change it.
"""

import torch

from tests.honest import state_rebound

PROBLEM = "batch_norm"


class ModelNew(state_rebound.ModelNew):
    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)
