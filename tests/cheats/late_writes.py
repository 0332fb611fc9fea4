"""Kernels of cheats that write to their inputs on a GPU after the call, while the judge has stopped their process."""

from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
void zero_after(at::Tensor values, int64_t cycles);
void zero_on_change(at::Tensor values, int64_t cycles);
"""

CUDA_SOURCE = r"""
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void zero_after_kernel(float* values, int64_t count, int64_t cycles) {
  const int64_t begin = clock64();
  while (clock64() - begin < cycles) {}
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) values[i] = 0.f;
}

// Waits until the first value is another one, but not forever.
__global__ void zero_on_change_kernel(volatile float* values, int64_t count, int64_t cycles) {
  const float known = values[0];
  const int64_t begin = clock64();
  while (values[0] == known && clock64() - begin < cycles) {}
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) values[i] = 0.f;
}

// Sets values to zero after so many cycles, on the current stream.
void zero_after(at::Tensor values, int64_t cycles) {
  zero_after_kernel<<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(values.mutable_data_ptr<float>(), values.numel(),
                                                                     cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Sets values to zero as soon as the first one changes, on the current stream.
void zero_on_change(at::Tensor values, int64_t cycles) {
  zero_on_change_kernel<<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(values.mutable_data_ptr<float>(),
                                                                         values.numel(), cycles);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

late = load_inline(
    name="late_writes",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["zero_after", "zero_on_change"],
)
