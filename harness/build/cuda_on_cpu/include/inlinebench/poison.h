// The byte pattern of memory that nothing was written to yet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inlinebench {

// 0x7fff in every 16 bits: NaN as half, bfloat16, float and double, and far out of range as an index.
inline unsigned char poison_byte(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) & 1 ? 0x7f : 0xff;
}

inline void poison(void* data, std::size_t bytes) {
  auto* byte = static_cast<unsigned char*>(data);
  while (bytes && reinterpret_cast<std::uintptr_t>(byte) % 8) *byte = poison_byte(byte), ++byte, --bytes;
  auto* word = reinterpret_cast<std::uint64_t*>(byte);
  for (std::size_t i = 0; i < bytes / 8; ++i) word[i] = 0x7fff7fff7fff7fffull;
  for (std::size_t i = bytes & ~std::size_t{7}; i < bytes; ++i) byte[i] = poison_byte(byte + i);
}

// The first byte of the range that does not hold the pattern, or null.
inline const unsigned char* find_unpoisoned(const void* data, std::size_t bytes) {
  auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i)
    if (byte[i] != poison_byte(byte + i)) return byte + i;
  return nullptr;
}

}  // namespace inlinebench
