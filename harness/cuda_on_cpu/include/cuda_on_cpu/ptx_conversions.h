// cvt: conversions between the types of inline PTX.
#pragma once

#include "cuda_on_cpu/ptx_arithmetic.h"

namespace cuda_on_cpu::ptx {

template <Round R>
inline double to_whole(double x) {
  if constexpr (R == Round::zero) return std::trunc(x);
  else if constexpr (R == Round::down) return std::floor(x);
  else if constexpr (R == Round::up) return std::ceil(x);
  else return std::nearbyint(x);
}

template <class T>
constexpr std::uint16_t largest_bits = std::is_same_v<T, __half> ? 0x7bff : 0x7f7f;

// A double in the nearest T, or in the one next to it on the side that R asks for.
template <class T, Round R>
inline T round_to(double x) {
  if constexpr (std::is_same_v<T, double>) return x;
  else if constexpr (std::is_same_v<T, float>) {
    const auto nearest = static_cast<float>(x);
    if constexpr (R == Round::zero) return cuda_on_cpu::to_zero(nearest, x);
    else if constexpr (R == Round::down) return cuda_on_cpu::downward(nearest, x);
    else if constexpr (R == Round::up) return cuda_on_cpu::upward(nearest, x);
    else return nearest;
  } else {
    T value = T::from_double(x);
    if (R == Round::zero && std::fabs(value.to_float()) > std::fabs(x)) --value.bits;
    return value;
  }
}

template <class To, class From, Round R, bool whole, bool ftz, bool sat, bool relu, bool finite>
inline To convert(From from) {
  if constexpr (is_integer<To> && is_integer<From>) {
    if constexpr (!sat) return static_cast<To>(from);
    using limits = std::numeric_limits<To>;
    return static_cast<To>(std::clamp<__int128>(from, limits::min(), limits::max()));
  } else if constexpr (is_integer<From>) {
    if constexpr (std::is_same_v<To, float> && R == Round::nearest) return limit<sat, false>(static_cast<float>(from));
    else return limit<sat, relu>(round_to<To, R>(static_cast<double>(from)));
  } else {
    double value = static_cast<double>(flush<ftz>(number(from)));
    if constexpr (whole) value = to_whole<R>(value);
    if constexpr (is_integer<To>) return cuda_on_cpu::saturate<To>(value);
    else {
      To to = round_to<To, whole ? Round::nearest : R>(value);
      if constexpr (finite && is_small<To>)
        if (!(std::fabs(to.to_float()) <= To::from_bits(largest_bits<To>).to_float()) && value == value)
          to.bits = static_cast<std::uint16_t>((to.bits & 0x8000) | largest_bits<To>);
      return limit<sat, relu>(flush<ftz>(to));
    }
  }
}

// The second operand goes into the lower half.
template <class Pair, Round R, bool relu, bool finite>
inline Pair convert_pair(float high, float low) {
  using Scalar = decltype(Pair::x);
  return {convert<Scalar, float, R, false, false, false, relu, finite>(low),
          convert<Scalar, float, R, false, false, false, relu, finite>(high)};
}

// The upper 19 bits of a float.
template <Round R, bool relu>
inline float convert_to_tf32(float x) {
  if (x != x) return bits_as<float>(0x7fffffffu);
  auto bits = bits_as<std::uint32_t>(x);
  if (R == Round::away) bits += 0x1000;
  if (R == Round::nearest) bits += 0xfff + (bits >> 13 & 1);
  const auto value = bits_as<float>(bits & ~0x1fffu);
  return relu && value < 0 ? 0.0f : value;
}

}  // namespace cuda_on_cpu::ptx
