"""Three linear layers on tensor cores, with bias and ReLU in the end of each product.

What bounds it: the tensor cores. The layers' 69, 137 and 34 GFLOP at full size take 3.6 ms at the 67 TFLOP/s of an
H100 outside of them. Each float32 is two halves of 11 bits (`solutions/common/split.cuh`); three products of them make
722 GFLOP, 0.89 ms at the 810 TFLOP/s that its power allows. Before each product memory bounds: splitting moves 0.6 GB
in all, in 0.2 ms. The weights are split in every call, because they may change between calls.

Hidden values go through memory as float32, because their parts depend on the largest of a whole row, which no block of
the product has. A bound known beforehand would spare that, about 0.03 ms a layer, but would cost small values bits.

Any sizes work. An infinity in an input or in weights may give NaN where the exact result is infinite; a NaN spreads,
through the ReLU too. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu);"

CUDA_SOURCE = r"""
#include <limits>

#include "product.cuh"

namespace {

// The bias of a column, and no less than `lowest`. A NaN stays one.
struct BiasAndFloor {
  const float* bias;
  float lowest;

  __device__ __forceinline__ float operator()(float value, int, int column) const {
    const float sum = value + bias[column];
    return sum < lowest ? lowest : sum;
  }
};

}  // namespace

// One layer: x @ weight.T + bias, no less than 0 with relu.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu) {
  check_float(x, "mlp: x", 2, x.device());
  check_float(weight, "mlp: weight", 2, x.device());
  TORCH_CHECK(
      x.size(1) == weight.size(1) && x.size(1) > 0,
      "mlp: x and weight must agree in their second size, not 0, but have shapes ", x.sizes(), " and ",
      weight.sizes());
  const float* const biases = check_feature(bias, "mlp: bias", weight.size(0), x.device());
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const split::Operand left = split::rows_of(x);
  const split::Operand right = split::rows_of(weight);
  const float lowest = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  split::multiply(left, right, split::Write<BiasAndFloor>{{out, left, right}, {biases, lowest}});
  return out;
}
"""

extension = load_inline(
    name="mlp_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["linear"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
    ],
)


class ModelNew(nn.Module):
    """Three linear layers with ReLU between them, on tensor cores."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        # The modules hold parameters, made in the reference's order; their forward is not used.
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = extension.linear(x, self.first.weight, self.first.bias, True)
        x = extension.linear(x, self.second.weight, self.second.bias, True)
        return extension.linear(x, self.third.weight, self.third.bias, False)
