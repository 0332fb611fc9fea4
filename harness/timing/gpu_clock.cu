// The GPU side of the clock, as plain C functions over the CUDA runtime: built once by nvcc, called through ctypes.
//
// Time stamps, hold and flush live here and not in Python, so that nothing a solution does to torch's Python objects
// reaches them. All work goes to the legacy default stream, the one that solutions launch on.
//
// Why a hold kernel. The GPU runs work as soon as it is queued, so an event pair around a short kernel mostly measures
// how long the host took to launch it. The hold kernel keeps the GPU busy until the host has queued everything and
// sets a flag; what follows then runs without gaps. It fills every thread slot of every SM, because otherwise a kernel
// on another stream could do its work beside it, before the first time stamp.
//
// Usage: flush, hold, start, <work>, stop, release, drain. The hold ends by itself after its limit, so work that waits
// for the device doesn't hang; drain then reports that the hold ran out.

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>

namespace {

constexpr int kHoldThreads = 512;  // divides the thread slots of an SM on every architecture (1024, 1536, 2048)
constexpr unsigned kPollNanoseconds = 200;
constexpr int kFlushThreads = 256;

struct Flags {
  volatile int release;   // host to device: everything is queued
  volatile int ran_out;   // device to host: the limit was reached first
};

struct Clock {
  Flags* host = nullptr;             // mapped, page-locked
  Flags* mapped = nullptr;           // the same memory as the device sees it
  int* relay = nullptr;              // device memory: block 0 tells the others
  float* flush_buffer = nullptr;
  float* flush_sink = nullptr;
  size_t flush_count = 0;            // floats
  int sms = 0;
  int hold_blocks = 0;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

Clock state;

__device__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Only block 0 polls the host's memory: hundreds of blocks reading over PCIe would take microseconds to notice.
__global__ void hold_kernel(Flags* flags, volatile int* relay, uint64_t limit) {
  if (threadIdx.x == 0) {
    const uint64_t deadline = nanoseconds() + limit;
    if (blockIdx.x == 0) {
      while (!flags->release) {
        if (nanoseconds() > deadline) {
          flags->ran_out = 1;
          break;
        }
      }
      *relay = 1;
      __threadfence();
    } else {
      while (!*relay && nanoseconds() <= deadline) __nanosleep(kPollNanoseconds);
    }
  }
  __syncthreads();  // a block keeps all its thread slots until its last thread is done
}

// Reading, not writing, so that no dirty line is left to be written back while the clock runs.
__global__ void flush_kernel(const float4* buffer, size_t count, float* sink) {
  float sum = 0.f;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float4 value = buffer[i];
    sum += value.x + value.y + value.z + value.w;
  }
  if (sum == 1.f) *sink = sum;  // never true for a buffer of zeros; keeps the loads alive
}

#define RETURN_IF_FAILED(call)                     \
  do {                                             \
    const cudaError_t status = (call);             \
    if (status != cudaSuccess) return status;      \
  } while (0)

}  // namespace

extern "C" {

const char* clock_error(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }

int clock_open(int device) {
  RETURN_IF_FAILED(cudaSetDevice(device));
  cudaDeviceProp properties;
  RETURN_IF_FAILED(cudaGetDeviceProperties(&properties, device));
  state.sms = properties.multiProcessorCount;
  state.hold_blocks = state.sms * (properties.maxThreadsPerMultiProcessor / kHoldThreads);
  RETURN_IF_FAILED(cudaHostAlloc(&state.host, sizeof(Flags), cudaHostAllocMapped));
  RETURN_IF_FAILED(cudaHostGetDevicePointer(&state.mapped, state.host, 0));
  RETURN_IF_FAILED(cudaMalloc(&state.relay, sizeof(int)));
  RETURN_IF_FAILED(cudaMalloc(&state.flush_sink, sizeof(float)));
  const size_t bytes = 2 * static_cast<size_t>(properties.l2CacheSize);
  state.flush_count = bytes / sizeof(float4);
  RETURN_IF_FAILED(cudaMalloc(&state.flush_buffer, state.flush_count * sizeof(float4)));
  RETURN_IF_FAILED(cudaMemset(state.flush_buffer, 0, state.flush_count * sizeof(float4)));
  RETURN_IF_FAILED(cudaEventCreate(&state.begin));
  RETURN_IF_FAILED(cudaEventCreate(&state.end));
  return cudaDeviceSynchronize();
}

int clock_flush() {
  RETURN_IF_FAILED(cudaCtxResetPersistingL2Cache());
  flush_kernel<<<state.sms * 8, kFlushThreads>>>(reinterpret_cast<const float4*>(state.flush_buffer),
                                                 state.flush_count, state.flush_sink);
  return cudaGetLastError();
}

int clock_hold(double limit_ms) {
  state.host->release = 0;
  state.host->ran_out = 0;
  RETURN_IF_FAILED(cudaMemsetAsync(state.relay, 0, sizeof(int)));
  hold_kernel<<<state.hold_blocks, kHoldThreads>>>(state.mapped, state.relay,
                                                   static_cast<uint64_t>(limit_ms * 1e6));
  return cudaGetLastError();
}

int clock_start() { return cudaEventRecord(state.begin); }

int clock_stop() { return cudaEventRecord(state.end); }

void clock_release() { state.host->release = 1; }

// Waits for the device. Gives the time between the stamps, how long the wait took (ms), and whether the hold ran out.
int clock_drain(float* device_ms, double* drain_ms, int* ran_out) {
  const auto before = std::chrono::steady_clock::now();
  RETURN_IF_FAILED(cudaDeviceSynchronize());
  *drain_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
  *ran_out = state.host->ran_out;
  return cudaEventElapsedTime(device_ms, state.begin, state.end);
}

}  // extern "C"
