// The tiles of a product, and what becomes of their sums. Both forms of the product, for Hopper and for other GPUs, use
// it.
#pragma once

#include <cstdint>

#include "split.cuh"

namespace {
namespace split {

// Where a tile is, and which chunks of K it adds up.
struct Place {
  int batch;
  int row;
  int column;
  int first_chunk;
  int chunks;
};

// All tiles of an output of (batches, M, N). With `lower`, both operands are lower triangular: a tile with rows up to i
// and columns from j has products for K from j to i only, and none above the diagonal.
struct Tiles {
  int rows;  // of a tile
  int columns;
  int down;  // tiles in a column of tiles
  int across;
  int count;
  int chunks;
  bool lower;

  Tiles(const Operand& left, const Operand& right, int rows, int columns, bool lower)
      : rows(rows), columns(columns), down(static_cast<int>(divide_up(left.lines, rows))),
        across(static_cast<int>(divide_up(right.lines, columns))), chunks(static_cast<int>(left.chunks)),
        lower(lower) {
    const int64_t all = divide_up(left.lines, rows) * divide_up(right.lines, columns) * left.batches;
    TORCH_CHECK(
        all <= kMaxBlocks / 2 && std::max(left.lines, right.lines) <= kMaxBlocks / 2 &&
            left.chunks <= kMaxBlocks / kChunkHalves,
        "a product of ", left.lines, " x ", right.lines, " with K = ", left.chunks * kChunk, " is too large");
    count = static_cast<int>(all);
  }

  // Tiles go down `kTogether` rows of tiles before the next column: what runs at the same time is a near square of the
  // output, whose lines come from L2 after their first use. Those of triangles come diagonal by diagonal, from the
  // corner with the longest sums on: the short ones fill up what multiprocessors have left in the end.
  __device__ __forceinline__ Place place(int tile) const {
    constexpr int kTogether = 8;
    const int of_batch = tile % (down * across);
    Place place{tile / (down * across), 0, 0, 0, chunks};
    if (lower) {
      int diagonal = 0;  // tiles from the corner
      int rest = of_batch;
      for (int length = 1; rest >= length;) {
        rest -= length;
        ++diagonal;
        length = min(diagonal, down - 1) - max(0, diagonal - across + 1) + 1;
      }
      const int up = max(0, diagonal - across + 1) + rest;
      place.row = (down - 1 - up) * rows;
      place.column = (diagonal - up) * columns;
      place.first_chunk = place.column / kStep * kStepChunks;
      const int end = min((place.row + rows + kStep - 1) / kStep * kStepChunks, chunks);
      place.chunks = max(end - place.first_chunk, 0);
    } else {
      const int first = of_batch / (kTogether * across) * kTogether;
      const int together = min(kTogether, down - first);
      const int within = of_batch % (kTogether * across);
      place.row = (first + within % together) * rows;
      place.column = within / together * columns;
    }
    return place;
  }
};

// What a warp has of a tile is a strip of 16 rows and a number of eights of columns. Of each eight, a thread has two
// neighbouring columns of row `lane / 4`, and the same two of the row eight further down: the layout of mma.sync, and
// of wgmma. An epilogue is a functor that takes these sums, four floats an eight, and the place of the first. It is
// called by whole warps.
constexpr int kStripRows = 16;

// The result: sums scaled back.
struct Output {
  float* values;  // (batches, M, N)
  const float* largest_left;
  const float* largest_right;
  int64_t M;
  int64_t N;

  Output(const at::Tensor& out, const Operand& left, const Operand& right)
      : values(out.mutable_data_ptr<float>()), largest_left(left.magnitudes()), largest_right(right.magnitudes()),
        M(left.lines), N(right.lines) {}

  __device__ __forceinline__ void write_two(
      int64_t batch, int64_t row, int64_t column, float first, float second) const {
    if (row >= M) {
      return;
    }
    float* const to = values + (batch * M + row) * N + column;
    if (N % 2 == 0 && column < N) {
      *reinterpret_cast<float2*>(to) = make_float2(first, second);
    } else {
      if (column < N) {
        to[0] = first;
      }
      if (column + 1 < N) {
        to[1] = second;
      }
    }
  }
};

// The exponents of the powers of two of what a thread has: of its two rows, and of two columns at a time.
struct Shifts {
  const Output& out;
  int64_t batch;
  int rows[2];

  __device__ __forceinline__ Shifts(const Output& out, int64_t batch, int64_t row) : out(out), batch(batch) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      rows[i] = row + 8 * i < out.M ? shift_for(out.largest_left[batch * out.M + row + 8 * i]) : 0;
    }
  }
  __device__ __forceinline__ int column(int64_t column) const {
    return column < out.N ? shift_for(out.largest_right[batch * out.N + column]) : 0;
  }
};

// Writes `finish(value, row, column)` of each result. Beyond the edges of the output it is not called.
template <class Finish>
struct Write {
  Output out;
  Finish finish;

  template <int Sums>
  __device__ __forceinline__ void operator()(
      const float (&sums)[Sums], int batch, int first_row, int first_column) const {
    const int lane = threadIdx.x % kWarpSize;
    const int row = first_row + lane / 4;
    const Shifts shifts(out, batch, row);
#pragma unroll
    for (int eight = 0; eight < Sums / 4; ++eight) {
      const int column = first_column + eight * 8 + lane % 4 * 2;
      const int shift[] = {shifts.column(column), shifts.column(column + 1)};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float results[2] = {};
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if (row + 8 * i < out.M && column + j < out.N) {
            const float value = scaled_back(sums[eight * 4 + i * 2 + j], shifts.rows[i] + shift[j]);
            results[j] = finish(value, row + 8 * i, column + j);
          }
        }
        out.write_two(batch, row + 8 * i, column, results[0], results[1]);
      }
    }
  }
};

struct AsItIs {
  __device__ __forceinline__ float operator()(float value, int, int) const { return value; }
};

}  // namespace split
}  // namespace
