"""A @ B.T without tensor cores: float32 multiply-adds from registers, 128 a thread and step.

What bounds it: instructions. An SM makes 128 multiply-adds a clock, four warps' instructions, and everything else
takes turns with them. 137 GFLOP at full size take 2.0 ms at the 67 TFLOP/s that an H100 has on paper, and 2.80 ms in
cuBLAS.

The trick is to need little else. A block of 128 threads has 128 x 128 of the output, a warp 64 x 64, a thread 8 x 16
of them in registers. For every k a thread reads its 8 values of A and 16 of B, six loads of 16 bytes for 128
multiply-adds. Lanes side by side read 16 bytes side by side, or the same ones, so no bank is asked twice.

Both operands are contiguous along K, but the loop needs what belongs to one k side by side. Asynchronous copies turn
them: they move single values, of which a warp takes 8 rows by 4 steps of K, and put the values of one k into one row
of shared memory. Rows lie 136 floats apart, 8 banks, so the four rows that a warp writes to don't meet. That makes 32
copies a thread for 2048 multiply-adds. A warp's next copies find the rest of their 32-byte sectors in L1.

Shared memory holds four steps of 16, all but one of them under way, with one barrier a step. Two blocks share an SM:
one multiplies while the other waits. 512 tiles at full size are 1.94 rounds of 264 blocks. Sums run in float32 in the
order of k. Steps and tiles that reach beyond the matrices get zeros. Forward only: no gradient is recorded.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor matmul_transposed_b(const at::Tensor& A, const at::Tensor& B);"

CUDA_SOURCE = r"""
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_pipeline.h>

