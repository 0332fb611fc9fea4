"""A kernel of a header that solutions share."""

from pathlib import Path

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include "axpy.cuh"

at::Tensor axpy(const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && x.sizes() == y.sizes(), "axpy: x and y don't fit");
  at::Tensor out = at::empty_like(x);
  launch_axpy(
      2.0f, x.const_data_ptr<float>(), y.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(x.numel()));
  return out;
}
"""

extension = load_inline(
    name="common_header",
    cpp_sources="at::Tensor axpy(const at::Tensor& x, const at::Tensor& y);",
    cuda_sources=SOURCE,
    functions=["axpy"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.axpy(x, y)
