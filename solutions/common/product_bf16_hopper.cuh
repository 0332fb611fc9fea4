// Products of bfloat16 matrices with Hopper's wgmma, fed by bulk copies. `hopper.cuh` explains barriers and swizzles.
//
// wgmma multiplies 64 x 16 by 16 x 256 with four warps, both operands from shared memory. Two such groups have a tile
// of 128 x 256 of the output, each 64 rows of it in 128 registers a thread. A wider or higher tile has no room in
// registers, and a smaller one loads more bytes for each product.
//
// A third group only loads: one of its threads starts bulk copies, which put 64 steps of K, a row of 128 bytes, into a
// stage. The group gives its registers to the others. Clusters of two blocks have tiles one above the other, which need
// the same columns, or side by side, which need the same rows. Each loads half of what both need, and the copy writes
// it to both. Of 96 KB that two blocks need for 64 steps, 64 or 80 KB are read from L2.
//
// As many blocks as multiprocessors have many tiles each, so that loads for the next tile come in while a tile ends. Of
// the two groups one is a few stages ahead of the other: it is made to wait at the start, and the ring keeps it so.
// While one writes its results, the tensor cores work for the other, or nearly so. A group whose rows don't belong to
// the output leaves the tensor cores to the other one.
//
// A warp puts 16 x 64 results at a time into its own piece of shared memory, swizzled, so that no two rows meet in a
// bank, and a bulk copy writes them: full lines of 128 bytes, and nothing beyond the edges.
#pragma once

#include "hopper.cuh"
#include "product_bf16.cuh"

#ifdef __CUDA_ARCH_LIST__

namespace {
namespace bf16_product {
namespace hopper_form {

using namespace hopper;

constexpr int kGroups = 2;  // that multiply
constexpr int kThreads = (1 + kGroups) * kGroupThreads;
constexpr int kTileM = kGroups * kGroupRows;
constexpr int kTileK = kRowBytes / sizeof(Half);
constexpr int kWarps = kGroups * kGroupThreads / kWarpSize;

// A part is what a warp writes at a time: 16 rows of 64 columns, with two places for it in turn.
constexpr int kPartRows = 16;
constexpr int kPartColumns = 64;
constexpr int kPartBytes = kPartRows * kPartColumns * sizeof(Half);
constexpr int kPartPlaces = 2;

// Tiles of TileN columns, and clusters of Down blocks one above the other or of Across blocks side by side.
template <int TileN, int Stages, int Down, int Across>
struct Shape {
  static constexpr int tile_n = TileN;
  static constexpr int stages = Stages;
  static constexpr int down = Down;
  static constexpr int across = Across;
  static constexpr int cluster = Down * Across;
  static constexpr int sums = kGroupRows * TileN / kGroupThreads;
  static constexpr int left_bytes = kTileM * kRowBytes;
  static constexpr int stage_bytes = left_bytes + TileN * kRowBytes;
  static constexpr int staging_bytes = kWarps * kPartPlaces * kPartBytes;
  static constexpr int barrier_bytes = 2 * Stages * 8;
  static constexpr int shared_bytes = Stages * stage_bytes + staging_bytes + barrier_bytes + kAlignment;
  static_assert(shared_bytes <= kLargestShared, "more shared memory than a block can have");
  static_assert(Down == 1 || Across == 1, "one operand is shared by all blocks of the cluster");
  static_assert(TileN % (Down * kPartColumns) == 0, "whole parts, and whole patterns of the swizzle in each box");
  static_assert(TileN / kPartColumns % kPartPlaces == 0, "a tile ends with the last place of parts");
};

struct Output {
  Half* values;
  int columns;
  int steps;  // of kTileK, for each sum
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kLead = 2;  // stages that the first group is ahead at the start; the others are for loads under way

// 65536 registers are 168 for each thread at the start. The loading group goes down to 40, and the others up to 232.
constexpr int kLoadRegisters = 40;
constexpr int kMultiplyRegisters = 232;

// Where the block's shared memory has what, as addresses within it.
template <class S>
struct Shared {
  uint32_t stages;
  uint32_t staging;
  uint32_t barriers;

