"""Kernels that the honest files share, so that all of them build once. Tensors are contiguous float32 on one device.

`tests/cheats/shared.py` holds the two that cheats need as well: a diagonal times a matrix, and a matrix product.
"""

from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
void scale_rows_transposed(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out);
void matmul_parts(const at::Tensor& A, const at::Tensor& B, at::Tensor parts);
void sum_parts(const at::Tensor& parts, at::Tensor out);
void matmul_atomic(const at::Tensor& A, const at::Tensor& B, at::Tensor out, int64_t parts);
void matmul_double(const at::Tensor& A, const at::Tensor& B, at::Tensor out);
void linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool packed, at::Tensor out);
void leaky_relu(at::Tensor x, double slope);
void batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& gamma, const at::Tensor& beta,
                at::Tensor running_mean, at::Tensor running_var, double momentum, double eps, at::Tensor out);
void sum(const at::Tensor& x, at::Tensor out);
void sum_with_counter(const at::Tensor& x, at::Tensor partial, at::Tensor counter, at::Tensor out);
void sum_atomic(const at::Tensor& x, at::Tensor out);
void largest_magnitude(const at::Tensor& x, at::Tensor out);
void multiply(const at::Tensor& x, const at::Tensor& y, double factor, at::Tensor out);
void scale(const at::Tensor& x, double factor, at::Tensor out);
void outer(const at::Tensor& a, const at::Tensor& b, at::Tensor out);
void add_to_first_column(at::Tensor x, const at::Tensor& y);
"""

CUDA_SOURCE = r"""
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kThreads = 256;

__device__ int64_t global_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void scale_rows_transposed_kernel(const float* diagonal, const float* B, float* out, int64_t N, int64_t M) {
  const int64_t index = global_index();
  if (index < N * M) out[index] = diagonal[index % N] * B[index % N * M + index / N];
}

// The sum over part number `part` of `parts` of the products of a row of A and a column of B.
template <typename Sum>
__device__ Sum partial_product(const float* A, const float* B, int64_t index, int64_t K, int64_t M, int64_t part,
                               int64_t parts) {
  const int64_t row = index / M, column = index % M;
  Sum sum = 0;
  for (int64_t k = K * part / parts; k < K * (part + 1) / parts; ++k) {
    sum += static_cast<Sum>(A[row * K + k]) * static_cast<Sum>(B[k * M + column]);
  }
  return sum;
}

__global__ void matmul_parts_kernel(const float* A, const float* B, float* parts, int64_t K, int64_t M,
                                    int64_t count) {
  const int64_t index = global_index();
  if (index < count) {
    parts[blockIdx.y * count + index] = partial_product<float>(A, B, index, K, M, blockIdx.y, gridDim.y);
  }
}

__global__ void sum_parts_kernel(const float* parts, float* out, int64_t count, int64_t number) {
  const int64_t index = global_index();
  if (index >= count) return;
  float sum = 0.f;
  for (int64_t part = 0; part < number; ++part) sum += parts[part * count + index];
  out[index] = sum;
}

__global__ void matmul_atomic_kernel(const float* A, const float* B, float* out, int64_t K, int64_t M, int64_t count) {
  const int64_t index = global_index();
  if (index < count) atomicAdd(out + index, partial_product<float>(A, B, index, K, M, blockIdx.y, gridDim.y));
}

__global__ void matmul_double_kernel(const float* A, const float* B, float* out, int64_t K, int64_t M, int64_t count) {
  const int64_t index = global_index();
  if (index < count) out[index] = static_cast<float>(partial_product<double>(A, B, index, K, M, 0, 1));
}

// weight is (outs, ins), or (ins, outs) if packed.
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int64_t ins,
                              int64_t outs, bool packed, int64_t count) {
  const int64_t index = global_index();
  if (index >= count) return;
  const int64_t row = index / outs, column = index % outs;
  float sum = bias[column];
  for (int64_t k = 0; k < ins; ++k) {
    sum += x[row * ins + k] * (packed ? weight[k * outs + column] : weight[column * ins + k]);
  }
  out[index] = sum;
}

__global__ void leaky_relu_kernel(float* x, float slope, int64_t count) {
  const int64_t index = global_index();
  if (index < count && x[index] < 0.f) x[index] *= slope;
}

// The sum of every thread's value, for every thread; all threads of the block must call it.
__device__ float block_sum(float value) {
  __shared__ float partial[kThreads];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = partial[0];
  __syncthreads();
  return sum;
}

