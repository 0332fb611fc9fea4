// The CUDA runtime's host functions. All work is done immediately; streams only tell the race detector what is ordered.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/qualifiers.h"
#include "cuda_on_cpu/runtime.h"
#include "cuda_on_cpu/stream.h"

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
using cudaError_t = cudaError;

inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}
inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    default: return "unknown error";
  }
}
inline cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(cuda_on_cpu::last_error()); }
inline cudaError_t cudaGetLastError() {
  cudaError_t error = cudaPeekAtLastError();
  cuda_on_cpu::set_last_error(cudaSuccess);
  return error;
}

// Devices: one, with the limits of a common GPU but few multiprocessors, so that grids sized by them stay small.
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrTotalConstantMemory = 9,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};

struct cudaDeviceProp {
  char name[256] = "CUDA on the CPU";
  std::size_t totalGlobalMem = std::size_t{8} << 30;
  std::size_t sharedMemPerBlock = 48 * 1024;
  int regsPerBlock = 65536;
  int warpSize = 32;
  int maxThreadsPerBlock = 1024;
  int maxThreadsDim[3] = {1024, 1024, 64};
  int maxGridSize[3] = {0x7fffffff, 65535, 65535};
  std::size_t totalConstMem = 65536;
  int major = CUDA_ON_CPU_CUDA_ARCH / 100;
  int minor = CUDA_ON_CPU_CUDA_ARCH / 10 % 10;
  int clockRate = 1000000;
  int multiProcessorCount = cuda_on_cpu::multiprocessors;
  int memoryClockRate = 1000000;
  int memoryBusWidth = 256;
  int l2CacheSize = 4 << 20;
  int persistingL2CacheMaxSize = 3 << 20;
  int accessPolicyMaxWindowSize = 4 << 20;
  int maxThreadsPerMultiProcessor = cuda_on_cpu::threads_per_multiprocessor;
  int maxBlocksPerMultiProcessor = cuda_on_cpu::blocks_per_multiprocessor;
  std::size_t sharedMemPerMultiprocessor = 228 * 1024;
  int regsPerMultiprocessor = 65536;
  std::size_t sharedMemPerBlockOptin = 227 * 1024;
  int concurrentKernels = 1;
  int cooperativeLaunch = 1;
  int managedMemory = 1;
  int unifiedAddressing = 1;
  int integrated = 0;
};

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = cudaDeviceProp();
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  cudaDeviceProp p;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrTotalConstantMemory: *value = static_cast<int>(p.totalConstMem); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrClockRate: *value = p.clockRate; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMemoryClockRate: *value = p.memoryClockRate; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    case cudaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cuda_on_cpu_synchronize_device(), cudaPeekAtLastError(); }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
enum cudaLimit {
  cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
};
inline cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cudaSuccess; }
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

// Memory: guarded, so that overruns are detected.
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
template <class T>
inline cudaError_t cudaMalloc(T** data, std::size_t bytes) {
  *data = static_cast<T*>(static_cast<void*>(cuda_on_cpu::allocate(bytes)));
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* data) {
  return cuda_on_cpu_synchronize_device(), cuda_on_cpu::release(data), cudaSuccess;
}
template <class T>
inline cudaError_t cudaMallocAsync(T** data, std::size_t bytes, cudaStream_t) { return cudaMalloc(data, bytes); }
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cuda_on_cpu::release(data), cudaSuccess; }
template <class T>
inline cudaError_t cudaMallocHost(T** data, std::size_t bytes, unsigned = 0) { return cudaMalloc(data, bytes); }
template <class T>
inline cudaError_t cudaHostAlloc(T** data, std::size_t bytes, unsigned = 0) { return cudaMalloc(data, bytes); }
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
template <class T>
inline cudaError_t cudaMallocManaged(T** data, std::size_t bytes, unsigned = cudaMemAttachGlobal) { return cudaMalloc(data, bytes); }
inline cudaError_t cudaFreeHost(void* data) { return cudaFree(data); }
// A copy without a stream waits for the default stream, and the host waits for it.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t = nullptr) {
  if (bytes) std::memmove(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cuda_on_cpu_synchronize_stream(0);
  return cudaMemcpyAsync(to, from, bytes, kind);
}
inline cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                                std::size_t height, cudaMemcpyKind) {
  cuda_on_cpu_synchronize_stream(0);
  for (std::size_t row = 0; row < height; ++row)
    std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (bytes) std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(to, value, bytes);
}
inline cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  return *free_bytes = *total = std::size_t{8} << 30, cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }

