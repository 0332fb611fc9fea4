// Inline PTX of warps and blocks: tensor cores, matrices, shuffles, asynchronous copies and barriers.
#include <cstdint>

#include "case.h"

__device__ __forceinline__ unsigned shared_at(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// --- tensor cores -----------------------------------------------------------------------------------------------------

// Each block is one warp with registers of its own, in the order of the lanes.
#define PRODUCT(NAME, WORD, A, B, C, ...)                                                                      \
  __global__ void NAME##_kernel(const WORD* x, const WORD* y, const WORD* z, WORD* out) {                      \
    int i = blockIdx.x * 32 + threadIdx.x;                                                                     \
    const WORD *a = x + i * A, *b = y + i * B, *c = z + i * C;                                                 \
    WORD* d = out + i * C;                                                                                     \
    __VA_ARGS__;                                                                                               \
  }                                                                                                            \
  extern "C" void NAME(const void* x, const void* y, const void* z, void* out, int count) {                    \
    NAME##_kernel<<<count, 32>>>((const WORD*)x, (const WORD*)y, (const WORD*)z, (WORD*)out);                  \
  }

PRODUCT(mma_half, unsigned, 4, 2, 4,
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %11, %12, %13};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
                   "r"(c[3])))
PRODUCT(mma_bfloat, unsigned, 4, 2, 4,
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32\n"
                 "  {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
                   "r"(c[3])))
PRODUCT(mma_half_short, unsigned, 2, 1, 4,
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])))
PRODUCT(mma_bfloat_short, unsigned, 2, 1, 4,
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])))
PRODUCT(mma_into_half, unsigned, 4, 2, 2,
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1])))
PRODUCT(mma_tf32, unsigned, 4, 2, 4,
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%11,%12,%13};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
                   "r"(c[3])))
PRODUCT(mma_tf32_short, unsigned, 2, 1, 4,
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])))
PRODUCT(mma_bytes, unsigned, 4, 2, 4,
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%11,%12,%13};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
                   "r"(c[3])))
PRODUCT(mma_mixed_bytes, unsigned, 2, 1, 4,
    asm volatile("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])))
PRODUCT(mma_few_bytes, unsigned, 1, 1, 2,
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=r"(d[0]), "=r"(d[1]) : "r"(a[0]), "r"(b[0]), "r"(c[0]), "r"(c[1])))
PRODUCT(mma_doubles, double, 1, 1, 2,
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=d"(d[0]), "=d"(d[1]) : "d"(a[0]), "d"(b[0]), "d"(c[0]), "d"(c[1])))

// --- matrices of halves in shared memory ------------------------------------------------------------------------------

// out: the registers of x4, of x4 transposed, of x2 and of x1, a row of 11 a lane.
__global__ void load_matrix_kernel(const unsigned short* x, unsigned* out) {
  __shared__ alignas(16) unsigned short tile[32][16];  // rows 32 bytes apart
  for (int i = threadIdx.x; i < 32 * 8; i += 32) tile[i / 8][i % 8] = x[i];
  __syncwarp();
  unsigned at = shared_at(tile[threadIdx.x]), r[11];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2+256];"
               : "=r"(r[8]), "=r"(r[9]) : "r"(at - 256 + 64));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[10]) : "r"(threadIdx.x < 8 ? at : 1));
  for (int i = 0; i < 11; ++i) out[threadIdx.x * 11 + i] = r[i];
}
extern "C" void load_matrices(const unsigned short* x, unsigned* out) { load_matrix_kernel<<<1, 32>>>(x, out); }

__global__ void store_matrix_kernel(const unsigned* x, unsigned short* out) {
  __shared__ alignas(16) unsigned short tile[3][32][8];
  const unsigned* mine = x + threadIdx.x * 4;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 8; ++j) tile[i][threadIdx.x][j] = 0;
  __syncwarp();
  unsigned moved;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(shared_at(tile[0][threadIdx.x])), "r"(mine[0]), "r"(mine[1]), "r"(mine[2]), "r"(mine[3]) : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%0], {%1, %2};"
               :: "r"(shared_at(tile[1][threadIdx.x])), "r"(mine[0]), "r"(mine[1]) : "memory");
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(mine[2]));
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
               :: "r"(shared_at(tile[2][threadIdx.x])), "r"(moved) : "memory");
  __syncwarp();
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 8; ++j) out[(i * 32 + threadIdx.x) * 8 + j] = tile[i][threadIdx.x][j];
}
extern "C" void store_matrices(const unsigned* x, unsigned short* out) { store_matrix_kernel<<<1, 32>>>(x, out); }

// --- shuffles and votes -----------------------------------------------------------------------------------------------

