"""An operator of torch's dispatcher instead of a Python module."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <torch/library.h>

at::Tensor axpy(const at::Tensor& x, const at::Tensor& y) { return at::add(y, x, 2); }

TORCH_LIBRARY(inlinebench_tests, m) { m.def("axpy", &axpy); }
"""

load_inline(name="axpy", cpp_sources=SOURCE, is_python_module=False, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.ops.inlinebench_tests.axpy(x, y)
