// Inline PTX that each thread runs for itself: arithmetic, conversions, predicates, jumps, loads, stores and atomics.
#include <cstdint>

#include "case.h"

// A kernel that computes `r` of the words `a`, `b` and `c` with the given statements.
#define WORDS(NAME, ...)                                                                                       \
  __global__ void NAME##_kernel(const unsigned* x, const unsigned* y, const unsigned* z, unsigned* out) {      \
    unsigned a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x], r = c;                                \
    __VA_ARGS__;                                                                                               \
    out[threadIdx.x] = r;                                                                                      \
  }                                                                                                            \
  extern "C" void NAME(const unsigned* x, const unsigned* y, const unsigned* z, unsigned* out) {               \
    NAME##_kernel<<<1, 256>>>(x, y, z, out);                                                                   \
  }
// The same for floats.
#define FLOATS(NAME, ...)                                                                                      \
  __global__ void NAME##_kernel(const float* x, const float* y, const float* z, float* out) {                  \
    float a = x[threadIdx.x], b = y[threadIdx.x], c = z[threadIdx.x], r = c;                                   \
    __VA_ARGS__;                                                                                               \
    out[threadIdx.x] = r;                                                                                      \
  }                                                                                                            \
  extern "C" void NAME(const float* x, const float* y, const float* z, float* out) {                           \
    NAME##_kernel<<<1, 256>>>(x, y, z, out);                                                                   \
  }

// --- integers ---------------------------------------------------------------------------------------------------------

WORDS(ptx_add_sat, asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_sub, asm("sub.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_mul_hi_unsigned, asm("mul.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_mul_hi_signed, asm("mul.hi.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_mad_lo, asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_mad_hi, asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_min_signed, asm("min.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_max_unsigned, asm("max.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_abs_neg, asm("{ .reg .s32 t; abs.s32 t, %1; neg.s32 %0, t; }" : "=r"(r) : "r"(a)))
WORDS(ptx_divide, asm("{\n\t.reg .u32 q, m;\n\tdiv.u32 q, %1, %2;\n\trem.u32 m, %1, %2;\n\tmad.lo.u32 %0, q, 3, m;\n}"
                      : "=r"(r) : "r"(a), "r"(b | 1)))
WORDS(ptx_logic, asm("and.b32 %0, %1, %2; xor.b32 %0, %0, %3; not.b32 %0, %0; or.b32 %0, %0, 0x10;"
                     : "=&r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_lop3, asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_lop3_constant, asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"((0xf0 & 0xcc) | 0xaa)))
WORDS(ptx_lop3_predicate, asm("{.reg .pred p, q; setp.lt.u32 q, %1, %2; lop3.and.b32 %0|p, %1, %2, %3, 0x80, q; @p mov.u32 %0, 7;}"
                              : "=&r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_prmt, asm("prmt.b32 %0, %1, %2, 0x9250;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_funnel_left, asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_funnel_right, asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c & 63)))
WORDS(ptx_shift_left, asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(c & 63)))
WORDS(ptx_shift_right_signed, asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(c & 63)))
WORDS(ptx_extract_unsigned, asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(c & 31)))
WORDS(ptx_extract_signed, asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(c & 31)))
WORDS(ptx_insert, asm("bfi.b32 %0, %1, %2, 5, 9;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_count_bits, asm("{.reg .b32 t; popc.b32 %0, %1; clz.b32 t, %2; shl.b32 t, t, 8; or.b32 %0, %0, t; brev.b32 t, %0;"
                          "add.u32 %0, %0, t;}" : "=&r"(r) : "r"(a), "r"(b)))
WORDS(ptx_dot_of_bytes, asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))

__global__ void wide_kernel(const int* x, const int* y, long long* out) {
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(out[threadIdx.x]) : "r"(x[threadIdx.x]), "r"(y[threadIdx.x]));
  asm("mad.wide.s32 %0, %1, -3, %0;" : "+l"(out[threadIdx.x]) : "r"(y[threadIdx.x]));
}
extern "C" void ptx_wide(const int* x, const int* y, long long* out) { wide_kernel<<<1, 256>>>(x, y, out); }

