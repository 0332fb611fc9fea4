// Columns split in one pass, on Hopper.
//
// Parts of a column need its largest magnitude, and a column is too long for a block. So a cluster has 16 columns, each
// of its blocks up to 1024 rows of them, which it keeps in shared memory. The blocks tell each other what they found,
// and split what they have: each value is read once, and turned on the way.
#pragma once

#include "hopper.cuh"
#include "split.cuh"

#ifdef __CUDA_ARCH_LIST__

namespace {
namespace split {
namespace hopper_form {

constexpr int kStripColumns = 16;
constexpr int kBlockK = 1024;
constexpr int kLargestCluster = 8;
constexpr int kStripThreads = 256;

// Columns lie in shared memory with K along them. The distance of two is 2 more than a multiple of 8 floats: what 8
// rows of 4 threads store at once, every fourth column, goes to 32 different banks.
constexpr int kPitch = kBlockK + 2;
constexpr int kStripBytes = kStripColumns * kPitch * static_cast<int>(sizeof(float));

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A float at this address in the shared memory of a block of the cluster.
__device__ __forceinline__ float load_from(const float* own, int block) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(own));
  float value;
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %1, %2;\n"
      "ld.shared::cluster.f32 %0, [remote];\n"
      "}\n"
      : "=f"(value)
      : "r"(address), "r"(block)
      : "memory");
  return value;
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// Blocks of a cluster are along x. `columns` is a multiple of 4, and rows begin at multiples of 16 bytes.
__global__ void __launch_bounds__(kStripThreads, 3) split_strip_kernel(
    const float* __restrict__ values,
    float* __restrict__ largest_of_columns,
    __half* __restrict__ parts,
    int64_t columns,
    int64_t K,
    int64_t padded,
    bool lower) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kAcross = kStripColumns / 4;  // threads in a row
  constexpr int kDown = kStripThreads / kAcross;
  constexpr int kLoads = kBlockK / kDown;
  constexpr int kWarps = kStripThreads / kWarpSize;
  extern __shared__ float strip[];  // kStripColumns x kPitch
  __shared__ float of_warps[kWarps][kStripColumns];
  __shared__ float of_block[kStripColumns];
  __shared__ float of_cluster[kStripColumns];
  const int thread = threadIdx.x;
  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * kStripColumns;
  const int64_t first_k = static_cast<int64_t>(blockIdx.x) * kBlockK;
  const int column = thread % kAcross * 4;  // of the strip
  const bool above = lower && first_k + kBlockK <= first_column;  // nothing but zeros
  values += blockIdx.z * K * columns;

  float4 loaded[kLoads];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int64_t k = first_k + thread / kAcross + i * kDown;
    const bool inside = !above && k < K && first_column + column < columns;
    loaded[i] = inside ? __ldcs(reinterpret_cast<const float4*>(values + k * columns + first_column + column))
                       : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  float largest[4] = {};
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const float four[] = {loaded[i].x, loaded[i].y, loaded[i].z, loaded[i].w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      strip[(column + j) * kPitch + thread / kAcross + i * kDown] = four[j];
      largest[j] = fmaxf(largest[j], fabsf(four[j]));  // a NaN does not count; it comes back when values are split
    }
  }

  // The largest of the warp's eight rows, of the block, and of the cluster.
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int offset = kAcross; offset < kWarpSize; offset *= 2) {
      largest[j] = fmaxf(largest[j], __shfl_xor_sync(kAllLanes, largest[j], offset));
    }
    if (thread % kWarpSize < kAcross) {
      of_warps[thread / kWarpSize][column + j] = largest[j];
    }
  }
  __syncthreads();
  if (thread < kStripColumns) {
    float found = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      found = fmaxf(found, of_warps[warp][thread]);
    }
    of_block[thread] = found;
  }
  hopper::sync_cluster();
  if (thread < kStripColumns) {
    float found = 0.0f;
    for (int block = 0; block < static_cast<int>(gridDim.x); ++block) {
      found = fmaxf(found, load_from(of_block + thread, block));
    }
    of_cluster[thread] = found;
    if (blockIdx.x == 0 && first_column + thread < columns) {
      largest_of_columns[blockIdx.z * columns + first_column + thread] = found;
    }
  }
  __syncthreads();

  constexpr int kEights = kBlockK / 8;
  for (int i = thread; i < kStripColumns * kEights; i += kStripThreads) {
    const int own = i / kEights;
    const int64_t k = first_k + i % kEights * 8;
    const bool unread = lower && k + kTriangleMargin + kChunk <= first_column;  // no tile reads that far up
    if (first_column + own < columns && k < padded && !unread) {
      alignas(sizeof(float2)) float eight[8];
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        *reinterpret_cast<float2*>(eight + j) =
            *reinterpret_cast<const float2*>(strip + own * kPitch + i % kEights * 8 + j);
      }
      const int64_t line = blockIdx.z * columns + first_column + own;
      write_parts(eight, power_of_two(shift_for(of_cluster[own])), parts + line * padded * 2 + place_of(k));
    }
  }
  hopper::sync_cluster();  // what others read must not be gone
#else
  __trap();  // only GPUs of compute capability 9.0 get here, and for them the other code was compiled
#endif
}

// Whether the kernel can have these columns.
bool can_split_strips(const at::Tensor& values) {
  return values.size(-2) <= kLargestCluster * kBlockK && values.size(-1) % 4 == 0 && is_aligned(values) &&
      divide_up(values.size(-1), kStripColumns) <= kMaxGridY && hopper::is_hopper(values.get_device());
}

void split_strips(const at::Tensor& values, const Operand& operand, bool lower) {
  const auto cluster = static_cast<int>(divide_up(values.size(-2), kBlockK));
  const dim3 grid(
      static_cast<unsigned int>(cluster), static_cast<unsigned int>(divide_up(operand.lines, kStripColumns)),
      static_cast<unsigned int>(operand.batches));
  hopper::launch_clusters(
      split_strip_kernel, grid, cluster, kStripThreads, kStripBytes, values.const_data_ptr<float>(),
      operand.magnitudes(), operand.halves(), operand.lines, values.size(-2), operand.chunks * kChunk, lower);
}

}  // namespace hopper_form
}  // namespace split
}  // namespace
#endif  // __CUDA_ARCH_LIST__
