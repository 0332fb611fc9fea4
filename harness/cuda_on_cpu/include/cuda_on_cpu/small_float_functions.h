// The functions that cuda_fp16.h and cuda_bf16.h declare under the same names. Included twice, by half.h and
// bfloat16.h, with SCALAR and PAIR standing for __half and __half2, or __nv_bfloat16 and __nv_bfloat162. OPERATORS and
// PAIR_OPERATORS are 1 if the types have operators.

// Arithmetic. The _rn versions promise not to be fused, which nothing is here.
#define BINARY(NAME, EXPRESSION)                                                                                \
  inline SCALAR NAME(SCALAR p, SCALAR q) {                                                                      \
    float a = p.to_float(), b = q.to_float();                                                                   \
    return SCALAR::from_float(EXPRESSION);                                                                      \
  }                                                                                                             \
  inline PAIR NAME##2(PAIR p, PAIR q) { return {NAME(p.x, q.x), NAME(p.y, q.y)}; }
BINARY(__hadd, a + b)
BINARY(__hsub, a - b)
BINARY(__hmul, a * b)
BINARY(__hdiv, a / b)
BINARY(__hadd_sat, __saturatef(a + b))
BINARY(__hsub_sat, __saturatef(a - b))
BINARY(__hmul_sat, __saturatef(a * b))
BINARY(__hmax, fmaxf(a, b))
BINARY(__hmin, fminf(a, b))
BINARY(__hmax_nan, a != a || b != b ? NAN : fmaxf(a, b))
BINARY(__hmin_nan, a != a || b != b ? NAN : fminf(a, b))
#undef BINARY
inline SCALAR __hadd_rn(SCALAR a, SCALAR b) { return __hadd(a, b); }
inline SCALAR __hsub_rn(SCALAR a, SCALAR b) { return __hsub(a, b); }
inline SCALAR __hmul_rn(SCALAR a, SCALAR b) { return __hmul(a, b); }
inline PAIR __hadd2_rn(PAIR a, PAIR b) { return __hadd2(a, b); }
inline PAIR __hsub2_rn(PAIR a, PAIR b) { return __hsub2(a, b); }
inline PAIR __hmul2_rn(PAIR a, PAIR b) { return __hmul2(a, b); }
inline PAIR __h2div(PAIR a, PAIR b) { return __hdiv2(a, b); }

