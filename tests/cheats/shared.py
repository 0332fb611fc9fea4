"""Honest kernels that cheats share, so that all of them build once.

A cheat imports `kernels` (its process finds this package) and adds its trick. A cheat without any kernel would be
caught for that alone, and would show nothing about the guard that its file is about.
"""

from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
at::Tensor scale_rows(const at::Tensor& diagonal, const at::Tensor& B);
void scale_rows_into(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out);
at::Tensor matmul(const at::Tensor& A, const at::Tensor& B);
void spin(int64_t cycles);
"""

CUDA_SOURCE = r"""
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;

__global__ void scale_rows_kernel(const float* diagonal, const float* B, float* out, int64_t columns, int64_t count) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

__global__ void matmul_kernel(const float* A, const float* B, float* out, int64_t N, int64_t K, int64_t M) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= N * M) return;
  const int64_t row = index / M, column = index % M;
  float sum = 0.f;
  for (int64_t k = 0; k < K; ++k) sum += A[row * K + k] * B[k * M + column];
  out[index] = sum;
}

__global__ void spin_kernel(int64_t cycles) {
  const int64_t begin = clock64();
  while (clock64() - begin < cycles) {}
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

// diag(diagonal) @ B into out, on the current stream; all contiguous float32.
void scale_rows_into(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out) {
  TORCH_CHECK(diagonal.is_contiguous() && B.is_contiguous() && out.is_contiguous(), "contiguous tensors only");
  scale_rows_kernel<<<blocks_for(B.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), B.size(1),
      B.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

at::Tensor scale_rows(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  scale_rows_into(diagonal, B, out);
  return out;
}

// A @ B, one thread an element; contiguous float32.
at::Tensor matmul(const at::Tensor& A, const at::Tensor& B) {
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "contiguous tensors only");
  at::Tensor out = at::empty({A.size(0), B.size(1)}, A.options());
  matmul_kernel<<<blocks_for(out.numel()), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      A.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), A.size(0), A.size(1),
      B.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// Keeps one SM busy for so many cycles, on the current stream.
void spin(int64_t cycles) {
  spin_kernel<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>(cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

kernels = load_inline(
    name="cheats_shared",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["scale_rows", "scale_rows_into", "matmul", "spin"],
)
