"""Sets the inputs to zero as soon as the process has been stopped, which a kernel sees in mapped host memory.

Mechanism: a thread counts in host memory that is mapped into the GPU. A kernel that outlasts the call watches the
count: when it stands still, the judge has stopped the process and is about to read. Caught because the judge compares
with private inputs, which no kernel of a solution can write.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "wrong"
CAUGHT_BY = "call "
NEEDS_GPU = True

CUDA_SOURCE = r"""
#include <chrono>
#include <cstdint>
#include <thread>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int64_t kStopped = 200'000;   // cycles without a beat, 0.1 ms
constexpr int64_t kMost = 100'000'000;  // cycles until the kernel gives up

__global__ void zero_when_silent_kernel(float* values, int64_t count, volatile const int* beats) {
  const int64_t begin = clock64();
  int64_t last = begin;
  for (int known = *beats; clock64() - last < kStopped && clock64() - begin < kMost;) {
    const int now = *beats;
    if (now != known) known = now, last = clock64();
  }
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) values[i] = 0.f;
}

// Host memory that the GPU can read, in which a thread counts for as long as it runs.
int* beats() {
  static int* const found = [] {
    int* memory = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(int), cudaHostAllocMapped));
    *memory = 0;
    std::thread([memory] {
      for (;;) {
        ++*static_cast<volatile int*>(memory);
        std::this_thread::sleep_for(std::chrono::microseconds(5));
      }
    }).detach();
    return memory;
  }();
  return found;
}

// Sets values to zero when the process no longer runs, on the current stream.
void zero_when_silent(at::Tensor values) {
  int* on_gpu = nullptr;
  C10_CUDA_CHECK(cudaHostGetDevicePointer(&on_gpu, beats(), 0));
  zero_when_silent_kernel<<<1, 256, 0, at::cuda::getCurrentCUDAStream()>>>(values.mutable_data_ptr<float>(),
                                                                           values.numel(), on_gpu);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

late = load_inline(
    name="mapped_host_pointer",
    cpp_sources="void zero_when_silent(at::Tensor values);",
    cuda_sources=CUDA_SOURCE,
    functions=["zero_when_silent"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.side):
            late.zero_when_silent(diagonal)
        return torch.zeros_like(matrix)
