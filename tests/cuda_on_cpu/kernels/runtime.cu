// Runtime calls that solutions make around their launches.
#include <cstring>

#include "case.h"

__global__ void fill_kernel(int* x, int value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

extern "C" void memset_and_memcpy(const int* x, int* out, int n) {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMemsetAsync(out, 0, 2 * n * sizeof(int), stream);
  cudaMemcpyAsync(out, x, n * sizeof(int), cudaMemcpyDeviceToDevice, stream);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}

extern "C" void workspace(int* out, int n) {
  int* scratch = nullptr;
  cudaMalloc(&scratch, n * sizeof(int));
  fill_kernel<<<(n + 31) / 32, 32>>>(scratch, 42, n);
  cudaMemcpy(out, scratch, n * sizeof(int), cudaMemcpyDeviceToDevice);
  cudaFree(scratch);
}

extern "C" void events(int* out, float* milliseconds) {
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreateWithFlags(&stop, cudaEventDefault);
  cudaEventRecord(start);
  fill_kernel<<<1, 32>>>(out, 5, 32);
  cudaEventRecord(stop, 0);
  cudaEventSynchronize(stop);
  float elapsed = -1.0f;
  cudaEventElapsedTime(&elapsed, start, stop);
  float reasonable = elapsed >= 0.0f && elapsed < 60000.0f ? 1.0f : 0.0f;
  cudaMemcpy(milliseconds, &reasonable, sizeof(float), cudaMemcpyHostToDevice);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
}

extern "C" void bad_configuration(int* out) {
  fill_kernel<<<1, 2048>>>(out, 1, 1);
  cudaError_t first = cudaGetLastError(), second = cudaGetLastError();
  fill_kernel<<<0, 32>>>(out, 1, 1);
  cudaError_t third = cudaGetLastError();
  // Which error it is depends on the version of CUDA; that there is one, and that it is reported once, doesn't.
  int host[4] = {first != cudaSuccess, second == cudaSuccess, third != cudaSuccess,
                 std::strlen(cudaGetErrorString(first)) > 0};
  cudaMemcpy(out, host, sizeof(host), cudaMemcpyHostToDevice);
}

extern "C" void too_much_shared_memory(int* out) {
  fill_kernel<<<1, 32, 300 * 1024>>>(out, 1, 1);
  int host[2] = {cudaGetLastError() != cudaSuccess, cudaPeekAtLastError() == cudaSuccess};
  cudaMemcpy(out, host, sizeof(host), cudaMemcpyHostToDevice);
}

extern "C" void properties(int* out) {
  cudaDeviceProp properties;
  int device = -1, count = 0, threads = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaGetDeviceCount(&count);
  cudaSetDevice(device);
  cudaGetDeviceProperties(&properties, device);
  cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  int host[5] = {device, count > 0, properties.warpSize, threads == properties.maxThreadsPerBlock, multiprocessors == properties.multiProcessorCount};
  cudaMemcpy(out, host, sizeof(host), cudaMemcpyHostToDevice);
}

extern "C" void occupancy(int* out, int n) {
  int blocks = 0, grid = 0, block = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill_kernel, 128, 0);
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill_kernel, 0, 0);
  fill_kernel<<<(n + block - 1) / block, block>>>(out, blocks > 0 && grid > 0, n);
}

extern "C" void host_memory(int* out, int n) {
  int* pinned = nullptr;
  cudaMallocHost(&pinned, n * sizeof(int));
  for (int i = 0; i < n; ++i) pinned[i] = i * i;
  cudaMemcpy(out, pinned, n * sizeof(int), cudaMemcpyHostToDevice);
  cudaFreeHost(pinned);
}

#define CHECK(CALL)                               \
  do {                                            \
    cudaError_t status = (CALL);                  \
    if (status != cudaSuccess) failures += 1;     \
  } while (0)
extern "C" void checked_calls(int* out, int n) {
  int failures = 0;
  CHECK(cudaFuncSetCacheConfig(fill_kernel, cudaFuncCachePreferL1));
  CHECK(cudaFuncSetAttribute(fill_kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  fill_kernel<<<(n + 63) / 64, 64>>>(out, 9, n);
  CHECK(cudaPeekAtLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out, &failures, sizeof(int), cudaMemcpyHostToDevice));
}
