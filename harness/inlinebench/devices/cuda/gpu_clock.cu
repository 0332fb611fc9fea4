// The GPU side of the clock, as C functions over the CUDA runtime. Built once with nvcc and called through ctypes.
//
// Time stamps, blocking kernel and flush are implemented here and not in Python, so that nothing a solution does to
// torch's Python objects affects them. All work goes to the legacy default stream, on which solutions launch too.
//
// Why a blocking kernel: the GPU runs work as soon as it is queued, so a pair of events around a short kernel mostly
// measures how long the host took to launch it. The blocking kernel keeps the GPU busy until the host has queued
// everything and sets a flag; the queued work then runs without gaps. It fills every thread slot of every SM, because
// otherwise a kernel on another stream could run at the same time, before the first time stamp.
//
// Usage: flush, block, start, <work>, stop, release, drain. A call with two passes takes a third time stamp by mark.
// The blocking kernel ends by itself after its limit, so work that waits for the device does not hang. drain then
// reports that the limit was reached.
//
// The flags are in a page that another process may have mapped as well. The judge uses it to release a candidate's
// blocking kernel and to see the end of its work, without a system call in between. It times such work by the GPU's own
// time, which kernels of the judge's process take before and after.
//
// Kernels have plain C names, so that a profile can tell them from a solution's kernels.

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>

namespace {

constexpr int kBlockingThreads = 512;  // divides the thread slots of an SM on every architecture (1024, 1536, 2048)
constexpr unsigned kPollNanoseconds = 200;
constexpr uint64_t kGatherNanoseconds = 100000;
constexpr int kFlushThreads = 256;
constexpr size_t kTouchApart = (64 << 10) / sizeof(float);  // the smallest page that large allocations lie in

struct Flags {
  volatile int release;   // host to device: everything is queued
  volatile int ran_out;   // device to host: the limit was reached first
  volatile int done;      // device to host: all queued work is complete
};

struct Clock {
  Flags* host = nullptr;             // the caller's page, page-locked here
  Flags* mapped = nullptr;           // the device address of the same memory
  int* relay = nullptr;              // device memory: block 0 signals the other blocks
  float* flush_buffer = nullptr;
  float* flush_sink = nullptr;
  size_t flush_count = 0;            // floats
  uint64_t* stamps = nullptr;        // host memory: the GPU's time in ns at the beginning and at the end of a held call
  uint64_t* mapped_stamps = nullptr; // the device address of the same memory
  int sms = 0;
  int blocking_blocks = 0;
  cudaEvent_t begin = nullptr;
  cudaEvent_t middle = nullptr;
  cudaEvent_t end = nullptr;
  bool marked = false;                // whether the middle of this call was recorded
};

Clock state;

}  // namespace

__device__ static uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Only block 0 polls the host's memory: with hundreds of blocks reading over PCIe, a release would take microseconds.
extern "C" __global__ void inlinebench_block(Flags* flags, volatile int* relay, uint64_t limit) {
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

// Reads, because a flush that writes would leave dirty lines, whose write-back would overlap with the timed region.
extern "C" __global__ void inlinebench_flush(const float4* buffer, size_t count, float* sink) {
  float sum = 0.f;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float4 value = buffer[i];
    sum += value.x + value.y + value.z + value.w;
  }
  if (sum == 1.f) *sink = sum;  // practically never; keeps the loads alive
}

extern "C" __global__ void inlinebench_touch(const float* memory, size_t count, float* sink) {
  const size_t i = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kTouchApart;
  if (count == 0) return;
  const float value = memory[i < count ? i : count - 1];  // a range that begins inside a page ends in one more page
  if (__float_as_int(value) == 0x7f7f7f7f) *sink = 1.f;  // practically never; keeps the load alive
}

// Marks in a profile where the clock stopped.
extern "C" __global__ void inlinebench_stop() {}

// Measures the overhead that every call has in addition to its kernels' own time.
extern "C" __global__ void inlinebench_null() {}

extern "C" __global__ void inlinebench_done(Flags* flags) {
  __threadfence_system();
  flags->done = 1;
}

// Releases a blocking kernel of another process, whose flags these are.
extern "C" __global__ void inlinebench_release(Flags* flags) {
  __threadfence_system();
  flags->release = 1;
}

// Waits, so that the host can queue what follows while it runs: then no other process gets the GPU in between.
extern "C" __global__ void inlinebench_gather() {
  const uint64_t end = nanoseconds() + kGatherNanoseconds;
  while (nanoseconds() < end) __nanosleep(kPollNanoseconds);
}

extern "C" __global__ void inlinebench_stamp(uint64_t* stamp) { *stamp = nanoseconds(); }

