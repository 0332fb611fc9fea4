// Loading this library makes torch's CPU tensors guarded allocations of ours, so that a kernel's overrun is found.
//
// Tensors made before keep their memory and their deleter.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "cuda_on_cpu/runtime.h"

namespace {

class GuardedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = cuda_on_cpu::allocate(bytes);
    return {data, data, &cuda_on_cpu::release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &cuda_on_cpu::release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// Never destroyed: tensors may outlive this library's other objects.
const bool installed = [] {
  c10::SetCPUAllocator(new GuardedAllocator, 255);
  return true;
}();

}  // namespace
