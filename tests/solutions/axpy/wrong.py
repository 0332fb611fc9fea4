"""Another extension under the name that the right ones have, without torch's error handling."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <pybind11/pybind11.h>

void axpy(std::uintptr_t x, std::uintptr_t y, std::uintptr_t out, long count) {
  for (long i = 0; i < count; ++i) {
    reinterpret_cast<float*>(out)[i] = 3 * reinterpret_cast<float*>(x)[i] + reinterpret_cast<float*>(y)[i];
  }
}
"""

extension = load_inline(
    name="axpy", cpp_sources=SOURCE, functions=["axpy"], no_implicit_headers=True, with_pytorch_error_handling=False
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        extension.axpy(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
