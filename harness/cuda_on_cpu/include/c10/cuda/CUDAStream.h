// Streams, as numbers: all work queued on them has already finished.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "cuda_on_cpu/runtime_api.h"

namespace c10::cuda {

class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };

  CUDAStream() = default;
  explicit CUDAStream(cudaStream_t stream) : number_(cuda_on_cpu::number_of(stream)) {}
  explicit CUDAStream(c10::Stream stream) : number_(static_cast<cuda_on_cpu::StreamNumber>(stream.id())) {}
  CUDAStream(Unchecked, c10::Stream stream) : CUDAStream(stream) {}

  operator cudaStream_t() const { return stream(); }
  operator c10::Stream() const { return unwrap(); }
  cudaStream_t stream() const { return cuda_on_cpu::stream_of(number_); }
  c10::Stream unwrap() const { return c10::Stream(c10::Stream::UNSAFE, device(), id()); }
  c10::Device device() const { return c10::Device(c10::DeviceType::CPU); }
  c10::DeviceIndex device_index() const { return 0; }
  c10::DeviceType device_type() const { return c10::DeviceType::CPU; }
  c10::StreamId id() const { return static_cast<c10::StreamId>(number_); }
  bool query() const { return synchronize(), true; }
  void synchronize() const { cuda_on_cpu_synchronize_stream(number_); }
  int priority() const { return 0; }
  bool operator==(const CUDAStream& other) const { return number_ == other.number_; }
  bool operator!=(const CUDAStream& other) const { return number_ != other.number_; }

 private:
  cuda_on_cpu::StreamNumber number_ = 0;
};

inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) {
  return CUDAStream(cuda_on_cpu::stream_of(cuda_on_cpu_current_stream()));
}
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
// torch's streams do not wait for the default stream.
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) {
  return CUDAStream(cuda_on_cpu::stream_of(cuda_on_cpu_create_stream(0)));
}
inline CUDAStream getStreamFromPool(int, c10::DeviceIndex = -1) { return getStreamFromPool(false); }
inline CUDAStream getStreamFromExternal(cudaStream_t stream, c10::DeviceIndex) { return CUDAStream(stream); }
inline void setCurrentCUDAStream(CUDAStream stream) {
  cuda_on_cpu_set_current_stream(cuda_on_cpu::number_of(stream.stream()));
}

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::setCurrentCUDAStream;
}  // namespace at::cuda
