// Scratch memory that is allocated directly from the allocator.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda::CUDACachingAllocator {
inline c10::Allocator* get() { return c10::GetAllocator(c10::DeviceType::CPU); }
inline void* raw_alloc(std::size_t bytes) { return cuda_on_cpu::allocate(bytes); }
inline void raw_delete(void* data) { cuda_on_cpu::release(data); }
inline void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) {}
inline void emptyCache() {}
}  // namespace c10::cuda::CUDACachingAllocator
