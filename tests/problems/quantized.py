"""A product with a weight in codes of four bits, two in a byte, with a scale and a zero point for each group."""

import torch
from torch import nn

GROUP = 16


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        groups = inputs // GROUP
        self.register_buffer("codes", torch.randint(0, 256, (inputs // 2, outputs), dtype=torch.uint8))
        self.register_buffer("scales", (torch.rand(groups, outputs) + 0.5).bfloat16())
        self.register_buffer("zeros", torch.randint(0, 16, (groups, outputs)).bfloat16())

    def forward(self, x):
        codes = torch.stack([self.codes & 15, self.codes >> 4], dim=1).flatten(0, 1).bfloat16()
        scales, zeros = self.scales.repeat_interleave(GROUP, 0), self.zeros.repeat_interleave(GROUP, 0)
        return x @ ((codes - zeros) * scales)


def get_inputs():
    return [torch.randn(8, 64).bfloat16()]


def get_init_inputs():
    return [64, 32]
