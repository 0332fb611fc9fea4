// nvcuda::wmma. Inputs are small integers, so that sums are exact in whatever order the hardware adds.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "case.h"

using namespace nvcuda;

// out = a * b + start, one warp a tile of M x N; columns of the grid are tiles along N. `held` is float for tf32.
template <int M, int N, int K, class T, class Layout, class Held, class Sum>
__global__ void product_kernel(const Held* a, const Held* b, const Sum* start, Sum* out, int m, int n, int k) {
  constexpr bool by_rows = std::is_same<Layout, wmma::row_major>::value;
  int row = blockIdx.y * M, column = (blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize) * N;
  if (row >= m || column >= n) return;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
  wmma::load_matrix_sync(sum, start + row * n + column, n, wmma::mem_row_major);
  for (int step = 0; step < k; step += K) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, Layout> left;
    wmma::fragment<wmma::matrix_b, M, N, K, T, Layout> right;
    wmma::load_matrix_sync(left, by_rows ? a + row * k + step : a + step * m + row, by_rows ? k : m);
    wmma::load_matrix_sync(right, by_rows ? b + step * n + column : b + column * k + step, by_rows ? n : k);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(out + row * n + column, sum, n, wmma::mem_row_major);
}

#define PRODUCT(NAME, M, N, K, T, LAYOUT, HELD, SUM)                                                                  \
  extern "C" void NAME(const void* a, const void* b, const void* start, void* out, int m, int n, int k) {             \
    product_kernel<M, N, K, T, wmma::LAYOUT><<<dim3((n / N + 3) / 4, m / M), 128>>>(                                  \
        (const HELD*)a, (const HELD*)b, (const SUM*)start, (SUM*)out, m, n, k);                                       \
  }
PRODUCT(half_16_16_16, 16, 16, 16, __half, row_major, __half, float)
PRODUCT(half_32_8_16, 32, 8, 16, __half, col_major, __half, float)
PRODUCT(half_8_32_16, 8, 32, 16, __half, row_major, __half, float)
PRODUCT(half_into_half, 16, 16, 16, __half, col_major, __half, __half)
PRODUCT(bfloat16_16_16_16, 16, 16, 16, __nv_bfloat16, col_major, __nv_bfloat16, float)
PRODUCT(bfloat16_32_8_16, 32, 8, 16, __nv_bfloat16, row_major, __nv_bfloat16, float)
PRODUCT(bfloat16_8_32_16, 8, 32, 16, __nv_bfloat16, col_major, __nv_bfloat16, float)
PRODUCT(tf32_by_rows, 16, 16, 8, wmma::precision::tf32, row_major, float, float)
PRODUCT(tf32_by_columns, 16, 16, 8, wmma::precision::tf32, col_major, float, float)
PRODUCT(signed_bytes, 16, 16, 16, signed char, row_major, signed char, int)
PRODUCT(unsigned_bytes, 8, 32, 16, unsigned char, col_major, unsigned char, int)
PRODUCT(doubles, 8, 8, 4, double, row_major, double, double)

// What lies in the low 13 bits of a float is cut off, unless it was rounded before.
__global__ void tf32_kernel(const float* a, const float* b, float* cut, float* rounded) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::load_matrix_sync(left, a, 8);
  wmma::load_matrix_sync(right, b, 8);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(cut, sum, 16, wmma::mem_col_major);
  for (int i = 0; i < left.num_elements; ++i) left.x[i] = wmma::__float_to_tf32(left.x[i]);
  for (int i = 0; i < right.num_elements; ++i) right.x[i] = wmma::__float_to_tf32(right.x[i]);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(rounded, sum, 16, wmma::mem_col_major);
}
extern "C" void tf32_precision(const float* a, const float* b, float* cut, float* rounded) {
  tf32_kernel<<<1, 32>>>(a, b, cut, rounded);
}

// relu(2 * (x + y)) by elements: fragments of one type have their elements in the same places.
__global__ void elementwise_kernel(const float* x, const float* y, float* out) {
  using Fragment = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
  Fragment both[2], sum;
  wmma::load_matrix_sync(both[0], x, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(both[1], y, 16, wmma::mem_col_major);
#pragma unroll
  for (int i = 0; i < Fragment::num_elements; ++i) sum.x[i] = fmaxf(2.0f * (both[0].x[i] + both[1].x[i]), 0.0f);
  wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
extern "C" void fragment_elements(const float* x, const float* y, float* out) {
  elementwise_kernel<<<1, 32>>>(x, y, out);
}

// Four warps, padded rows in shared memory, asynchronous copies, and a store into shared memory that other lanes read.
template <int Tile>
__global__ void staged_kernel(const __half* a, const __half* b, float* out, int n, int k) {
  constexpr int stride = 16 + 8;
  __shared__ __half left[2][Tile * stride], right[2][Tile * stride];
  __shared__ float result[4][16 * 20];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = warp / 2 * 16, column = warp % 2 * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  auto stage = [&](int step) {
    int r = threadIdx.x / 2 % Tile, c = threadIdx.x % 2 * 8;
    bool is_left = threadIdx.x < 2 * Tile;
    __half* to = (is_left ? left : right)[step % 2] + r * stride + c;
    __pipeline_memcpy_async(to, (is_left ? a : b) + r * k + step * 16 + c, 16);
    __pipeline_commit();
  };
  stage(0);
  for (int step = 0; step < k / 16; ++step) {
    __pipeline_wait_prior(0);
    __syncthreads();
    if (step + 1 < k / 16) stage(step + 1);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
    wmma::load_matrix_sync(x, left[step % 2] + row * stride, stride);
    wmma::load_matrix_sync(y, right[step % 2] + column * stride, stride);
    wmma::mma_sync(sum, x, y, sum);
  }
  wmma::store_matrix_sync(result[warp], sum, 20, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) out[(row + i / 16) * n + column + i % 16] = result[warp][i / 16 * 20 + i % 16];
}
extern "C" void staged_product(const void* a, const void* b, float* out, int n, int k) {
  staged_kernel<32><<<1, 128>>>((const __half*)a, (const __half*)b, out, n, k);
}

// Sums of bytes go beyond an int: they wrap around, or stop at its end.
__global__ void saturating_kernel(
    const signed char* a, const signed char* b, const int* start, int* wrapped, int* stopped) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum, result;
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::load_matrix_sync(sum, start, 16, wmma::mem_row_major);
  wmma::mma_sync(result, left, right, sum);
  wmma::store_matrix_sync(wrapped, result, 16, wmma::mem_row_major);
  wmma::mma_sync(result, left, right, sum, true);
  wmma::store_matrix_sync(stopped, result, 16, wmma::mem_row_major);
}
extern "C" void saturating_bytes(const void* a, const void* b, const int* start, int* wrapped, int* stopped) {
  saturating_kernel<<<1, 32>>>((const signed char*)a, (const signed char*)b, start, wrapped, stopped);
}
