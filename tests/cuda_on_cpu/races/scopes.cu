// Atomics of a block, used between blocks.
#include "case.h"

KERNEL(block_counter) {
  if (fixed)
    atomicAdd(scratch, 1);
  else
    atomicAdd_block(scratch, 1);  // @block_counter
}
PLANT(block_counter)

KERNEL(one_block_counter) {
  atomicAdd_block(&scratch[fixed ? blockIdx.x : blockIdx.x / 2], 1);  // @one_block_counter
}
PLANT(one_block_counter)

KERNEL(mixed_scopes) {
  if (blockIdx.x == 0 && !fixed)
    atomicMax_block(scratch, threadIdx.x);  // @mixed_scopes
  else
    atomicMax(scratch, threadIdx.x);  // @mixed_scopes
}
PLANT(mixed_scopes)
