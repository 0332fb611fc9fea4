// Two threads draw from one state of cuRAND's.
#include <curand_kernel.h>

#include "case.h"

// The 1024 numbers hold 64 of the larger states.
template <class State>
__device__ State* state_of(int* scratch, bool fixed) {
  return reinterpret_cast<State*>(scratch) + (fixed ? threadIdx.x : threadIdx.x / 2);
}

KERNEL(same_state) {
  if (blockIdx.x) return;
  auto* state = state_of<curandState>(scratch, fixed);
  out[threadIdx.x] = curand_uniform(state);  // @same_state
}
PLANT(same_state)

KERNEL(same_counter) {
  if (blockIdx.x) return;
  auto* state = state_of<curandStatePhilox4_32_10_t>(scratch, fixed);
  float4 numbers = curand_normal4(state);  // @same_counter
  out[threadIdx.x] = numbers.w;
}
PLANT(same_counter)

KERNEL(initialised_twice) {
  if (blockIdx.x) return;
  auto* state = state_of<curandState>(scratch, fixed);
  curand_init(1, threadIdx.x, 0, state);  // @initialised_twice
}
PLANT(initialised_twice)