__global__ void narrow_kernel(const short* x, const short* y, short* out) {
  asm("mul.lo.s16 %0, %1, %2;" : "=h"(out[threadIdx.x]) : "h"(x[threadIdx.x]), "h"(y[threadIdx.x]));
}
extern "C" void ptx_narrow(const short* x, const short* y, short* out) { narrow_kernel<<<1, 256>>>(x, y, out); }

// --- predicates, jumps and moves --------------------------------------------------------------------------------------

WORDS(ptx_select, asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %1, 77, p; }" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_combined_predicates, asm("{\n"
    ".reg .pred p, q, u;\n"
    "setp.gt.u32 u, %1, %3;\n"
    "setp.le.and.u32 p|q, %1, %2, u;\n"
    "selp.u32 %0, 1, 0, p;\n"
    "@q add.u32 %0, %0, 2;\n"
    "not.pred u, u;\n"
    "@!u add.u32 %0, %0, 4;\n"
    "}" : "=&r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_guard, asm("{ .reg .pred %%p1; setp.ne.b32 %%p1, %1, 0; @%%p1 mov.u32 %0, 5; @!%%p1 mov.u32 %0, 6; }"
                     : "+r"(r) : "r"(a & 1)))
WORDS(ptx_loop, asm("{\n"
    ".reg .pred p;\n"
    ".reg .u32 i;\n"
    "mov.u32 %0, 0;\n"
    "mov.u32 i, %1;\n"
    "AGAIN_%=:\n"
    "setp.eq.u32 p, i, 0;\n"
    "@p bra.uni DONE_%=;\n"
    "add.u32 %0, %0, i;\n"
    "sub.u32 i, i, 1;\n"
    "bra AGAIN_%=;\n"
    "DONE_%=:\n"
    "}" : "=&r"(r) : "r"(a & 15)))
WORDS(ptx_scopes, asm("{ .reg .b32 t; add.u32 t, %1, 1; { .reg .b32 t; add.u32 t, %1, 2; mov.b32 %0, t; } "
                      "add.u32 %0, %0, t; }" : "=&r"(r) : "r"(a)))
WORDS(ptx_numbered_registers, asm("{ .reg .b32 t<3>; mov.u32 t0, %1; add.u32 t1, t0, t0; add.u32 t2, t1, t0; "
                                  "mov.u32 %0, t2; } // three times" : "=r"(r) : "r"(a)))
WORDS(ptx_pack, asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, low}; }" : "=r"(r) : "r"(a)))
WORDS(ptx_comments, asm volatile("/* one */ add.u32 %0, %1, 1; // two\n\t add.u32 %0, %0, 2;" : "=r"(r) : "r"(a) : "memory"))

__global__ void pair_kernel(const unsigned long long* x, unsigned* low, unsigned* high, unsigned long long* swapped) {
  int i = threadIdx.x;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(low[i]), "=r"(high[i]) : "l"(x[i]));
  asm("mov.b64 %0, {%1, %2};" : "=l"(swapped[i]) : "r"(high[i]), "r"(low[i]));
}
extern "C" void ptx_pairs(const unsigned long long* x, unsigned* low, unsigned* high, unsigned long long* swapped) {
  pair_kernel<<<1, 256>>>(x, low, high, swapped);
}

__device__ __forceinline__ unsigned lane_id() {
  unsigned lane;
  asm("mov.u32 %0, %laneid;" : "=r"(lane));
  return lane;
}
__global__ void special_kernel(unsigned* out) {
  unsigned x, y, size, block, grid, below;
  asm volatile("mov.u32 %0, %%tid.x;\n\tmov.u32 %1, %%tid.y;\n\tmov.u32 %2, %%ntid.x;" : "=r"(x), "=r"(y), "=r"(size));
  asm volatile("mov.u32 %0, %%ctaid.x; mov.u32 %1, %%nctaid.x;" : "=r"(block), "=r"(grid));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  out[(block * 3 + y) * size + x] = x + 100 * y + 10000 * block + 1000000 * grid + (below == (1u << lane_id()) - 1 ? 0 : 7);
}
extern "C" void ptx_special_registers(unsigned* out) { special_kernel<<<2, dim3(40, 3)>>>(out); }

// The parameters of a macro, and the text of another.
#define ADD_TEXT "add.u32 %0, "
#define ADD_TO(d, value, x) \
  asm volatile(ADD_TEXT "%1, %2;\n" \
               : "=r"(d) \
               : "r"(value), "r"(x))
