// mma.sync, ldmatrix, stmatrix and movmatrix.
//
// As with nvcuda::wmma, a load reads before the lanes of the warp meet and a store writes after, so that a missing
// barrier is detected.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/refuse.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/tensor_cores.h"

namespace cuda_on_cpu::ptx {

using cuda_on_cpu::Format;

inline void multiply(const MatrixProduct& product, int line = __builtin_LINE()) { multiply_matrices(product, line); }

// Matrices of 8 x 8 halves while a warp distributes them. In a row of a fragment, lane 4 r + c holds elements 2 c and
// 2 c + 1 of row r, or of column r if the matrix is transposed.
template <int count, bool transposed>
struct MatrixExchange {
  int line;
  const char* name;
  std::uint16_t row[8];           // of matrix lane / 8
  std::uint32_t fragment[count];  // of each matrix

  static std::uint16_t* element(void* const* posts, int matrix, unsigned lane, int half) {
    const unsigned major = lane / 4, minor = lane % 4 * 2 + static_cast<unsigned>(half);
    const unsigned row = transposed ? minor : major, column = transposed ? major : minor;
    return &static_cast<MatrixExchange*>(posts[matrix * 8 + static_cast<int>(row)])->row[column];
  }

  static void require_whole_warp(unsigned lanes, void* const* posts) {
    auto* first = static_cast<MatrixExchange*>(posts[__builtin_ctz(lanes)]);
    if (lanes != 0xffffffffu)
      refuse("lanes are missing from an operation of the whole warp", first->name, first->line);
    for (int lane = 1; lane < 32; ++lane)
      if (static_cast<MatrixExchange*>(posts[lane])->line != first->line)
        refuse("divergence, lanes of a warp call it from two lines", first->name, first->line);
  }

  static void to_fragments(unsigned lanes, void* const* posts) {
    require_whole_warp(lanes, posts);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (int matrix = 0; matrix < count; ++matrix)
        static_cast<MatrixExchange*>(posts[lane])->fragment[matrix] =
            *element(posts, matrix, lane, 0) | std::uint32_t{*element(posts, matrix, lane, 1)} << 16;
  }

  static void to_rows(unsigned lanes, void* const* posts) {
    require_whole_warp(lanes, posts);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (int matrix = 0; matrix < count; ++matrix) {
        const std::uint32_t pair = static_cast<MatrixExchange*>(posts[lane])->fragment[matrix];
        *element(posts, matrix, lane, 0) = static_cast<std::uint16_t>(pair);
        *element(posts, matrix, lane, 1) = static_cast<std::uint16_t>(pair >> 16);
      }
  }
};

// Lanes 8 i to 8 i + 7 have the addresses of the rows of matrix i; those of later lanes are not used.
template <int count>
inline char* row_address(std::uint64_t address) {
  if (lane() >= 8 * count) return nullptr;
  require_aligned(shared(address), 16);
  return shared(address);
}

template <int count, bool transposed>
CUDA_ON_CPU_INLINE void load_matrices(std::uint64_t address, std::uint32_t* fragment, int line = __builtin_LINE()) {
  MatrixExchange<count, transposed> post{line, "ldmatrix", {}, {}};
  if (const char* row = row_address<count>(address)) __builtin_memcpy(post.row, row, sizeof post.row);
  warp_collective(0xffffffffu, &post, &MatrixExchange<count, transposed>::to_fragments, "ldmatrix", line);
  __builtin_memcpy(fragment, post.fragment, sizeof post.fragment);
}

template <int count, bool transposed>
CUDA_ON_CPU_INLINE void store_matrices(std::uint64_t address, const std::uint32_t* fragment, int line = __builtin_LINE()) {
  MatrixExchange<count, transposed> post{line, "stmatrix", {}, {}};
  __builtin_memcpy(post.fragment, fragment, sizeof post.fragment);
  char* row = row_address<count>(address);
  warp_collective(0xffffffffu, &post, &MatrixExchange<count, transposed>::to_rows, "stmatrix", line);
  if (row) __builtin_memcpy(row, post.row, sizeof post.row);
}

struct Transposition {
  static void run(unsigned lanes, void* const* posts) {
    MatrixExchange<1, false>::to_rows(lanes, posts);
    MatrixExchange<1, true>::to_fragments(lanes, posts);
  }
};
inline std::uint32_t transpose_matrix(std::uint32_t fragment, int line = __builtin_LINE()) {
  // The rows are the same for both, so that one post serves as either.
  static_assert(sizeof(MatrixExchange<1, false>) == sizeof(MatrixExchange<1, true>));
  MatrixExchange<1, false> post{line, "movmatrix", {}, {fragment}};
  warp_collective(0xffffffffu, &post, &Transposition::run, "movmatrix", line);
  return post.fragment[0];
}

}  // namespace cuda_on_cpu::ptx
