// The byte patterns of memory that nothing was written to yet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

// 0x7fff in every 16 bits: NaN as half, bfloat16, float and double, and far out of range as an index.
constexpr std::uint64_t plain_poison = 0x7fff7fff7fff7fffull;
// A number above 60000 in all of these formats, and far out of range as an index.
constexpr std::uint64_t large_poison = 0x7b7b7b7b7b7b7b7bull;

// As plain_poison, but each 16 bits are one of 14 other such NaNs: for canaries. Arithmetic keeps the bits of a NaN, so
// what a kernel computes from one block's canary would pass for the next block's if they were alike.
inline std::uint64_t canary_poison(std::uint64_t number) {
  std::uint64_t bits = number * 0x9e3779b97f4a7c15ull;
  bits = (bits ^ (bits >> 31)) * 0xbf58476d1ce4e5b9ull;
  std::uint64_t word = 0;
  for (int shift = 0; shift < 64; shift += 16) word |= (0x7ff1 + ((bits >> shift) & 0xffff) % 14) << shift;
  return word;
}

inline unsigned char poison_byte(const void* address, std::uint64_t word = plain_poison) {
  return static_cast<unsigned char>(word >> (8 * (reinterpret_cast<std::uintptr_t>(address) % 8)));
}

inline void poison(void* data, std::size_t bytes, std::uint64_t word = plain_poison) {
  auto* byte = static_cast<unsigned char*>(data);
  while (bytes && reinterpret_cast<std::uintptr_t>(byte) % 8) *byte = poison_byte(byte, word), ++byte, --bytes;
  auto* words = reinterpret_cast<std::uint64_t*>(byte);
  for (std::size_t i = 0; i < bytes / 8; ++i) words[i] = word;
  for (std::size_t i = bytes & ~std::size_t{7}; i < bytes; ++i) byte[i] = poison_byte(byte + i, word);
}

// The first byte of the range that does not hold the pattern, or null.
inline const unsigned char* find_unpoisoned(const void* data, std::size_t bytes, std::uint64_t word = plain_poison) {
  auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i)
    if (byte[i] != poison_byte(byte + i, word)) return byte + i;
  return nullptr;
}

}  // namespace cuda_on_cpu
