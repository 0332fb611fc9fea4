// __shared__ memory: static, dynamic, in device functions, of several types.
#include "case.h"

__global__ void reverse_kernel(const int* x, int* out, int n) {
  __shared__ int held[256];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[n - 1 - threadIdx.x];
}
extern "C" void reverse(const int* x, int* out, int n) { reverse_kernel<<<1, n>>>(x, out, n); }

__global__ void dynamic_kernel(const float* x, float* out, int n) {
  extern __shared__ float held[];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[(threadIdx.x + 1) % n];
}
extern "C" void dynamic(const float* x, float* out, int n) { dynamic_kernel<<<1, n, n * sizeof(float)>>>(x, out, n); }

extern __shared__ __align__(16) unsigned char raw_bytes[];
__global__ void carved_kernel(const float* x, const int* order, float* out, int n) {
  float* values = reinterpret_cast<float*>(raw_bytes);
  int* places = (int*)(raw_bytes + n * sizeof(float));
  values[threadIdx.x] = x[threadIdx.x];
  places[threadIdx.x] = order[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[places[threadIdx.x]];
}
extern "C" void carved(const float* x, const int* order, float* out, int n) {
  carved_kernel<<<1, n, n * (sizeof(float) + sizeof(int))>>>(x, order, out, n);
}

__device__ float block_sum(float value) {
  __shared__ float partial[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? partial[lane] : 0.0f;
  if (warp == 0)
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  return value;
}
__global__ void row_sum_kernel(const float* x, float* out, int columns) {
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += x[blockIdx.x * columns + c];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
extern "C" void in_device_function(const float* x, float* out, int rows, int columns) {
  row_sum_kernel<<<rows, 128>>>(x, out, columns);
}

#define TILE 16
__global__ void transpose_kernel(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  int c = blockIdx.x * TILE + threadIdx.x, r = blockIdx.y * TILE + threadIdx.y;
  if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
  __syncthreads();
  c = blockIdx.y * TILE + threadIdx.x;
  r = blockIdx.x * TILE + threadIdx.y;
  if (r < columns && c < rows) out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
extern "C" void transpose(const float* x, float* out, int rows, int columns) {
  transpose_kernel<<<dim3((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE), dim3(TILE, TILE)>>>(x, out, rows, columns);
}

struct Pair {
  float value;
  int index;
};
__global__ void argmax_kernel(const float* x, int* out, int n) {
  __shared__ Pair best[128];
  Pair mine = {-1e30f, -1};
  for (int i = threadIdx.x; i < n; i += 128)
    if (x[i] > mine.value) mine = {x[i], i};
  best[threadIdx.x] = mine;
  __syncthreads();
  for (int half = 64; half; half >>= 1) {
    if (threadIdx.x < half && best[threadIdx.x + half].value > best[threadIdx.x].value)
      best[threadIdx.x] = best[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = best[0].index;
}
extern "C" void of_structs(const float* x, int* out, int n) { argmax_kernel<<<1, 128>>>(x, out, n); }

__global__ void union_kernel(const float* x, int* out) {
  __shared__ union {
    float as_float[32];
    int as_int[32];
  } held;
  held.as_float[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held.as_int[31 - threadIdx.x];
}
extern "C" void of_union(const float* x, int* out) { union_kernel<<<1, 32>>>(x, out); }

__global__ void scalar_kernel(const float* x, float* out, int n) {
  __shared__ float limit;
  __shared__ int found;
  if (threadIdx.x == 0) {
    limit = x[0];
    found = 0;
  }
  __syncthreads();
  if (threadIdx.x < n && x[threadIdx.x] > limit) atomicAdd(&found, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = found;
}
extern "C" void shared_scalar(const float* x, float* out, int n) { scalar_kernel<<<1, 256>>>(x, out, n); }

__global__ void volatile_kernel(const float* x, float* out) {
  volatile __shared__ float held[64];
  held[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = held[threadIdx.x ^ 1];
}
extern "C" void volatile_shared(const float* x, float* out) { volatile_kernel<<<1, 64>>>(x, out); }

__global__ void large_kernel(const float* x, float* out, int n) {
  extern __shared__ float4 wide[];
  float* held = reinterpret_cast<float*>(wide);
  for (int i = threadIdx.x; i < n; i += blockDim.x) held[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = held[n - 1 - i];
}
extern "C" void more_than_48k(const float* x, float* out, int n) {
  cudaFuncSetAttribute((const void*)large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4);
  large_kernel<<<1, 256, n * sizeof(float)>>>(x, out, n);
}

__global__ void double_buffer_kernel(const float* x, float* out, int n) {
  __shared__ float buffers[2][64];
  int now = 0;
  buffers[0][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (int start = 64; start <= n; start += 64) {
    if (start + threadIdx.x < n) buffers[now ^ 1][threadIdx.x] = x[start + threadIdx.x];
    sum += buffers[now][63 - threadIdx.x];
    __syncthreads();
    now ^= 1;
  }
  out[threadIdx.x] = sum;
}
extern "C" void double_buffer(const float* x, float* out, int n) { double_buffer_kernel<<<1, 64>>>(x, out, n); }

__global__ void lambda_kernel(const float* x, float* out) {
  __shared__ float held[64];
  auto put = [&](int i, float value) { held[i] = value; };
  put(threadIdx.x, x[threadIdx.x]);
  __syncthreads();
  auto get = [=](int i) { return held[i]; };
  __syncthreads();
  put(63 - threadIdx.x, 2.0f * x[threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = get(threadIdx.x);
}
extern "C" void shared_in_lambda(const float* x, float* out) { lambda_kernel<<<1, 64>>>(x, out); }

__global__ void loop_scope_kernel(const float* x, float* out, int rounds) {
  float sum = 0.0f;
  for (int r = 0; r < rounds; ++r) {
    __shared__ float held[32];
    held[threadIdx.x] = x[r * 32 + threadIdx.x];
    __syncthreads();
    sum += held[(threadIdx.x + r) % 32];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
extern "C" void shared_in_loop(const float* x, float* out, int rounds) { loop_scope_kernel<<<1, 32>>>(x, out, rounds); }

#define SHARED(T, name, n) __shared__ T name[n]
#define SWAP_TILE(T) \
  SHARED(T, first, 32);  \
  SHARED(T, second, 32); \
  first[threadIdx.x] = x[threadIdx.x], second[threadIdx.x] = x[32 + threadIdx.x]
__global__ void macro_kernel(const float* x, float* out) {
  SWAP_TILE(float);
  __syncthreads();
  out[threadIdx.x] = second[31 - threadIdx.x];
  out[32 + threadIdx.x] = first[31 - threadIdx.x];
}
extern "C" void declared_in_macro(const float* x, float* out) { macro_kernel<<<1, 32>>>(x, out); }
