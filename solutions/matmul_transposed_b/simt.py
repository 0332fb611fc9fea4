"""A @ B.T without tensor cores: float32 multiply-adds from registers, 128 a thread and step.

What bounds it: instructions. An SM makes 128 multiply-adds a clock, four warps' instructions, and everything else
takes turns with them. 137 GFLOP at full size take 2.0 ms at the 67 TFLOP/s that an H100 has on paper, and 2.80 ms in
cuBLAS.

The trick is to need little else. A block of 128 threads has 128 x 128 of the output, a warp 64 x 64, a thread 16 x 8
of them in registers. In the inner loop 92 % of the instructions are multiply-adds (2048 of 2230 for 16 steps of K); 4
% read shared memory.

Both operands are contiguous along K, and shared memory keeps them so: 16 values of 128 rows of each, put there by
asynchronous copies (16 bytes a thread). For four steps of K a thread reads 16 bytes of each of its 8 rows of B, then
of one of its 16 rows of A after the other: 24 loads for 512 multiply-adds, no more than if K came first, and nothing
has to be turned. Rows lie 20 floats apart, so eight side by side begin in eight different groups of four banks, and
lanes side by side read rows side by side.

Shared memory holds three steps of 16, all but one of them under way, with one barrier a step. Two blocks share an SM:
one multiplies while the other waits. 512 tiles at full size are 1.94 rounds of 264 blocks. Sums run in float32 in the
order of k. Tiles that reach beyond the matrices, and sizes or addresses that allow no 16 bytes, are copied by single
values. Forward only: no gradient is recorded.
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
constexpr int kStages = 3;
constexpr int kVector = 4;
constexpr int kStride = kStep + kVector;  // of a row of a stage: eight of them begin in eight groups of four banks
constexpr int kOperand = kTile * kStride;  // floats of one operand in a stage
constexpr int kSharedBytes = kStages * 2 * kOperand * static_cast<int>(sizeof(float));
constexpr int kGroup = 16;  // tiles along M that run one after the other and share what L2 holds

// A warp has 64 x 64 of a tile, its lanes lie 4 x 8, and a lane has every 4th row and every 8th column: 16 x 8. So
// lanes side by side read rows side by side, and write values side by side.
constexpr int kWarpTile = 64;
constexpr int kWarpsM = kTile / kWarpTile;
constexpr int kLanesM = 4;
constexpr int kLanesN = 8;
constexpr int kOwnM = kWarpTile / kLanesM;
constexpr int kOwnN = kWarpTile / kLanesN;
static_assert(kLanesM * kLanesN == kWarpSize && kWarpsM * kWarpsM * kWarpSize == kThreads);

// Starts the copies of kStep values from `first` of a tile's rows, zeros where the operand has ended. With Vectors its
// rows are a multiple of four long.
template <bool Vectors>
__device__ __forceinline__ void copy_operand(
    float* to, const float* __restrict__ operand, int64_t first_row, int64_t rows, int64_t first, int64_t length) {
  constexpr int kPieces = kStep / kVector;  // of a row
  constexpr int kRowsAtOnce = kThreads / kPieces;
  const int row = static_cast<int>(threadIdx.x) / kPieces;
  const int place = static_cast<int>(threadIdx.x) % kPieces * kVector;
  to += row * kStride + place;
  const float* const from = operand + (first_row + row) * length + first + place;
  if (Vectors && first + kStep <= length && first_row + kTile <= rows) {  // nearly always
#pragma unroll
    for (int i = 0; i < kTile; i += kRowsAtOnce) {
      __pipeline_memcpy_async(to + i * kStride, from + i * length, sizeof(float4));
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kTile; i += kRowsAtOnce) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const bool inside = first_row + row + i < rows && first + place + v < length;
      const float* const source = inside ? from + i * length + v : operand;
      __pipeline_memcpy_async(to + i * kStride + v, source, sizeof(float), inside ? 0 : sizeof(float));
    }
  }
}

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// Two blocks on an SM: one multiplies while the other waits at its barrier.
template <bool Vectors>
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
  const int own_m = warp % kWarpsM * kWarpTile + lane / kLanesN;
  const int own_n = warp / kWarpsM * kWarpTile + lane % kLanesN;

  // Every step makes one commit, those beyond the end too: the number of those that may be open is always the same.
  const int steps = static_cast<int>((K + kStep - 1) / kStep);
  const auto copy_step = [&](int step) {
    if (step < steps) {
      float* const stage = stages + step % kStages * (2 * kOperand);
      const int64_t k = static_cast<int64_t>(step) * kStep;
      copy_operand<Vectors>(stage, A, tile_m, M, k, K);
      copy_operand<Vectors>(stage + kOperand, B, tile_n, N, k, K);
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
    const float* const left = stages + step % kStages * (2 * kOperand) + own_m * kStride;
    const float* const right = stages + step % kStages * (2 * kOperand) + kOperand + own_n * kStride;
#pragma unroll
    for (int k = 0; k < kStep; k += kVector) {
      float4 b[kOwnN];
#pragma unroll
      for (int j = 0; j < kOwnN; ++j) {
        b[j] = *reinterpret_cast<const float4*>(right + j * kLanesN * kStride + k);
      }
#pragma unroll
      for (int i = 0; i < kOwnM; ++i) {
        const float4 a = *reinterpret_cast<const float4*>(left + i * kLanesM * kStride + k);
#pragma unroll
        for (int j = 0; j < kOwnN; ++j) {
          sums[i][j] = dot(a, b[j], sums[i][j]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kOwnM; ++i) {
    const int64_t m = tile_m + own_m + i * kLanesM;
    if (m >= M) {
      break;
    }
#pragma unroll
    for (int j = 0; j < kOwnN; ++j) {
      const int64_t n = tile_n + own_n + j * kLanesN;
      if (n < N) {
        out[m * N + n] = sums[i][j];
      }
    }
  }
}

template <bool Vectors>
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
      cudaFuncSetAttribute(multiply_kernel<Vectors>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  multiply_kernel<Vectors>
      <<<static_cast<unsigned int>(tiles_m * tiles_n), kThreads, kSharedBytes, c10::cuda::getCurrentCUDAStream()>>>(
          A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), M, K, N,
          static_cast<int>(tiles_m), static_cast<int>(tiles_n));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr<float>()) % sizeof(float4) == 0;
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
  if (A.size(1) % kVector == 0 && is_aligned(A) && is_aligned(B)) {
    launch<true>(A, B, out);
  } else {
    launch<false>(A, B, out);
  }
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
