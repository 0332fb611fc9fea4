// __shared__ variables: the functions that translated declarations call.
#pragma once

#include <type_traits>

#include "cuda_on_cpu/runtime.h"

namespace cuda_on_cpu {

// The address of a variable in the running block's memory. `Declaration` is a local struct that carries the user's
// declarators, so the key is unique for each declaration and each instantiation of a template around it.
template <class Declaration, class Variable, int index>
inline Variable& shared_variable(const char* name) {
  static thread_local struct {
    std::uint64_t epoch;
    void* place;
  } slot;
  if (slot.epoch != cuda_on_cpu_block_epoch) {
    slot.place = shared_allocate(sizeof(Variable), alignof(Variable), name);
    slot.epoch = cuda_on_cpu_block_epoch;
  }
  return *static_cast<Variable*>(slot.place);
}

// `extern __shared__ T name[];` is translated to a pointer.
template <class Array>
inline std::remove_extent_t<Array>* dynamic_shared_array() {
  return static_cast<std::remove_extent_t<Array>*>(dynamic_shared());
}

}  // namespace cuda_on_cpu