// Copies bytes, `vectors` times 16 of them in vectors. Not a memcpy, because a copy engine could run at the same time as
// another process's kernels, and a kernel cannot.
extern "C" __global__ void inlinebench_copy(char* target, const char* source, size_t vectors, size_t bytes) {
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = first; i < vectors; i += stride) {
    reinterpret_cast<float4*>(target)[i] = reinterpret_cast<const float4*>(source)[i];
  }
  for (size_t i = vectors * sizeof(float4) + first; i < bytes; i += stride) target[i] = source[i];
}

// Reads all inputs and writes all outputs of a call: the work of a stand-in.
extern "C" __global__ void inlinebench_stand_in(const float4* inputs, size_t input_count, float4* outputs,
                                                size_t output_count, float* sink) {
  float sum = 0.f;
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = first; i < input_count; i += stride) {
    const float4 value = inputs[i];
    sum += value.x + value.y + value.z + value.w;
  }
  for (size_t i = first; i < output_count; i += stride) outputs[i] = make_float4(0.f, 0.f, 0.f, 0.f);
  if (sum == 1.f) *sink = sum;  // practically never; keeps the loads alive
}

#define RETURN_IF_FAILED(call)                     \
  do {                                             \
    const cudaError_t status = (call);             \
    if (status != cudaSuccess) return status;      \
  } while (0)

extern "C" {

const char* clock_error(int status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); }

// The flags are placed at the start of the caller's page, which must stay mapped as long as the process lives.
int clock_open(int device, void* page, size_t page_bytes) {
  RETURN_IF_FAILED(cudaSetDevice(device));
  cudaDeviceProp properties;
  RETURN_IF_FAILED(cudaGetDeviceProperties(&properties, device));
  state.sms = properties.multiProcessorCount;
  state.blocking_blocks = state.sms * (properties.maxThreadsPerMultiProcessor / kBlockingThreads);
  state.host = static_cast<Flags*>(page);
  RETURN_IF_FAILED(cudaHostRegister(page, page_bytes, cudaHostRegisterMapped));
  RETURN_IF_FAILED(cudaHostGetDevicePointer(&state.mapped, state.host, 0));
  RETURN_IF_FAILED(cudaMalloc(&state.relay, sizeof(int)));
  RETURN_IF_FAILED(cudaMalloc(&state.flush_sink, sizeof(float)));
  // Not device memory, which another process could open by a guessed IPC handle.
  RETURN_IF_FAILED(cudaHostAlloc(&state.stamps, 2 * sizeof(uint64_t), cudaHostAllocMapped));
  RETURN_IF_FAILED(cudaHostGetDevicePointer(&state.mapped_stamps, state.stamps, 0));
  const size_t bytes = 2 * static_cast<size_t>(properties.l2CacheSize);
  state.flush_count = bytes / sizeof(float4);
  RETURN_IF_FAILED(cudaMalloc(&state.flush_buffer, state.flush_count * sizeof(float4)));
  RETURN_IF_FAILED(cudaMemset(state.flush_buffer, 0, state.flush_count * sizeof(float4)));
  RETURN_IF_FAILED(cudaEventCreate(&state.begin));
  RETURN_IF_FAILED(cudaEventCreate(&state.middle));
  RETURN_IF_FAILED(cudaEventCreate(&state.end));
  return cudaDeviceSynchronize();
}

// Queues only the reads: calls that wait for the context would wait for the blocking kernel.
int clock_sweep() {
  inlinebench_flush<<<state.sms * 8, kFlushThreads>>>(reinterpret_cast<const float4*>(state.flush_buffer),
                                                 state.flush_count, state.flush_sink);
  return cudaGetLastError();
}

// Reads from each page of a memory range, so that the GPU has its address translations: it loses them while another
// process runs, and the next kernel would wait for each page.
int clock_touch(const void* memory, size_t bytes) {
  const size_t count = bytes / sizeof(float);
  const size_t blocks = (count / kTouchApart + 1) / kFlushThreads + 1;
  inlinebench_touch<<<static_cast<unsigned>(blocks), kFlushThreads>>>(static_cast<const float*>(memory), count,
                                                                      state.flush_sink);
  return cudaGetLastError();
}

int clock_flush() {
  RETURN_IF_FAILED(cudaCtxResetPersistingL2Cache());
  return clock_sweep();
}

void clock_reset() {
  state.host->release = 0;
  state.host->ran_out = 0;
  state.host->done = 0;
}

int clock_block(double limit_ms) {
  clock_reset();
  RETURN_IF_FAILED(cudaMemsetAsync(state.relay, 0, sizeof(int)));
  inlinebench_block<<<state.blocking_blocks, kBlockingThreads>>>(state.mapped, state.relay,
                                                   static_cast<uint64_t>(limit_ms * 1e6));
  return cudaGetLastError();
}

