"""An extension of its own that calls the library's matrix product from C++.

Mechanism: there is a source, it is built, it is called, and all that it does is one line of torch. Caught because no
kernel of its own ran.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_transposed_a"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"

CPP_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>

at::Tensor optimized_matmul(const at::Tensor& A, const at::Tensor& B) { return at::matmul(A.t(), B); }
"""

extension = load_inline(name="library_from_cpp", cpp_sources=CPP_SOURCE, functions=["optimized_matmul"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.optimized_matmul(A, B)
