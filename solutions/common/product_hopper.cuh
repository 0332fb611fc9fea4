// Products of split operands with Hopper's wgmma, fed by bulk copies. `hopper.cuh` explains barriers and swizzles.
//
// A block has two groups of four warps that multiply, each 64 rows of a tile of 128 rows, and a third one, of which one
// thread loads. A stage of the ring has one chunk of 32 steps of K of all lines of the tile: rows of 128 bytes, the
// high parts first, so that high and low parts are the same swizzled tile, read from different places. Clusters of two
// blocks, one above the other, need the same lines of the right operand: each loads half of them, and the copy writes
// it to both.
//
// Tensor cores cut sums off instead of rounding them, which adds up over a long K. So they add up no more than a turn
// of `Turn` chunks, the small products of all its chunks first; then the group adds the turn's sums to those that it
// keeps, rounded. That takes as many registers again as the sums, which is why a tile is not wider. While a group adds,
// the tensor cores should work for the other one. With `Ordered` the groups pass each other the right to start a turn's
// products: the turns of one lie between those of the other, and so do the additions.
//
// As many clusters as fit run until all tiles are done, so that the first loads of a tile come in while the last ends.
#pragma once

#include "hopper.cuh"
#include "tiles.cuh"

#ifdef __CUDA_ARCH_LIST__

namespace {
namespace split {
namespace hopper_form {

using namespace hopper;

constexpr int kGroups = 2;  // that multiply
constexpr int kThreads = (1 + kGroups) * kGroupThreads;
constexpr int kTileM = kGroups * kGroupRows;
constexpr int kWarps = kGroups * kGroupThreads / kWarpSize;

// 65536 registers are 168 for each thread at the start. The loading group goes down to 40, and the others up to 232.
constexpr int kLoadRegisters = 40;
constexpr int kMultiplyRegisters = 232;

template <int TileN, int Stages, int Turn, int Cluster, bool Ordered>
struct Shape {
  static constexpr int tile_n = TileN;
  static constexpr int stages = Stages;
  static constexpr int turn = Turn;
  static constexpr int cluster = Cluster;
  static constexpr bool ordered = Ordered;
  static constexpr int sums = kGroupRows * TileN / kGroupThreads;
  static constexpr int left_bytes = kTileM * kRowBytes;
  static constexpr int box_lines = TileN / Cluster;  // of the right operand, that one block loads
  static constexpr int box_bytes = box_lines * kRowBytes;
  static constexpr int stage_bytes = left_bytes + TileN * kRowBytes;
  static constexpr int barrier_bytes = 2 * Stages * 8;
  static constexpr int shared_bytes = Stages * stage_bytes + barrier_bytes + kAlignment;
  static_assert(shared_bytes <= kLargestShared, "more shared memory than a block can have");
  static_assert(box_bytes % kAlignment == 0, "each box begins with a whole pattern of the swizzle");
  static_assert(kStepChunks % Turn == 0, "lines have a whole number of turns");
  static_assert(Turn <= Stages, "the stages of a turn are read together");
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where the block's shared memory has what, as addresses within it.
template <class S>
struct Shared {
  uint32_t stages;
  uint32_t barriers;

