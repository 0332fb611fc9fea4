// The honest twin of mma_of_two_lines.cu: must pass.
#include <mma.h>

#include "../kernels/case.h"

using namespace nvcuda;

// A tile of 16 x 16 through an accumulator; the product that is added to it is zero.
__global__ void double_kernel(const float* x, float* out, int n) {
  constexpr int stride = 20;
  __shared__ __align__(32) float tile[2][16 * stride];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = (blockIdx.x * 2 + warp) * 256;
  for (int i = lane; i < 256; i += 32) tile[warp][i / 16 * stride + i % 16] = first + i < n ? x[first + i] : 0.0f;
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(left, __float2half(0.0f));
  wmma::fill_fragment(right, __float2half(1.0f));
  wmma::load_matrix_sync(sum, tile[warp], stride, wmma::mem_row_major);
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0f;
  wmma::store_matrix_sync(tile[warp], sum, stride, wmma::mem_row_major);
  __syncwarp();
  for (int i = lane; i < 256; i += 32)
    if (first + i < n) out[first + i] = tile[warp][i / 16 * stride + i % 16];
}
extern "C" void run(const float* x, float* out, int n) { double_kernel<<<(n + 512 - 1) / 512, 64>>>(x, out, n); }
