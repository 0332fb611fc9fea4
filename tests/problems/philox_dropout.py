"""Dropout with the mask that cuRAND's Philox 4x32-10 draws: element i has word i % 4 of subsequence i // 4.

The reference computes the cipher with integers, so that a kernel has to give the very same mask.
"""

import torch
from torch import nn

N = 48
SEED = 0x299F31D0A4093822
WORD = 0xFFFFFFFF
SHAPES = {"small": {"N": 37}}


def multiply(constant, x):
    """Returns the upper and the lower word of a product of words. No product here needs more than 48 bits."""
    upper, lower = x * (constant >> 16), x * (constant & 0xFFFF)
    return (upper + (lower >> 16)) >> 16, (lower + ((upper & 0xFFFF) << 16)) & WORD


def philox(subsequence):
    zero = torch.zeros_like(subsequence)
    a, b, c, d = zero, zero, subsequence, zero
    low, high = SEED & WORD, SEED >> 32
    for _ in range(10):
        (first, first_low), (second, second_low) = multiply(0xD2511F53, a), multiply(0xCD9E8D57, c)
        a, b, c, d = second ^ b ^ low, second_low, first ^ d ^ high, first_low
        low, high = (low + 0x9E3779B9) & WORD, (high + 0xBB67AE85) & WORD
    return torch.stack([a, b, c, d], -1)


class Model(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        words = philox(torch.arange((x.numel() + 3) // 4, device=x.device)).flatten()[: x.numel()]
        uniform = words.float() * 2.0**-32 + 2.0**-33
        return torch.where(uniform.view_as(x) > self.p, x / (1 - self.p), 0.0)


def get_inputs():
    return [torch.rand(N, N) + 0.5]


def get_init_inputs():
    return [0.3]
