// Products of float32 matrices on tensor cores that are as exact as in float32, and faster.
//
// `rows_of` (split.cuh) or `columns_of` makes the parts of each operand, `multiply` adds up their products along K and
// hands the sums of each tile to an epilogue (tiles.cuh). There are two forms of it: product_hopper.cuh for GPUs of
// compute capability 9.0, and product_portable.cuh for all others.
#pragma once

#include <c10/cuda/CUDAGuard.h>

#include "product_hopper.cuh"
#include "product_portable.cuh"
#include "split_hopper.cuh"

namespace {
namespace split {

// Splits (batches, K, lines) or (K, lines) and turns it. With `lower` it is one lower triangular matrix, and what no
// tile reads is not made.
Operand columns_of(const at::Tensor& values, bool lower = false) {
  const Operand operand(values, values.size(-1), values.size(-2));
  TORCH_CHECK(operand.batches <= kMaxGridY, "an operand of shape ", values.sizes(), " has too many matrices");
#ifdef __CUDA_ARCH_LIST__
  if (hopper_form::can_split_strips(values)) {
    hopper_form::split_strips(values, operand, lower);
    return operand;
  }
#endif
  split_columns(values, operand, lower);
  return operand;
}

// left (batches, M, K) times right (batches, N, K) turned. With `kLower` both come from lower triangular matrices, and
// what lies above the diagonal of the product is not computed: tiles there have sums of zero.
template <bool kLower = false, class Epilogue>
void multiply(const Operand& left, const Operand& right, const Epilogue& epilogue) {
#ifdef __CUDA_ARCH_LIST__
  if (hopper::is_hopper(left.parts.get_device())) {
    hopper_form::run<kLower>(left, right, epilogue);
    return;
  }
#endif
  portable::run(left, right, epilogue, kLower);
}

}  // namespace split
}  // namespace
