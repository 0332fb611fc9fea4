// Products of matrices whose elements a warp holds as the PTX instructions mma.sync specify.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

enum class Format { f16, bf16, tf32, f32, f64, s8, u8, s32 };

// One lane's side of d = a * b + c, where a is m x k and b is k x n. Registers have 32 bits, or 64 for doubles.
struct MatrixProduct {
  int m, n, k;
  Format a_format, b_format, c_format, d_format;
  bool saturate;  // sums of integers stop at the ends of their range
  const void* a;
  const void* b;
  const void* c;
  void* d;
};

// All lanes of a warp have to call it from one line.
void multiply_matrices(const MatrixProduct& product, int line);

}  // namespace cuda_on_cpu
