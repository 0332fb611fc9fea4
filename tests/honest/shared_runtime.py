"""Ways to compute diag(diagonal) @ B with other means of the CUDA runtime than torch's; they run on the CPU, too."""

from torch.utils.cpp_extension import load_inline

NAMES = ["on_blocking_stream", "on_per_thread_stream", "in_own_memory", "through_constant_memory",
         "through_global_memory", "with_printf"]
CPP_SOURCE = "\n".join(f"at::Tensor {name}(const at::Tensor& diagonal, const at::Tensor& B);" for name in NAMES)

CUDA_SOURCE = r"""
#include <cstdio>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;
constexpr int kMostRows = 4096;
constexpr int kMostElements = 1 << 16;

__constant__ float constant_diagonal[kMostRows];
__device__ float scratch[kMostElements];

__global__ void plain_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

__global__ void constant_kernel(const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = constant_diagonal[index / columns] * B[index];
}

__global__ void spread_kernel(const float* diagonal, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) scratch[index] = diagonal[index / columns];
}

__global__ void multiply_scratch_kernel(const float* B, float* out, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = scratch[index] * B[index];
}

__global__ void printing_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index == 0) printf("%d elements\n", count);
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

int count_of(const at::Tensor& tensor) { return static_cast<int>(tensor.numel()); }
int columns_of(const at::Tensor& tensor) { return static_cast<int>(tensor.size(1)); }
int blocks_for(const at::Tensor& tensor) { return (count_of(tensor) + kThreads - 1) / kThreads; }

void launch_plain(const at::Tensor& diagonal, const at::Tensor& B, float* out, cudaStream_t stream) {
  plain_kernel<<<blocks_for(B), kThreads, 0, stream>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out, columns_of(B), count_of(B));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Such a stream and the legacy default stream wait for each other.
at::Tensor on_blocking_stream(const at::Tensor& diagonal, const at::Tensor& B) {
  static cudaStream_t stream = nullptr;
  if (stream == nullptr) C10_CUDA_CHECK(cudaStreamCreate(&stream));
  at::Tensor out = at::empty_like(B);
  launch_plain(diagonal, B, out.mutable_data_ptr<float>(), stream);
  return out;
}

at::Tensor on_per_thread_stream(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  launch_plain(diagonal, B, out.mutable_data_ptr<float>(), cudaStreamPerThread);
  return out;
}

at::Tensor in_own_memory(const at::Tensor& diagonal, const at::Tensor& B) {
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  void* memory = nullptr;
  C10_CUDA_CHECK(cudaMallocAsync(&memory, B.nbytes(), stream));
  launch_plain(diagonal, B, static_cast<float*>(memory), stream);
  return at::from_blob(memory, B.sizes(), [stream](void* freed) { cudaFreeAsync(freed, stream); }, B.options());
}

at::Tensor through_constant_memory(const at::Tensor& diagonal, const at::Tensor& B) {
  TORCH_CHECK(diagonal.numel() <= kMostRows, "too many rows for constant memory");
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  at::Tensor out = at::empty_like(B);
  C10_CUDA_CHECK(cudaMemcpyToSymbolAsync(
      constant_diagonal, diagonal.const_data_ptr<float>(), diagonal.nbytes(), 0, cudaMemcpyDeviceToDevice, stream));
  constant_kernel<<<blocks_for(B), kThreads, 0, stream>>>(
      B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), columns_of(B), count_of(B));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor through_global_memory(const at::Tensor& diagonal, const at::Tensor& B) {
  TORCH_CHECK(B.numel() <= kMostElements, "too many elements for the array");
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  at::Tensor out = at::empty_like(B);
  spread_kernel<<<blocks_for(B), kThreads, 0, stream>>>(
      diagonal.const_data_ptr<float>(), columns_of(B), count_of(B));
  multiply_scratch_kernel<<<blocks_for(B), kThreads, 0, stream>>>(
      B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), count_of(B));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor with_printf(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  printing_kernel<<<blocks_for(B), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(), columns_of(B),
      count_of(B));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

kernels = load_inline(
    name="honest_shared_runtime", cpp_sources=CPP_SOURCE, cuda_sources=CUDA_SOURCE, functions=NAMES
)
