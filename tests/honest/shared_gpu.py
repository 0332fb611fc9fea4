"""Kernels that need a GPU (compute capability 9.0 or more), launched in ways that the CPU has no stand-in for."""

from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
void programmatic(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out);
void persisting(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out);
void with_callback(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out);
void normalise(const at::Tensor& x, at::Tensor out);
void cub_sum(const at::Tensor& x, at::Tensor out);
void batch_norm_in_place(at::Tensor x, const at::Tensor& scale, const at::Tensor& gamma, const at::Tensor& beta,
                         at::Tensor running_mean, at::Tensor running_var, double momentum, double eps);
"""

CUDA_SOURCE = r"""
#include <atomic>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>
#include <cub/device/device_reduce.cuh>

constexpr int kThreads = 256;
constexpr int kColumns = 16;  // a tile of the batch normalization: so many columns, all rows
constexpr int kLanes = 32;    // threads a column

__device__ int64_t global_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void scale_rows_kernel(const float* diagonal, const float* B, float* out, int64_t columns, int64_t count) {
  const int64_t index = global_index();
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

// Few blocks, so that the next kernel's find room beside them, as soon as all of these have begun.
__global__ void copy_kernel(const float* B, float* out, int64_t count) {
  cudaTriggerProgrammaticLaunchCompletion();
  for (int64_t index = global_index(); index < count; index += int64_t{gridDim.x} * blockDim.x) out[index] = B[index];
}

__global__ void scale_after_copy_kernel(const float* diagonal, float* out, int64_t columns, int64_t count) {
  cudaGridDependencySynchronize();  // until the copy is complete and can be seen
  for (int64_t index = global_index(); index < count; index += int64_t{gridDim.x} * blockDim.x) {
    out[index] *= diagonal[index / columns];
  }
}

__device__ unsigned largest_bits;

// Magnitudes compare like their bits.
__global__ void normalise_kernel(const float* x, float* out, int64_t count) {
  const auto grid = cooperative_groups::this_grid();
  const int64_t index = global_index();
  if (index == 0) largest_bits = 0;
  grid.sync();
  if (index < count) atomicMax(&largest_bits, __float_as_uint(fabsf(x[index])));
  grid.sync();
  if (index < count) out[index] = x[index] / __uint_as_float(largest_bits);
}

// The sum of a column's values, for each of its threads.
__device__ float column_sum(float value) {
  __shared__ float partial[kLanes][kColumns];
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float sum = 0.f;
  for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane][threadIdx.x];
  __syncthreads();
  return sum;
}