template <int step>
__global__ void macro_kernel(const unsigned* values, unsigned* out) {
  unsigned sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) ADD_TO(sums[i], values[threadIdx.x], i * step);
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(out[threadIdx.x]) : "r"(sums[3]), "n"(step), "r"(sums[1]));
}
extern "C" void ptx_macros(const unsigned* values, unsigned* out) { macro_kernel<5><<<1, 64>>>(values, out); }

// --- floats -----------------------------------------------------------------------------------------------------------

FLOATS(ptx_fma, asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c)))
FLOATS(ptx_fma_to_zero, asm("fma.rz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c)))
FLOATS(ptx_add_down, asm("add.rm.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_mul_up, asm("mul.rp.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_add_saturating, asm("add.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_flush_to_zero, asm("mul.rn.ftz.f32 %0, %1, 0f34000000;" : "=f"(r) : "f"(a)))
FLOATS(ptx_immediates, asm("fma.rn.f32 %0, %1, 0f3FC00000, 2.5;" : "=f"(r) : "f"(a)))
FLOATS(ptx_min_without_nan, asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_max_with_nan, asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_unordered, asm("{ .reg .pred p, q; setp.ltu.f32 p, %1, %2; setp.lt.f32 q, %1, %2; selp.f32 %0, 0f3f800000, "
                          "0f00000000, p; @q add.f32 %0, %0, 0f40000000; }" : "=&f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_signs, asm("{ .reg .f32 t; neg.f32 t, %1; copysign.f32 t, t, %2; abs.f32 %0, %3; add.f32 %0, %0, t; }"
                      : "=f"(r) : "f"(a), "f"(b), "f"(c)))
FLOATS(ptx_rounded_functions, asm("{ .reg .f32 t; abs.f32 t, %1; sqrt.rn.f32 t, t; rcp.rn.f32 %0, t; div.rn.f32 %0, %0, %2; }"
                                  : "=f"(r) : "f"(a), "f"(b)))
FLOATS(ptx_ex2, asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a)))
FLOATS(ptx_lg2, asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(fabsf(a) + 1.5f)))
FLOATS(ptx_rcp, asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fabsf(a) + 0.5f)))
FLOATS(ptx_rsqrt, asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(fabsf(a) + 0.5f)))
FLOATS(ptx_circle, asm("{ .reg .f32 t; sin.approx.f32 t, %1; cos.approx.f32 %0, %1; fma.rn.f32 %0, t, 0f40000000, %0; }"
                       : "=f"(r) : "f"(a)))
FLOATS(ptx_tanh, asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(a)))
FLOATS(ptx_div_full, asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(fabsf(b) + 0.5f)))

__global__ void double_kernel(const double* x, const double* y, double* out) {
  int i = threadIdx.x;
  asm("fma.rn.f64 %0, %1, %2, 0d3FF8000000000000;" : "=d"(out[i]) : "d"(x[i]), "d"(y[i]));
}
extern "C" void ptx_doubles(const double* x, const double* y, double* out) { double_kernel<<<1, 256>>>(x, y, out); }

// Pairs of halves in words.
WORDS(ptx_half_add, asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_half_fma, asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_half_max, asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
WORDS(ptx_half_ex2, asm("ex2.approx.f16x2 %0, %1;" : "=r"(r) : "r"(a)))
WORDS(ptx_bfloat_fma, asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)))
WORDS(ptx_bfloat_min, asm("{ .reg .b32 t; neg.bf16x2 t, %2; min.bf16x2 %0, %1, t; }" : "=r"(r) : "r"(a), "r"(b)))

// --- conversions ------------------------------------------------------------------------------------------------------

__global__ void pack_kernel(const float* x, const float* y, unsigned* out) {
  int i = threadIdx.x, n = blockDim.x;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out[i]) : "f"(x[i]), "f"(y[i]));
  asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(out[n + i]) : "f"(x[i]), "f"(y[i]));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out[2 * n + i]) : "f"(x[i]), "f"(y[i]));
  asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(out[3 * n + i]) : "f"(x[i]), "f"(y[i]));
}
extern "C" void ptx_pack_floats(const float* x, const float* y, unsigned* out) { pack_kernel<<<1, 256>>>(x, y, out); }

