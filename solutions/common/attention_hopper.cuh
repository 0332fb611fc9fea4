// Causal attention with Hopper's wgmma, fed by bulk copies. `hopper.cuh` explains barriers and swizzles.
//
// A block has three groups of four warps that multiply, each 64 queries, and a fourth one, of which one thread loads: the
// queries of a part (kQueries of a head), and tiles of keys and values, from the last one that they see to the first.
// Keys and values of a tile have the same stage of a ring, but barriers of their own, as keys are needed one tile
// earlier.
//
// For each tile a group starts two sequences of products: queries by keys, then the weights of the tile before by its
// values. It waits for the first, makes weights of the scores while the second one runs, and waits for that as well
// before it rounds them, as the registers of the weights before are read until then. Groups pass each other the right to
// start (barriers 1 to 3 of the block), so that one makes weights while tensor cores work for another. Registers are
// just enough: what the compiler makes of a change here has to be looked at (ptxas -v must not warn of serialized
// instructions, and exponentials come before the second wait).
//
// As many blocks as multiprocessors run until all parts are done, so that loads for a part come in while the last ends.
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
constexpr int kQueryPlaces = 2;  // so that the next part's queries come in
constexpr int kThreads = (1 + kGroups) * kGroupThreads;
constexpr int kQueries = kGroups * kGroupRows;  // of a block at a time
constexpr int kWarps = kGroups * kGroupThreads / kWarpSize;
static_assert(kWidth * sizeof(Half) == kRowBytes, "a row of a head is as wide as the swizzle");

constexpr int kQueryBytes = kQueries * kRowBytes;
constexpr int kTileBytes = kKeys * kRowBytes;
constexpr int kBoxes = 2 * kStages + kQueryPlaces;
constexpr int kSharedBytes = kQueryPlaces * kQueryBytes + 2 * kStages * kTileBytes + kBoxes * 16 + kAlignment;
static_assert(kSharedBytes <= kLargestShared, "more shared memory than a block can have");

// 65536 registers are 128 for each thread at the start. The loading group goes down to 32, and the others up to 160.
constexpr int kLoadRegisters = 32;
constexpr int kMultiplyRegisters = 160;

struct Problem {
  Half* out;
  int heads;
  int length;
  int end;    // of the last group's rows: the length or a little more
  int parts;  // of kQueries queries, of a head
  float scale;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where the block's shared memory has what, as addresses within it.
struct Shared {
  uint32_t boxes;
  uint32_t barriers;

  __device__ __forceinline__ explicit Shared(const void* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    boxes = (address + kAlignment - 1) / kAlignment * kAlignment;
    barriers = boxes + kQueryPlaces * kQueryBytes + 2 * kStages * kTileBytes;
  }
  __device__ __forceinline__ uint32_t queries(int place) const { return boxes + place * kQueryBytes; }
  __device__ __forceinline__ uint32_t keys(int stage) const {
    return boxes + kQueryPlaces * kQueryBytes + stage * kTileBytes;
  }
  __device__ __forceinline__ uint32_t values(int stage) const { return keys(kStages + stage); }

  // The barriers of a box: `full`, and behind it `empty`.
  __device__ __forceinline__ uint32_t of_keys(int stage) const { return barriers + stage * 16; }
  __device__ __forceinline__ uint32_t of_values(int stage) const { return of_keys(kStages + stage); }
  __device__ __forceinline__ uint32_t of_queries(int place) const { return of_keys(2 * kStages + place); }
};

constexpr int kEmpty = 8;  // from `full`

// Loads a box when its place is free.
__device__ __forceinline__ void load(
    uint32_t box, uint32_t barrier, uint32_t parity, const CUtensorMap* map, int bytes, int row, int head) {
  wait_for(barrier + kEmpty, parity ^ 1);
  expect_bytes(barrier, bytes);
  load_box(box, map, 0, row, head, barrier);
}

// Each warp tells that it has read a box. Without a cluster the own block is number 0.
__device__ __forceinline__ void release(uint32_t barrier) {
  if (threadIdx.x % kWarpSize == 0) {
    arrive_at(barrier + kEmpty, 0);
  }
}

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
    const Shared& shared, const CUtensorMap* query, const CUtensorMap* key, const CUtensorMap* value,
    const Problem& problem) {
  Ring<kQueryPlaces> place;
  Ring<kStages> ring;
  for_each_part(problem, [&](int head, int first) {
    load(shared.queries(place.stage), shared.of_queries(place.stage), place.parity, query, kQueryBytes, first, head);
    place.advance();
    for (int tile = tiles_before(problem, first + kQueries) - 1; tile >= 0; --tile) {
      const int stage = ring.stage;
      load(shared.keys(stage), shared.of_keys(stage), ring.parity, key, kTileBytes, tile * kKeys, head);
      load(shared.values(stage), shared.of_values(stage), ring.parity, value, kTileBytes, tile * kKeys, head);
      ring.advance();
    }
  });
}

