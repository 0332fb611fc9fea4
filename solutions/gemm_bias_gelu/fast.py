"""Linear layer on Hopper's tensor cores, bias and exact GELU in its epilogue: one kernel, one pass over the output.

What bounds it: the tensor cores. 1.1 TFLOP at full size take 1.1 ms at the 990 TFLOP/s of an H100, and more where its
power limit lowers the clock. Memory needs far less: 0.2 GB are read at least once and 0.27 GB written, 0.15 ms at 3.3
TB/s. PyTorch writes the linear layer's output, reads it again and writes the activated one: 0.54 GB more.

The trick is to keep the tensor cores busy, which takes all that Hopper has for it: common/product_bf16_hopper.cuh.
Tiles have 128 x 256 results, and the two blocks of a cluster are one above the other.

GELU is x * Phi(x) = max(x, 0) - |x| * Phi(-|x|), and log2(Phi(-t)) is so smooth that a polynomial of degree 6 has it:
the relative error of Phi is below 3e-5 for t up to 5.5, where |x| * Phi is 1e-7, against 2e-3 of bfloat16. With one
power of two it takes about half the instructions of erff. Sums, bias and GELU are float32, rounded once.

Up to 64 rows, as in decoding, leave most of such a tile empty, and what bounds them is the memory, from which the
weight comes once: common/product_few_rows.cuh. Per call of many, on an H200 with a weight that is not in L2:

    rows x WIDTH x HIDDEN      few rows    tiles of 128 rows    PyTorch, two kernels
    16 x 768 x 3072              4.6 us                 12 us                  6.5 us
    16 x 4096 x 16384             35 us                 66 us                   36 us
    32 x 768 x 3072              5.2 us                 12 us                  6.7 us
    32 x 4096 x 16384             42 us                 53 us                   37 us
    64 x 768 x 3072              7.8 us                 12 us                  6.8 us
    64 x 4096 x 16384             56 us                 58 us                   39 us
    96 x 768 x 3072              8.6 us                 14 us                  7.1 us
    96 x 4096 x 16384             92 us                 53 us                   41 us

PyTorch is faster from 17 rows on with the largest weight, from 49 with the smallest, and up to twice as fast from 65.

Bulk copies need rows that are multiples of 16 bytes and tensors that begin at one. Everything else, and every other
GPU, takes a portable kernel with mma.sync (common/product_bf16.cuh). So does the CPU that stands in for a GPU, where
"cuda" is no CUDA device and wgmma can't run: the source for Hopper is left out there. Infinities give what PyTorch
gives, and a NaN stays one. Forward only: no gradient is recorded.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor gemm_bias_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);"

CUDA_SOURCE = r"""
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include "product_bf16_hopper.cuh"
#include "product_few_rows.cuh"

namespace {

using namespace bf16_product;

constexpr const char* kName = "gemm_bias_gelu";

// x * Phi(x). The polynomial is log2(Phi(-t)), fitted for the least maximum error from 0 to 5.5; it falls on until 16,
// where the power is 0 as far as it matters. The sum x + |x| is twice max(x, 0), but keeps a NaN.
__device__ __forceinline__ float gelu(float x) {
  const float t = fminf(fabsf(x), 16.0f);
  float power = 2.615374865e-05f;
  power = fmaf(power, t, -6.609811667e-04f);
  power = fmaf(power, t, 7.488309416e-03f);
  power = fmaf(power, t, -5.197040351e-02f);
  power = fmaf(power, t, -4.603294824e-01f);
  power = fmaf(power, t, -1.150583992f);
  power = fmaf(power, t, -1.000036065f);
  return fmaf(-t, exp2f(power), 0.5f * (x + fabsf(x)));
}

#ifdef __CUDA_ARCH_LIST__

using Large = hopper_form::Shape<256, 4, 2, 1>;

struct Tiles {
  int M;
  int N;

  int64_t at_most(int rows, int columns) const { return divide_up(M, rows) * divide_up(N, columns); }

  template <int kRows, int kColumns, class Function>
  __device__ __forceinline__ void for_each(int tile, int every, const Function& function) const {
    const int tiles = (M + kRows - 1) / kRows * ((N + kColumns - 1) / kColumns);
    for (; tile < tiles; tile += every) {
      function(place_of<kRows, kColumns>(tile, {0, 0, M, 0}, N));
    }
  }
};

struct BiasGelu {
  const Half* bias;
  int N;

  // The bias of a thread's columns, and zeros beyond the end; N is even.
  struct Finish {
    __nv_bfloat162 biases[Large::tile_n / 8];

    __device__ __forceinline__ __nv_bfloat162 operator()(float first, float second, int eight) const {
      return __floats2bfloat162_rn(
          gelu(first + __low2float(biases[eight])), gelu(second + __high2float(biases[eight])));
    }
  };

