"""Softmax under a mask, one warp a row, which reads only the scores that count.

What bounds it: memory. The result is written once, and of the scores those under the mask are needed: at full size
512 MiB, about 200 MiB and 8 MiB of mask, 0.18 ms at 4.2 TB/s. Unfused, the masked scores are a tensor of their own.

The trick: a warp holds its row in registers, so each score is read at most once, and no barrier is needed: 1024 scores
are eight 16-byte vectors a lane. It loads the masks of all its vectors first, 4 bytes each, and then only vectors in
which a query may see a key; under a causal mask that is half. The masks come from L2, because all heads share them. At
64 registers 32 warps share an SM, and up to 128 KB are under way, four times the latency of memory times an SM's share
of the bandwidth, so waiting for masks first costs nothing.

What the mask hides becomes the lowest finite number, as in the reference, and what lies beyond the row minus infinity.
So a row without any key needs no case of its own: each exponential in the row is 1.

The number of values a lane is a template parameter, because registers can't be indexed at run time: the smallest of 8,
16, 32 and 64 that fits. Longer rows are read twice, with a maximum and a sum that grow along the row. Rows that don't
begin at a multiple of 16 bytes take the same kernels with scalar accesses. Forward only: no gradient is recorded.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = "at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& mask);"

CUDA_SOURCE = r"""
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;  // a block; they have nothing in common
constexpr int kThreads = kWarp * kWarps;
constexpr int kMostKept = 64;  // values a lane
constexpr int kBatch = 4;      // vectors of long rows, a lane, before any of them is needed
constexpr unsigned int kAll = 0xffffffffu;
constexpr float kHidden = -FLT_MAX;  // what the reference puts where the mask is false
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limit on gridDim.x

// The masks of the values of a vector, one byte each: 0 or 1.
template <typename Vector>
struct MaskOf;

template <>
struct MaskOf<float> {
  using Type = uint8_t;
};

template <>
struct MaskOf<float4> {
  using Type = uint32_t;
};

template <typename Vector>
using Mask = typename MaskOf<Vector>::Type;

__device__ void fill(float& value, float with) {
  value = with;
}

__device__ void fill(float4& value, float with) {
  value = make_float4(with, with, with, with);
}

__device__ void hide(float& value, uint8_t mask) {
  value = mask ? value : kHidden;
}

__device__ void hide(float4& value, uint32_t mask) {
  value.x = mask & 0x000000ffu ? value.x : kHidden;
  value.y = mask & 0x0000ff00u ? value.y : kHidden;
  value.z = mask & 0x00ff0000u ? value.z : kHidden;
  value.w = mask & 0xff000000u ? value.w : kHidden;
}

__device__ float largest_of(float value) {
  return value;
}

__device__ float largest_of(float4 value) {
  return fmaxf(fmaxf(value.x, value.y), fmaxf(value.z, value.w));
}

__device__ float sum_of(float value) {
  return value;
}

__device__ float sum_of(float4 value) {
  return (value.x + value.y) + (value.z + value.w);
}

__device__ float exponentials(float value, float largest) {
  return __expf(value - largest);
}

__device__ float4 exponentials(float4 value, float largest) {
  return make_float4(
      exponentials(value.x, largest), exponentials(value.y, largest),
      exponentials(value.z, largest), exponentials(value.w, largest));
}

__device__ float times(float value, float factor) {
  return value * factor;
}

__device__ float4 times(float4 value, float factor) {
  return make_float4(value.x * factor, value.y * factor, value.z * factor, value.w * factor);
}

__device__ float warp_largest(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAll, value, distance));
  }
  return value;
}

__device__ float warp_sum(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAll, value, distance);
  }
  return value;
}

// kCount vectors of a row, kWarp apart, of which `left` lie before the row's end; minus infinity beyond it.
template <typename Vector, int kCount>
__device__ void load_masked(const Vector* scores, const Mask<Vector>* mask, int64_t left, Vector (&values)[kCount]) {
  Mask<Vector> masks[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    masks[i] = i * kWarp < left ? mask[i * kWarp] : 0;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    fill(values[i], i * kWarp < left ? kHidden : -INFINITY);
    if (masks[i] != 0) {
      values[i] = __ldcs(scores + i * kWarp);
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (i * kWarp < left) {
      hide(values[i], masks[i]);
    }
  }
}

struct Sizes {
  int64_t rows;      // of scores: batch * heads * queries
  int64_t of_batch;  // rows of scores: heads * queries
  int64_t queries;
  int64_t width;     // of a row, in vectors
};

// Where the mask of a row of scores begins: all heads have the same one.
template <typename Vector>
__device__ const Mask<Vector>* mask_of(const Mask<Vector>* mask, int64_t row, const Sizes& sizes) {
  return mask + (row / sizes.of_batch * sizes.queries + row % sizes.queries) * sizes.width;
}

// One warp a row of at most kWarp * kValues vectors. Vector is float4 or float.
template <typename Vector, int kValues>
__global__ void __launch_bounds__(kThreads) kept_rows_kernel(
    const Vector* __restrict__ scores, const Mask<Vector>* __restrict__ mask, Vector* __restrict__ out, Sizes sizes) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= sizes.rows) {
    return;  // the whole warp
  }
  const int lane = threadIdx.x % kWarp;
  const int left = static_cast<int>(sizes.width) - lane;
  Vector values[kValues];
  load_masked(scores + row * sizes.width + lane, mask_of<Vector>(mask, row, sizes) + lane, left, values);

  float largest = -FLT_MAX;
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    largest = fmaxf(largest, largest_of(values[i]));
  }
  largest = warp_largest(largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    values[i] = exponentials(values[i], largest);
    sum += sum_of(values[i]);
  }
  const float factor = 1.0f / warp_sum(sum);
  Vector* const to = out + row * sizes.width + lane;
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    if (i * kWarp < left) {
      __stcs(to + i * kWarp, times(values[i], factor));
    }
  }
}

