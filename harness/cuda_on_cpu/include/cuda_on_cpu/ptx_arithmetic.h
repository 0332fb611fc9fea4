// Arithmetic, logic and comparisons of inline PTX.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cuda_on_cpu/bfloat16.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/ptx_registers.h"

namespace cuda_on_cpu::ptx {

enum class Round { nearest, zero, down, up, away };

template <class T>
constexpr bool is_pair = std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat162>;
template <class T>
constexpr bool is_small = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// .ftz: subnormal floats become 0.
template <bool ftz, class T>
inline T flush(T x) {
  if constexpr (ftz && std::is_same_v<T, float>) return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
  return x;
}

template <bool sat, bool relu, class T>
inline T limit(T x) {
  if constexpr (is_pair<T>) return {limit<sat, relu>(x.x), limit<sat, relu>(x.y)};
  else if constexpr (is_small<T>) {
    if constexpr (sat) return T::from_float(__saturatef(x.to_float()));
    if constexpr (relu) return x.to_float() <= 0 ? T::from_float(0.0f) : x;
    return x;
  } else {
    if constexpr (sat) return x > 0 ? std::min(x, T(1)) : T(0);
    return x;
  }
}

#define CUDA_ON_CPU_DIRECTED(R, NEAREST, NAME, ...)                                              \
  (R == Round::nearest ? NEAREST                                                                 \
   : R == Round::zero  ? NAME##_rz(__VA_ARGS__)                                                  \
   : R == Round::down  ? NAME##_rd(__VA_ARGS__)                                                  \
                       : NAME##_ru(__VA_ARGS__))
#define CUDA_ON_CPU_BINARY(NAME, SIGN, SMALL)                                                    \
  template <class T, Round R, bool ftz, bool sat, bool relu>                                     \
  inline T NAME(T a, T b) {                                                                      \
    a = flush<ftz>(a), b = flush<ftz>(b);                                                        \
    T value;                                                                                     \
    if constexpr (is_pair<T>) value = SMALL##2(a, b);                                            \
    else if constexpr (is_small<T>) value = SMALL(a, b);                                         \
    else if constexpr (std::is_same_v<T, float>) value = CUDA_ON_CPU_DIRECTED(R, a SIGN b, __f##NAME, a, b); \
    else value = CUDA_ON_CPU_DIRECTED(R, a SIGN b, __d##NAME, a, b);                             \
    return limit<sat, relu>(flush<ftz>(value));                                                  \
  }
CUDA_ON_CPU_BINARY(add, +, __hadd)
CUDA_ON_CPU_BINARY(sub, -, __hsub)
CUDA_ON_CPU_BINARY(mul, *, __hmul)
CUDA_ON_CPU_BINARY(div, /, __hdiv)
#undef CUDA_ON_CPU_BINARY

template <class T, Round R, bool ftz, bool sat, bool relu>
inline T fma(T a, T b, T c) {
  a = flush<ftz>(a), b = flush<ftz>(b), c = flush<ftz>(c);
  T value;
  if constexpr (is_pair<T>) value = __hfma2(a, b, c);
  else if constexpr (is_small<T>) value = __hfma(a, b, c);
  else if constexpr (std::is_same_v<T, float>) value = CUDA_ON_CPU_DIRECTED(R, std::fma(a, b, c), __fmaf, a, b, c);
  else value = CUDA_ON_CPU_DIRECTED(R, std::fma(a, b, c), __fma, a, b, c);
  return limit<sat, relu>(flush<ftz>(value));
}

template <class T, Round R, bool ftz>
inline T rcp(T x) {
  x = flush<ftz>(x);
  if constexpr (std::is_same_v<T, float>) return flush<ftz>(CUDA_ON_CPU_DIRECTED(R, 1 / x, __frcp, x));
  else return CUDA_ON_CPU_DIRECTED(R, 1 / x, __drcp, x);
}
template <class T, Round R, bool ftz>
inline T sqrt(T x) {
  x = flush<ftz>(x);
  if constexpr (std::is_same_v<T, float>) return flush<ftz>(CUDA_ON_CPU_DIRECTED(R, std::sqrt(x), __fsqrt, x));
  else return CUDA_ON_CPU_DIRECTED(R, std::sqrt(x), __dsqrt, x);
}
#undef CUDA_ON_CPU_DIRECTED

// Functions that the hardware approximates, rounded to nearest here.
#define CUDA_ON_CPU_FUNCTION(NAME, EXPRESSION)                                                   \
  template <class T, Round, bool ftz>                                                            \
  inline T NAME(T value) {                                                                       \
    if constexpr (is_pair<T>) return {NAME<decltype(value.x), Round::nearest, ftz>(value.x),     \
                                      NAME<decltype(value.y), Round::nearest, ftz>(value.y)};    \
    else if constexpr (is_small<T>) {                                                            \
      const double x = value.to_float();                                                         \
      return T::from_double(EXPRESSION);                                                         \
    } else {                                                                                     \
      const double x = flush<ftz>(value);                                                        \
      return flush<ftz>(static_cast<T>(EXPRESSION));                                             \
    }                                                                                            \
  }
CUDA_ON_CPU_FUNCTION(rsqrt, 1 / std::sqrt(x))
CUDA_ON_CPU_FUNCTION(sin, std::sin(x))
CUDA_ON_CPU_FUNCTION(cos, std::cos(x))
CUDA_ON_CPU_FUNCTION(lg2, std::log2(x))
CUDA_ON_CPU_FUNCTION(ex2, std::exp2(x))
CUDA_ON_CPU_FUNCTION(tanh, std::tanh(x))
#undef CUDA_ON_CPU_FUNCTION

// -0 is less than +0. A NaN loses, or with `nan` wins.
#define CUDA_ON_CPU_EXTREME(NAME, SIGN, ZERO)                                                    \
  template <class T, bool nan = false, bool ftz = false>                                         \
  inline T NAME(T a, T b) {                                                                      \
    if constexpr (is_integer<T>) return b SIGN a ? b : a;                                        \
    else if constexpr (is_pair<T>) return {NAME<decltype(a.x), nan>(a.x, b.x), NAME<decltype(a.x), nan>(a.y, b.y)}; \
    else if constexpr (is_small<T>) return T::from_float(NAME<float, nan>(a.to_float(), b.to_float())); \
    else {                                                                                       \
      a = flush<ftz>(a), b = flush<ftz>(b);                                                      \
      if (a != a || b != b) return (nan || (a != a && b != b)) ? std::numeric_limits<T>::quiet_NaN() : a != a ? b : a; \
      if (a == b) return ZERO ? b : a;                                                           \
      return b SIGN a ? b : a;                                                                   \
    }                                                                                            \
  }
CUDA_ON_CPU_EXTREME(min, <, std::signbit(b))
CUDA_ON_CPU_EXTREME(max, >, std::signbit(a))
#undef CUDA_ON_CPU_EXTREME

template <class T, bool ftz>
inline T abs(T x) {
  if constexpr (is_pair<T>) return __habs2(x);
  else if constexpr (is_small<T>) return __habs(x);
  else if constexpr (is_integer<T>) return static_cast<T>(x < 0 ? 0 - static_cast<BitsOf<T>>(x) : x);
  else return std::fabs(flush<ftz>(x));
}
template <class T, bool ftz>
inline T neg(T x) {
  if constexpr (is_pair<T>) return __hneg2(x);
  else if constexpr (is_small<T>) return __hneg(x);
  else if constexpr (is_integer<T>) return static_cast<T>(0 - static_cast<BitsOf<T>>(x));
  else return -flush<ftz>(x);
}

// Integers wrap around.
template <class T>
constexpr auto wide(T x) { return static_cast<std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>(x); }
template <class T>
inline T multiply_low(T a, T b) { return static_cast<T>(wide(a) * wide(b)); }
template <class T>
inline T multiply_high(T a, T b) { return static_cast<T>(wide(a) * wide(b) >> (8 * sizeof(T))); }
template <class Wide, class T>
inline Wide multiply_wide(T a, T b) { return static_cast<Wide>(a) * static_cast<Wide>(b); }
template <bool saturates, class T>
inline T fit(__int128 x) {
  using limits = std::numeric_limits<T>;
  return static_cast<T>(saturates ? std::clamp<__int128>(x, limits::min(), limits::max()) : x);
}
template <bool saturates = false, class T>
inline T add_integers(T a, T b) { return fit<saturates, T>(static_cast<__int128>(a) + b); }
template <bool saturates = false, class T>
inline T sub_integers(T a, T b) { return fit<saturates, T>(static_cast<__int128>(a) - b); }
// As the hardware divides by 0, where CUDA promises nothing.
template <class T>
inline T div_integers(T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(static_cast<__int128>(a) / b); }
template <class T>
inline T rem_integers(T a, T b) { return b == 0 ? a : static_cast<T>(static_cast<__int128>(a) % b); }

template <class T>
inline T shl(T x, std::uint32_t by) { return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(x << by); }
template <class T>
inline T shr(T x, std::uint32_t by) {
  return static_cast<T>(by >= 8 * sizeof(T) ? (x < T(0) ? -1 : 0) : x >> by);
}
template <bool left, bool wraps>
inline std::uint32_t funnel_shift(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
  by = wraps ? by & 31 : std::min(by, 32u);
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(left ? both >> (32 - by) : both >> by);
}
inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row)
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}
template <class T>
inline T bfe(T x, std::uint32_t position, std::uint32_t length) {
  constexpr unsigned bits = 8 * sizeof(T);
  position &= 0xff, length &= 0xff;
  const bool fill = std::is_signed_v<T> && length && (x >> std::min(position + length - 1, bits - 1) & 1);
  BitsOf<T> result = 0;
  for (unsigned i = 0; i < bits; ++i) {
    const bool bit = i < length && position + i < bits ? x >> (position + i) & 1 : fill;
    result |= static_cast<BitsOf<T>>(bit) << i;
  }
  return static_cast<T>(result);
}
template <class T>
inline T bfi(T field, T word, std::uint32_t position, std::uint32_t length) {
  position &= 0xff, length &= 0xff;
  for (unsigned i = 0; i < length && position + i < 8 * sizeof(T); ++i) {
    const T bit = T(1) << (position + i);
    word = field >> i & 1 ? word | bit : word & ~bit;
  }
  return word;
}
template <bool a_signed, bool b_signed>
inline std::uint32_t dp4a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (int shift = 0; shift < 32; shift += 8) {
    const auto x = static_cast<std::uint8_t>(a >> shift), y = static_cast<std::uint8_t>(b >> shift);
    c += static_cast<std::uint32_t>((a_signed ? int(static_cast<std::int8_t>(x)) : int(x)) *
                                    (b_signed ? int(static_cast<std::int8_t>(y)) : int(y)));
  }
  return c;
}

// Comparisons. Those named with "u" hold where an operand is NaN, the others do not.
template <class T>
inline auto number(T x) {
  if constexpr (is_small<T>) return x.to_float();
  else return x;
}
#define CUDA_ON_CPU_COMPARE(NAME, SIGN)                                                          \
  template <class T, bool ftz>                                                                   \
  inline bool compare_##NAME(T p, T q) {                                                         \
    const auto a = flush<ftz>(number(p)), b = flush<ftz>(number(q));                             \
    return a == a && b == b && a SIGN b;                                                         \
  }                                                                                              \
  template <class T, bool ftz>                                                                   \
  inline bool compare_##NAME##u(T p, T q) {                                                      \
    const auto a = flush<ftz>(number(p)), b = flush<ftz>(number(q));                             \
    return a != a || b != b || a SIGN b;                                                         \
  }
CUDA_ON_CPU_COMPARE(eq, ==)
CUDA_ON_CPU_COMPARE(ne, !=)
CUDA_ON_CPU_COMPARE(lt, <)
CUDA_ON_CPU_COMPARE(le, <=)
CUDA_ON_CPU_COMPARE(gt, >)
CUDA_ON_CPU_COMPARE(ge, >=)
#undef CUDA_ON_CPU_COMPARE
template <class T, bool ftz>
inline bool compare_nan(T p, T q) { return number(p) != number(p) || number(q) != number(q); }
template <class T, bool ftz>
inline bool compare_num(T p, T q) { return !compare_nan<T, ftz>(p, q); }

}  // namespace cuda_on_cpu::ptx
