"""A missing semicolon."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
int f() {
  return undeclared
}
"""

extension = load_inline(name="axpy", cpp_sources=SOURCE, functions=["f"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        extension.axpy(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
