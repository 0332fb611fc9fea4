// cuRAND's numbers for kernels.
#include <curand.h>
#include <curand_kernel.h>

#include "case.h"

using Philox = curandStatePhilox4_32_10_t;
using Long = unsigned long long;

__global__ void block_kernel(const uint4* counters, const uint2* keys, uint4* out) {
  out[threadIdx.x] = curand_Philox4x32_10(counters[threadIdx.x], keys[threadIdx.x]);
}
extern "C" void philox_known_answers(const uint4* counters, const uint2* keys, uint4* out, int n) {
  block_kernel<<<1, n>>>(counters, keys, out);
}

// Where each thread starts: seed, subsequence and offset. Then how far it skips: subsequences and draws.
template <class State>
__global__ void words_kernel(const Long* starts, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Long* start = starts + 5 * i;
  State state;
  curand_init(start[0], start[1], start[2], &state);
  out += 15 * i;
  for (int k = 0; k < 5; ++k) out[k] = curand(&state);
  skipahead(start[4], &state);
  for (int k = 5; k < 10; ++k) out[k] = curand(&state);
  skipahead_sequence(start[3], &state);
  for (int k = 10; k < 15; ++k) out[k] = curand(&state);
}
extern "C" void xorwow_words(const Long* starts, unsigned* out, int n) {
  words_kernel<curandStateXORWOW_t><<<(n + 31) / 32, 32>>>(starts, out, n);
}
extern "C" void philox_words(const Long* starts, unsigned* out, int n) {
  words_kernel<Philox><<<(n + 31) / 32, 32>>>(starts, out, n);
}

__global__ void xorwow_uniform_kernel(float* floats, double* doubles) {
  curandState_t state;
  int i = threadIdx.x;
  curand_init(1234, i, 0, &state);
  for (int k = 0; k < 8; ++k) {
    floats[8 * i + k] = curand_uniform(&state);
    doubles[8 * i + k] = curand_uniform_double(&state);
  }
}
extern "C" void xorwow_uniforms(float* floats, double* doubles) { xorwow_uniform_kernel<<<1, 64>>>(floats, doubles); }

// Vectors of words, also of those that belong to two blocks of the cipher.
__global__ void philox_uniform_kernel(uint4* words, float4* floats, double* doubles) {
  Philox state;
  int i = threadIdx.x;
  curand_init(99, i, i % 4, &state);
  words[i] = curand4(&state);
  floats[2 * i] = curand_uniform4(&state);
  float first = curand_uniform(&state), second = curand_uniform(&state);
  floats[2 * i + 1] = make_float4(first, second, curand_uniform(&state), -1.0f);
  doubles[3 * i] = curand_uniform_double(&state);
  double2 pair = curand_uniform2_double(&state);
  doubles[3 * i + 1] = pair.x, doubles[3 * i + 2] = pair.y;
}
extern "C" void philox_uniforms(uint4* words, float4* floats, double* doubles) {
  philox_uniform_kernel<<<1, 64>>>(words, floats, doubles);
}

// The least and the greatest words, which no seed gives within reach.
__global__ void extreme_kernel(float* floats, double* doubles) {
  Philox state;
  curand_init(1, 0, 0, &state);
  state.output = make_uint4(0, 0xffffffffu, 0, 0xffffff7fu);
  Philox copy = state;
  for (int i = 0; i < 4; ++i) floats[i] = curand_uniform(&copy);
  copy = state;
  doubles[0] = curand_uniform_double(&copy), doubles[1] = curand_uniform_double(&copy);
  state.output = make_uint4(0, 0, 0xffffffffu, 0xffffffffu);
  copy = state;
  double2 pair = curand_uniform2_double(&copy);
  doubles[2] = pair.x, doubles[3] = pair.y;
  copy = state;
  float2 normals = curand_normal2(&copy);
  floats[4] = normals.y;
  normals = curand_normal2(&copy);
  floats[5] = normals.y;
}
extern "C" void extreme_words(float* floats, double* doubles) { extreme_kernel<<<1, 1>>>(floats, doubles); }

// Pairs of which the second number is kept, between draws of other kinds.
template <class State>
__global__ void normal_kernel(float* floats, double* doubles) {
  State state;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(5, i, 0, &state);
  floats += 8 * i, doubles += 7 * i;
  floats[0] = curand_normal(&state);
  doubles[0] = curand_normal_double(&state);
  float2 pair = curand_normal2(&state);
  floats[1] = pair.x, floats[2] = pair.y;
  floats[3] = curand_normal(&state);
  doubles[1] = curand_normal_double(&state);
  floats[4] = curand_log_normal(&state, 0.3f, 0.6f);
  doubles[2] = curand_log_normal_double(&state, -0.3, 0.2);
  floats[5] = curand_log_normal(&state, 0.3f, 0.6f);
  doubles[3] = curand_log_normal_double(&state, -0.3, 0.2);
  double2 doubled = curand_normal2_double(&state);
  doubles[4] = doubled.x, doubles[5] = doubled.y;
  pair = curand_log_normal2(&state, 0.1f, 0.5f);
  floats[6] = pair.x, floats[7] = pair.y;
  doubled = curand_log_normal2_double(&state, 0.1, 0.5);
  doubles[6] = doubled.x + doubled.y;
}
extern "C" void xorwow_normals(float* floats, double* doubles, int blocks) {
  normal_kernel<curandState><<<blocks, 64>>>(floats, doubles);
}
extern "C" void philox_normals(float* floats, double* doubles, int blocks) {
  normal_kernel<Philox><<<blocks, 64>>>(floats, doubles);
}

__global__ void normal4_kernel(float4* out) {
  Philox state;
  curand_init(6, 0, threadIdx.x, &state);
  out[2 * threadIdx.x] = curand_normal4(&state);
  out[2 * threadIdx.x + 1] = curand_log_normal4(&state, 0.1f, 0.5f);
}
extern "C" void philox_normal4(float4* out) { normal4_kernel<<<1, 32>>>(out); }

// States that one kernel sets up and others go on with, as most programs have them.
__global__ void setup(curandState* states, int seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}
__global__ void draw(curandState* states, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState local = states[i];
  out[i] = curand_uniform(&local) + 2.0f * curand_uniform(&local);
  states[i] = local;
}
extern "C" void states_in_memory(float* out, int seed, int blocks) {
  curandState* curand_states;
  cudaMalloc(&curand_states, blocks * 64 * sizeof(curandState));
  setup<<<blocks, 64>>>(curand_states, seed);
  for (int k = 0; k < 2; ++k) draw<<<blocks, 64>>>(curand_states, out + k * blocks * 64);
  cudaFree(curand_states);
}

// A thread draws from a state that another one set up.
__global__ void shared_kernel(unsigned* out) {
  __shared__ Philox states[64];
  curand_init(threadIdx.x, 0, 0, &states[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = curand(&states[63 - threadIdx.x]);
}
extern "C" void states_in_shared_memory(unsigned* out) { shared_kernel<<<1, 64>>>(out); }
