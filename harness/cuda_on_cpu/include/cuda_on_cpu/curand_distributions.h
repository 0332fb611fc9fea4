// cuRAND's distributions for XORWOW and Philox: which words become which number, and in which order.
//
// nvcc fuses a product and a sum into one operation, so where that changes a result it is written as fma. The sine and
// cosine of a normal float are those of __sincosf, whose error is larger on a GPU.
#pragma once

#include "cuda_on_cpu/curand_generators.h"
#include "cuda_on_cpu/math.h"

namespace cuda_on_cpu {

constexpr float two_to_minus_32 = 1.0f / 4294967296.0f;
constexpr double two_to_minus_53 = 1.0 / 9007199254740992.0;

// Both ends of a word's interval are avoided by half a step. The largest words are rounded to 1.
inline float uniform(unsigned word) { return static_cast<float>(word) * two_to_minus_32 + two_to_minus_32 / 2; }

// 53 bits of two words: the upper one is moved by 21 bits, and covers the upper bits of the lower one.
inline double bits_of_two(unsigned low, unsigned high) {
  return static_cast<double>(static_cast<std::uint64_t>(high) << 21 ^ low);
}
inline double uniform(unsigned low, unsigned high) {
  return bits_of_two(low, high) * two_to_minus_53 + two_to_minus_53 / 2;
}

// The method of Box and Muller: a radius and an angle become two independent normal numbers.
inline float2 normals(unsigned radius_word, unsigned angle_word) {
  constexpr float step = two_to_minus_32 * 6.2831855f;
  float radius = sqrtf(-2.0f * logf(uniform(radius_word))), sine, cosine;
  __sincosf(fmaf(static_cast<float>(angle_word), step, step / 2), &sine, &cosine);
  return {sine * radius, cosine * radius};
}
inline double2 normals(uint4 words) {
  double radius = ::sqrt(-2.0 * ::log(uniform(words.x, words.y))), sine, cosine;
  sincospi(bits_of_two(words.z, words.w) * (2 * two_to_minus_53) + two_to_minus_53, &sine, &cosine);
  return {sine * radius, cosine * radius};
}

// Which distribution's second number a state keeps for the next call.
enum { kept_normal = 1, kept_log_normal = 2 };

template <class State>
CUDA_ON_CPU_INLINE float keep_second(State* state, float2 pair, int kept) {
  state->boxmuller_extra = pair.y, state->boxmuller_flag = kept;
  return pair.x;
}
template <class State>
CUDA_ON_CPU_INLINE double keep_second(State* state, double2 pair, int kept) {
  state->boxmuller_extra_double = pair.y, state->boxmuller_flag_double = kept;
  return pair.x;
}
template <class State>
CUDA_ON_CPU_INLINE float take_second(State* state) {
  state->boxmuller_flag = 0;
  return state->boxmuller_extra;
}
template <class State>
CUDA_ON_CPU_INLINE double take_second_double(State* state) {
  state->boxmuller_flag_double = 0;
  return state->boxmuller_extra_double;
}

// The next four words of any generator.
template <class State>
CUDA_ON_CPU_INLINE uint4 four_words(State* state) {
  return {curand(state), curand(state), curand(state), curand(state)};
}

}  // namespace cuda_on_cpu

template <class State>
CUDA_ON_CPU_INLINE float curand_uniform(State* state) {
  return cuda_on_cpu::uniform(curand(state));
}
CUDA_ON_CPU_INLINE float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
  return {curand_uniform(state), curand_uniform(state), curand_uniform(state), curand_uniform(state)};
}
CUDA_ON_CPU_INLINE double curand_uniform_double(curandStateXORWOW_t* state) {
  unsigned low = curand(state), high = curand(state);
  return cuda_on_cpu::uniform(low, high);
}
// A double of 32 bits: cuRAND draws one word here.
CUDA_ON_CPU_INLINE double curand_uniform_double(curandStatePhilox4_32_10_t* state) {
  constexpr double step = cuda_on_cpu::two_to_minus_32;
  return curand(state) * step + step;
}
CUDA_ON_CPU_INLINE double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
  uint4 words = curand4(state);
  return {cuda_on_cpu::uniform(words.x, words.y), cuda_on_cpu::uniform(words.z, words.w)};
}
CUDA_ON_CPU_INLINE double4 curand_uniform4_double(curandStatePhilox4_32_10_t* state) {
  double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);
  return {first.x, first.y, second.x, second.y};
}