// Symbols: a __constant__ or __device__ variable is an ordinary global.
template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  cuda_on_cpu_synchronize_stream(0);
  std::memcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, from, bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset + bytes > sizeof(T)) return cudaErrorInvalidValue;
  cuda_on_cpu_synchronize_stream(0);
  std::memcpy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes);
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(std::size_t* size, const T&) { return *size = sizeof(T), cudaSuccess; }

// Streams and events. An event is the time it was recorded at.
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
inline const cudaStream_t cudaStreamLegacy = nullptr;
inline const cudaStream_t cudaStreamPerThread = nullptr;
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return *stream = cuda_on_cpu::stream_of(cuda_on_cpu_create_stream(!(flags & cudaStreamNonBlocking))), cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cuda_on_cpu_synchronize_stream(cuda_on_cpu::number_of(stream));
  return cudaPeekAtLastError();
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream), cudaSuccess; }
struct CUevent_st {
  std::chrono::steady_clock::time_point at;
  cuda_on_cpu::EventNumber number = cuda_on_cpu_create_event();
};
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
  return cuda_on_cpu_wait_event(cuda_on_cpu::number_of(stream), event->number), cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new CUevent_st, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return cuda_on_cpu_destroy_event(event->number), delete event, cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  event->at = std::chrono::steady_clock::now();
  return cuda_on_cpu_record_event(event->number, cuda_on_cpu::number_of(stream)), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cuda_on_cpu_synchronize_event(event->number), cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - start->at).count();
  return cudaSuccess;
}

// Functions.
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
constexpr int cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100;
template <class Function>
inline cudaError_t cudaFuncSetAttribute(Function, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || static_cast<std::size_t>(value) > cudaDeviceProp().sharedMemPerBlockOptin) {
      cuda_on_cpu::set_last_error(cudaErrorInvalidValue);
      return cudaErrorInvalidValue;
    }
    cuda_on_cpu::set_dynamic_shared_limit(static_cast<std::size_t>(value));
  }
  return cudaSuccess;
}
template <class Function>
inline cudaError_t cudaFuncSetCacheConfig(Function, cudaFuncCache) { return cudaSuccess; }
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes = 0, constSizeBytes = 0, localSizeBytes = 0;
  int maxThreadsPerBlock = 1024, numRegs = 32, ptxVersion = 90, binaryVersion = 90;
  int maxDynamicSharedSizeBytes = 48 * 1024;
};
template <class Function>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Function) {
  return *attributes = {}, cudaSuccess;
}
template <class Function>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int threads, std::size_t) {
  return *blocks = static_cast<int>(cuda_on_cpu::resident_blocks(static_cast<unsigned>(std::max(threads, 0)))), cudaSuccess;
}
template <class Function>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Function, std::size_t = 0, int = 0) {
  return *grid = 16, *block = 256, cudaSuccess;
}

// A launch by pointer: the parameters' types come from the function's own.
namespace cuda_on_cpu {
template <class... Parameters, std::size_t... index>
inline void launch_packed(const char* function, const Configuration& configuration, void (*kernel)(Parameters...), void** arguments,
                          std::index_sequence<index...>) {
  auto call = [kernel](auto&... values) { kernel(values...); };
  Launcher<decltype(call)>(function, 0, "", call, configuration)(*static_cast<std::decay_t<Parameters>*>(arguments[index])...);
}
}  // namespace cuda_on_cpu
template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  cuda_on_cpu::launch_packed("a kernel launched by cudaLaunchKernel", {grid, block, shared_bytes, stream}, kernel,
                             arguments, std::index_sequence_for<Parameters...>());
  return cudaPeekAtLastError();
}
template <class... Parameters>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  cuda_on_cpu::Configuration configuration(grid, block, shared_bytes, stream);
  configuration.cooperative = true;
  cuda_on_cpu::launch_packed("a kernel launched by cudaLaunchCooperativeKernel", configuration, kernel, arguments,
                             std::index_sequence_for<Parameters...>());
  return cudaPeekAtLastError();
}
