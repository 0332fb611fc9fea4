// Orders and scopes of inline PTX. Block 0 writes and sets a flag, or all blocks write and count themselves.
#include "case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

#define READ_ALL for (int i = 0; i < gridDim.x; ++i) out[64 + i] = out[i]

KERNEL(fence_cta) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @fence_cta
  if (fixed)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.cta;" ::: "memory");
  int ticket = atomicAdd(scratch, 1);
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @fence_cta
}
PLANT(fence_cta)

KERNEL(membar_cta) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @membar_cta
  asm volatile("membar.gl;" ::: "memory");
  int ticket = atomicAdd(scratch, 1);
  if (fixed)
    asm volatile("membar.gl;" ::: "memory");
  else
    asm volatile("membar.cta;" ::: "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @membar_cta
}
PLANT(membar_cta)

// A proxy fence orders proxies, not threads.
KERNEL(proxy_fence) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @proxy_fence
  if (fixed)
    asm volatile("fence.sc.gpu;" ::: "memory");
  else
    asm volatile("fence.proxy.async;" ::: "memory");
  int ticket = atomicAdd(scratch, 1);
  asm volatile("fence.sc.gpu;" ::: "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @proxy_fence
}
PLANT(proxy_fence)

KERNEL(releasing_fence) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @releasing_fence
  if (fixed)
    asm volatile("fence.release.gpu;" ::: "memory");
  else
    asm volatile("fence.acquire.gpu;" ::: "memory");
  int ticket = atomicAdd(scratch, 1);
  asm volatile("fence.acquire.gpu;" ::: "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @releasing_fence
}
PLANT(releasing_fence)

KERNEL(acquiring_fence) {
  if (threadIdx.x != 0) return;
  out[blockIdx.x] = x[blockIdx.x];  // @acquiring_fence
  asm volatile("fence.release.gpu;" ::: "memory");
  int ticket = atomicAdd(scratch, 1);
  if (fixed)
    asm volatile("fence.acquire.gpu;" ::: "memory");
  else
    asm volatile("fence.release.gpu;" ::: "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @acquiring_fence
}
PLANT(acquiring_fence)

KERNEL(atom_cta) {
  if (threadIdx.x != 0) return;
  int ticket;
  out[blockIdx.x] = x[blockIdx.x];  // @atom_cta
  if (fixed)
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");
  else
    asm volatile("atom.acq_rel.cta.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");  // @atom_cta
  if (ticket == gridDim.x - 1) READ_ALL;  // @atom_cta
}
PLANT(atom_cta)

KERNEL(cas_cta) {
  if (threadIdx.x != 0) return;
  int old;
  if (fixed)
    asm volatile("atom.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(scratch) : "memory");
  else
    asm volatile("atom.cta.global.cas.b32 %0, [%1], 0, 1;" : "=r"(old) : "l"(scratch) : "memory");  // @cas_cta
}
PLANT(cas_cta)

KERNEL(red_cta) {
  if (fixed)
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(scratch), "r"(threadIdx.x) : "memory");
  else
    asm volatile("red.relaxed.cta.global.max.u32 [%0], %1;" ::"l"(scratch), "r"(threadIdx.x) : "memory");  // @red_cta
}
PLANT(red_cta)

// Atomics of a block are enough for what no other block touches.
KERNEL(own_counter) {
  int ticket;
  int* counter = scratch + (fixed ? blockIdx.x : 0);
  asm volatile("atom.relaxed.cta.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(counter) : "memory");  // @own_counter
}
PLANT(own_counter)

KERNEL(relaxed_atom) {
  if (threadIdx.x != 0) return;
  int ticket;
  out[blockIdx.x] = x[blockIdx.x];  // @relaxed_atom
  if (fixed)
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");
  else
    asm volatile("atom.acquire.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @relaxed_atom
}
PLANT(relaxed_atom)

KERNEL(releasing_atom) {
  if (threadIdx.x != 0) return;
  int ticket;
  out[blockIdx.x] = x[blockIdx.x];  // @releasing_atom
  if (fixed)
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");
  else
    asm volatile("atom.release.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(scratch) : "memory");
  if (ticket == gridDim.x - 1) READ_ALL;  // @releasing_atom
}
PLANT(releasing_atom)

KERNEL(store_cta) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[0] = x[0];  // @store_cta
    if (fixed)
      asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(scratch) : "memory");
    else
      asm volatile("st.release.cta.global.u32 [%0], 1;" ::"l"(scratch) : "memory");  // @store_cta
  } else {
    int flag;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch) : "memory");  // @store_cta
    if (flag) out[64 + blockIdx.x] = out[0];  // @store_cta
  }
}
PLANT(store_cta)

