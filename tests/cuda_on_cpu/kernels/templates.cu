// Template kernels, functors, classes and namespaces.
#include "case.h"

namespace operations {
struct Square {
  __device__ float operator()(float x) const { return x * x; }
};
struct Scale {
  float factor;
  __device__ float operator()(float x) const { return factor * x; }
};
namespace inner {
template <typename T, int Step>
__global__ void strided_copy(const T* x, T* out, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * Step;
  for (int k = 0; k < Step; ++k)
    if (i + k < n) out[i + k] = x[i + k];
}
}  // namespace inner
}  // namespace operations

template <typename Operation>
__global__ void apply_kernel(const float* x, float* out, int n, Operation operation) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = operation(x[i]);
}
extern "C" void functor_argument(const float* x, float* out, int n) {
  apply_kernel<<<(n + 63) / 64, 64>>>(x, out, n, operations::Square());
}
extern "C" void functor_with_state(const float* x, float* out, int n) {
  apply_kernel<operations::Scale><<<(n + 63) / 64, 64>>>(x, out, n, {2.5f});
}

extern "C" void qualified_template(const float* x, float* out, int n) {
  operations::inner::strided_copy<float, 4><<<(n + 255) / 256, 64>>>(x, out, n);
}

template <int A, bool Negate>
__global__ void non_type_kernel(int* out) {
  out[threadIdx.x] = Negate ? -A - static_cast<int>(threadIdx.x) : A + static_cast<int>(threadIdx.x);
}
extern "C" void comparison_in_arguments(int* out) {
  constexpr int a = 3, b = 2;
  non_type_kernel<(a > b) ? 5 : 6, (a >> 1 > 0)><<<1, 16>>>(out);
}

template <typename T>
void launch_for(const T* x, T* out, int n) {
  operations::inner::strided_copy<T, 2><<<dim3((n + 31) / 32), dim3(16), 0, cudaStream_t(nullptr)>>>(x, out, n);
}
extern "C" void launch_in_template(const double* x, double* out, int n) { launch_for(x, out, n); }

template <typename T, int Block>
__global__ void block_sum_kernel(const T* x, T* out, int n) {
  __shared__ T partial[Block];
  int i = blockIdx.x * Block + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : T(0);
  __syncthreads();
#pragma unroll
  for (int half = Block / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}
extern "C" void shared_in_template(const float* x, float* out, const int* y, int* sums, int n) {
  block_sum_kernel<float, 128><<<(n + 127) / 128, 128>>>(x, out, n);
  block_sum_kernel<int, 64><<<(n + 63) / 64, 64>>>(y, sums, n);
}

template <class T>
struct Launcher {
  T factor;
  void run(const T* x, T* out, int n) const;
};
template <class T>
__global__ void member_kernel(const T* x, T* out, int n, T factor) {
  int i = threadIdx.x;
  if (i < n) out[i] = factor * x[i];
}
template <class T>
void Launcher<T>::run(const T* x, T* out, int n) const {
  member_kernel<T><<<1, 64>>>(x, out, n, factor);
}
extern "C" void launch_in_member(const float* x, float* out, int n) { Launcher<float>{1.5f}.run(x, out, n); }

template <typename... Values>
__global__ void sum_kernel(float* out, Values... values) {
  out[threadIdx.x] = (0.0f + ... + values);
}
extern "C" void variadic(float* out) { sum_kernel<<<1, 4>>>(out, 1.0f, 2, 3.5); }

template <int N>
struct Unrolled {
  __device__ static float power(float x) { return x * Unrolled<N - 1>::power(x); }
};
template <>
struct Unrolled<0> {
  __device__ static float power(float) { return 1.0f; }
};
__global__ void power_kernel(const float* x, float* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = Unrolled<5>::power(x[i]);
}
extern "C" void recursive_template(const float* x, float* out, int n) { power_kernel<<<1, 128>>>(x, out, n); }

template <typename T>
__global__ void constexpr_kernel(const T* x, T* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  if constexpr (sizeof(T) == 8)
    out[i] = x[i] * 8;
  else
    out[i] = x[i] * 4;
}
extern "C" void constexpr_branch(const float* x, float* out, const double* y, double* z, int n) {
  constexpr_kernel<<<1, 64>>>(x, out, n);
  constexpr_kernel<double><<<1, 64>>>(y, z, n);
}

#define DISPATCH(SIZE, ...)                        \
  [&] {                                            \
    if (SIZE == 4) {                               \
      constexpr int width = 4;                     \
      return __VA_ARGS__();                        \
    }                                              \
    constexpr int width = 2;                       \
    return __VA_ARGS__();                          \
  }()
extern "C" void launch_in_dispatch(const float* x, float* out, int n) {
  DISPATCH(n % 4 + 4, [&] { operations::inner::strided_copy<float, width><<<(n + 15) / 16, 16>>>(x, out, n); });
}

__global__ void lambda_kernel(const float* x, float* out, int n) {
  auto smooth = [=](int i) { return (x[i > 0 ? i - 1 : 0] + x[i] + x[i < n - 1 ? i + 1 : n - 1]) / 3.0f; };
  int i = threadIdx.x;
  if (i < n) out[i] = smooth(i);
}
extern "C" void device_lambda(const float* x, float* out, int n) { lambda_kernel<<<1, 128>>>(x, out, n); }
