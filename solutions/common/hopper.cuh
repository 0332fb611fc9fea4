// Hopper's own instructions: barriers in shared memory, bulk copies of tiles (TMA), and wgmma.
//
// A pipeline made of them has a group of four warps that only loads, groups of four that multiply, and a ring of stages
// in shared memory between them. Each stage has two barriers:
//
// - `full` opens when the thread that starts the copies has arrived, and all bytes that it announced are there;
// - `empty` opens when every warp that multiplies has arrived, which says that it has read the stage.
//
// A barrier counts its openings, its phases, by a bit. Who waits names the parity of the phase whose end it needs: 0
// the first time around the ring, 1 the second, and so on. An `empty` barrier is waited for with the opposite parity,
// as the phase before the first counts as ended: the first stages are free.
//
// A tile in shared memory has rows of 128 bytes. Without care, the same column of eight rows would lie in the same
// banks, and wgmma reads eight rows at once. So the copy exchanges the 16-byte pieces of a row: piece `p` of row `r`
// goes to place `p ^ (r % 8)`. This is the 128-byte swizzle, a pattern of 1024 bytes, so tiles begin at multiples of
// that. wgmma is told of it and undoes it; since it works on addresses, 16 steps of K further along a row are still 32
// bytes further.
#pragma once

// What follows is for compilers that make code for GPUs, which nvcc lists here. Device code is made for 9.0a alone:
// everything that is not in the plain instruction set of its time is behind __CUDA_ARCH_FEAT_SM90_ALL.
#ifdef __CUDA_ARCH_LIST__

#include <algorithm>

#include <cuda.h>

#include "checks.cuh"

namespace {
namespace hopper {

constexpr int kGroupThreads = 128;  // wgmma is an instruction of four warps
constexpr int kGroupRows = 64;      // of one wgmma, 16 for each warp
constexpr int kInstructionK = 16;   // of half precision
constexpr int kRowBytes = 128;      // of a tile, the width of the swizzle
constexpr int kAlignment = 1024;    // of a tile
constexpr int kLargestShared = 227 * 1024;

bool is_hopper(int device) {
  int major = 0;
  int minor = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, asked for at run time: so nothing has to be linked with the driver. Null if it has none.
Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  C10_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
#else
  C10_CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result));
#endif
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
}

// Describes contiguous matrices (batches, rows, columns) of halves for copies of boxes of box_rows rows and 128 bytes,
// swizzled in shared memory. Zeros are read beyond the edges, also beyond the last row of each matrix of a batch.
CUtensorMap describe_matrices(
    const void* values, CUtensorMapDataType type, int64_t batches, int64_t rows, int64_t columns, int box_rows) {
  static const Encode encode = find_encode();
  TORCH_CHECK(encode != nullptr, "this driver has no cuTensorMapEncodeTiled; a driver for CUDA 12.0 or newer has it");
  constexpr int64_t kHalfBytes = 2;
  const cuuint64_t sizes[] = {
      static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(batches)};
  const cuuint64_t strides[] = {
      static_cast<cuuint64_t>(columns * kHalfBytes), static_cast<cuuint64_t>(rows * columns * kHalfBytes)};
  const cuuint32_t box[] = {kRowBytes / kHalfBytes, static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult result = encode(
      &map, type, 3, const_cast<void*>(values), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  TORCH_CHECK(
      result == CUDA_SUCCESS, batches, " matrices of ", rows, " x ", columns,
      " can't be described for bulk copies: error ", static_cast<int>(result));
  return map;
}

// A cluster of blocks for each tile, but no more than have a multiprocessor for each block.
dim3 grid_for(int64_t tiles, int cluster, int device) {
  return dim3(blocks_for(std::min<int64_t>(tiles, std::max(multiprocessors(device) / cluster, 1)) * cluster));
}

// Starts a grid whose blocks are in clusters of so many along x.
template <class Kernel, class... Arguments>
void launch_clusters(Kernel kernel, dim3 grid, int cluster, int threads, int shared_bytes, Arguments... arguments) {
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned int>(cluster);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = grid;
  launch.blockDim = dim3(static_cast<unsigned int>(threads));
  launch.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  launch.stream = c10::cuda::getCurrentCUDAStream();
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  C10_CUDA_CHECK(cudaLaunchKernelEx(&launch, kernel, arguments...));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes the barriers that were initialized visible to the copies and to the other blocks of the cluster.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// One arrival, and `bytes` that have to come until the barrier opens.
__device__ __forceinline__ void expect_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// One arrival at the barrier that lies at this address in a block of the cluster. It says that something was read, and
// that is over by then; releasing writes to the cluster as well would cost a fence of all memory.
__device__ __forceinline__ void arrive_at(uint32_t barrier, int block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier), "r"(block)
      : "memory");
}

// Until the phase of this parity has ended.
__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
  uint32_t ended;
  do {
    asm volatile(
        "{\n"
        ".reg .pred ended;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, ended;\n"
        "}\n"
        : "=r"(ended)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (ended == 0);
}

__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Barriers of the block by number: the last of `threads` lets all go that wait. Arriving does not wait.
__device__ __forceinline__ void sync_threads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void arrive_threads(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// A place in a ring of stages, and the parity of this time around.
template <int Stages>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Copies a box to this address of the block's shared memory, and counts its bytes at the barrier.
__device__ __forceinline__ void load_box(
    uint32_t to, const CUtensorMap* map, int column, int row, int batch, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(batch), "r"(barrier)
      : "memory");
}

// The same to each of the first `blocks` blocks of the cluster, at their own barriers.
__device__ __forceinline__ void load_box_everywhere(
    uint32_t to, const CUtensorMap* map, int column, int row, int batch, uint32_t barrier, int blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(batch), "r"(barrier), "h"(static_cast<uint16_t>((1 << blocks) - 1))
      : "memory");
}

// Makes what this thread stored in shared memory visible to copies. Those that start them come after a barrier.
__device__ __forceinline__ void show_to_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Copies a box from shared memory, as far as it is within the matrix.
__device__ __forceinline__ void store_box(const CUtensorMap* map, int column, int row, int batch, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(column),
      "r"(row), "r"(batch), "r"(from)
      : "memory");
}

