// Atomics on the same bytes that have different sizes: PTX orders only those that overlap completely.
#include "case.h"

KERNEL(half_of_a_counter) {
  auto* wide = reinterpret_cast<unsigned long long*>(scratch);
  if (threadIdx.x == 0)
    atomicAdd(wide, 1ull);  // @half_of_a_counter
  else if (fixed)
    atomicAdd(wide, 2ull);
  else
    atomicAdd(scratch, 2);  // @half_of_a_counter
}
PLANT(half_of_a_counter)

KERNEL(packed_claim) {
  __shared__ unsigned long long packed;
  int t = threadIdx.x;
  if (t == 0) packed = 0;
  __syncthreads();
  if (fixed || t < 32)
    atomicMax(&packed, static_cast<unsigned long long>(t) << 32 | t);  // @packed_claim
  else
    atomicOr(reinterpret_cast<unsigned*>(&packed), 1u);  // @packed_claim
}
PLANT(packed_claim)

KERNEL(bytes_of_a_word) {
  if (threadIdx.x & 1)
    atomicAdd(scratch, 1 << 16);  // @bytes_of_a_word
  else if (fixed)
    atomicAdd(scratch, 1);
  else
    atomicCAS(reinterpret_cast<unsigned short*>(scratch), (unsigned short)0, (unsigned short)1);  // @bytes_of_a_word
}
PLANT(bytes_of_a_word)
