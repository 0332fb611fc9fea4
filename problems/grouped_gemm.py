"""Products of rows with the matrices of their experts, as in a mixture of experts, in bfloat16.

    out[t, :] = x[t, :] @ weight[e].T    for the expert e with ends[e - 1] <= t < ends[e]

    x:      (TOKENS, WIDTH)           bfloat16  rows sorted by expert
    weight: (EXPERTS, HIDDEN, WIDTH)  bfloat16
    ends:   (EXPERTS,)                int32     where the rows of each expert end; the last one is TOKENS
    out:    (TOKENS, HIDDEN)          bfloat16

A token that is routed to several experts counts as several rows. An expert may have no rows. The reference multiplies
the rows of one expert after the other.
"""

import math
from itertools import pairwise

import torch
from torch import nn

LEVEL = 2
TAGS = ("matmul", "ragged", "compute-bound")

TOKENS = 8192
EXPERTS = 8
WIDTH = 4096
HIDDEN = 4096

# "odd": sizes just above those of tiles. WIDTH and HIDDEN stay multiples of 8, which PyTorch's grouped_mm demands.
SHAPES = {
    "small": {"TOKENS": 48, "EXPERTS": 6, "WIDTH": 96, "HIDDEN": 80},
    "odd": {"TOKENS": 211, "EXPERTS": 3, "WIDTH": 136, "HIDDEN": 152},
}

# Rows of 16 bytes, as PyTorch's grouped_mm demands.
RANGES = {"TOKENS": (1, 16384), "EXPERTS": (1, 128), "WIDTH": (8, 7168, 8), "HIDDEN": (8, 7168, 8)}

# Published mixtures of experts, of which a GPU has a part of each matrix (tensors in parallel) or some of the experts
# (experts in parallel). Tokens count as often as there are experts for each: 2 of Mixtral, 8 of Qwen 3 and 4 of Qwen
# 1.5.
WORKLOADS = [
    {"name": "Mixtral 8x7B up on 8 GPUs, decode 32", "TOKENS": 64, "HIDDEN": 1792},
    {"name": "Mixtral 8x7B up on 8 GPUs, prefill 4096", "TOKENS": 8192, "HIDDEN": 1792},
    {"name": "Qwen 3 30B down on 4 GPUs, decode 16", "TOKENS": 128, "EXPERTS": 128, "WIDTH": 192, "HIDDEN": 2048},
    {"name": "Qwen 3 30B down on 4 GPUs, prefill 2048", "TOKENS": 16384, "EXPERTS": 128, "WIDTH": 192, "HIDDEN": 2048},
    {"name": "Qwen 1.5 MoE up on 4 GPUs, decode 1", "TOKENS": 4, "EXPERTS": 60, "WIDTH": 2048, "HIDDEN": 352},
    {"name": "Qwen 1.5 MoE up on 4 GPUs, prefill 999", "TOKENS": 3996, "EXPERTS": 60, "WIDTH": 2048, "HIDDEN": 352},
    {"name": "DeepSeek V3 down on 64 GPUs, 256 rows", "TOKENS": 256, "EXPERTS": 4, "WIDTH": 2048, "HIDDEN": 7168},
    {"name": "DeepSeek V3 down on 64 GPUs, 8191 rows", "TOKENS": 8191, "EXPERTS": 4, "WIDTH": 2048, "HIDDEN": 7168},
    {"name": "DeepSeek V3 up on 128 GPUs, 4096 rows", "TOKENS": 4096, "EXPERTS": 2, "WIDTH": 7168, "HIDDEN": 4096},
]


class Model(nn.Module):
    """Multiplies rows, sorted by expert, with the matrices of their experts."""

    def __init__(self, experts: int, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, hidden, width, dtype=torch.bfloat16) / math.sqrt(width))

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Return the products, of shape (tokens, hidden), of x (tokens, width) whose experts' rows end at ends."""
        out = x.new_empty(x.shape[0], self.weight.shape[1])
        begin = 0
        for weight, end in zip(self.weight, ends.tolist(), strict=True):
            out[begin:end] = x[begin:end] @ weight.T
            begin = end
        return out


def spread_rows() -> list[int]:
    """Return the number of rows of each expert: up to twice the mean, shuffled in each call."""
    ends = [TOKENS * expert**2 // EXPERTS**2 for expert in range(EXPERTS + 1)]
    return [end - begin for begin, end in pairwise(ends)]


def get_inputs() -> list[torch.Tensor]:
    rows = torch.tensor(spread_rows())[torch.randperm(EXPERTS)]
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16), rows.cumsum(0).to(torch.int32)]


def get_init_inputs() -> list[object]:
    return [EXPERTS, WIDTH, HIDDEN]


def work() -> dict[str, int]:
    """Matrices of experts with rows and the rows read once, the result written once, and the products."""
    experts = sum(rows > 0 for rows in spread_rows())
    return {
        "bytes": 2 * (experts * HIDDEN * WIDTH + TOKENS * (WIDTH + HIDDEN)) + 4 * EXPERTS,
        "flops": 2 * TOKENS * HIDDEN * WIDTH,
    }
