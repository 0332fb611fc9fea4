// Matrix products: the two kernels whose speed is promised.
#include "case.h"

__global__ void naive_kernel(const float* a, const float* b, float* out, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int s = 0; s < k; ++s) sum += a[row * k + s] * b[s * n + column];
  out[row * n + column] = sum;
}
extern "C" void naive_matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  naive_kernel<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, out, m, n, k);
}

template <int T>
__global__ void matmul_kernel(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float left[T][T], right[T][T];
  int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < (k + T - 1) / T; ++t) {
    int i = t * T + threadIdx.x, j = t * T + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && i < k ? a[row * k + i] : 0.0f;
    right[threadIdx.y][threadIdx.x] = column < n && j < k ? b[j * n + column] : 0.0f;
    __syncthreads();
    for (int s = 0; s < T; ++s) sum += left[threadIdx.y][s] * right[s][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) out[row * n + column] = sum;
}
extern "C" void tiled_matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  matmul_kernel<16><<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(a, b, out, m, n, k);
}
