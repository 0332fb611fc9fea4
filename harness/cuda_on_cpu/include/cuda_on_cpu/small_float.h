// The arithmetic that __half and __nv_bfloat16 share: every operation in float, then one rounding to nearest even.
//
// For + - * / that is exactly the hardware's result (float has more than twice the digits); a fused multiply-add goes
// through double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_on_cpu/integers.h"

namespace cuda_on_cpu {

inline std::uint16_t half_bits(float value) {
  auto bits = bits_as<std::uint32_t>(value);
  auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;                                    // NaN, as CUDA has it
  if (magnitude >= 0x477ff000) return sign | 0x7c00;                            // rounds to infinity
  if (magnitude < 0x38800000) {                                                 // subnormal: units of 2^-24
    float scaled = bits_as<float>(magnitude) * 16777216.0f;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>((magnitude - 0x38000000) >> 13));
}

inline float half_value(std::uint16_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return bits_as<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) {
    float value = static_cast<float>(magnitude) * (1.0f / 16777216.0f);
    return sign ? -value : value;
  }
  return bits_as<float>(sign | ((magnitude << 13) + 0x38000000));
}

inline std::uint16_t bfloat16_bits(float value) {
  auto bits = bits_as<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float bfloat16_value(std::uint16_t bits) { return bits_as<float>(static_cast<std::uint32_t>(bits) << 16); }

// From double in one rounding: the float in between is made odd where it is inexact, so that it never looks like a tie.
inline float round_to_odd(double value) {
  auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || nearest != nearest || std::isinf(nearest)) return nearest;
  auto bits = bits_as<std::uint32_t>(nearest);
  if (bits & 1) return nearest;
  bool away = std::fabs(static_cast<double>(nearest)) < std::fabs(value);
  return bits_as<float>(away ? bits + 1 : bits - 1);
}

}  // namespace cuda_on_cpu
