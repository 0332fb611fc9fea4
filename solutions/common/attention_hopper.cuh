// Causal attention with Hopper's wgmma, fed by bulk copies. `hopper.cuh` explains barriers and swizzles.
#pragma once

#include "attention.cuh"
#include "hopper.cuh"

#ifdef __CUDA_ARCH_LIST__

namespace {
namespace attention {
namespace hopper_form {

using namespace hopper;

constexpr int kGroups = 3;  // that multiply
constexpr int kKeys = 128;  // of a tile
constexpr int kStages = 4;
constexpr int kQueryPlaces = 2;
constexpr bool kOrdered = true;
constexpr int kThreads = (1 + kGroups) * kGroupThreads;
constexpr int kQueries = kGroups * kGroupRows;  // of a block at a time
constexpr int kWarps = kGroups * kGroupThreads / kWarpSize;
static_assert(kWidth * sizeof(Half) == kRowBytes, "a row of a head is as wide as the swizzle");

constexpr int kQueryBytes = kQueries * kRowBytes;
constexpr int kTileBytes = kKeys * kRowBytes;
constexpr int kBarriers = 2 * kQueryPlaces + 4 * kStages;
constexpr int kSharedBytes = kQueryPlaces * kQueryBytes + 2 * kStages * kTileBytes + kBarriers * 8 + kAlignment;
static_assert(kSharedBytes <= kLargestShared, "more shared memory than a block can have");

// 65536 registers for all groups.
constexpr int kLoadRegisters = kGroups == 2 ? 40 : 32;
constexpr int kMultiplyRegisters = kGroups == 2 ? 232 : 160;

struct Problem {
  Half* out;
  int heads;
  int length;
  int end;    // of the last group's rows: the length or a little more
  int parts;  // of kQueries queries, of a head
  float scale;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A ring of places for boxes in shared memory, and the barriers of each place.
template <int Places, int Bytes>
struct Boxes {
  uint32_t boxes;
  uint32_t barriers;
  Ring<Places> ring;

  __device__ __forceinline__ uint32_t box() const { return boxes + ring.stage * Bytes; }
  __device__ __forceinline__ uint32_t full() const { return barriers + ring.stage * 8; }
  __device__ __forceinline__ uint32_t empty() const { return barriers + (Places + ring.stage) * 8; }

  __device__ __forceinline__ void init() const {
    for (int place = 0; place < Places; ++place) {
      init_barrier(barriers + place * 8, 1);
      init_barrier(barriers + (Places + place) * 8, kWarps);
    }
  }
  __device__ __forceinline__ void load(const CUtensorMap* map, int row, int head) {
    wait_for(empty(), ring.parity ^ 1);
    expect_bytes(full(), Bytes);
    load_box(box(), map, 0, row, head, full());
    ring.advance();
  }
  __device__ __forceinline__ void wait() const { wait_for(full(), ring.parity); }

  // The barrier of the box that is read next, for its release.
  __device__ __forceinline__ uint32_t take() {
    const uint32_t barrier = empty();
    ring.advance();
    return barrier;
  }
};

// Each warp tells that it has read a box.
__device__ __forceinline__ void release(uint32_t empty) {
  if (threadIdx.x % kWarpSize == 0) {
    arrive_at(empty, 0);
  }
}

struct Shared {
  Boxes<kQueryPlaces, kQueryBytes> queries;
  Boxes<kStages, kTileBytes> keys;
  Boxes<kStages, kTileBytes> values;

