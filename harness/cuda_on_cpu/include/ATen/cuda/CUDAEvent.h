#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace at::cuda {

// An event is the time it was recorded at.
class CUDAEvent {
 public:
  CUDAEvent() { cudaEventCreate(&event_); }
  explicit CUDAEvent(unsigned) : CUDAEvent() {}
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;
  ~CUDAEvent() { cudaEventDestroy(event_); }

  operator cudaEvent_t() const { return event_; }
  cudaEvent_t event() const { return event_; }
  bool isCreated() const { return true; }
  bool query() const { return synchronize(), true; }
  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) { cudaEventRecord(event_, stream); }
  void recordOnce(const CUDAStream& stream) { record(stream); }
  void block(const CUDAStream& stream) { cudaStreamWaitEvent(stream, event_); }
  void synchronize() const { cudaEventSynchronize(event_); }
  float elapsed_time(const CUDAEvent& other) const {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, event_, other.event_);
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace at::cuda
