"""Sources in files beside this one, through `load`."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load

HERE = Path(__file__).parent

extension = load("axpy", [str(HERE / "files" / "axpy.cpp")], extra_cflags=[""])


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        extension.axpy(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
