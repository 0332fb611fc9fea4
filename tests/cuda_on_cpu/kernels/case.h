// What every file of the conformance set exports besides its launchers: device memory for the tests, by ctypes.
#pragma once

#include <cuda_runtime.h>

extern "C" void* case_allocate(size_t bytes) {
  void* data = nullptr;
  cudaMalloc(&data, bytes);
  return data;
}
extern "C" void case_release(void* data) { cudaFree(data); }
extern "C" void case_copy_in(void* to, const void* from, size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); }
extern "C" void case_copy_out(void* to, const void* from, size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost); }
// 0, or the error that the launches so far have left.
extern "C" int case_finish() {
  cudaError_t error = cudaDeviceSynchronize();
  cudaError_t last = cudaGetLastError();
  return static_cast<int>(error != cudaSuccess ? error : last);
}