__global__ void shuffle_kernel(const unsigned* x, unsigned* out, unsigned* inside) {
  int lane = threadIdx.x;
  unsigned value = x[lane], r[5], p[5];
  asm volatile("{ .reg .pred q; shfl.sync.bfly.b32 %0|q, %2, 5, 0x1f, 0xffffffff; selp.u32 %1, 1, 0, q; }"
               : "=r"(r[0]), "=r"(p[0]) : "r"(value));
  asm volatile("{ .reg .pred q; shfl.sync.up.b32 %0|q, %2, 3, 0, %3; selp.u32 %1, 1, 0, q; }"
               : "=r"(r[1]), "=r"(p[1]) : "r"(value), "r"(0xffffffffu));
  asm volatile("{ .reg .pred q; shfl.sync.down.b32 %0|q, %2, %3, 0x181f, -1; selp.u32 %1, 1, 0, q; }"
               : "=r"(r[2]), "=r"(p[2]) : "r"(value), "r"(2));
  asm volatile("{ .reg .pred q; shfl.sync.idx.b32 %0|q, %2, %3, 0x1c03, -1; selp.u32 %1, 1, 0, q; }"
               : "=r"(r[3]), "=r"(p[3]) : "r"(value), "r"(lane * 7));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 16, 31, -1;" : "=r"(r[4]) : "r"(value));
  p[4] = 1;
  for (int i = 0; i < 5; ++i) out[i * 32 + lane] = r[i], inside[i * 32 + lane] = p[i];
}
extern "C" void ptx_shuffles(const unsigned* x, unsigned* out, unsigned* inside) { shuffle_kernel<<<1, 32>>>(x, out, inside); }

__global__ void vote_kernel(const int* x, unsigned* out) {
  int value = x[threadIdx.x];
  unsigned ballot, same, sum, smallest, any, all, uniform, leader, leads;
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 50; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(ballot) : "r"(value));
  asm volatile("{ .reg .pred p, q; setp.eq.s32 p, %2, 7; vote.sync.any.pred q, p, -1; selp.u32 %0, 1, 0, q;\n"
               "vote.sync.all.pred q, !p, -1; selp.u32 %1, 1, 0, q; }" : "=r"(any), "=r"(all) : "r"(value));
  asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, 0; vote.sync.uni.pred p, p, -1; selp.u32 %0, 1, 0, p; }"
               : "=r"(uniform) : "r"(value));
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(value % 4));
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
  asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(smallest) : "r"(value));
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(leads));
  unsigned all_of_them[] = {ballot, any, all, uniform, same, sum, smallest, leader, leads};
  for (int i = 0; i < 9; ++i) out[i * 32 + threadIdx.x] = all_of_them[i];
}
extern "C" void ptx_votes(const int* x, unsigned* out) { vote_kernel<<<1, 32>>>(x, out); }

// --- asynchronous copies ----------------------------------------------------------------------------------------------

template <int bytes>
__device__ __forceinline__ void copy_async(unsigned to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(bytes) : "memory");
}
__global__ void sizes_kernel(const unsigned char* x, unsigned char* out) {
  __shared__ alignas(16) unsigned char tile[32 * 32];
  int lane = threadIdx.x;
  unsigned at = shared_at(tile + lane * 32);
  copy_async<4>(at, x + lane * 32);
  copy_async<4>(at + 4, x + lane * 32 + 8);
  copy_async<8>(at + 8, x + lane * 32);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\ncp.async.wait_all;"
               :: "r"(at + 16), "l"(__cvta_generic_to_global(x + lane * 32 + 16)) : "memory");
  for (int i = 0; i < 32; ++i) out[lane * 32 + i] = tile[lane * 32 + i];
}
extern "C" void copies_of_all_sizes(const unsigned char* x, unsigned char* out) { sizes_kernel<<<1, 32>>>(x, out); }

__global__ void zero_fill_kernel(const unsigned char* x, unsigned char* out, int n) {
  __shared__ alignas(16) unsigned char tile[64 * 16];
  int i = threadIdx.x;
  unsigned at = shared_at(tile + i * 16);
  int left = min(max(n - i * 16, 0), 16);
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n"
               "\t@p cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
               "\t@!p st.shared.v4.u32 [%0], {%3, %3, %3, %3};\n}\n"
               :: "r"(at), "l"(left ? x + i * 16 : x), "r"(left), "r"(left) : "memory");
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" :: "n"(0) : "memory");
  __syncthreads();
  for (int j = 0; j < 16; ++j) out[i * 16 + j] = tile[(63 - i) * 16 + j];
}
extern "C" void copies_that_fill(const unsigned char* x, unsigned char* out, int n) { zero_fill_kernel<<<1, 64>>>(x, out, n); }