// Blocks only this stream, by a single thread: what else runs on the GPU meanwhile counts as well for another process's
// stamps, and the GPU has little to save and restore when it changes between the processes.
int clock_hold(double limit_ms) {
  clock_reset();
  inlinebench_block<<<1, 1>>>(state.mapped, state.relay, static_cast<uint64_t>(limit_ms * 1e6));
  return cudaGetLastError();
}

// Launches an empty kernel with this many blocks per SM, or with a single block if it is 0.
int clock_null(int blocks_an_sm) {
  inlinebench_null<<<blocks_an_sm > 0 ? blocks_an_sm * state.sms : 1, kFlushThreads>>>();
  return cudaGetLastError();
}

int clock_start() {
  state.marked = false;
  return cudaEventRecord(state.begin);
}

// Takes the time stamp between the two passes of a call.
int clock_mark() {
  state.marked = true;
  return cudaEventRecord(state.middle);
}

int clock_stop() {
  RETURN_IF_FAILED(cudaEventRecord(state.end));
  inlinebench_stop<<<1, 1>>>();
  return cudaGetLastError();
}

// Copies an output to the judge. Does not use torch's copies, because a solution can redirect them.
int clock_copy(void* target, const void* source, size_t bytes) {
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault);
}

int clock_done() {
  inlinebench_done<<<1, 1>>>(state.mapped);
  return cudaGetLastError();
}

// Takes the GPU's time when all work queued before is complete. `which`: 0 is the beginning of a held call, 1 its end.
int clock_stamp(int which) {
  inlinebench_stamp<<<1, 1>>>(state.mapped_stamps + which);
  return cudaGetLastError();
}

int clock_gather() {
  inlinebench_gather<<<1, 1>>>();
  return cudaGetLastError();
}

// Maps the flags of another process, so that kernels of this one can set them.
int clock_map(void* page, size_t page_bytes, void** mapped) {
  RETURN_IF_FAILED(cudaHostRegister(page, page_bytes, cudaHostRegisterMapped));
  return cudaHostGetDevicePointer(mapped, page, 0);
}

int clock_unmap(void* page) { return cudaHostUnregister(page); }

int clock_release_other(void* mapped) {
  inlinebench_release<<<1, 1>>>(static_cast<Flags*>(mapped));
  return cudaGetLastError();
}

// Waits for the device. Returns the time between the two stamps in ms.
int clock_between(double* ms) {
  RETURN_IF_FAILED(cudaDeviceSynchronize());
  *ms = (static_cast<double>(state.stamps[1]) - static_cast<double>(state.stamps[0])) * 1e-6;
  return cudaSuccess;
}

// Copies from one address to another on this device by a kernel.
int clock_move(void* target, const void* source, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const bool aligned = (reinterpret_cast<uintptr_t>(target) | reinterpret_cast<uintptr_t>(source)) % sizeof(float4) == 0;
  const size_t vectors = aligned ? bytes / sizeof(float4) : 0;
  const size_t needed = ((aligned ? vectors : bytes) + kFlushThreads - 1) / kFlushThreads + 1;
  const size_t most = static_cast<size_t>(state.sms) * 8;
  inlinebench_copy<<<static_cast<unsigned>(needed < most ? needed : most), kFlushThreads>>>(
      static_cast<char*>(target), static_cast<const char*>(source), vectors, bytes);
  return cudaGetLastError();
}

int clock_stand_in(const void* inputs, size_t input_bytes, void* outputs, size_t output_bytes) {
  inlinebench_stand_in<<<state.sms * 8, kFlushThreads>>>(
      static_cast<const float4*>(inputs), input_bytes / sizeof(float4), static_cast<float4*>(outputs),
      output_bytes / sizeof(float4), state.flush_sink);
  return cudaGetLastError();
}

int clock_synchronize() { return cudaDeviceSynchronize(); }

void clock_release() { state.host->release = 1; }

// Waits for the device. Returns the time between the stamps and the duration of the wait in ms, and whether the
// blocking kernel reached its limit. `forward_ms` is the time up to the mark, or -1 without one.
int clock_drain(float* device_ms, float* forward_ms, double* drain_ms, int* ran_out) {
  const auto before = std::chrono::steady_clock::now();
  RETURN_IF_FAILED(cudaDeviceSynchronize());
  *drain_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
  *ran_out = state.host->ran_out;
  *forward_ms = -1.f;
  if (state.marked) RETURN_IF_FAILED(cudaEventElapsedTime(forward_ms, state.begin, state.middle));
  return cudaEventElapsedTime(device_ms, state.begin, state.end);
}

}  // extern "C"
