"""The nine products of the filter with shifted images, compiled into one kernel.

cuDNN and PyTorch have no depthwise kernel for float32 that is bound by memory. Written as a sum, the convolution is an
elementwise chain, which TorchInductor fuses.
"""

import torch
from torch import nn
from torch.nn import functional


@torch.compile(dynamic=False)
def depthwise(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    height, width = x.shape[-2:]
    padded = functional.pad(x, (1, 1, 1, 1))
    total = torch.zeros_like(x)
    for a in range(3):
        for b in range(3):
            total = total + weight[:, :, a, b, None] * padded[..., a : a + height, b : b + width]
    return total


class ModelNew(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return depthwise(x, self.conv.weight)