  __device__ __forceinline__ explicit Shared(const void* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    stages = (address + kAlignment - 1) / kAlignment * kAlignment;
    barriers = stages + S::stages * S::stage_bytes;
  }
  __device__ __forceinline__ uint32_t left(int stage) const { return stages + stage * S::stage_bytes; }
  __device__ __forceinline__ uint32_t right(int stage) const { return left(stage) + S::left_bytes; }
  __device__ __forceinline__ uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ __forceinline__ uint32_t empty(int stage) const { return barriers + (S::stages + stage) * 8; }
};

// The tiles of this cluster: every so many. Every second time the clusters take theirs in reverse order, so that nobody
// always has the longest sums of a triangle.
template <class S, class Function>
__device__ __forceinline__ void for_each_place(const Tiles& tiles, Function function) {
  const int clusters = gridDim.x / S::cluster;
  const int own = blockIdx.x / S::cluster;
  for (int first = 0, turn = 0; first < tiles.count; first += clusters, turn ^= 1) {
    const int tile = first + (tiles.lower && turn ? clusters - 1 - own : own);
    if (tile < tiles.count) {
      Place place = tiles.place(tile);
      place.row += blockIdx.x % S::cluster * kTileM;
      function(place);
    }
  }
}

// One thread. A stage is free when the warps of all blocks of the cluster are done with it, as the copies write to all.
template <class S>
__device__ __forceinline__ void load_tiles(
    const Shared<S>& shared, const CUtensorMap* left, const CUtensorMap* right, const Tiles& tiles) {
  const int block = blockIdx.x % S::cluster;
  Ring<S::stages> ring;
  for_each_place<S>(tiles, [&](const Place& place) {
    for (int chunk = place.first_chunk; chunk < place.first_chunk + place.chunks; ++chunk) {
      const uint32_t full = shared.full(ring.stage);
      const uint32_t box = shared.right(ring.stage) + block * S::box_bytes;
      const int line = place.column + block * S::box_lines;
      wait_for(shared.empty(ring.stage), ring.parity ^ 1);
      expect_bytes(full, S::stage_bytes);
      load_box(shared.left(ring.stage), left, chunk * kChunkHalves, place.row, place.batch, full);
      if constexpr (S::cluster > 1) {
        load_box_everywhere(box, right, chunk * kChunkHalves, line, place.batch, full, S::cluster);
      } else {
        load_box(box, right, chunk * kChunkHalves, line, place.batch, full);
      }
      ring.advance();
    }
  });
}

// The products of a turn that begins at this place of the ring: those with a low part first, then the large ones.
template <class S>
__device__ __forceinline__ void multiply_turn(
    float (&part)[S::sums], const Shared<S>& shared, Ring<S::stages> ring, int group) {
  constexpr int kSteps = kChunk / kInstructionK;
  constexpr int kLow = kChunk * 2 / 16;  // of a description, from a high part to its low one
  Ring<S::stages> again = ring;
  int add = 0;
#pragma unroll
  for (int i = 0; i < S::turn; ++i) {
    const uint64_t left = describe(shared.left(ring.stage) + group * kGroupRows * kRowBytes);
    const uint64_t right = describe(shared.right(ring.stage));
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      multiply_f16(part, left + kLow + k * kAdvance, right + k * kAdvance, add);
      add = 1;
      multiply_f16(part, left + k * kAdvance, right + kLow + k * kAdvance, 1);
    }
    ring.advance();
  }
#pragma unroll
  for (int i = 0; i < S::turn; ++i) {
    const uint64_t left = describe(shared.left(again.stage) + group * kGroupRows * kRowBytes);
    const uint64_t right = describe(shared.right(again.stage));
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      multiply_f16(part, left + k * kAdvance, right + k * kAdvance, 1);
    }
    again.advance();
  }
}

// A group of four warps. Barriers 1 and 2 of the block are the groups' rights to start a turn.
template <class S, class Epilogue>
__device__ __forceinline__ void multiply_tiles(
    const Shared<S>& shared, const Tiles& tiles, const Epilogue& epilogue, int group) {
  constexpr int kBoth = kGroups * kGroupThreads;
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize % (kGroupThreads / kWarpSize);
  Ring<S::stages> ring;
  if (S::ordered && group == 1) {
    arrive_threads(1, kBoth);  // the first group begins
  }
  for_each_place<S>(tiles, [&](const Place& place) {
    float sums[S::sums] = {};
    for (int chunk = 0; chunk < place.chunks; chunk += S::turn) {
      float part[S::sums];
      Ring<S::stages> ready = ring;
#pragma unroll
      for (int i = 0; i < S::turn; ++i) {
        wait_for(shared.full(ready.stage), ready.parity);
        ready.advance();
      }
      if constexpr (S::ordered) {
        sync_threads(1 + group, kBoth);
      }
      begin_products();
      multiply_turn<S>(part, shared, ring, group);
      end_products();
      if constexpr (S::ordered) {
        arrive_threads(2 - group, kBoth);
      }
      wait_for_products<0>();
      keep_in_order(part);
#pragma unroll
      for (int i = 0; i < S::turn; ++i) {  // each warp tells all blocks of the cluster that it has read the stages
        if (lane < S::cluster) {
          arrive_at(shared.empty(ring.stage), lane);
        }
        ring.advance();
      }
#pragma unroll
      for (int i = 0; i < S::sums; ++i) {
        sums[i] += part[i];
      }
    }
    epilogue(sums, place.batch, place.row + group * kGroupRows + warp * 16, place.column);
  });
  if (S::ordered && group == 0) {
    sync_threads(1, kBoth);  // what the second group passed on last
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <class S, class Epilogue>
__global__ void __launch_bounds__(kThreads, 1) multiply_kernel(
    const __grid_constant__ CUtensorMap left,
    const __grid_constant__ CUtensorMap right,
    const __grid_constant__ Tiles tiles,
    const __grid_constant__ Epilogue epilogue) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint4 memory[];
  const Shared<S> shared(memory);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::stages; ++stage) {
      init_barrier(shared.full(stage), 1);
      init_barrier(shared.empty(stage), S::cluster * kWarps);
    }
    publish_barriers();
  }
  __syncwarp();
  sync_cluster();