template <class State>
CUDA_ON_CPU_INLINE float2 curand_normal2(State* state) {
  unsigned radius = curand(state), angle = curand(state);
  return cuda_on_cpu::normals(radius, angle);
}
template <class State>
CUDA_ON_CPU_INLINE double2 curand_normal2_double(State* state) {
  return cuda_on_cpu::normals(cuda_on_cpu::four_words(state));
}
template <class State>
CUDA_ON_CPU_INLINE float2 curand_log_normal2(State* state, float mean, float stddev) {
  float2 pair = curand_normal2(state);
  return {expf(fmaf(stddev, pair.x, mean)), expf(fmaf(stddev, pair.y, mean))};
}
template <class State>
CUDA_ON_CPU_INLINE double2 curand_log_normal2_double(State* state, double mean, double stddev) {
  double2 pair = curand_normal2_double(state);
  return {::exp(fma(stddev, pair.x, mean)), ::exp(fma(stddev, pair.y, mean))};
}

template <class State>
CUDA_ON_CPU_INLINE float curand_normal(State* state) {
  if (state->boxmuller_flag == cuda_on_cpu::kept_normal) return cuda_on_cpu::take_second(state);
  return cuda_on_cpu::keep_second(state, curand_normal2(state), cuda_on_cpu::kept_normal);
}
template <class State>
CUDA_ON_CPU_INLINE double curand_normal_double(State* state) {
  if (state->boxmuller_flag_double == cuda_on_cpu::kept_normal) return cuda_on_cpu::take_second_double(state);
  return cuda_on_cpu::keep_second(state, curand_normal2_double(state), cuda_on_cpu::kept_normal);
}
// The second number is kept with the mean and deviation of the call that made it.
template <class State>
CUDA_ON_CPU_INLINE float curand_log_normal(State* state, float mean, float stddev) {
  if (state->boxmuller_flag == cuda_on_cpu::kept_log_normal) return cuda_on_cpu::take_second(state);
  return cuda_on_cpu::keep_second(state, curand_log_normal2(state, mean, stddev), cuda_on_cpu::kept_log_normal);
}
template <class State>
CUDA_ON_CPU_INLINE double curand_log_normal_double(State* state, double mean, double stddev) {
  if (state->boxmuller_flag_double == cuda_on_cpu::kept_log_normal) return cuda_on_cpu::take_second_double(state);
  return cuda_on_cpu::keep_second(state, curand_log_normal2_double(state, mean, stddev), cuda_on_cpu::kept_log_normal);
}

CUDA_ON_CPU_INLINE float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
  float2 first = curand_normal2(state), second = curand_normal2(state);
  return {first.x, first.y, second.x, second.y};
}
CUDA_ON_CPU_INLINE double4 curand_normal4_double(curandStatePhilox4_32_10_t* state) {
  double2 first = curand_normal2_double(state), second = curand_normal2_double(state);
  return {first.x, first.y, second.x, second.y};
}
CUDA_ON_CPU_INLINE float4 curand_log_normal4(curandStatePhilox4_32_10_t* state, float mean, float stddev) {
  float2 first = curand_log_normal2(state, mean, stddev), second = curand_log_normal2(state, mean, stddev);
  return {first.x, first.y, second.x, second.y};
}
CUDA_ON_CPU_INLINE double4 curand_log_normal4_double(curandStatePhilox4_32_10_t* state, double mean, double stddev) {
  double2 first = curand_log_normal2_double(state, mean, stddev);
  double2 second = curand_log_normal2_double(state, mean, stddev);
  return {first.x, first.y, second.x, second.y};
}