// One warp a row of any length.
template <typename Vector>
__global__ void __launch_bounds__(kThreads) long_rows_kernel(
    const Vector* __restrict__ scores, const Mask<Vector>* __restrict__ mask, Vector* __restrict__ out, Sizes sizes) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (row >= sizes.rows) {
    return;  // the whole warp
  }
  scores += row * sizes.width;
  out += row * sizes.width;
  mask = mask_of<Vector>(mask, row, sizes);
  const int lane = threadIdx.x % kWarp;

  float largest = -FLT_MAX;
  float sum = 0.0f;
  for (int64_t begin = lane; begin < sizes.width; begin += kWarp * kBatch) {
    Vector values[kBatch];
    load_masked(scores + begin, mask + begin, sizes.width - begin, values);
    const float before = largest;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      largest = fmaxf(largest, largest_of(values[i]));
    }
    sum *= __expf(before - largest);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      sum += sum_of(exponentials(values[i], largest));
    }
  }
  const float of_row = warp_largest(largest);
  const float factor = 1.0f / warp_sum(sum * __expf(largest - of_row));
  for (int64_t begin = lane; begin < sizes.width; begin += kWarp * kBatch) {
    Vector values[kBatch];
    load_masked(scores + begin, mask + begin, sizes.width - begin, values);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (begin + i * kWarp < sizes.width) {
        __stcs(out + begin + i * kWarp, times(exponentials(values[i], of_row), factor));
      }
    }
  }
}

template <typename Vector>
void launch_fitting(const float* scores, const bool* mask, float* out, const Sizes& sizes) {
  constexpr int kVector = sizeof(Vector) / sizeof(float);
  static_assert(kMostKept == 64, "the largest of the cases below");
  const int64_t kept = (sizes.width * kVector + kWarp - 1) / kWarp;  // values a lane
  const auto kernel = kept <= 8 ? kept_rows_kernel<Vector, 8 / kVector>
      : kept <= 16              ? kept_rows_kernel<Vector, 16 / kVector>
      : kept <= 32              ? kept_rows_kernel<Vector, 32 / kVector>
      : kept <= kMostKept       ? kept_rows_kernel<Vector, kMostKept / kVector>
                                : long_rows_kernel<Vector>;
  const int64_t blocks = (sizes.rows + kWarps - 1) / kWarps;
  TORCH_CHECK(blocks <= kMaxBlocks, "masked_softmax: ", sizes.rows, " rows are too many for one launch");
  kernel<<<static_cast<unsigned int>(blocks), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const Vector*>(scores),
      reinterpret_cast<const Mask<Vector>*>(mask),
      reinterpret_cast<Vector*>(out),
      sizes);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool is_aligned(const void* pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_cuda(), "masked_softmax: ", name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(
      tensor.dim() == 4, "masked_softmax: ", name, " must have 4 dimensions, but its shape is ", tensor.sizes());
  TORCH_CHECK(
      tensor.is_contiguous(),
      "masked_softmax: ", name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ",
      tensor.strides());
}

}  // namespace

at::Tensor masked_softmax(const at::Tensor& scores, const at::Tensor& mask) {
  check(scores, "scores");
  check(mask, "mask");
  TORCH_CHECK(
      scores.device() == mask.device(),
      "masked_softmax: scores are on ", scores.device(), ", but mask is on ", mask.device());
  TORCH_CHECK(
      scores.scalar_type() == at::kFloat, "masked_softmax: scores must be float32, but are ", scores.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_softmax: mask must be bool, but is ", mask.scalar_type());
  const int64_t keys = scores.size(3);
  TORCH_CHECK(
      mask.size(0) == scores.size(0) && mask.size(1) == 1 && mask.size(2) == scores.size(2) && mask.size(3) == keys,
      "masked_softmax: mask must have the shape of scores with one head, but they have ", mask.sizes(), " and ",
      scores.sizes());

  const c10::cuda::CUDAGuard guard(scores.device());
  at::Tensor out = at::empty_like(scores);
  if (out.numel() == 0) {
    return out;  // a grid without blocks is a launch error
  }
  const float* const from = scores.const_data_ptr<float>();
  const bool* const seen = mask.const_data_ptr<bool>();
  float* const to = out.mutable_data_ptr<float>();
  Sizes sizes{scores.numel() / keys, scores.size(1) * scores.size(2), scores.size(2), keys};
  if (keys % 4 == 0 && is_aligned(from, 16) && is_aligned(to, 16) && is_aligned(seen, 4)) {
    sizes.width = keys / 4;
    launch_fitting<float4>(from, seen, to, sizes);
  } else {
    launch_fitting<float>(from, seen, to, sizes);
  }
  return out;
}
"""

extension = load_inline(
    name="masked_softmax_fast",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["masked_softmax"],
)


class ModelNew(nn.Module):
    """Takes the softmax over those keys that a query may see, in one kernel."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return extension.masked_softmax(scores, mask)
