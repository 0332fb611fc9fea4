"""RMS normalization of rows, with a set of workloads that no solution right at the file's sizes alone passes.

    out[i, j] = x[i, j] / sqrt(mean_j(x[i, j]^2) + eps) * weight[j]

    x, out: (ROWS, COLUMNS)  float32
    weight: (COLUMNS,)       float32
"""

import torch
from torch import nn
from torch.nn import functional

ROWS = 64
COLUMNS = 256

WORKLOADS = [
    {"name": "decode", "ROWS": 1},
    {"name": "prefill", "ROWS": 128, "weight": 2},
    {"name": "ragged", "ROWS": 37},
    {"name": "odd", "ROWS": 9, "COLUMNS": 250},
    {"name": "long", "ROWS": 3, "COLUMNS": 2304},
]


class Model(nn.Module):
    def __init__(self, columns, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