  __device__ __forceinline__ explicit Shared(const void* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    queries.boxes = (address + kAlignment - 1) / kAlignment * kAlignment;
    keys.boxes = queries.boxes + kQueryPlaces * kQueryBytes;
    values.boxes = keys.boxes + kStages * kTileBytes;
    queries.barriers = values.boxes + kStages * kTileBytes;
    keys.barriers = queries.barriers + 2 * kQueryPlaces * 8;
    values.barriers = keys.barriers + 2 * kStages * 8;
  }
};

// The parts of this block, those with the most keys first. Every second time the blocks take theirs in reverse order, so
// that nobody always has the longest. Parts end where the sequence ends, to the next group, so it is the first one of a
// head, with the fewest keys, that may begin before it.
template <class Function>
__device__ __forceinline__ void for_each_part(const Problem& problem, Function function) {
  const int blocks = gridDim.x;
  const int count = problem.heads * problem.parts;
  for (int first = 0, turn = 0; first < count; first += blocks, turn ^= 1) {
    const int part = first + static_cast<int>(turn ? blocks - 1 - blockIdx.x : blockIdx.x);
    if (part < count) {
      function(part % problem.heads, problem.end - (part / problem.heads + 1) * kQueries);
    }
  }
}

// Tiles of keys that the queries before this one see: none if it is before the first.
__device__ __forceinline__ int tiles_before(const Problem& problem, int query) {
  return (max(min(query, problem.length), 0) + kKeys - 1) / kKeys;
}

// One thread.
__device__ __forceinline__ void load_parts(
    Shared& shared, const CUtensorMap* query, const CUtensorMap* key, const CUtensorMap* value,
    const Problem& problem) {
  for_each_part(problem, [&](int head, int first) {
    shared.queries.load(query, first, head);
    for (int tile = tiles_before(problem, first + kQueries) - 1; tile >= 0; --tile) {
      shared.keys.load(key, tile * kKeys, head);
      shared.values.load(value, tile * kKeys, head);
    }
  });
}

__device__ __forceinline__ void take_turn(int group) {
  if constexpr (kOrdered) {
    sync_threads(1 + group, 2 * kGroupThreads);
  }
}

__device__ __forceinline__ void pass_turn(int group) {
  if constexpr (kOrdered) {
    arrive_threads(1 + (group + 1) % kGroups, 2 * kGroupThreads);
  }
}

__device__ __forceinline__ void score(float (&scores)[kKeys / 2], uint64_t queries, uint64_t keys) {
#pragma unroll
  for (int k = 0; k < kWidth / kInstructionK; ++k) {
    multiply_bf16(scores, further(queries, k * kAdvance), further(keys, k * kAdvance), k);
  }
  end_products();
}

__device__ __forceinline__ void add_values(
    float (&sums)[kWidth / 2], const uint32_t (&weights)[kKeys / 16][4], uint64_t values) {
#pragma unroll
  for (int k = 0; k < kKeys / kInstructionK; ++k) {
    add_product_bf16(sums, weights[k], further(values, k * kAdvanceDown));
  }
  end_products();
}

// A group of four warps.
__device__ __forceinline__ void attend(Shared& shared, const Problem& problem, int group) {
  const int warp_row = group * kGroupRows + threadIdx.x / kWarpSize % 4 * 16;
  if (group == kGroups - 1) {
    pass_turn(group);  // the first group begins
  }
  for_each_part(problem, [&](int head, int first) {
    const int tiles = tiles_before(problem, first + (group + 1) * kGroupRows);
    for (int tile = tiles_before(problem, first + kQueries); tile > tiles; --tile) {  // those that only others need
      take_turn(group);
      pass_turn(group);
      release(shared.keys.take());
      release(shared.values.take());
    }
    if (tiles == 0) {
      release(shared.queries.take());
      return;
    }
    float scores[kKeys / 2];
    float sums[kWidth / 2] = {};
    uint32_t weights[kKeys / 16][4];
    Softmax softmax;
    shared.queries.wait();
    const uint64_t queries = describe(shared.queries.box() + group * kGroupRows * kRowBytes);
    shared.keys.wait();
    take_turn(group);
    begin_products();
    score(scores, queries, describe(shared.keys.box()));
    pass_turn(group);
    wait_for_products<0>();
    keep_in_order(scores);
    release(shared.keys.take());
    hide_future(scores, first + warp_row - (tiles - 1) * kKeys);
    softmax.weigh(scores, problem.scale);
    round_weights(weights, scores);
    shared.values.wait();
    for (int tile = tiles - 1; tile > 0; --tile) {
      shared.keys.wait();
      take_turn(group);
      begin_products();
      score(scores, queries, describe(shared.keys.box()));
      add_values(sums, weights, describe(shared.values.box()));
      pass_turn(group);
      const uint32_t values_empty = shared.values.take();
      wait_for_products<1>();
      keep_in_order(scores);
      release(shared.keys.take());
      const bool grown = softmax.weigh(scores, problem.scale);
      shared.values.wait();
      wait_for_products<0>();
      keep_in_order(sums);
      release(values_empty);
      if (grown) {
        softmax.scale_values(sums);
      }
      round_weights(weights, scores);
    }
    release(shared.queries.take());
    begin_products();
    add_values(sums, weights, describe(shared.values.box()));
    wait_for_products<0>();
    keep_in_order(sums);
    release(shared.values.take());
    softmax.write(
        sums, problem.out + static_cast<int64_t>(head) * problem.length * kWidth, first + warp_row, problem.length);
  });
  if (group == 0) {
    take_turn(group);  // what the last group passed on in the end
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

__global__ void __launch_bounds__(kThreads, 1) attention_kernel(
    const __grid_constant__ CUtensorMap query,
    const __grid_constant__ CUtensorMap key,
    const __grid_constant__ CUtensorMap value,
    const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint4 memory[];
  Shared shared(memory);
  if (threadIdx.x == 0) {
    shared.queries.init();
    shared.keys.init();
    shared.values.init();
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x < kGroupThreads) {
    shrink_registers<kLoadRegisters>();
    if (threadIdx.x == 0) {
      load_parts(shared, &query, &key, &value, problem);
    }
  } else {
    grow_registers<kMultiplyRegisters>();
    attend(shared, problem, threadIdx.x / kGroupThreads - 1);
  }
#else
  __trap();  // only GPUs of compute capability 9.0 get here, and for them the other code was compiled
#endif
}

void run(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& out, float scale) {
  Problem problem{};
  problem.out = static_cast<Half*>(out.mutable_data_ptr());
  const int64_t heads = query.size(0) * query.size(1);
  const int64_t end = divide_up(query.size(2), kGroupRows) * kGroupRows;
  const int64_t parts = divide_up(end, kQueries);
  TORCH_CHECK(heads * parts <= kMaxBlocks / 2, "causal_attention: an input of shape ", query.sizes(), " is too large");
  problem.heads = static_cast<int>(heads);
  problem.length = static_cast<int>(query.size(2));
  problem.end = static_cast<int>(end);
  problem.parts = static_cast<int>(parts);
  problem.scale = scale;
  const auto describe_heads = [](const at::Tensor& tensor, int box_rows) {
    return describe_matrices(
        tensor.const_data_ptr(), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, tensor.size(0) * tensor.size(1), tensor.size(2),
        kWidth, box_rows);
  };
  C10_CUDA_CHECK(cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const int blocks = std::min(problem.heads * problem.parts, multiprocessors(query.get_device()));
  attention_kernel<<<blocks, kThreads, kSharedBytes, c10::cuda::getCurrentCUDAStream()>>>(
      describe_heads(query, kQueries), describe_heads(key, kKeys), describe_heads(value, kKeys), problem);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace hopper_form
}  // namespace attention
}  // namespace
#endif  // __CUDA_ARCH_LIST__