// A ring of three stages.
__global__ void ring_kernel(const float* x, float* out, int steps) {
  __shared__ alignas(16) float ring[3][128];
  auto fetch = [&](int step) {
    if (step < steps) copy_async<4>(shared_at(&ring[step % 3][threadIdx.x]), x + step * 128 + threadIdx.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  fetch(1);
  float sum = 0;
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    fetch(step + 2);
    sum += ring[step % 3][127 - threadIdx.x] * (step + 1);
  }
  out[threadIdx.x] = sum;
}
extern "C" void copies_in_a_ring(const float* x, float* out, int steps) { ring_kernel<<<1, 128>>>(x, out, steps); }

// --- barriers ---------------------------------------------------------------------------------------------------------

// Warp 0 produces, warps 1 and 2 consume; warp 3 takes no part.
__global__ void named_kernel(const float* x, float* out, int steps) {
  __shared__ float value[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int step = 0; step < steps && warp < 3; ++step) {
    if (warp == 0) {
      value[lane] = x[step * 32 + lane];
      asm volatile("bar.arrive 1, 96;" ::: "memory");
    } else {
      asm volatile("bar.sync %0, %1;" :: "r"(1), "n"(96) : "memory");
      sum += value[31 - lane] * warp;
    }
    asm volatile("barrier.sync 2, 96;" ::: "memory");
  }
  asm volatile("bar.sync 0;" ::: "memory");
  out[threadIdx.x] = sum;
}
extern "C" void named_barriers(const float* x, float* out, int steps) { named_kernel<<<1, 128>>>(x, out, steps); }

__global__ void counting_kernel(const int* x, unsigned* out) {
  unsigned count, all;
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %2, 50; bar.red.popc.u32 %0, 0, p; bar.red.and.pred q, 0, p;\n"
               "selp.u32 %1, 1, 0, q; bar.warp.sync 0xffffffff; }" : "=r"(count), "=r"(all) : "r"(x[threadIdx.x]) : "memory");
  out[threadIdx.x] = count * 2 + all;
}
extern "C" void counting_barriers(const int* x, unsigned* out) { counting_kernel<<<1, 96>>>(x, out); }

__device__ __forceinline__ void mbarrier_wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra LAB_WAIT;\n"
      "DONE:\n"
      "}\n" :: "r"(barrier), "r"(parity) : "memory");
}
// Warp 0 fills two stages in turn, warps 1 to 3 empty them.
__global__ void phases_kernel(const float* x, float* out, int steps) {
  __shared__ float stage[2][32];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_at(full + i)), "r"(32) : "memory");
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(shared_at(empty + i)), "r"(3) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sum = 0;
  for (int step = 0; step < steps; ++step) {
    int which = step % 2, round = step / 2;
    if (warp == 0) {
      mbarrier_wait(shared_at(empty + which), (round & 1) ^ 1);
      stage[which][lane] = x[step * 32 + lane];
      asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" :: "r"(shared_at(full + which)) : "memory");
    } else {
      mbarrier_wait(shared_at(full + which), round & 1);
      sum += stage[which][(lane + step) % 32] * warp;
      __syncwarp();
      if (lane == 0) asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" :: "r"(shared_at(empty + which)) : "memory");
    }
  }
  out[threadIdx.x] = sum;
}
extern "C" void phases_of_mbarriers(const float* x, float* out, int steps) { phases_kernel<<<1, 128>>>(x, out, steps); }

__global__ void token_kernel(const float* x, float* out) {
  __shared__ alignas(16) float tile[128];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned at = shared_at(&barrier), next = (threadIdx.x + 1) % 128;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 256;" :: "r"(at) : "memory");
  __syncthreads();
  copy_async<4>(shared_at(tile + threadIdx.x), x + threadIdx.x);
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at) : "memory");
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at), "l"(state) : "memory");
  out[threadIdx.x] = tile[next];
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at) : "memory");
}
extern "C" void states_of_an_mbarrier(const float* x, float* out) { token_kernel<<<1, 128>>>(x, out); }

// --- all together -----------------------------------------------------------------------------------------------------

// out = a * b', 16 x 8 a warp: copies in two stages, ldmatrix of padded rows, mma.
__global__ void gemm_kernel(const unsigned short* a, const unsigned short* b, float* out, int n, int k) {
  constexpr int stride = 16 + 8;
  __shared__ alignas(16) unsigned short left[2][32 * stride], right[2][16 * stride];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / 2 * 16, column = warp % 2 * 8;
  auto fetch = [&](int step) {
    int r = threadIdx.x / 2, c = threadIdx.x % 2 * 8, s = step % 2;
    if (r < 32)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(shared_at(&left[s][r * stride + c])), "l"(a + r * k + step * 16 + c));
    else if (r < 48)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                   :: "r"(shared_at(&right[s][(r - 32) * stride + c])), "l"(b + (r - 32) * k + step * 16 + c));
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float d[4] = {};
  fetch(0);
  for (int step = 0; step < k / 16; ++step) {
    if (step + 1 < k / 16) fetch(step + 1);
    else asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group %0;" :: "n"(1) : "memory");
    __syncthreads();
    unsigned x[4], y[2];
    unsigned at = shared_at(&left[step % 2][(row + lane % 16) * stride + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
    at = shared_at(&right[step % 2][(column + lane % 8) * stride + lane / 8 % 2 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) out[(row + lane / 4 + i / 2 * 8) * n + column + lane % 4 * 2 + i % 2] = d[i];
}
extern "C" void gemm_of_ptx(const void* a, const void* b, float* out, int n, int k) {
  gemm_kernel<<<1, 128>>>((const unsigned short*)a, (const unsigned short*)b, out, n, k);
}
