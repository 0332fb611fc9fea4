// Checks of arguments, and small functions of the host.
#pragma once

#include <cstdint>
#include <limits>

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

namespace {

constexpr int kWarpSize = 32;
constexpr unsigned int kAllLanes = 0xffffffffu;
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();  // CUDA's limits on gridDim.x
constexpr int64_t kMaxGridY = 65535;                                 // and on gridDim.y and z

int64_t divide_up(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit;
}

// A grid of so many blocks. A grid without blocks is a launch error.
unsigned int blocks_for(int64_t count) {
  TORCH_CHECK(count <= kMaxBlocks, count, " blocks are too many for one launch");
  return static_cast<unsigned int>(count);
}

int multiprocessors(int device) {
  int count = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// Whether vectors of four floats can be read from the start of a tensor.
bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % sizeof(float4) == 0;
}

// A contiguous tensor of a type on a CUDA device. `name` says whose argument it is: "bmm: A".
void check_tensor(const at::Tensor& tensor, const char* name, at::ScalarType type, const at::Device& device) {
  TORCH_CHECK(tensor.is_cuda(), name, " must be on a CUDA device, but is on ", tensor.device());
  TORCH_CHECK(tensor.device() == device, name, " is on ", tensor.device(), ", but another argument is on ", device);
  TORCH_CHECK(tensor.scalar_type() == type, name, " must be ", type, ", but is ", tensor.scalar_type());
  TORCH_CHECK(
      tensor.is_contiguous(), name, " must be contiguous, but has shape ", tensor.sizes(), " and strides ",
      tensor.strides());
}

// The same with these sizes.
void check_shape(
    const at::Tensor& tensor, const char* name, at::ScalarType type, at::IntArrayRef sizes, const at::Device& device) {
  check_tensor(tensor, name, type, device);
  TORCH_CHECK(tensor.sizes() == sizes, name, " must have shape ", sizes, ", but its shape is ", tensor.sizes());
}

// The same for float32 and a number of dimensions.
void check_float(const at::Tensor& tensor, const char* name, int64_t dimensions, const at::Device& device) {
  check_tensor(tensor, name, at::kFloat, device);
  TORCH_CHECK(
      tensor.dim() == dimensions, name, " must have ", dimensions, " dimensions, but its shape is ", tensor.sizes());
}

// One value of a type for each of `count` features.
void check_feature(
    const at::Tensor& tensor, const char* name, int64_t count, const at::Device& device, at::ScalarType type) {
  check_tensor(tensor, name, type, device);
  TORCH_CHECK(
      tensor.dim() == 1 && tensor.size(0) == count, name, " must have one value for each of ", count,
      " features, but its shape is ", tensor.sizes());
}

// The same for float32.
const float* check_feature(const at::Tensor& tensor, const char* name, int64_t count, const at::Device& device) {
  check_feature(tensor, name, count, device, at::kFloat);
  return tensor.const_data_ptr<float>();
}

}  // namespace
