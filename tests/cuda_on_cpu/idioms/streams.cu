// Work on several streams that events, waits or the default stream order.
#include "case.h"

__global__ void add(const float* x, float* out, int start, float value) {
  int i = start + threadIdx.x;
  out[i] = x[i] + value;
}
__global__ void sum(const float* out, int* scratch, int parts) {
  float total = 0.0f;
  for (int part = 0; part < parts; ++part) total += out[part * 64 + threadIdx.x];
  scratch[threadIdx.x] = total > 100.0f;
}

// Forks from the default stream into others and joins them again.

HONEST_HOST(fork_and_join) {
  cudaStream_t streams[3];
  cudaEvent_t fork, join[3];
  cudaEventCreate(&fork);
  add<<<1, 256>>>(x, out, 0, 1.0f);
  cudaEventRecord(fork);
  for (int i = 0; i < 3; ++i) {
    cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    cudaEventCreate(&join[i]);
    cudaStreamWaitEvent(streams[i], fork);
    add<<<1, 64, 0, streams[i]>>>(out, out, i * 64, 2.0f);
    cudaEventRecord(join[i], streams[i]);
    cudaStreamWaitEvent(nullptr, join[i]);
  }
  sum<<<1, 64>>>(out, scratch, 3);
  for (int i = 0; i < 3; ++i) cudaEventDestroy(join[i]), cudaStreamDestroy(streams[i]);
  cudaEventDestroy(fork);
}

// Each stream has a workspace, which the next one's may get the address of.
HONEST_HOST(workspaces) {
  for (int i = 0; i < 3; ++i) {
    cudaStream_t stream;
    float* workspace;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocAsync(&workspace, 64 * sizeof(float), stream);
    add<<<1, 64, 0, stream>>>(x, workspace, 0, 1.0f);
    add<<<1, 64, 0, stream>>>(workspace, out + i * 64, 0, 1.0f);
    cudaFreeAsync(workspace, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  sum<<<1, 64>>>(out, scratch, 3);
}

// A stream that is not made with cudaStreamNonBlocking and the default stream wait for each other.
HONEST_HOST(blocking_stream) {
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  add<<<1, 64>>>(x, out, 0, 1.0f);
  add<<<1, 64, 0, stream>>>(out, out, 0, 1.0f);
  sum<<<1, 64>>>(out, scratch, 1);
  add<<<1, 64, 0, stream>>>(out, out, 0, 1.0f);
  cudaStreamDestroy(stream);
}