  __device__ __forceinline__ explicit Shared(const void* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    stages = (address + kAlignment - 1) / kAlignment * kAlignment;
    staging = stages + S::stages * S::stage_bytes;
    barriers = staging + S::staging_bytes;
  }
  __device__ __forceinline__ uint32_t left(int stage) const { return stages + stage * S::stage_bytes; }
  __device__ __forceinline__ uint32_t right(int stage) const { return left(stage) + S::left_bytes; }
  __device__ __forceinline__ uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ __forceinline__ uint32_t empty(int stage) const { return barriers + (S::stages + stage) * 8; }
};

// The tiles of this block: every so many of those of clusters. Whole warps must call it.
template <class S, class Tiles, class Function>
__device__ __forceinline__ void for_each_place(const Tiles& tiles, const Function& function) {
  const int block = blockIdx.x % S::cluster;
  tiles.template for_each<S::down * kTileM, S::across * S::tile_n>(
      blockIdx.x / S::cluster, gridDim.x / S::cluster, [&](Place place) {
        place.row += block % S::down * kTileM;
        place.column += block / S::down * S::tile_n;
        function(place);
      });
}

// Loads lines of an operand. Where all blocks of the cluster need the same, each loads a part of them for all.
template <int kLines, int kBlocks>
__device__ __forceinline__ void load_lines(
    uint32_t to, const CUtensorMap* map, int step, int line, int batch, uint32_t full) {
  if constexpr (kBlocks == 1) {
    load_box(to, map, step * kTileK, line, batch, full);
  } else {
    const int part = blockIdx.x % kBlocks * (kLines / kBlocks);
    load_box_everywhere(to + part * kRowBytes, map, step * kTileK, line + part, batch, full, kBlocks);
  }
}

// One warp, of which one thread loads. A stage is free when the warps of all blocks of the cluster are done with it, as
// the copies write to all.
template <class S, class Tiles>
__device__ __forceinline__ void load_tiles(
    const Shared<S>& shared, const CUtensorMap* left, const CUtensorMap* right, int steps, const Tiles& tiles) {
  Ring<S::stages> ring;
  for_each_place<S>(tiles, [&](const Place& place) {
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; ++step) {
        const uint32_t full = shared.full(ring.stage);
        wait_for(shared.empty(ring.stage), ring.parity ^ 1);
        expect_bytes(full, S::stage_bytes);
        load_lines<kTileM, S::across>(shared.left(ring.stage), left, step, place.row, 0, full);
        load_lines<S::tile_n, S::down>(shared.right(ring.stage), right, step, place.column, place.batch, full);
        ring.advance();
      }
    }
    __syncwarp();
  });
}

// Writes a part of the output. Rows of it that don't belong to the place are another's.
__device__ __forceinline__ void write_part(
    const CUtensorMap* map, const Output& out, const Place& place, int column, uint32_t from, int lane) {
  const bool whole = place.row + kPartRows <= place.end;
  if (lane == 0) {
    if (whole) {
      store_box(map, column, place.row, 0, from);
    }
    end_stores();  // a group for each part, so that those that are waited for are the same for all
  }
  if (whole) {
    return;
  }
  constexpr int kAcross = kRowBytes / sizeof(uint4);
  const int chunk = lane % kAcross;
#pragma unroll 1
  for (int row = lane / kAcross; row < place.end - place.row; row += kWarpSize / kAcross) {
    if (column + chunk * kCopy < out.columns) {
      Half* const to = out.values + int64_t{place.row + row} * out.columns + column + chunk * kCopy;
      const uint32_t place_of_chunk = from + row * kRowBytes + (chunk ^ row % kAcross) * sizeof(uint4);
      *reinterpret_cast<uint4*>(to) = *static_cast<const uint4*>(__cvta_shared_to_generic(place_of_chunk));
    }
  }
}

// Writes a warp's 16 rows of results. Of every eight columns a thread has two, of row lane / 4 and of the row eight
// further down, which is what stmatrix takes. Lane 0 starts all copies, as it has to wait for them.
template <class S, class Finish>
__device__ __forceinline__ void write_results(
    const float (&sums)[S::sums],
    const Finish& finish,
    uint32_t staging,
    const CUtensorMap* map,
    const Output& out,
    const Place& place,
    int lane) {
  const uint32_t line = lane % kPartRows * kRowBytes;
  const auto word = [](__nv_bfloat162 pair) { return *reinterpret_cast<const uint32_t*>(&pair); };
#pragma unroll
  for (int part = 0; part < S::tile_n / kPartColumns; ++part) {
    const uint32_t to = staging + part % kPartPlaces * kPartBytes;
    if (lane == 0) {  // the copy before the last one has read this place
      wait_for_stores_to_read<kPartPlaces - 1>();
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPartColumns / 16; ++i) {
      const int eight = part * (kPartColumns / 8) + 2 * i;
      const float* const from = sums + 4 * eight;
      const uint32_t chunk = (2 * i + lane / kPartRows) ^ (lane % 8);  // the swizzle
      asm volatile(
          "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to + line + chunk * 16),
          "r"(word(finish(from[0], from[1], eight))), "r"(word(finish(from[2], from[3], eight))),
          "r"(word(finish(from[4], from[5], eight + 1))), "r"(word(finish(from[6], from[7], eight + 1)))
          : "memory");
    }
    show_to_copies();
    __syncwarp();
    write_part(map, out, place, place.column + part * kPartColumns, to, lane);
  }
}

// Each warp tells all blocks of the cluster that it is done with a stage.
template <class S>
__device__ __forceinline__ void release(uint32_t empty, int lane) {
  if (lane < S::cluster) {
    arrive_at(empty, lane);
  }
}

// A group of four warps. The first one lets the other begin when it is ahead; barrier 1 is theirs.
template <class S, class Tiles, class Epilogue>
__device__ __forceinline__ void multiply_tiles(
    const Shared<S>& shared,
    const CUtensorMap* map,
    const Output& out,
    const Tiles& tiles,
    const Epilogue& epilogue,
    int group) {
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize % (kGroupThreads / kWarpSize);
  const int row = group * kGroupRows + warp * kPartRows;
  const uint32_t staging = shared.staging + row / kPartRows * (kPartPlaces * kPartBytes);
  int until_ahead = group == 0 ? kLead : 0;
  if (group != 0) {
    sync_threads(1, kGroups * kGroupThreads);
  }
  float sums[S::sums] = {};
  Ring<S::stages> ring;
  const auto advance = [&] {
    ring.advance();
    if (until_ahead > 0 && --until_ahead == 0) {
      arrive_threads(1, kGroups * kGroupThreads);
    }
  };
  for_each_place<S>(tiles, [&](Place place) {
    if (place.row + group * kGroupRows >= place.end) {
      for (int step = 0; step < out.steps; ++step) {
        wait_for(shared.full(ring.stage), ring.parity);
        release<S>(shared.empty(ring.stage), lane);
        advance();
      }
      return;
    }
    uint32_t last = 0;
    for (int step = 0; step < out.steps; ++step) {
      wait_for(shared.full(ring.stage), ring.parity);
      const uint64_t left = describe(shared.left(ring.stage) + group * kGroupRows * kRowBytes);
      const uint64_t right = describe(shared.right(ring.stage));
      begin_products();
#pragma unroll
      for (int k = 0; k < kTileK / kInstructionK; ++k) {
        multiply_bf16(sums, left + k * kAdvance, right + k * kAdvance, step + k);
      }
      end_products();
      wait_for_products<1>();
      if (step > 0) {
        release<S>(last, lane);
      }
      last = shared.empty(ring.stage);
      advance();
    }
    const auto finish = epilogue.prepare(place.column + lane % 4 * 2);
    wait_for_products<0>();
    release<S>(last, lane);
    keep_in_order(sums);
    place.row += row;
    if (place.row < place.end) {  // the branch also keeps the compiler from releasing the stage later on
      write_results<S>(sums, finish, staging, map, out, place, lane);
    }
  });
  if (until_ahead > 0) {
    arrive_threads(1, kGroups * kGroupThreads);
  }
  if (lane == 0) {
    wait_for_stores();
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <class S, class Tiles, class Epilogue>
__global__ void __launch_bounds__(kThreads, 1) multiply_kernel(
    const __grid_constant__ CUtensorMap left,
    const __grid_constant__ CUtensorMap right,
    const __grid_constant__ CUtensorMap map,
    const __grid_constant__ Output out,
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
    if (threadIdx.x < kWarpSize) {
      load_tiles<S>(shared, &left, &right, out.steps, tiles);
    }
  } else {
    grow_registers<kMultiplyRegisters>();
    multiply_tiles<S>(shared, &map, out, tiles, epilogue, threadIdx.x / kGroupThreads - 1);
  }
  sync_cluster();  // a block that is gone can't be told that a stage is free
#else
  __trap();  // only GPUs of compute capability 9.0 get here, and for them the other code was compiled
#endif
}

// Whether bulk copies can be used: rows are multiples of 16 bytes, and tensors begin at one.
bool can_run(const at::Tensor& left, const at::Tensor& right, const at::Tensor& out) {
  return is_hopper(left.get_device()) && left.size(1) > 0 && left.size(1) % kCopy == 0 && out.size(1) % kCopy == 0 &&
      is_aligned(left) && is_aligned(right) && is_aligned(out);
}

// out = epilogue(left * right turned), for left (M, K), right (N, K) or (batches, N, K), and out (M, N). `tiles` says
// which rows belong to which matrix of `right`; its functions are
//
//   int64_t at_most(int rows, int columns)                                    the number of tiles, or more
//   for_each<kRows, kColumns>(int tile, int every, function of each Place)    on the GPU
//
// epilogue.prepare(column) says what a thread does with its columns, two of every eight beginning at `column`: it
// returns a function of two sums and the number of their eight, which makes results of them.
template <class S, class Tiles, class Epilogue>
void multiply(
    const at::Tensor& left,
    const at::Tensor& right,
    const at::Tensor& out,
    const Tiles& tiles,
    const Epilogue& epilogue) {
  const auto describe_rows = [](const at::Tensor& matrices, int box_rows) {
    return describe_matrices(
        matrices.const_data_ptr(), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, matrices.dim() == 3 ? matrices.size(0) : 1,
        matrices.size(-2), matrices.size(-1), box_rows);
  };
  launch_clusters(
      multiply_kernel<S, Tiles, Epilogue>,
      grid_for(tiles.at_most(S::down * kTileM, S::across * S::tile_n), S::cluster, left.get_device()), S::cluster,
      kThreads, S::shared_bytes, describe_rows(left, kTileM / S::across), describe_rows(right, S::tile_n / S::down),
      describe_rows(out, kPartRows),
      Output{
          mutable_data<Half>(out), static_cast<int>(out.size(1)), static_cast<int>(divide_up(left.size(1), kTileK))},
      tiles, epilogue);
}

}  // namespace hopper_form
}  // namespace bf16_product
}  // namespace
#endif  // __CUDA_ARCH_LIST__
