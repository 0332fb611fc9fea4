// Blocks that take work from a queue. Races between them show only if more than one block gets work.
#include "case.h"

// The tiles of neighbouring tickets overlap.
KERNEL(overlapping_tickets) {
  __shared__ int ticket;
  int t = threadIdx.x;
  for (;;) {
    if (t == 0) ticket = atomicAdd(scratch, 1);
    __syncthreads();
    int tile = ticket;
    __syncthreads();
    if (tile >= 8) break;
    out[tile * (fixed ? 64 : 63) + t] = x[tile * 64 + t];  // @overlapping_tickets
  }
}
PLANT(overlapping_tickets)

// A tile adds to the sum that the ticket before it began, as if one block did them all.
KERNEL(continued_sum) {
  __shared__ int ticket;
  if (threadIdx.x != 0) return;
  while ((ticket = atomicAdd(scratch, 1)) < 8) {
    if (fixed)
      atomicAdd(out, x[ticket]);
    else
      out[0] += x[ticket];  // @continued_sum
  }
}
PLANT(continued_sum)

// The list of the next step's work has one end for all blocks, but each writes at its own idea of it.
KERNEL(next_list) {
  int* now = scratch;
  int* length = scratch + 1;
  if (threadIdx.x != 0) return;
  while (atomicAdd(now, 1) < 8) {
    int place = fixed ? atomicAdd(length, 1) : *length;  // @next_list
    if (!fixed) *length = place + 1;                     // @next_list
    scratch[8 + place] = blockIdx.x;                     // @next_list
  }
}
PLANT(next_list)
