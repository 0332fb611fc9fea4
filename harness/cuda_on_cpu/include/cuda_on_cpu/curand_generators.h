// cuRAND's generators XORWOW and Philox 4x32-10, which give the same words as its own.
//
// XORWOW is Marsaglia's ("Xorshift RNGs", 2003): a shift register v and a counter d. Philox is that of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (2011): it enciphers a counter. States have the sizes and members of
// cuRAND's, because solutions allocate them by their size.
//
// What touches a state is inlined, so that a race on a state has the line of the kernel.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/vector_types.h"

struct curandStateXORWOW {
  unsigned int d, v[5];
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  unsigned int padding;  // curand_init writes it as well: a copy of the state reads it
  double boxmuller_extra_double;
};
using curandStateXORWOW_t = curandStateXORWOW;
using curandState_t = curandStateXORWOW;
using curandState = curandStateXORWOW;

// `output` is the enciphered counter, and STATE the number of its words that were drawn.
struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned int STATE;
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;

static_assert(sizeof(curandState) == 48 && sizeof(curandStatePhilox4_32_10_t) == 64, "the sizes of cuRAND's states");

namespace cuda_on_cpu {

constexpr unsigned xorwow_increment = 362437;  // of the counter

// Moves the register by 2^67 * `sequences` + `draws` draws (runtime/xorwow.cpp).
void advance_xorwow(unsigned (&v)[5], unsigned long long sequences, unsigned long long draws);

CUDA_ON_CPU_INLINE unsigned step_xorwow(unsigned (&v)[5]) {
  unsigned oldest = v[0] ^ v[0] >> 2, newest = v[4];
  v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = newest;
  return v[4] = newest ^ newest << 4 ^ oldest ^ oldest << 1;
}

// The register in the kernel's memory is read and written once, with the line of the kernel.
CUDA_ON_CPU_INLINE void advance(curandStateXORWOW* state, unsigned long long sequences, unsigned long long draws) {
  unsigned v[5] = {state->v[0], state->v[1], state->v[2], state->v[3], state->v[4]};
  advance_xorwow(v, sequences, draws);
  for (int i = 0; i < 5; ++i) state->v[i] = v[i];
  // 2^67 draws add a multiple of 2^32 to the counter.
  state->d += xorwow_increment * static_cast<unsigned>(draws);
}

template <class State>
CUDA_ON_CPU_INLINE void forget_normals(State* state) {
  state->boxmuller_flag = state->boxmuller_flag_double = 0;
  state->boxmuller_extra = 0.0f;
  state->boxmuller_extra_double = 0.0;
}

// Adds to the 128-bit counter, whose upper half numbers the sequences. Only the lower half carries over.
CUDA_ON_CPU_INLINE void advance(uint4& counter, unsigned long long sequences, unsigned long long blocks) {
  std::uint64_t low = std::uint64_t{counter.y} << 32 | counter.x, high = std::uint64_t{counter.w} << 32 | counter.z;
  low += blocks;
  high += sequences + (low < blocks);
  counter.x = static_cast<unsigned>(low), counter.y = static_cast<unsigned>(low >> 32);
  counter.z = static_cast<unsigned>(high), counter.w = static_cast<unsigned>(high >> 32);
}

}  // namespace cuda_on_cpu

CUDA_ON_CPU_UNSEEN uint4 curand_Philox4x32_10(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t first = std::uint64_t{0xd2511f53} * counter.x, second = std::uint64_t{0xcd9e8d57} * counter.z;
    counter = {static_cast<unsigned>(second >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(second),
               static_cast<unsigned>(first >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(first)};
    key = {key.x + 0x9e3779b9u, key.y + 0xbb67ae85u};
  }
  return counter;
}

CUDA_ON_CPU_INLINE void skipahead(unsigned long long n, curandStateXORWOW_t* state) {
  cuda_on_cpu::advance(state, 0, n);
}
CUDA_ON_CPU_INLINE void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* state) {
  cuda_on_cpu::advance(state, n, 0);
}

CUDA_ON_CPU_INLINE void skipahead(unsigned long long n, curandStatePhilox4_32_10_t* state) {
  unsigned drawn = state->STATE + static_cast<unsigned>(n % 4);
  cuda_on_cpu::advance(state->ctr, 0, n / 4 + drawn / 4);
  state->STATE = drawn % 4;
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}
CUDA_ON_CPU_INLINE void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t* state) {
  cuda_on_cpu::advance(state->ctr, n, 0);
  state->output = curand_Philox4x32_10(state->ctr, state->key);
}

// Marsaglia's initial values, each changed by the hash of a half of the seed.
CUDA_ON_CPU_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                    curandStateXORWOW_t* state) {
  unsigned low = 1099087573u * (static_cast<unsigned>(seed) ^ 0xaad26b49u);
  unsigned high = 2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddu);
  state->v[0] = 123456789u + low;
  state->v[1] = 362436069u ^ low;
  state->v[2] = 521288629u + high;
  state->v[3] = 88675123u ^ high;
  state->v[4] = 5783321u + low;
  state->d = 6615241u + low + high;
  state->padding = 0;
  cuda_on_cpu::advance(state, subsequence, offset);
  cuda_on_cpu::forget_normals(state);
}

CUDA_ON_CPU_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                                    curandStatePhilox4_32_10_t* state) {
  state->ctr = {0, 0, 0, 0};
  state->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  state->STATE = 0;
  cuda_on_cpu::advance(state->ctr, subsequence, 0);
  skipahead(offset, state);
  cuda_on_cpu::forget_normals(state);
}

CUDA_ON_CPU_INLINE unsigned int curand(curandStateXORWOW_t* state) {
  unsigned newest = cuda_on_cpu::step_xorwow(state->v);
  return newest + (state->d += cuda_on_cpu::xorwow_increment);
}

CUDA_ON_CPU_INLINE unsigned int curand(curandStatePhilox4_32_10_t* state) {
  unsigned drawn = state->STATE;
  if (drawn == 3) {
    unsigned last = state->output.w;
    skipahead(1, state);
    return last;
  }
  state->STATE = drawn + 1;
  return drawn == 0 ? state->output.x : drawn == 1 ? state->output.y : state->output.z;
}

// The next four words, whichever block of the cipher they belong to.
CUDA_ON_CPU_INLINE uint4 curand4(curandStatePhilox4_32_10_t* state) {
  return {curand(state), curand(state), curand(state), curand(state)};
}
