// torch::cuda: the device that this runs on.
#pragma once

#include <cstdint>

#include "cuda_on_cpu/stream.h"

namespace torch::cuda {
inline int device_count() { return 1; }
inline bool is_available() { return true; }
inline bool cudnn_is_available() { return false; }
inline void manual_seed(std::uint64_t) {}
inline void manual_seed_all(std::uint64_t) {}
inline void synchronize(std::int64_t = -1) { cuda_on_cpu_synchronize_device(); }
}  // namespace torch::cuda
