// Streams: there is only one, and all work queued on it has already finished.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "cuda_on_cpu/runtime_api.h"

namespace c10::cuda {

class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };

  CUDAStream() = default;
  explicit CUDAStream(c10::Stream) {}
  CUDAStream(Unchecked, c10::Stream) {}

  operator cudaStream_t() const { return nullptr; }
  operator c10::Stream() const { return unwrap(); }
  cudaStream_t stream() const { return nullptr; }
  c10::Stream unwrap() const { return c10::Stream(c10::Stream::DEFAULT, device()); }
  c10::Device device() const { return c10::Device(c10::DeviceType::CPU); }
  c10::DeviceIndex device_index() const { return 0; }
  c10::DeviceType device_type() const { return c10::DeviceType::CPU; }
  c10::StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  int priority() const { return 0; }
  bool operator==(const CUDAStream&) const { return true; }
  bool operator!=(const CUDAStream&) const { return false; }
};

inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(int, c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromExternal(cudaStream_t, c10::DeviceIndex) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::setCurrentCUDAStream;
}  // namespace at::cuda