__device__ __forceinline__ void take_turn(int group) {
  sync_threads(1 + group, 2 * kGroupThreads);
}

__device__ __forceinline__ void pass_turn(int group) {
  arrive_threads(1 + (group + 1) % kGroups, 2 * kGroupThreads);
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

// One part of a group: all its tiles, from the last one, on the diagonal, to the first. `seen` says how far the warp's
// first query is behind the first key of the last tile.
__device__ __forceinline__ void attend_tiles(
    float (&sums)[kWidth / 2], Softmax& softmax, const Shared& shared, const Problem& problem, int group, int tiles,
    const Ring<kQueryPlaces>& place, Ring<kStages>& ring, int seen) {
  float scores[kKeys / 2];
  uint32_t weights[kKeys / kInstructionK][4];
  wait_for(shared.of_queries(place.stage), place.parity);
  const uint64_t queries = describe(shared.queries(place.stage) + group * kGroupRows * kRowBytes);
  wait_for(shared.of_keys(ring.stage), ring.parity);
  take_turn(group);
  begin_products();
  score(scores, queries, describe(shared.keys(ring.stage)));
  pass_turn(group);
  wait_for_products<0>();
  keep_in_order(scores);
  release(shared.of_keys(ring.stage));
  hide_future(scores, seen);
  softmax.weigh(scores, problem.scale, sums, [] {});
  wait_for(shared.of_values(ring.stage), ring.parity);
  round_weights(weights, scores);
  for (int tile = tiles - 1; tile > 0; --tile) {
    const int last = ring.stage;
    ring.advance();
    wait_for(shared.of_keys(ring.stage), ring.parity);
    take_turn(group);
    begin_products();
    score(scores, queries, describe(shared.keys(ring.stage)));
    add_values(sums, weights, describe(shared.values(last)));
    pass_turn(group);
    wait_for_products<1>();
    keep_in_order(scores);
    release(shared.of_keys(ring.stage));
    softmax.weigh(scores, problem.scale, sums, [&] {
      wait_for_products<0>();
      keep_in_order(sums);
    });
    wait_for(shared.of_values(ring.stage), ring.parity);
    wait_for_products<0>();
    keep_in_order(sums);
    release(shared.of_values(last));
    round_weights(weights, scores);
  }
  release(shared.of_queries(place.stage));
  begin_products();
  add_values(sums, weights, describe(shared.values(ring.stage)));
  wait_for_products<0>();
  keep_in_order(sums);
  release(shared.of_values(ring.stage));
  ring.advance();
}

// A group of four warps.
__device__ __forceinline__ void attend(const Shared& shared, const Problem& problem, int group) {
  const int warp_row = group * kGroupRows + threadIdx.x / kWarpSize % 4 * 16;
  Ring<kQueryPlaces> place;
  Ring<kStages> ring;
  if (group == kGroups - 1) {
    pass_turn(group);  // the first group begins
  }
  for_each_part(problem, [&](int head, int first) {
    const int tiles = tiles_before(problem, first + (group + 1) * kGroupRows);
    for (int tile = tiles_before(problem, first + kQueries); tile > tiles; --tile) {  // those that only others need
      take_turn(group);
      pass_turn(group);
      release(shared.of_keys(ring.stage));
      release(shared.of_values(ring.stage));
      ring.advance();
    }
    if (tiles > 0) {
      float sums[kWidth / 2] = {};
      Softmax softmax;
      attend_tiles(sums, softmax, shared, problem, group, tiles, place, ring, first + warp_row - (tiles - 1) * kKeys);
      softmax.write(
          sums, problem.out + static_cast<int64_t>(head) * problem.length * kWidth, first + warp_row, problem.length);
    } else {
      release(shared.of_queries(place.stage));
    }
    place.advance();
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
  const Shared shared(memory);
  if (threadIdx.x == 0) {
    for (int box = 0; box < kBoxes; ++box) {
      init_barrier(shared.of_keys(box), 1);
      init_barrier(shared.of_keys(box) + kEmpty, kWarps);
    }
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
