"""One function in a list."""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor axpy(const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.sizes() == y.sizes(), "axpy: x and y don't fit");
  at::Tensor out = at::empty_like(x);
  const float* a = x.const_data_ptr<float>();
  const float* b = y.const_data_ptr<float>();
  float* c = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) c[i] = 2 * a[i] + b[i];
  return out;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = load_inline(name="axpy", cpp_sources=[SOURCE], functions=["axpy"], no_implicit_headers=True)

    def forward(self, x, y):
        return self.extension.axpy(x, y)