// Batch normalization of x * scale, in train mode. One block a column.
__global__ void batch_norm_kernel(const float* x, const float* scale, const float* gamma, const float* beta,
                                  float* running_mean, float* running_var, float* out, int64_t rows, int64_t columns,
                                  float momentum, float eps) {
  const int64_t column = blockIdx.x;
  const float factor = scale[column];
  float sum = 0.f, squares = 0.f;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) sum += x[row * columns + column] * factor;
  const float mean = block_sum(sum) / rows;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    const float distance = x[row * columns + column] * factor - mean;
    squares += distance * distance;
  }
  squares = block_sum(squares);
  if (threadIdx.x == 0) {
    running_mean[column] = (1.f - momentum) * running_mean[column] + momentum * mean;
    running_var[column] = (1.f - momentum) * running_var[column] + momentum * (squares / (rows - 1));
  }
  const float slope = gamma[column] * rsqrtf(squares / rows + eps);
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    const int64_t index = row * columns + column;
    out[index] = (x[index] * factor - mean) * slope + beta[column];
  }
}

__global__ void sum_kernel(const float* x, float* out, int64_t count) {
  float sum = 0.f;
  for (int64_t index = threadIdx.x; index < count; index += kThreads) sum += x[index];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}

// Every block adds its sum to out, in whatever order they come.
__global__ void sum_atomic_kernel(const float* x, float* out, int64_t count) {
  const int64_t index = global_index();
  const float sum = block_sum(index < count ? x[index] : 0.f);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

// Every block writes its sum; the last one to arrive adds them, in their order, and clears the counter for next time.
__global__ void sum_with_counter_kernel(const float* x, float* partial, int* counter, float* out, int64_t count) {
  __shared__ bool is_last;
  const int64_t index = global_index();
  const float sum = block_sum(index < count ? x[index] : 0.f);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  float total = 0.f;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) total += partial[block];
  total = block_sum(total);
  if (threadIdx.x == 0) {
    *out = total;
    *counter = 0;
  }
}

__global__ void largest_magnitude_kernel(const float* x, float* out, int64_t count) {
  __shared__ float largest[kThreads];
  float mine = 0.f;
  for (int64_t index = threadIdx.x; index < count; index += kThreads) mine = fmaxf(mine, fabsf(x[index]));
  largest[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int thread = 1; thread < kThreads; ++thread) mine = fmaxf(mine, largest[thread]);
  *out = mine;
}

__global__ void multiply_kernel(const float* x, const float* y, float factor, float* out, int64_t count) {
  const int64_t index = global_index();
  if (index < count) out[index] = x[index] * y[index] * factor;
}

__global__ void scale_kernel(const float* x, float factor, float* out, int64_t count) {
  const int64_t index = global_index();
  if (index < count) out[index] = x[index] * factor;
}

// Four columns a thread, written past the caches as far as the GPU allows; M is a multiple of 4.
__global__ void outer_kernel(const float* a, const float4* b, float4* out, int64_t quads, int64_t count) {
  const int64_t index = global_index();
  if (index >= count) return;
  const float factor = a[index / quads];
  const float4 value = b[index % quads];
  __stcs(out + index, make_float4(factor * value.x, factor * value.y, factor * value.z, factor * value.w));
}

__global__ void add_to_first_column_kernel(float* x, const float* y, int64_t columns, int64_t rows) {
  const int64_t row = global_index();
  if (row < rows) x[row * columns] += y[row];
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }
cudaStream_t stream() { return at::cuda::getCurrentCUDAStream(); }
const float* in(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "contiguous tensors only");
  return tensor.const_data_ptr<float>();
}
float* to(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), "contiguous tensors only");
  return tensor.mutable_data_ptr<float>();
}