__global__ void small_kernel(const float* x, unsigned short* out, float* back) {
  int i = threadIdx.x, n = blockDim.x;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out[i]) : "f"(x[i]));
  asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(out[n + i]) : "f"(x[i]));
  asm("cvt.f32.f16 %0, %1;" : "=f"(back[i]) : "h"(out[i]));
  asm("cvt.f32.bf16 %0, %1;" : "=f"(back[n + i]) : "h"(out[n + i]));
}
extern "C" void ptx_small_floats(const float* x, unsigned short* out, float* back) { small_kernel<<<1, 256>>>(x, out, back); }

__global__ void tf32_kernel(const float* x, unsigned* out) {
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out[threadIdx.x]) : "f"(x[threadIdx.x]));
}
extern "C" void ptx_to_tf32(const float* x, unsigned* out) { tf32_kernel<<<1, 256>>>(x, out); }

__global__ void to_integer_kernel(const float* x, int* out) {
  int i = threadIdx.x, n = blockDim.x;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(out[i]) : "f"(x[i]));
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(out[n + i]) : "f"(x[i]));
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(out[2 * n + i]) : "f"(x[i]));
  asm("cvt.rpi.u32.f32 %0, %1;" : "=r"(out[3 * n + i]) : "f"(x[i]));
}
extern "C" void ptx_to_integers(const float* x, int* out) { to_integer_kernel<<<1, 256>>>(x, out); }

__global__ void from_integer_kernel(const int* x, float* out) {
  int i = threadIdx.x, n = blockDim.x;
  asm("cvt.rn.f32.s32 %0, %1;" : "=f"(out[i]) : "r"(x[i]));
  asm("cvt.rz.f32.s32 %0, %1;" : "=f"(out[n + i]) : "r"(x[i]));
  asm("cvt.rp.f32.u32 %0, %1;" : "=f"(out[2 * n + i]) : "r"(x[i]));
}
extern "C" void ptx_from_integers(const int* x, float* out) { from_integer_kernel<<<1, 256>>>(x, out); }

FLOATS(ptx_whole_floats, asm("{ .reg .f32 t; cvt.rmi.f32.f32 t, %1; cvt.rni.f32.f32 %0, %2; fma.rn.f32 %0, t, 0f42C80000, %0; }"
                             : "=&f"(r) : "f"(a), "f"(b)))
WORDS(ptx_extend, asm("{ .reg .s32 t; cvt.s32.s8 t, %1; cvt.u32.u16 %0, %2; add.u32 %0, %0, t; }"
                      : "=&r"(r) : "r"(a), "r"(b)))
WORDS(ptx_saturate_to_byte, asm("{ .reg .s32 t; cvt.sat.s8.s32 t, %1; cvt.sat.u16.s32 %0, %1; add.u32 %0, %0, t; }"
                                : "=&r"(r) : "r"(static_cast<unsigned>(static_cast<int>(a) >> 14))))

// --- memory -----------------------------------------------------------------------------------------------------------

__global__ void vectors_kernel(const float* x, float* out, const unsigned short* words, unsigned* wide) {
  int i = threadIdx.x;
  float a, b, c, d;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + 4 * i));
  asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" :: "l"(out + 4 * i), "f"(d), "f"(c) : "memory");
  asm volatile("st.global.wb.v2.f32 [%0+8], {%1, %2};" :: "l"(out + 4 * i), "f"(b), "f"(a) : "memory");
  unsigned short low, high;
  asm volatile("ld.global.v2.u16 {%0, %1}, [%2];" : "=h"(low), "=h"(high) : "l"(words + 2 * i));
  wide[i] = low * 3u + high;
}
extern "C" void ptx_vector_accesses(const float* x, float* out, const unsigned short* words, unsigned* wide) {
  vectors_kernel<<<1, 64>>>(x, out, words, wide);
}

__global__ void bytes_kernel(const signed char* x, int* out, unsigned char* back) {
  int i = threadIdx.x, s, u;
  asm volatile("ld.global.s8 %0, [%2]; ld.global.u8 %1, [%2];" : "=r"(s), "=r"(u) : "l"(x + i));
  out[i] = s * 1000 + u;
  asm volatile("st.global.u8 [%0], %1;" :: "l"(back + i), "r"(s) : "memory");
}
extern "C" void ptx_bytes(const signed char* x, int* out, unsigned char* back) { bytes_kernel<<<1, 256>>>(x, out, back); }