  if (threadIdx.x < kGroupThreads) {
    shrink_registers<kLoadRegisters>();
    if (threadIdx.x == 0) {
      load_tiles<S>(shared, &left, &right, tiles);
    }
    __syncwarp();
  } else {
    grow_registers<kMultiplyRegisters>();
    multiply_tiles<S>(shared, tiles, epilogue, threadIdx.x / kGroupThreads - 1);
  }
  sync_cluster();  // a block that is gone can't be told that a stage is free
#else
  __trap();  // only GPUs of compute capability 9.0 get here, and for them the other code was compiled
#endif
}

template <class S, class Epilogue>
void multiply(const Operand& left, const Operand& right, const Epilogue& epilogue, bool lower) {
  const Tiles tiles(left, right, S::cluster * kTileM, S::tile_n, lower);
  const auto describe_lines = [](const Operand& operand, int box_lines) {
    return describe_matrices(
        operand.halves(), CU_TENSOR_MAP_DATA_TYPE_FLOAT16, operand.batches, operand.lines,
        operand.chunks * kChunkHalves, box_lines);
  };
  launch_clusters(
      multiply_kernel<S, Epilogue>, grid_for(tiles.count, S::cluster, left.parts.get_device()), S::cluster, kThreads,
      S::shared_bytes, describe_lines(left, kTileM), describe_lines(right, S::box_lines), tiles, epilogue);
}

using Wide = Shape<192, 5, 2, 2, true>;
using Narrow = Shape<128, 6, 2, 2, true>;
using Small = Shape<128, 6, 2, 1, true>;

// How long a product takes with a shape. The last round of tiles takes as long as a full one, but what its idle
// multiprocessors don't draw lets the others run faster: it counts by half.
template <class S>
double cost(const Operand& left, const Operand& right) {
  const int64_t clusters = multiprocessors(left.parts.get_device()) / S::cluster;
  const int64_t tiles = divide_up(left.lines, S::cluster * kTileM) * divide_up(right.lines, S::tile_n) * left.batches;
  return static_cast<double>(divide_up(tiles, clusters) * clusters + tiles) * S::tile_n;
}

// Wide tiles read less of shared memory for a product; narrow ones fill the last round better. Triangles have small
// tiles, as their longest sum is what takes the time, and half of each tile on the diagonal is in vain.
template <bool kLower, class Epilogue>
void run(const Operand& left, const Operand& right, const Epilogue& epilogue) {
  constexpr double kNarrowPenalty = 1.1;  // 1.03 to 1.18 measured: shared memory is busy for longer
  if constexpr (kLower) {
    multiply<Small>(left, right, epilogue, true);
  } else if (cost<Narrow>(left, right) * kNarrowPenalty < cost<Wide>(left, right)) {
    multiply<Narrow>(left, right, epilogue, false);
  } else {
    multiply<Wide>(left, right, epilogue, false);
  }
}

}  // namespace hopper_form
}  // namespace split
}  // namespace
#endif  // __CUDA_ARCH_LIST__
