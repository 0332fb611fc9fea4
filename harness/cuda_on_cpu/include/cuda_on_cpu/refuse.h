// Ends the process where an operation is used in a way that the hardware does not allow.
#pragma once

#include <cstdio>

#include "cuda_on_cpu/runtime.h"

namespace cuda_on_cpu {

[[noreturn]] inline void refuse(const char* what, const char* name, int line) {
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s of line %d", what, name, line);
  trap(text);
}

}  // namespace cuda_on_cpu
