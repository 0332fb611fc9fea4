// Guards. Those of the device do nothing, because there is only one.
#pragma once

#include <c10/core/Device.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <optional>

namespace c10::cuda {

struct CUDAGuard {
  explicit CUDAGuard(c10::DeviceIndex) {}
  explicit CUDAGuard(c10::Device) {}
  void set_device(c10::Device) {}
  void reset_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  c10::Device original_device() const { return c10::Device(c10::DeviceType::CPU); }
  c10::Device current_device() const { return c10::Device(c10::DeviceType::CPU); }
};

struct OptionalCUDAGuard {
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<c10::Device>) {}
  explicit OptionalCUDAGuard(std::optional<c10::DeviceIndex>) {}
  void set_device(c10::Device) {}
  void set_index(c10::DeviceIndex) {}
  void reset() {}
};

class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(c10::Stream stream) { reset_stream(stream); }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  CUDAStreamGuard& operator=(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { setCurrentCUDAStream(original_); }
  void reset_stream(c10::Stream stream) { setCurrentCUDAStream(CUDAStream(stream)); }
  CUDAStream original_stream() const { return original_; }
  CUDAStream current_stream() const { return getCurrentCUDAStream(); }

 private:
  CUDAStream original_ = getCurrentCUDAStream();
};

class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(std::optional<c10::Stream> stream) {
    if (stream) reset_stream(*stream);
  }
  void reset_stream(c10::Stream stream) {
    if (guard_) guard_->reset_stream(stream);
    else guard_.emplace(stream);
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAStreamGuard> guard_;
};

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
}  // namespace at::cuda
