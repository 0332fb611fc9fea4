// Ends the process where an operation is used in a way that the hardware does not allow.
#pragma once

#include <cstdio>

#include "inlinebench/runtime.h"

namespace inlinebench {

[[noreturn]] inline void refuse(const char* what, const char* name, int line) {
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s of line %d", what, name, line);
  trap(text);
}

}  // namespace inlinebench
