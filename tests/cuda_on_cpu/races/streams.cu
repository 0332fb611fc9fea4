// Kernels on several streams. Those that are not made with cudaStreamNonBlocking wait for the default stream.
#include "case.h"

struct Streams {
  cudaStream_t first, second;
  cudaEvent_t event;

  explicit Streams(unsigned flags = cudaStreamNonBlocking) {
    cudaStreamCreateWithFlags(&first, flags);
    cudaStreamCreateWithFlags(&second, flags);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~Streams() {
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
};

#define PLANT_STREAMS(NAME)                                                                                            \
  extern "C" void NAME(const float* x, float* out, int* scratch) { NAME##_launch<false>(x, out, scratch); }            \
  extern "C" void NAME##_fixed(const float* x, float* out, int* scratch) { NAME##_launch<true>(x, out, scratch); }

__global__ void no_event_double(const float* x, float* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = 2.0f * x[i];  // @no_event
}
__global__ void no_event_use(const float* out, int* scratch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  scratch[i] = out[i] > 3.0f;  // @no_event
}
template <bool fixed>
void no_event_launch(const float* x, float* out, int* scratch) {
  Streams streams;
  no_event_double<<<16, 64, 0, streams.first>>>(x, out);
  cudaEventRecord(streams.event, streams.first);
  if (fixed) cudaStreamWaitEvent(streams.second, streams.event, 0);
  no_event_use<<<16, 64, 0, streams.second>>>(out, scratch);
  cudaDeviceSynchronize();
}
PLANT_STREAMS(no_event)

__global__ void early_event_double(const float* x, float* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = 2.0f * x[i];  // @early_event
}
__global__ void early_event_use(const float* out, int* scratch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  scratch[i] = out[i] > 3.0f;  // @early_event
}
template <bool fixed>
void early_event_launch(const float* x, float* out, int* scratch) {
  Streams streams;
  if (!fixed) cudaEventRecord(streams.event, streams.first);
  early_event_double<<<16, 64, 0, streams.first>>>(x, out);
  if (fixed) cudaEventRecord(streams.event, streams.first);
  cudaStreamWaitEvent(streams.second, streams.event, 0);
  early_event_use<<<16, 64, 0, streams.second>>>(out, scratch);
  cudaDeviceSynchronize();
}
PLANT_STREAMS(early_event)

// The host waits for the wrong stream.
__global__ void wrong_wait_double(const float* x, float* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = 2.0f * x[i];  // @wrong_wait
}
__global__ void wrong_wait_overwrite(float* out) {
  out[blockIdx.x * 64 + threadIdx.x] = 1.0f;  // @wrong_wait
}
template <bool fixed>
void wrong_wait_launch(const float* x, float* out, int*) {
  Streams streams;
  wrong_wait_double<<<16, 64, 0, streams.first>>>(x, out);
  cudaStreamSynchronize(fixed ? streams.first : streams.second);
  wrong_wait_overwrite<<<16, 64, 0, streams.second>>>(out);
  cudaDeviceSynchronize();
}
PLANT_STREAMS(wrong_wait)

// The default stream does not wait for a non-blocking stream, nor it for the default stream.
__global__ void default_stream_double(const float* x, float* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = 2.0f * x[i];  // @default_stream
}
__global__ void default_stream_use(const float* out, int* scratch) {
  int i = blockIdx.x * 64 + threadIdx.x;
  scratch[i] = out[i] > 3.0f;  // @default_stream
}
template <bool fixed>
void default_stream_launch(const float* x, float* out, int* scratch) {
  Streams streams(fixed ? cudaStreamDefault : cudaStreamNonBlocking);
  default_stream_double<<<16, 64>>>(x, out);
  default_stream_use<<<16, 64, 0, streams.first>>>(out, scratch);
  cudaDeviceSynchronize();
}
PLANT_STREAMS(default_stream)

// Halves that overlap by one element.
__global__ void overlap_double(const float* x, float* out, int start) {
  int i = start + threadIdx.x;
  out[i] = 2.0f * x[i];  // @overlap
}
template <bool fixed>
void overlap_launch(const float* x, float* out, int*) {
  Streams streams;
  overlap_double<<<1, 64, 0, streams.first>>>(x, out, 0);
  overlap_double<<<1, 64, 0, streams.second>>>(x, out, fixed ? 64 : 63);
  cudaDeviceSynchronize();
}
PLANT_STREAMS(overlap)

// The results are read on the default stream, which does not wait.
__global__ void never_joined_double(const float* x, float* out) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[i] = 2.0f * x[i];  // @never_joined
}
template <bool fixed>
void never_joined_launch(const float* x, float* out, int*) {
  Streams streams;
  never_joined_double<<<16, 64, 0, streams.first>>>(x, out);
  cudaEventRecord(streams.event, streams.first);
  cudaStreamWaitEvent(fixed ? nullptr : streams.second, streams.event, 0);
}
PLANT_STREAMS(never_joined)