inline SCALAR __hfma(SCALAR a, SCALAR b, SCALAR c) {
  return SCALAR::from_double(static_cast<double>(a.to_float()) * b.to_float() + c.to_float());
}
inline SCALAR __hfma_sat(SCALAR a, SCALAR b, SCALAR c) {
  return SCALAR::from_float(__saturatef(__hfma(a, b, c).to_float()));
}
inline SCALAR __hfma_relu(SCALAR a, SCALAR b, SCALAR c) {
  return SCALAR::from_float(fmaxf(__hfma(a, b, c).to_float(), 0.0f));
}
inline PAIR __hfma2(PAIR a, PAIR b, PAIR c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline PAIR __hfma2_sat(PAIR a, PAIR b, PAIR c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; }
inline PAIR __hfma2_relu(PAIR a, PAIR b, PAIR c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; }

inline SCALAR __hneg(SCALAR a) { return SCALAR::from_bits(a.bits ^ 0x8000); }
inline SCALAR __habs(SCALAR a) { return SCALAR::from_bits(a.bits & 0x7fff); }
inline PAIR __hneg2(PAIR a) { return {__hneg(a.x), __hneg(a.y)}; }
inline PAIR __habs2(PAIR a) { return {__habs(a.x), __habs(a.y)}; }

// Comparisons. The "u" ones are true where an operand is NaN.
#define COMPARE(NAME, OPERATOR)                                                                                 \
  inline bool __h##NAME(SCALAR a, SCALAR b) { return a.to_float() OPERATOR b.to_float(); }                      \
  inline bool __h##NAME##u(SCALAR a, SCALAR b) { return __hisnan(a) || __hisnan(b) || __h##NAME(a, b); }        \
  inline PAIR __h##NAME##2(PAIR a, PAIR b) { return PAIR::from_floats(__h##NAME(a.x, b.x), __h##NAME(a.y, b.y)); } \
  inline bool __hb##NAME##2(PAIR a, PAIR b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }              \
  inline unsigned __h##NAME##2_mask(PAIR a, PAIR b) {                                                           \
    return (__h##NAME(a.x, b.x) ? 0xffffu : 0u) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0u);                     \
  }
inline bool __hisnan(SCALAR a) { return a.to_float() != a.to_float(); }
inline int __hisinf(SCALAR a) { return std::isinf(a.to_float()) ? (a.to_float() > 0 ? 1 : -1) : 0; }
inline PAIR __hisnan2(PAIR a) { return PAIR::from_floats(__hisnan(a.x), __hisnan(a.y)); }
COMPARE(eq, ==)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
#undef COMPARE
inline bool __hne(SCALAR a, SCALAR b) { return a.to_float() != b.to_float() && !__hisnan(a) && !__hisnan(b); }
inline bool __hneu(SCALAR a, SCALAR b) { return a.to_float() != b.to_float(); }
inline PAIR __hne2(PAIR a, PAIR b) { return PAIR::from_floats(__hne(a.x, b.x), __hne(a.y, b.y)); }
inline bool __hbne2(PAIR a, PAIR b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
inline bool __hbneu2(PAIR a, PAIR b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }

// Mathematics.
#define UNARY(NAME, FUNCTION)                                                                                   \
  inline SCALAR h##NAME(SCALAR a) { return SCALAR::from_float(FUNCTION(a.to_float())); }                        \
  inline PAIR h2##NAME(PAIR a) { return {h##NAME(a.x), h##NAME(a.y)}; }
UNARY(exp, expf)
UNARY(exp2, exp2f)
UNARY(exp10, __exp10f)
UNARY(log, logf)
UNARY(log2, log2f)
UNARY(log10, log10f)
UNARY(sqrt, sqrtf)
UNARY(rsqrt, rsqrtf)
UNARY(rcp, 1.0f /)
UNARY(sin, sinf)
UNARY(cos, cosf)
UNARY(tanh, tanhf)
UNARY(ceil, ceilf)
UNARY(floor, floorf)
UNARY(rint, nearbyintf)
UNARY(trunc, truncf)
#undef UNARY
inline SCALAR htanh_approx(SCALAR a) { return htanh(a); }
inline PAIR h2tanh_approx(PAIR a) { return h2tanh(a); }

// Halves of a pair.
inline float __low2float(PAIR v) { return v.x.to_float(); }
inline float __high2float(PAIR v) { return v.y.to_float(); }

// Operators.
#if OPERATORS
inline SCALAR operator+(const SCALAR& a, const SCALAR& b) { return __hadd(a, b); }
inline SCALAR operator-(const SCALAR& a, const SCALAR& b) { return __hsub(a, b); }
inline SCALAR operator*(const SCALAR& a, const SCALAR& b) { return __hmul(a, b); }
inline SCALAR operator/(const SCALAR& a, const SCALAR& b) { return __hdiv(a, b); }
inline SCALAR operator+(const SCALAR& a) { return a; }
inline SCALAR operator-(const SCALAR& a) { return __hneg(a); }
inline SCALAR& operator+=(SCALAR& a, const SCALAR& b) { return a = a + b; }
inline SCALAR& operator-=(SCALAR& a, const SCALAR& b) { return a = a - b; }
inline SCALAR& operator*=(SCALAR& a, const SCALAR& b) { return a = a * b; }
inline SCALAR& operator/=(SCALAR& a, const SCALAR& b) { return a = a / b; }
inline SCALAR& operator++(SCALAR& a) { return a += SCALAR::from_float(1.0f); }
inline SCALAR& operator--(SCALAR& a) { return a -= SCALAR::from_float(1.0f); }
inline SCALAR operator++(SCALAR& a, int) { return std::exchange(a, a + SCALAR::from_float(1.0f)); }
inline SCALAR operator--(SCALAR& a, int) { return std::exchange(a, a - SCALAR::from_float(1.0f)); }
inline bool operator==(const SCALAR& a, const SCALAR& b) { return __heq(a, b); }
inline bool operator!=(const SCALAR& a, const SCALAR& b) { return __hneu(a, b); }
inline bool operator<(const SCALAR& a, const SCALAR& b) { return __hlt(a, b); }
inline bool operator<=(const SCALAR& a, const SCALAR& b) { return __hle(a, b); }
inline bool operator>(const SCALAR& a, const SCALAR& b) { return __hgt(a, b); }
inline bool operator>=(const SCALAR& a, const SCALAR& b) { return __hge(a, b); }
#endif
#if PAIR_OPERATORS
inline PAIR operator+(const PAIR& a, const PAIR& b) { return __hadd2(a, b); }
inline PAIR operator-(const PAIR& a, const PAIR& b) { return __hsub2(a, b); }
inline PAIR operator*(const PAIR& a, const PAIR& b) { return __hmul2(a, b); }
inline PAIR operator/(const PAIR& a, const PAIR& b) { return __hdiv2(a, b); }
inline PAIR operator+(const PAIR& a) { return a; }
inline PAIR operator-(const PAIR& a) { return __hneg2(a); }
inline PAIR& operator+=(PAIR& a, const PAIR& b) { return a = a + b; }
inline PAIR& operator-=(PAIR& a, const PAIR& b) { return a = a - b; }
inline PAIR& operator*=(PAIR& a, const PAIR& b) { return a = a * b; }
inline PAIR& operator/=(PAIR& a, const PAIR& b) { return a = a / b; }
inline PAIR& operator++(PAIR& a) { return a += PAIR(SCALAR::from_float(1.0f), SCALAR::from_float(1.0f)); }
inline PAIR& operator--(PAIR& a) { return a -= PAIR(SCALAR::from_float(1.0f), SCALAR::from_float(1.0f)); }
inline PAIR operator++(PAIR& a, int) { PAIR old = a; return ++a, old; }
inline PAIR operator--(PAIR& a, int) { PAIR old = a; return --a, old; }
inline bool operator==(const PAIR& a, const PAIR& b) { return __hbeq2(a, b); }
inline bool operator!=(const PAIR& a, const PAIR& b) { return __hbneu2(a, b); }  // both differ, as in CUDA
inline bool operator<(const PAIR& a, const PAIR& b) { return __hblt2(a, b); }
inline bool operator<=(const PAIR& a, const PAIR& b) { return __hble2(a, b); }
inline bool operator>(const PAIR& a, const PAIR& b) { return __hbgt2(a, b); }
inline bool operator>=(const PAIR& a, const PAIR& b) { return __hbge2(a, b); }
#endif
