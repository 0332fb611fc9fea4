// Launches, indices, qualifiers and __constant__ memory.
#include "case.h"

__global__ void vector_add_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
extern "C" void vector_add(const float* a, const float* b, float* out, int n) {
  vector_add_kernel<<<(n + 127) / 128, 128>>>(a, b, out, n);
}

__global__ void grid_stride_kernel(float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = 2.0f * x[i] + 1.0f;
}
extern "C" void grid_stride(float* x, int n) { grid_stride_kernel<<<3, 64, 0, nullptr>>>(x, n); }

__global__ void indices_3d_kernel(int* out) {
  int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}
extern "C" void indices_3d(int* out) { indices_3d_kernel<<<dim3(2, 3, 2), dim3(4, 2, 3)>>>(out); }

extern "C" void braces(int* out) { indices_3d_kernel<<<{2, 3, 2}, {4, 2, 3}>>>(out); }

__global__ void thread_order_kernel(int* out) {
  int rank = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[rank] = threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16;
}
extern "C" void thread_order(int* out) {
  dim3 block;
  block.x = 5;
  block.y = 3;
  block.z = 2;
  thread_order_kernel<<<1, block>>>(out);
}

__constant__ float coefficients[4];
__constant__ int offset_value = 7;
__global__ void polynomial_kernel(const float* x, float* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float value = 0.0f;
  for (int k = 3; k >= 0; --k) value = value * x[i] + coefficients[k];
  out[i] = value + offset_value;
}
extern "C" void constant_memory(const float* x, float* out, int n) {
  const float host[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  cudaMemcpyToSymbol(coefficients, host, sizeof(host));
  polynomial_kernel<<<1, 64>>>(x, out, n);
}
extern "C" void constant_offset(const float* x, float* out, int n) {
  const float host[4] = {0.0f, 0.0f, 0.0f, 0.0f}, second = 5.0f;
  cudaMemcpyToSymbol(coefficients, host, sizeof(host));
  cudaMemcpyToSymbol(coefficients, &second, sizeof(float), sizeof(float), cudaMemcpyHostToDevice);
  polynomial_kernel<<<1, 64>>>(x, out, n);
}

__device__ int counter = 0;
__global__ void count_kernel() { atomicAdd(&counter, 1); }
extern "C" void device_variable(int* out) {
  int zero = 0;
  cudaMemcpyToSymbol(counter, &zero, sizeof(int));
  count_kernel<<<5, 33>>>();
  int host = 0;
  cudaMemcpyFromSymbol(&host, counter, sizeof(int));
  cudaMemcpy(out, &host, sizeof(int), cudaMemcpyHostToDevice);
}

__device__ __forceinline__ float twice(float x) { return 2.0f * x; }
__host__ __device__ inline int round_up(int n, int unit) { return (n + unit - 1) / unit; }
__device__ __noinline__ float slow_square(float x) { return x * x; }
__global__ void __launch_bounds__(128, 2) qualifiers_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = twice(x[i]) + slow_square(x[i]) + round_up(i, 4);
}
extern "C" void qualifiers(const float* x, float* out, int n) {
  qualifiers_kernel<<<round_up(n, 128), 128>>>(x, out, n);
}

struct Parameters {
  float scale;
  int shift;
  float table[8];
};
__global__ void struct_kernel(const __grid_constant__ Parameters p, const float* x, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = p.scale * x[i] + p.table[(i + p.shift) % 8];
}
extern "C" void struct_argument(const float* x, float* out, int n) {
  Parameters p{3.0f, 2, {0, 1, 2, 3, 4, 5, 6, 7}};
  struct_kernel<<<1, 128>>>(p, x, out, n);
}

__global__ void first_kernel(int* x) { x[threadIdx.x] += 1; }
__global__ void second_kernel(int* x) { x[threadIdx.x] *= 3; }
extern "C" void several_kernels(int* x) {
  first_kernel<<<1, 40>>>(x);
  second_kernel<<<1, 40>>>(x);
  first_kernel<<<1, 40>>>(x);
}

extern "C" void launch_by_pointer(const float* a, const float* b, float* out, int n) {
  void* arguments[] = {&a, &b, &out, &n};
  cudaLaunchKernel((const void*)vector_add_kernel, dim3((n + 63) / 64), dim3(64), arguments, 0, 0);
}

extern "C" void function_pointer(int* x) {
  void (*kernels[2])(int*) = {first_kernel, &second_kernel};
  auto chosen = kernels[1];
  chosen<<<1, 40>>>(x);
  kernels[0]<<<1, 40>>>(x);
  (*kernels[0])<<<1, 40>>>(x);
}

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define LAUNCH(KERNEL, n, ...)                       \
  do {                                               \
    KERNEL<<<CEIL_DIV(n, 32), 32>>>(__VA_ARGS__, n); \
  } while (0)
extern "C" void launch_in_macro(const float* a, const float* b, float* out, int n) {
  LAUNCH(vector_add_kernel, n, a, b, out);
}

extern "C" void launch_in_lambda(const float* a, const float* b, float* out, int n) {
  auto launch = [&](int threads) { vector_add_kernel<<<CEIL_DIV(n, threads), threads>>>(a, b, out, n); };
  launch(96);
}

__global__ void null_kernel(const float* bias, float* out) { out[threadIdx.x] = bias ? bias[threadIdx.x] : -1.0f; }
extern "C" void null_argument(float* out) { null_kernel<<<1, 16>>>(NULL, out); }

// <<<1, 1>>> in a comment, and in a string:
__device__ const char text[] = "kernel<<<1, 1>>>(x); __shared__ asm";
__global__ void string_kernel(int* out) { out[threadIdx.x] = text[threadIdx.x]; }
extern "C" void string_in_kernel(int* out) { string_kernel<<<1, 8>>>(out); }

__global__ void arch_kernel(int* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
  out[0] = 1;
#else
  out[0] = 2;
#endif
#ifdef __CUDACC__
  out[1] = 1;
#else
  out[1] = 2;
#endif
}
extern "C" void device_pass(int* out) { arch_kernel<<<1, 1>>>(out); }

__global__ void switch_kernel(const int* x, int* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  switch (x[i] % 4) {
    case 0: out[i] = 10; break;
    case 1: out[i] = 20;
    case 2: out[i] = 30; break;
    default: out[i] = -1;
  }
}
extern "C" void control_flow(const int* x, int* out, int n) { switch_kernel<<<1, 256>>>(x, out, n); }

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion_kernel(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
extern "C" void recursion(int* out) { recursion_kernel<<<1, 12>>>(out); }

__global__ void local_array_kernel(const float* x, float* out, int n) {
  float values[16];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 16; ++k) values[k] = x[(i + k) % n];
#pragma unroll 4
  for (int a = 0; a < 16; ++a)
    for (int b = a + 1; b < 16; ++b)
      if (values[b] < values[a]) {
        float held = values[a];
        values[a] = values[b];
        values[b] = held;
      }
  if (i < n) out[i] = values[8];
}
extern "C" void local_array(const float* x, float* out, int n) { local_array_kernel<<<(n + 31) / 32, 32>>>(x, out, n); }

// CUDA 13: a block has one thread if the launch does not say.
__global__ void one_thread_kernel(int* out) { out[blockIdx.x] = 10 * blockIdx.x + blockDim.x * blockDim.y * blockDim.z; }
extern "C" void default_block(int* out, int n) { one_thread_kernel<<<n>>>(out); }
