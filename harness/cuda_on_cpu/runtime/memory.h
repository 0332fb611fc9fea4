// Guarded allocations: each ends at a page that cannot be touched, give or take alignment, with canaries in the slack.
#pragma once

#include <cstddef>
#include <string>

namespace cuda_on_cpu {

// A region mapped between two guard pages, for data that ends where the second one begins.
struct GuardedArea {
  char* low = nullptr;   // first usable byte
  char* high = nullptr;  // first byte of the upper guard page

  static GuardedArea map(std::size_t bytes);      // throws std::bad_alloc
  static GuardedArea map_low(std::size_t bytes);  // below 4 GiB, for addresses that fit into 32 bits
  void unmap();
};

// The allocation of the tensor or buffer that contains an address; 0 bytes if there is none.
struct Found {
  const char* data = nullptr;
  std::size_t bytes = 0;
};
Found find_allocation(const char* byte);

// Empty if all canaries and watched ranges are intact; otherwise what was overwritten.
std::string find_overwritten();

// For the fault handler: "4 bytes past the end of an allocation of 400 bytes", or null. Never waits for a lock. The text
// is written into `text`.
const char* describe_address(const void* address, char* text, std::size_t size);

}  // namespace cuda_on_cpu
