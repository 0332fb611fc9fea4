// Accesses outside of tensors and shared arrays that touch memory all the same, because it lies beside them.
#include <cuda_pipeline.h>

#include "case.h"

// Launches with `out` and `scratch` of 37 elements, so that bytes behind them can be read.
template <bool fixed, class Kernel>
void launch_small(Kernel kernel, const float* x) {
  float* out;
  int* scratch;
  cudaMalloc(&out, 37 * sizeof(float));
  cudaMalloc(&scratch, 37 * sizeof(int));
  cudaMemset(out, 0, 37 * sizeof(float));
  cudaMemset(scratch, 0, 37 * sizeof(int));
  kernel<<<1, 64>>>(x, out, scratch);
  cudaFree(out);
  cudaFree(scratch);
}
#define PLANT_SMALL(NAME)                                                                                       \
  extern "C" void NAME(const float* x, float*, int*) { launch_small<false>(NAME##_kernel<false>, x); }          \
  extern "C" void NAME##_fixed(const float* x, float*, int*) { launch_small<true>(NAME##_kernel<true>, x); }

// No result shows what was read.
KERNEL(read_past) {
  int t = threadIdx.x;
  if (t < (fixed ? 36 : 37)) scratch[t] = out[t + 1] * 0.0f > 0.5f;  // @read_past
}
PLANT_SMALL(read_past)

KERNEL(write_past) {
  int t = threadIdx.x;
  if (fixed ? t < 37 : t <= 37) out[t] = x[t];  // @write_past
}
PLANT_SMALL(write_past)

KERNEL(write_before) {
  int t = threadIdx.x;
  if (t < 37 && (!fixed || t > 0)) out[t - 1] = x[t];  // @write_before
}
PLANT_SMALL(write_before)

// The last of the vectors is only half inside.
KERNEL(vector_past) {
  int t = threadIdx.x;
  if (t < (fixed ? 9 : 10)) {
    float4 four = reinterpret_cast<const float4*>(out)[t];  // @vector_past
    scratch[t] = four.x + four.y + four.z + four.w > 1.0f;
  }
}
PLANT_SMALL(vector_past)

KERNEL(atomic_past) {
  int t = threadIdx.x, bin = t % (fixed ? 37 : 38);
  atomicAdd(&scratch[bin], 1);  // @atomic_past
}
PLANT_SMALL(atomic_past)

KERNEL(copy_past) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  if (t < (fixed ? 9 : 10)) __pipeline_memcpy_async(&tile[t * 4], &out[t * 4], 16);  // @copy_past
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (t < 36) scratch[t] = tile[t] > 1.0f;
}
PLANT_SMALL(copy_past)

KERNEL(shared_read_past) {
  __shared__ float held[64];
  int t = threadIdx.x;
  held[t] = x[t];
  __syncthreads();
  float next = held[fixed ? (t + 1) % 64 : t + 1];  // @shared_read_past
  out[blockIdx.x * 64 + t] = t < 63 ? next : 0.0f;
}
PLANT(shared_read_past)

KERNEL(shared_write_past) {
  __shared__ float held[64];
  int t = threadIdx.x;
  held[fixed ? t : t + 1] = x[t];  // @shared_write_past
  __syncthreads();
  if (t > 0) out[blockIdx.x * 64 + t] = held[t];
}
PLANT(shared_write_past)

// The launch gives room for 60 elements.
KERNEL(dynamic_past) {
  extern __shared__ float held[];
  int t = threadIdx.x;
  if (t < (fixed ? 60 : 61)) held[t] = x[t];  // @dynamic_past
}
PLANT_ON(dynamic_past, 4, 64, 60 * sizeof(float))