// (diag(diagonal) @ B).T into out, which is (M, N).
void scale_rows_transposed(const at::Tensor& diagonal, const at::Tensor& B, at::Tensor out) {
  scale_rows_transposed_kernel<<<blocks_for(out.numel()), kThreads, 0, stream()>>>(
      in(diagonal), in(B), to(out), B.size(0), B.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// parts (P, N, M): each holds the products over one of P stretches of the sum's index.
void matmul_parts(const at::Tensor& A, const at::Tensor& B, at::Tensor parts) {
  const int64_t count = A.size(0) * B.size(1);
  const dim3 grid(blocks_for(count), static_cast<unsigned>(parts.size(0)));
  matmul_parts_kernel<<<grid, kThreads, 0, stream()>>>(in(A), in(B), to(parts), A.size(1), B.size(1), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void sum_parts(const at::Tensor& parts, at::Tensor out) {
  sum_parts_kernel<<<blocks_for(out.numel()), kThreads, 0, stream()>>>(
      in(parts), to(out), out.numel(), parts.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// Adds A @ B to out in `parts` stretches, in whatever order they end.
void matmul_atomic(const at::Tensor& A, const at::Tensor& B, at::Tensor out, int64_t parts) {
  const dim3 grid(blocks_for(out.numel()), static_cast<unsigned>(parts));
  matmul_atomic_kernel<<<grid, kThreads, 0, stream()>>>(in(A), in(B), to(out), A.size(1), B.size(1), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void matmul_double(const at::Tensor& A, const at::Tensor& B, at::Tensor out) {
  matmul_double_kernel<<<blocks_for(out.numel()), kThreads, 0, stream()>>>(
      in(A), in(B), to(out), A.size(1), B.size(1), out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool packed, at::Tensor out) {
  linear_kernel<<<blocks_for(out.numel()), kThreads, 0, stream()>>>(
      in(x), in(weight), in(bias), to(out), x.size(1), out.size(1), packed, out.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// In place.
void leaky_relu(at::Tensor x, double slope) {
  leaky_relu_kernel<<<blocks_for(x.numel()), kThreads, 0, stream()>>>(to(x), static_cast<float>(slope), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& gamma, const at::Tensor& beta,
                at::Tensor running_mean, at::Tensor running_var, double momentum, double eps, at::Tensor out) {
  batch_norm_kernel<<<static_cast<unsigned>(x.size(1)), kThreads, 0, stream()>>>(
      in(x), in(scale), in(gamma), in(beta), to(running_mean), to(running_var), to(out), x.size(0), x.size(1),
      static_cast<float>(momentum), static_cast<float>(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// One block, also where there is nothing to add.
void sum(const at::Tensor& x, at::Tensor out) {
  sum_kernel<<<1, kThreads, 0, stream()>>>(in(x), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// partial has an element a block of 256; counter is one int32, 0 before and after.
void sum_with_counter(const at::Tensor& x, at::Tensor partial, at::Tensor counter, at::Tensor out) {
  sum_with_counter_kernel<<<blocks_for(x.numel()), kThreads, 0, stream()>>>(
      in(x), to(partial), counter.mutable_data_ptr<int>(), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void sum_atomic(const at::Tensor& x, at::Tensor out) {
  sum_atomic_kernel<<<blocks_for(x.numel()), kThreads, 0, stream()>>>(in(x), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void largest_magnitude(const at::Tensor& x, at::Tensor out) {
  largest_magnitude_kernel<<<1, kThreads, 0, stream()>>>(in(x), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void multiply(const at::Tensor& x, const at::Tensor& y, double factor, at::Tensor out) {
  multiply_kernel<<<blocks_for(x.numel()), kThreads, 0, stream()>>>(
      in(x), in(y), static_cast<float>(factor), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void scale(const at::Tensor& x, double factor, at::Tensor out) {
  scale_kernel<<<blocks_for(x.numel()), kThreads, 0, stream()>>>(
      in(x), static_cast<float>(factor), to(out), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// a (N,) times b (M,) into out (N, M).
void outer(const at::Tensor& a, const at::Tensor& b, at::Tensor out) {
  TORCH_CHECK(b.numel() % 4 == 0, "columns in fours only");
  outer_kernel<<<blocks_for(out.numel() / 4), kThreads, 0, stream()>>>(
      in(a), reinterpret_cast<const float4*>(in(b)), reinterpret_cast<float4*>(to(out)), b.numel() / 4,
      out.numel() / 4);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

// In place, the other columns untouched.
void add_to_first_column(at::Tensor x, const at::Tensor& y) {
  add_to_first_column_kernel<<<blocks_for(x.size(0)), kThreads, 0, stream()>>>(to(x), in(y), x.size(1), x.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

kernels = load_inline(
    name="honest_shared",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["scale_rows_transposed", "matmul_parts", "sum_parts", "matmul_atomic", "matmul_double", "linear",
               "leaky_relu", "batch_norm", "sum", "sum_with_counter", "sum_atomic", "largest_magnitude",
               "multiply", "scale", "outer", "add_to_first_column"],
)
