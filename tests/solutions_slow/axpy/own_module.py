"""The source brings its own module; several sources; the extension's name has a dash and a digit in front."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <cstdint>
#include <pybind11/pybind11.h>

void axpy(std::uintptr_t x, std::uintptr_t y, std::uintptr_t out, long count) {
  for (long i = 0; i < count; ++i) {
    reinterpret_cast<float*>(out)[i] = 2 * reinterpret_cast<float*>(x)[i] + reinterpret_cast<float*>(y)[i];
  }
}
"""
MODULE = r"""
#include <pybind11/pybind11.h>

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("axpy", &axpy); }
"""

extension = load_inline(name="2-axpy", cpp_sources=[SOURCE, MODULE], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        extension.axpy(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
        return out