KERNEL(load_cta) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[0] = x[0];  // @load_cta
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(scratch) : "memory");  // @load_cta
  } else {
    int flag;
    if (fixed)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch) : "memory");
    else
      asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch) : "memory");  // @load_cta
    if (flag) out[64 + blockIdx.x] = out[0];  // @load_cta
  }
}
PLANT(load_cta)

KERNEL(relaxed_load) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[0] = x[0];  // @relaxed_load
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(scratch) : "memory");
  } else {
    int flag;
    if (fixed)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch) : "memory");
    else
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(scratch) : "memory");
    if (flag) out[64 + blockIdx.x] = out[0];  // @relaxed_load
  }
}
PLANT(relaxed_load)

// From warp to warp the scope of a block is enough.
KERNEL(warps_of_a_block) {
  __shared__ int ready;
  __shared__ float value;
  int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t == 0) {
    value = x[0];  // @warps_of_a_block
    if (fixed)
      asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(shared_at(&ready)) : "memory");
    else
      asm volatile("st.relaxed.cta.shared.u32 [%0], 1;" ::"r"(shared_at(&ready)) : "memory");
  } else if (t >= 32) {
    int flag;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(flag) : "r"(shared_at(&ready)) : "memory");
    if (flag) out[blockIdx.x * 64 + t] = value;  // @warps_of_a_block
  }
}
PLANT(warps_of_a_block)

KERNEL(strong_vectors) {
  if (threadIdx.x != 0) return;
  if (fixed)
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %1};" ::"l"(scratch), "r"(blockIdx.x) : "memory");
  else
    asm volatile("st.global.v2.u32 [%0], {%1, %1};" ::"l"(scratch), "r"(blockIdx.x) : "memory");  // @strong_vectors
}
PLANT(strong_vectors)

// --- mbarriers --------------------------------------------------------------------------------------------------------

#define START                                                                                                       \
  __shared__ float held[64];                                                                                        \
  __shared__ alignas(8) unsigned long long barrier;                                                                 \
  int t = threadIdx.x;                                                                                              \
  unsigned at = shared_at(&barrier);                                                                                \
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");                         \
  __syncthreads();
#define AWAIT                                                                                                         \
  for (unsigned done = 0; !done;)                                                                                    \
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"     \
                 : "=r"(done) : "r"(at) : "memory");

KERNEL(relaxed_arrival) {
  START
  held[t] = x[t];  // @relaxed_arrival
  if (fixed)
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  else
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  AWAIT
  out[t] = held[t ^ 32];  // @relaxed_arrival
}
PLANT_ON(relaxed_arrival, 1, 64, 0)

KERNEL(fenced_arrival) {
  START
  held[t] = x[t];  // @fenced_arrival
  if (fixed) asm volatile("fence.acq_rel.cta;" ::: "memory");
  asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  AWAIT
  out[t] = held[t ^ 32];  // @fenced_arrival
}
PLANT_ON(fenced_arrival, 1, 64, 0)

KERNEL(relaxed_wait) {
  START
  held[t] = x[t];  // @relaxed_wait
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  for (unsigned done = 0; !done;)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at) : "memory");
  if (fixed) asm volatile("fence.acq_rel.cta;" ::: "memory");
  out[t] = held[t ^ 32];  // @relaxed_wait
}
PLANT_ON(relaxed_wait, 1, 64, 0)
