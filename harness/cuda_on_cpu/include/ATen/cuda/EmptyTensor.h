// Tensors on the CPU, whatever device is asked for.
#pragma once

#include <ATen/EmptyTensor.h>

namespace at::detail {
inline TensorBase empty_cuda(IntArrayRef size, ScalarType dtype, std::optional<Device>,
                             std::optional<c10::MemoryFormat> format) {
  return empty_cpu(size, dtype, false, format);
}
inline TensorBase empty_cuda(IntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                             std::optional<Device>, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  return empty_cpu(size, dtype, layout, std::nullopt, false, format);
}
inline TensorBase empty_cuda(IntArrayRef size, const TensorOptions& options) {
  return empty_cpu(size, options.device(kCPU).pinned_memory(false));
}
inline TensorBase empty_strided_cuda(IntArrayRef size, IntArrayRef stride, ScalarType dtype, std::optional<Device>) {
  return empty_strided_cpu(size, stride, dtype);
}
inline TensorBase empty_strided_cuda(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                                     std::optional<Layout> layout, std::optional<Device>, std::optional<bool>) {
  return empty_strided_cpu(size, stride, dtype, layout, std::nullopt, false);
}
inline TensorBase empty_strided_cuda(IntArrayRef size, IntArrayRef stride, const TensorOptions& options) {
  return empty_strided_cpu(size, stride, options.device(kCPU).pinned_memory(false));
}
}  // namespace at::detail