__global__ void batch_norm_kernel(float* x, const float* scale, const float* gamma, const float* beta,
                                  float* running_mean, float* running_var, int rows, int64_t columns, float momentum,
                                  float eps) {
  extern __shared__ float tile[];  // (rows, kColumns)
  const int64_t column = int64_t{blockIdx.x} * kColumns + threadIdx.x;
  float sum = 0.f, squares = 0.f;
  for (int row = threadIdx.y; row < rows; row += kLanes) {
    sum += tile[row * kColumns + threadIdx.x] = x[row * columns + column] * scale[column];
  }
  const float mean = column_sum(sum) / rows;
  for (int row = threadIdx.y; row < rows; row += kLanes) {
    const float distance = tile[row * kColumns + threadIdx.x] - mean;
    squares += distance * distance;
  }
  squares = column_sum(squares);
  if (threadIdx.y == 0) {
    running_mean[column] = (1.f - momentum) * running_mean[column] + momentum * mean;
    running_var[column] = (1.f - momentum) * running_var[column] + momentum * (squares / (rows - 1));
  }
  const float slope = gamma[column] * rsqrtf(squares / rows + eps);
  for (int row = threadIdx.y; row < rows; row += kLanes) {
    x[row * columns + column] = (tile[row * kColumns + threadIdx.x] - mean) * slope + beta[column];
  }
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }
cudaStream_t stream() { return at::cuda::getCurrentCUDAStream(); }
const float* in(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }
float* to(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

cudaLaunchConfig_t configure(unsigned blocks, cudaLaunchAttribute* attribute) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream();
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

void programmatic(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out) {
  const unsigned blocks = 264;  // two a multiprocessor, or so
  copy_kernel<<<blocks, kThreads, 0, stream()>>>(in(B), to(out), B.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = configure(blocks, &attribute);
  C10_CUDA_CHECK(cudaLaunchKernelEx(&config, scale_after_copy_kernel, in(diagonal), to(out), B.size(1), B.numel()));
}

void persisting(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out) {
  constexpr size_t kBytes = 16 << 20;
  static const cudaError_t status = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, kBytes);
  C10_CUDA_CHECK(status);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeAccessPolicyWindow;
  attribute.val.accessPolicyWindow.base_ptr = const_cast<float*>(in(B));
  attribute.val.accessPolicyWindow.num_bytes = B.nbytes() < kBytes ? B.nbytes() : kBytes;
  attribute.val.accessPolicyWindow.hitRatio = 1.f;
  attribute.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  attribute.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  const cudaLaunchConfig_t config = configure(blocks_for(B.numel()), &attribute);
  C10_CUDA_CHECK(cudaLaunchKernelEx(
      &config, scale_rows_kernel, in(diagonal), in(B), to(out), B.size(1), B.numel()));
}

void count_call(void* calls) { ++*static_cast<std::atomic<int>*>(calls); }

void with_callback(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out) {
  static std::atomic<int> calls;
  scale_rows_kernel<<<blocks_for(B.numel()), kThreads, 0, stream()>>>(
      in(diagonal), in(B), to(out), B.size(1), B.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  C10_CUDA_CHECK(cudaLaunchHostFunc(stream(), count_call, &calls));
}

// x must be small enough for all blocks to run at a time.
void normalise(const at::Tensor& x, at::Tensor out) {
  const float* from = in(x);
  float* result = to(out);
  int64_t count = x.numel();
  void* arguments[] = {&from, &result, &count};
  C10_CUDA_CHECK(cudaLaunchCooperativeKernel(
      reinterpret_cast<void*>(normalise_kernel), dim3(blocks_for(count)), dim3(kThreads), arguments, 0, stream()));
}

void cub_sum(const at::Tensor& x, at::Tensor out) {
  size_t bytes = 0;
  const int count = static_cast<int>(x.numel());
  C10_CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bytes, in(x), to(out), count, stream()));
  const at::Tensor workspace = at::empty({static_cast<int64_t>(bytes)}, x.options().dtype(at::kByte));
  C10_CUDA_CHECK(cub::DeviceReduce::Sum(
      workspace.mutable_data_ptr(), bytes, in(x), to(out), count, stream()));
}

// Train mode; reads and writes each value once. Columns in sixteens, and no more rows than shared memory has room for.
void batch_norm_in_place(at::Tensor x, const at::Tensor& scale, const at::Tensor& gamma, const at::Tensor& beta,
                         at::Tensor running_mean, at::Tensor running_var, double momentum, double eps) {
  TORCH_CHECK(x.size(1) % kColumns == 0, "columns in sixteens only");
  const int rows = static_cast<int>(x.size(0)), bytes = rows * kColumns * static_cast<int>(sizeof(float));
  C10_CUDA_CHECK(cudaFuncSetAttribute(batch_norm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  batch_norm_kernel<<<static_cast<unsigned>(x.size(1) / kColumns), dim3(kColumns, kLanes), bytes, stream()>>>(
      to(x), in(scale), in(gamma), in(beta), to(running_mean), to(running_var), rows, x.size(1),
      static_cast<float>(momentum), static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

kernels = load_inline(
    name="honest_shared_gpu",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["programmatic", "persisting", "with_callback", "normalise", "cub_sum", "batch_norm_in_place"],
)
