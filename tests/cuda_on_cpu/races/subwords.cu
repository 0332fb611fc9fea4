// Parts of words: neighbours do not race, overlaps do.
#include "case.h"

KERNEL(halves) {
  __shared__ __half held[65];
  int t = threadIdx.x;
  held[t] = __float2half(x[t]);  // @halves
  if (!fixed && t == 5) held[t + 1] = __float2half(7.0f);  // @halves
  __syncthreads();
  out[blockIdx.x * 64 + t] = __half2float(held[t]);
}
PLANT(halves)

KERNEL(bytes) {
  auto* bytes = reinterpret_cast<unsigned char*>(scratch);
  int i = blockIdx.x * 64 + threadIdx.x;
  bytes[fixed ? i : i & ~1] = static_cast<unsigned char>(i + 1);  // @bytes
}
PLANT(bytes)

KERNEL(vector_overlap) {
  int t = blockIdx.x * 64 + threadIdx.x;
  if (t >= 64) return;
  auto* pairs = reinterpret_cast<float2*>(out + (fixed ? 4 * t : 2 * t));
  pairs[0] = make_float2(x[t], 1.0f);  // @vector_overlap
  pairs[1] = make_float2(2.0f, x[t + 1]);  // @vector_overlap
}
PLANT(vector_overlap)

KERNEL(half_of_a_word) {
  auto* halves = reinterpret_cast<unsigned short*>(scratch);
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i % 2)
    halves[i] = static_cast<unsigned short>(i);  // @half_of_a_word
  else if (fixed)
    halves[i] = static_cast<unsigned short>(i + 1);
  else
    scratch[i / 2] = i + 1;  // @half_of_a_word
}
PLANT(half_of_a_word)

struct Element {
  float value;
  int index;
};
KERNEL(structs) {
  __shared__ Element best[64];
  int t = threadIdx.x;
  best[t] = {x[t], t};  // @structs
  if (fixed) __syncthreads();
  Element other = best[t ^ 40];  // @structs
  out[blockIdx.x * 64 + t] = other.value + other.index;
}
PLANT(structs)
