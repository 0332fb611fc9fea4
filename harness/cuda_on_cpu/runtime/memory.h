// Guarded allocations: each ends at a page that cannot be touched, give or take alignment, with canaries in the slack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_on_cpu {

// A region mapped between two guards that cannot be touched, for data that ends where the second one begins.
struct GuardedArea {
  char* low = nullptr;    // first usable byte
  char* high = nullptr;   // first byte of the upper guard
  std::size_t guard = 0;  // bytes of each guard

  static GuardedArea map(std::size_t bytes);      // throws std::bad_alloc
  static GuardedArea map_low(std::size_t bytes);  // below 4 GiB, for addresses that fit into 32 bits
  void unmap();
  bool holds(const char* byte) const { return byte >= low - guard && byte < high + guard; }
};

// An array of a kernel: a tensor, an allocation, a variable in shared memory.
struct Extent {
  const char* data = nullptr;  // null if there is none
  std::size_t bytes = 0;
  std::uint64_t number = 0;  // of the allocation, because another one can get its address

  bool holds(const char* byte, std::size_t count) const { return byte >= data && byte + count <= data + bytes; }
  // "4 bytes past the end", for a byte outside.
  std::string distance(const char* byte) const;
};

// The tensor or allocation that contains an address, or whose guards do: they are large, so that an access past the end
// seldom reaches another tensor.
Extent find_allocation(const char* byte);

// Empty if all canaries and watched ranges are intact; otherwise what was overwritten.
std::string find_overwritten();

}  // namespace cuda_on_cpu