__global__ void shared_kernel(const unsigned* x, unsigned* out) {
  __shared__ unsigned tile[128];
  extern __shared__ unsigned more[];
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile)), next, last;
  unsigned long long converted;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(converted) : "l"(more));
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(at + 4 * threadIdx.x), "r"(x[threadIdx.x]) : "memory");
  asm volatile("st.shared::cta.b32 [%0], %1;" :: "r"(static_cast<unsigned>(converted) + 4 * threadIdx.x), "r"(2 * x[threadIdx.x]));
  __syncthreads();
  asm volatile("ld.shared.u32 %0, [%1+4];" : "=r"(next) : "r"(at + 4 * (threadIdx.x % 127)));
  asm volatile("{ .reg .u64 p; cvt.u64.u32 p, %1; cvta.shared.u64 p, p; ld.u32 %0, [p+-4]; }"
               : "=r"(last) : "r"(static_cast<unsigned>(converted) + 4 * (threadIdx.x % 127 + 1)));
  unsigned inside;
  asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(inside) : "l"(tile));
  out[threadIdx.x] = next + 7 * last + inside;
}
extern "C" void ptx_shared_memory(const unsigned* x, unsigned* out) { shared_kernel<<<1, 128, 512>>>(x, out); }

__global__ void atomic_kernel(unsigned* cells, int* signed_cells, float* sums, unsigned long long* wide, unsigned* old) {
  unsigned i = threadIdx.x;
  asm volatile("red.global.add.u32 [%0], %1;" :: "l"(cells), "r"(i) : "memory");
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" :: "l"(signed_cells), "r"(static_cast<int>(i) - 50));
  asm volatile("red.global.and.b32 [%0], %1;" :: "l"(cells + 1), "r"(~(1u << (i % 8))));
  asm volatile("red.release.gpu.global.add.f32 [%0], %1;" :: "l"(sums), "f"(0.5f * i) : "memory");
  asm volatile("atom.global.inc.u32 %0, [%1], 40;" : "=r"(old[i]) : "l"(cells + 2) : "memory");
  unsigned ignored;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;" : "=r"(ignored) : "l"(cells + 3), "r"(1) : "memory");
  unsigned long long before;
  asm volatile("atom.global.exch.b64 %0, [%1], %2;" : "=l"(before) : "l"(wide + i), "l"(before = 5 + i) : "memory");
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;" : "=l"(before) : "l"(wide + i), "l"(5ull + i), "l"(9ull) : "memory");
  if (before != 5 + i) wide[i] = 0;
}
extern "C" void ptx_atomics(unsigned* cells, int* signed_cells, float* sums, unsigned long long* wide, unsigned* old) {
  atomic_kernel<<<1, 128>>>(cells, signed_cells, sums, wide, old);
}

__global__ void vector_atomic_kernel(float* four, float* two, unsigned* halves, unsigned word) {
  float x = threadIdx.x;
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" :: "l"(four), "f"(x), "f"(1.0f), "f"(-x), "f"(2.0f) : "memory");
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" :: "l"(two), "f"(x), "f"(3.0f) : "memory");
  asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" :: "l"(halves), "r"(word) : "memory");
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(halves + 1), "r"(0x3c004000) : "memory");
}
extern "C" void ptx_vector_atomics(float* four, float* two, unsigned* halves) {
  vector_atomic_kernel<<<1, 32>>>(four, two, halves, 0x3f804000);
}

__global__ void order_kernel(const unsigned* x, unsigned* out) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  unsigned a, b, c;
  asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(a) : "l"(x + threadIdx.x), "l"(policy));
  asm volatile("prefetch.global.L2 [%0];" :: "l"(x));
  asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(out + threadIdx.x), "r"(a) : "memory");
  asm volatile("fence.acq_rel.gpu; membar.cta;" ::: "memory");
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(b) : "l"(out + threadIdx.x) : "memory");
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(c) : "l"(out + threadIdx.x) : "memory");
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(out + threadIdx.x), "r"(a + b + c) : "memory");
}
extern "C" void ptx_ordered_accesses(const unsigned* x, unsigned* out) { order_kernel<<<1, 64>>>(x, out); }
