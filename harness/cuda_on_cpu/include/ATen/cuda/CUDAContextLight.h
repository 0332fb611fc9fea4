#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cublas_v2.h>

namespace at::cuda {
inline int64_t getNumGPUs() { return 1; }
inline bool is_available() { return true; }
inline int warp_size() { return 32; }
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex = 0) {
  static cudaDeviceProp properties;
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(); }
inline bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return true; }
inline c10::Allocator* getCUDADeviceAllocator() { return c10::GetAllocator(c10::DeviceType::CPU); }
inline void device_synchronize() { c10::cuda::device_synchronize(); }
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::set_device;
}  // namespace at::cuda
