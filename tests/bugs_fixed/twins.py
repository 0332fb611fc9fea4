"""The honest twins of the planted bugs in `bugs/`, each by its bug's name: all must pass.

One source has all of them, so that they are built once. Every call runs every twin on the call's inputs, and each must
give the same bits: the harness compares the first with the reference, and the others are compared with the first here.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
TWINS = ("overrun_by_one", "read_outside", "divergent_barrier", "uninitialised_shared", "block_order", "inline_ptx",
         "too_many_threads", "too_much_shared_memory", "empty_grid", "unjoined_stream")

CPP_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void launch(int twin, const float* diagonal, const float* B, float* out, int rows, int columns);

at::Tensor matmul_diag(int twin, const at::Tensor& A, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const float* diagonal = A.const_data_ptr<float>();
  launch(twin, diagonal, B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), B.size(0), B.size(1));
  return out;
}
"""

CUDA_SOURCE = r"""
__global__ void overrun_by_one(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = diagonal[index / columns] * B[index];
  }
}

__global__ void read_outside(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    const int row = index / columns;
    out[index] = diagonal[row] * B[index];
  }
}

__global__ void divergent_barrier(const float* diagonal, const float* B, float* out, int columns, int elements) {
  __shared__ float held[256];
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index < elements) {
    held[threadIdx.x] = diagonal[index / columns];
  }
  __syncthreads();
  if (index < elements) {
    out[index] = held[threadIdx.x] * B[index];
  }
  __syncthreads();
}

__global__ void uninitialised_shared(const float* diagonal, const float* B, float* out, int columns, int elements) {
  __shared__ float sum[256];
  const int index = blockIdx.x * 256 + threadIdx.x;
  sum[threadIdx.x] = 0.0f;
  if (index < elements) {
    sum[threadIdx.x] += diagonal[index / columns] * B[index];
    out[index] = sum[threadIdx.x];
  }
}

// A launch of its own clears what the next one adds to.
__global__ void clear(float* out, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = 0.0f;
  }
}

__global__ void block_order(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    atomicAdd(&out[index], diagonal[index / columns] * B[index]);
  }
}

__global__ void inline_ptx(const float* diagonal, const float* B, float* out, int columns, int elements) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = __fmul_rn(diagonal[index / columns], B[index]);
  }
}

// The default stream waits for the stream that the kernel runs on.
void launch_on_a_stream(const float* diagonal, const float* B, float* out, int columns, int elements) {
  static cudaStream_t stream = nullptr;
  static cudaEvent_t before, after;
  if (!stream) {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&after, cudaEventDisableTiming);
  }
  cudaEventRecord(before, 0);
  cudaStreamWaitEvent(stream, before, 0);
  inline_ptx<<<(elements + 255) / 256, 256, 0, stream>>>(diagonal, B, out, columns, elements);
  cudaEventRecord(after, stream);
  cudaStreamWaitEvent(0, after, 0);
}

void launch(int twin, const float* diagonal, const float* B, float* out, int rows, int columns) {
  const int elements = rows * columns;
  const int blocks = (elements + 255) / 256;
  switch (twin) {
    case 0: overrun_by_one<<<blocks, 256>>>(diagonal, B, out, columns, elements); break;
    case 1: read_outside<<<blocks, 256>>>(diagonal, B, out, columns, elements); break;
    case 2: divergent_barrier<<<blocks, 256>>>(diagonal, B, out, columns, elements); break;
    case 3: uninitialised_shared<<<blocks, 256>>>(diagonal, B, out, columns, elements); break;
    case 4:
      clear<<<blocks, 256>>>(out, elements);
      block_order<<<blocks, 256>>>(diagonal, B, out, columns, elements);
      break;
    case 5: inline_ptx<<<blocks, 256>>>(diagonal, B, out, columns, elements); break;
    // The largest blocks, the most shared memory and the smallest grid that are allowed.
    case 6: inline_ptx<<<(elements + 1023) / 1024, 1024>>>(diagonal, B, out, columns, elements); break;
    case 7: inline_ptx<<<blocks, 256, 48 << 10>>>(diagonal, B, out, columns, elements); break;
    case 8:
      for (int row = 0; row < rows; ++row) {
        inline_ptx<<<1, columns>>>(diagonal + row, B + row * columns, out + row * columns, columns, columns);
      }
      break;
    case 9: launch_on_a_stream(diagonal, B, out, columns, elements); break;
  }
}
"""

extension = load_inline(
    name="twins",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_diag"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        outputs = [extension.matmul_diag(twin, A, B) for twin in range(len(TWINS))]
        for name, output in zip(TWINS, outputs, strict=True):
            if not torch.equal(output, outputs[0]):
                raise RuntimeError(f"the twin of {name} gives another result")
        return outputs[0]