namespace {

constexpr const char* kName = "matmul_transposed_b";
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

constexpr int kWarpSize = 32;
constexpr int kThreads = 128;
constexpr int kTile = 128;  // rows and columns of the output that a block has
constexpr int kStep = 16;   // of K in a stage
constexpr int kStages = 4;
constexpr int kVector = 4;
constexpr int kStride = kTile + 8;  // of the values of one k: four of them begin in four groups of eight banks
constexpr int kOperand = kStep * kStride;  // floats of one operand in a stage
constexpr int kSharedBytes = kStages * 2 * kOperand * static_cast<int>(sizeof(float));
constexpr int kGroup = 16;  // tiles along M that run one after the other and share what L2 holds

// A warp has 64 x 64 of a tile, its lanes lie 8 x 4, and a lane has 8 x 16 as two by four squares of 4 x 4. Lanes side
// by side read 16 bytes side by side.
constexpr int kWarpTile = 64;
constexpr int kWarpsM = kTile / kWarpTile;
constexpr int kLanesM = 8;
constexpr int kLanesN = 4;
constexpr int kOwnM = kWarpTile / kLanesM;
constexpr int kOwnN = kWarpTile / kLanesN;
constexpr int kApartM = kLanesM * kVector;
constexpr int kApartN = kLanesN * kVector;
static_assert(kLanesM * kLanesN == kWarpSize && kWarpsM * kWarpsM * kWarpSize == kThreads);

// Starts the copies of kStep values from `first` of a tile's rows, turned: the values of one k go side by side. Zeros
// where the operand has ended.
__device__ __forceinline__ void copy_operand(
    float* to, const float* __restrict__ operand, int64_t first_row, int64_t rows, int64_t first, int64_t length) {
  constexpr int kAcross = 4;  // values of a row that a warp takes at once
  constexpr int kRowsAtOnce = kThreads / kAcross;
  const int row = static_cast<int>(threadIdx.x) / kAcross;
  const int place = static_cast<int>(threadIdx.x) % kAcross;
  to += place * kStride + row;
  const float* const from = operand + (first_row + row) * length + first + place;
  const bool whole = first + kStep <= length && first_row + kTile <= rows;  // nearly always
#pragma unroll
  for (int i = 0; i < kTile; i += kRowsAtOnce) {
#pragma unroll
    for (int k = 0; k < kStep; k += kAcross) {
      const bool inside = whole || (first_row + row + i < rows && first + place + k < length);
      const float* const source = inside ? from + i * length + k : operand;
      __pipeline_memcpy_async(to + k * kStride + i, source, sizeof(float), inside ? 0 : sizeof(float));
    }
  }
}

// The values of a lane: four side by side, the next four Apart further on.
template <int Apart, int Own>
__device__ __forceinline__ void load_own(const float* from, float (&own)[Own]) {
#pragma unroll
  for (int i = 0; i < Own; i += kVector) {
    const float4 four = *reinterpret_cast<const float4*>(from + i / kVector * Apart);
    own[i] = four.x, own[i + 1] = four.y, own[i + 2] = four.z, own[i + 3] = four.w;
  }
}

// Two blocks on an SM: one multiplies while the other waits at its barrier.
__global__ void __launch_bounds__(kThreads, 2) multiply_kernel(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ out,
    int64_t M, int64_t K, int64_t N, int tiles_m, int tiles_n) {
  extern __shared__ float4 shared[];
  float* const stages = reinterpret_cast<float*>(shared);

  // Tiles go down the M of a group first.
  const int first_m = static_cast<int>(blockIdx.x) / (kGroup * tiles_n) * kGroup;
  const int group = min(kGroup, tiles_m - first_m);
  const int place = static_cast<int>(blockIdx.x) % (kGroup * tiles_n);
  const int64_t tile_m = static_cast<int64_t>(first_m + place % group) * kTile;
  const int64_t tile_n = static_cast<int64_t>(place / group) * kTile;

  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int own_m = warp % kWarpsM * kWarpTile + lane % kLanesM * kVector;
  const int own_n = warp / kWarpsM * kWarpTile + lane / kLanesM * kVector;

  // Every step makes one commit, those beyond the end too: the number of those that may be open is always the same.
  const int steps = static_cast<int>((K + kStep - 1) / kStep);
  const auto copy_step = [&](int step) {
    if (step < steps) {
      float* const stage = stages + step % kStages * (2 * kOperand);
      const int64_t k = static_cast<int64_t>(step) * kStep;
      copy_operand(stage, A, tile_m, M, k, K);
      copy_operand(stage + kOperand, B, tile_n, N, k, K);
    }
    __pipeline_commit();
  };
  for (int step = 0; step < kStages - 1; ++step) {
    copy_step(step);
  }

  float sums[kOwnM][kOwnN] = {};
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // the step is there for all, and all are done with the stage that is filled now
    copy_step(step + kStages - 1);
    const float* const left = stages + step % kStages * (2 * kOperand) + own_m;
    const float* const right = stages + step % kStages * (2 * kOperand) + kOperand + own_n;
#pragma unroll
    for (int k = 0; k < kStep; ++k) {
      float a[kOwnM];
      float b[kOwnN];
      load_own<kApartM>(left + k * kStride, a);
      load_own<kApartN>(right + k * kStride, b);
#pragma unroll
      for (int i = 0; i < kOwnM; ++i) {
#pragma unroll
        for (int j = 0; j < kOwnN; ++j) {
          sums[i][j] += a[i] * b[j];
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kOwnM; ++i) {
    const int64_t m = tile_m + own_m + i / kVector * kApartM + i % kVector;
    if (m >= M) {
      continue;
    }
#pragma unroll
    for (int j = 0; j < kOwnN; j += kVector) {
      const int64_t n = tile_n + own_n + j / kVector * kApartN;
      float* const to = out + m * N + n;
      if (N % kVector == 0 && n < N) {
        *reinterpret_cast<float4*>(to) =
            make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      } else {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          if (n + v < N) {
            to[v] = sums[i][j + v];
          }
        }
      }
    }
  }
}

void launch(const at::Tensor& A, const at::Tensor& B, const at::Tensor& out) {
  const int64_t M = A.size(0);
  const int64_t K = A.size(1);
  const int64_t N = B.size(0);
  const int64_t tiles_m = (M + kTile - 1) / kTile;
  const int64_t tiles_n = (N + kTile - 1) / kTile;
  TORCH_CHECK(
      tiles_n <= kMaxBlocks / kGroup && tiles_m <= kMaxBlocks / tiles_n && K <= kMaxBlocks,
      kName, ": shapes ", A.sizes(), " and ", B.sizes(), " are too large for one launch");
  C10_CUDA_CHECK(
      cudaFuncSetAttribute(multiply_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  multiply_kernel
      <<<static_cast<unsigned int>(tiles_m * tiles_n), kThreads, kSharedBytes, c10::cuda::getCurrentCUDAStream()>>>(
          A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), M, K, N,
          static_cast<int>(tiles_m), static_cast<int>(tiles_n));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void check_operand(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_cuda(), kName, ": ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(
      tensor.scalar_type() == at::kFloat, kName, ": ", name, " must be float32, but is ", tensor.scalar_type());
  TORCH_CHECK(tensor.dim() == 2, kName, ": ", name, " must be a matrix, but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(), kName, ": ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ",
      tensor.strides());
}

}  // namespace

at::Tensor matmul_transposed_b(const at::Tensor& A, const at::Tensor& B) {
  check_operand(A, "A");
  check_operand(B, "B");
  TORCH_CHECK(A.device() == B.device(), kName, ": A is on ", A.device(), ", but B is on ", B.device());
  TORCH_CHECK(
      A.size(1) == B.size(1),
      kName, ": A (M, K) and B (N, K) must agree in K, but have shapes ", A.sizes(), " and ", B.sizes());
  const c10::cuda::CUDAGuard guard(A.device());
  if (A.numel() == 0 || B.numel() == 0) {
    return at::zeros({A.size(0), B.size(0)}, A.options());
  }
  at::Tensor out = at::empty({A.size(0), B.size(0)}, A.options());
  launch(A, B, out);
  return out;
}
"""


class ModelNew(nn.Module):
    """Multiplies a matrix by the transpose of another without tensor cores."""

    def __init__(self) -> None:
        super().__init__()
        extension = load_inline(
            name="matmul_transposed_b_simt",
            cpp_sources=CPP_SOURCE,
            cuda_sources=CUDA_SOURCE,
            functions=["matmul_transposed_b"],
        )
        self.matmul_transposed_b = extension.matmul_transposed_b

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return self.matmul_transposed_b(A, B)
