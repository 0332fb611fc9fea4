// finds: error lanes are missing
// A matrix that only half of the lanes of a warp load.
#include "../kernels/case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__global__ void double_kernel(const float* x, float* out, int n) {
  __shared__ alignas(16) float held[2][128];
  int t = threadIdx.x, i = blockIdx.x * 64 + t, warp = t / 32, lane = t % 32;
  held[warp][lane] = i < n ? 2.0f * x[i] : 0.0f;
  __syncwarp();
  unsigned bits = 0;
  if (lane < 16) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(bits) : "r"(shared_at(&held[warp][lane % 8 * 4])));
  if (i < n) out[i] = __uint_as_float(bits);
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 63) / 64, 64>>>(x, out, n); }