// What this thread has stored since the last end is a group, which may be empty. The thread that stores waits as well:
// until no more than Open of its groups have still to read shared memory, or until all are done.
__device__ __forceinline__ void end_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int Open>
__device__ __forceinline__ void wait_for_stores_to_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Open) : "memory");
}

__device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Registers of each thread of this group from here on. All groups together have 65536.
template <int Registers>
__device__ __forceinline__ void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Where a matrix lies in shared memory, K along its rows: address and distance of eight rows, in units of 16 bytes, and
// the kind of swizzle. The distance along K, which says nothing with this swizzle, is 1.
__device__ __forceinline__ uint64_t describe(uint32_t address) {
  constexpr uint64_t kEightRows = 8 * kRowBytes / 16;
  constexpr uint64_t kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t{1} << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

constexpr int kAdvance = kInstructionK * 2 / 16;  // of a description, for the next 16 halves of a row

// Around a sequence of products: they see the registers as they are now; they are one group to wait for.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until no more than Open of the groups are under way.
template <int Open>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Open) : "memory");
}

// multiply_f16 and so on: sums = left * right + (add ? sums : 0) for 16 steps of K, without waiting. Of every eight
// columns a thread has two of row `lane / 4` of its warp's 16, and two of the row eight further down.
#define SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SUMS_8(i) SUMS_4(i), SUMS_4(i + 4)
#define SUMS_16(i) SUMS_8(i), SUMS_8(i + 8)
#define SUMS_32(i) SUMS_16(i), SUMS_16(i + 16)
#define SUMS_64(i) SUMS_32(i), SUMS_32(i + 32)
#define NAMES_0_31                                                                                                    \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_0_63                                                                                                    \
  NAMES_0_31                                                                                                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "  \
  "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_64_87                                                                                                   \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "    \
  "%86, %87"
#define NAMES_88_95 "%88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES_96_127                                                                                                  \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, "    \
  "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define DEFINE_PRODUCT(type, columns, names, left_name, right_name, add_name, ...)                                    \
  __device__ __forceinline__ void multiply_##type(                                                                    \
      float (&sums)[columns / 2], uint64_t left, uint64_t right, int add) {                                           \
    asm volatile(                                                                                                     \
        "{\n"                                                                                                         \
        ".reg .pred add;\n"                                                                                           \
        "setp.ne.b32 add, " add_name ", 0;\n"                                                                         \
        "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." #type "." #type " {" names "}, " left_name            \
        ", " right_name ", add, 1, 1, 0, 0;\n" /* signs as they are, and both operands with K along rows */           \
        "}\n"                                                                                                         \
        : __VA_ARGS__                                                                                                 \
        : "l"(left), "l"(right), "r"(add));                                                                           \
  }

DEFINE_PRODUCT(f16, 128, NAMES_0_63, "%64", "%65", "%66", SUMS_64(0))
DEFINE_PRODUCT(bf16, 128, NAMES_0_63, "%64", "%65", "%66", SUMS_64(0))
DEFINE_PRODUCT(f16, 176, NAMES_0_63 ", " NAMES_64_87, "%88", "%89", "%90", SUMS_64(0), SUMS_16(64), SUMS_8(80))
DEFINE_PRODUCT(
    f16, 192, NAMES_0_63 ", " NAMES_64_87 ", " NAMES_88_95, "%96", "%97", "%98", SUMS_64(0), SUMS_32(64))
DEFINE_PRODUCT(
    bf16, 256, NAMES_0_63 ", " NAMES_64_87 ", " NAMES_88_95 ", " NAMES_96_127, "%128", "%129", "%130", SUMS_64(0),
    SUMS_64(64))

// sums += left * right, with the left operand in registers: sums of 16 columns, rounded, are it as they lie. The right
// one has K down its rows, 64 columns in all, and its description says where the first of 16 rows is.
__device__ __forceinline__ void add_product_bf16(float (&sums)[32], const uint32_t (&left)[4], uint64_t right) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" NAMES_0_31
      "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"  // adds, with signs as they are, and the right operand turned
      : SUMS_32(0)
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));
}

constexpr int kAdvanceDown = kInstructionK * kRowBytes / 16;  // of a description, for the next 16 rows

// A description of what lies further on. Its upper half stays, which the compiler can't know of a sum of 64 bits.
__device__ __forceinline__ uint64_t further(uint64_t description, int advance) {
  return description >> 32 << 32 | (static_cast<uint32_t>(description) + advance);
}

// Keeps the compiler from using sums before the wait that precedes this.
template <int Count>
__device__ __forceinline__ void keep_in_order(float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    asm volatile("" : "+f"(sums[i])::"memory");
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace hopper
}  // namespace
#endif  // __CUDA_ARCH_LIST__
