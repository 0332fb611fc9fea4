// States of cuRAND's that are set up once and copied for their use.
#include <curand_kernel.h>

#include "case.h"

// The copy includes the bytes of a state that no number depends on.
template <class State>
__device__ float drawn() {
  __shared__ State states[64];
  State* mine = &states[threadIdx.x];
  curand_init(1, threadIdx.x, 0, mine);
  State local = *mine;
  float sum = curand_normal(&local) + curand_uniform(&local);
  *mine = local;
  __syncthreads();
  return sum + curand_uniform(&states[63 - threadIdx.x]);
}
KERNEL(copied_xorwow) { out[blockIdx.x * 64 + threadIdx.x] = drawn<curandState>(); }
HONEST(copied_xorwow, 4, 64)

KERNEL(copied_philox) { out[blockIdx.x * 64 + threadIdx.x] = drawn<curandStatePhilox4_32_10_t>(); }
HONEST(copied_philox, 4, 64)