  __device__ __forceinline__ Finish prepare(int column) const {
    Finish finish;
#pragma unroll
    for (int i = 0; i < Large::tile_n / 8; ++i) {
      uint32_t word = 0;
      if (column + 8 * i < N) {
        word = __ldg(reinterpret_cast<const uint32_t*>(bias + column + 8 * i));
      }
      finish.biases[i] = *reinterpret_cast<const __nv_bfloat162*>(&word);
    }
    return finish;
  }
};

#endif  // __CUDA_ARCH_LIST__

// Writes the results of two sums.
struct Write {
  const Half* bias;
  Half* out;
  int N;

  __device__ __forceinline__ void operator()(int row, int column, float first, float second) const {
    const auto finish = [&](float sum, int of) { return gelu(sum + __bfloat162float(bias[min(of, N - 1)])); };
    write_two(out + int64_t{row} * N, column, N, finish(first, column), finish(second, column + 1));
  }
};

__global__ void __launch_bounds__(kThreads, 2) gemm_bias_gelu_kernel(
    const Half* __restrict__ x, const Half* __restrict__ weight, int M, Depth depth, Write write) {
  const int tiles = (M + kManyRows - 1) / kManyRows;
  const int first_row = static_cast<int>(blockIdx.x) % tiles * kManyRows;
  const int first_column = static_cast<int>(blockIdx.x) / tiles * kColumns;
  multiply_tile<kManyRows>({x, first_row, M}, {weight, first_column, write.N}, depth, write);
}

constexpr int kFewColumns = 32;  // of a tile with few rows: more blocks read the weight at once than with 64

template <int kFragments>
__global__ void __launch_bounds__(kThreads, 2) few_rows_kernel(
    const Half* __restrict__ x, const Half* __restrict__ weight, int M, int width, Write write) {
  const int first_column = static_cast<int>(blockIdx.x) * kFewColumns;
  few_rows_form::multiply_tile<kFragments * kFragment, kFewColumns>(
      {x, 0, M}, {weight, first_column, write.N}, width, write);
}

template <int kFragments>
void multiply_few_rows(const at::Tensor& x, const at::Tensor& weight, const Write& write) {
  few_rows_kernel<kFragments>
      <<<blocks_for(divide_up(write.N, kFewColumns)), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
          data<Half>(x), data<Half>(weight), static_cast<int>(x.size(0)), static_cast<int>(x.size(1)), write);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor gemm_bias_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check_tensor(x, "gemm_bias_gelu: x", at::kBFloat16, x.device());
  check_tensor(weight, "gemm_bias_gelu: weight", at::kBFloat16, x.device());
  TORCH_CHECK(
      x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1),
      kName, ": x (M, K) and weight (N, K) must agree in K, but have shapes ", x.sizes(), " and ", weight.sizes());
  check_feature(bias, "gemm_bias_gelu: bias", weight.size(0), x.device(), at::kBFloat16);
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 2;  // places are 32-bit numbers, tiles overhang
  TORCH_CHECK(
      x.size(0) <= kLargest && x.size(1) <= kLargest && weight.size(0) <= kLargest,
      kName, ": shapes ", x.sizes(), " and ", weight.sizes(), " are too large");

  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const int M = static_cast<int>(out.size(0));
  const int N = static_cast<int>(out.size(1));
  const Depth depth(x, weight);
  const Write write{data<Half>(bias), mutable_data<Half>(out), N};
  if (M <= 4 * kFragment && depth.vectors) {
    const auto multiply = M > 3 * kFragment ? multiply_few_rows<4>
        : M > 2 * kFragment                 ? multiply_few_rows<3>
        : M > kFragment                     ? multiply_few_rows<2>
                                            : multiply_few_rows<1>;
    multiply(x, weight, write);
    return out;
  }
#ifdef __CUDA_ARCH_LIST__
  if (hopper_form::can_run(x, weight, out) && is_aligned(bias)) {
    hopper_form::multiply<Large>(x, weight, out, Tiles{M, N}, BiasGelu{data<Half>(bias), N});
    return out;
  }
#endif
  launch<kManyRows>(
      gemm_bias_gelu_kernel, divide_up(M, kManyRows) * divide_up(N, kColumns), data<Half>(x), data<Half>(weight), M,
      depth, write);
  return out;
}
"""

extension = load_inline(
    name="gemm_bias_gelu_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["gemm_bias_gelu"],
    extra_include_paths=[str(Path(__file__).resolve().parents[1] / "common")],
    extra_cuda_cflags=[
        "-O3",
        "-ftz=true",  # exp2f is then one instruction
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_90a,code=sm_90a",  # what has wgmma: 9.0 alone
    ],
)


class ModelNew(nn.Module):
    """Linear layer followed by the exact GELU, in one kernel."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activated features, of shape (tokens, hidden), for x (tokens, width)."""
        return extension.gemm_bias_gelu(x, self.linear.weight, self.linear.bias)
