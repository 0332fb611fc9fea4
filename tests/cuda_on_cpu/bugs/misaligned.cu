// finds: error misaligned
// Loads a float4 from an address that is no multiple of 16.
#include "../kernels/case.h"

__global__ void double_kernel(const float* x, float* out, int n) {
  int i = 4 * threadIdx.x;
  for (; i + 4 < n; i += 4 * blockDim.x) {
    float4 v = *reinterpret_cast<const float4*>(x + i + 1);
    v.x *= 2.0f, v.y *= 2.0f, v.z *= 2.0f, v.w *= 2.0f;
    *reinterpret_cast<float4*>(out + i) = v;
  }
  for (; i < n && i >= 0; ++i) out[i] = 2.0f * x[i];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<1, 1>>>(x, out, n); }
