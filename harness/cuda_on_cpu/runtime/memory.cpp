#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "cuda_on_cpu/poison.h"
#include "cuda_on_cpu/runtime.h"

namespace cuda_on_cpu {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t guard_bytes = 4 << 20;  // costs address space alone
constexpr std::size_t alignment = 64;     // what torch's CPU allocator promises
constexpr std::uintptr_t low_start = 0x10000000, low_end = std::uintptr_t{1} << 32;
constexpr std::size_t front_canary = 256;  // checked before a block; what lies before that isn't

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

struct Allocation {
  GuardedArea area;
  char* data;
  std::size_t bytes;
  std::uint64_t number;
  std::uint64_t canary;  // what lies around the data
};

struct Watched {
  const char* data;
  std::vector<char> copy;
};

// Never destroyed: tensors may be freed while the process ends.
struct Registry {
  std::mutex mutex;
  std::map<const char*, Allocation> live;  // by the address of the data
  std::map<const char*, Watched> watched;
  std::uint64_t allocations = 0;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

void* reserve(void* start, std::size_t size, int flags) {
  return mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

GuardedArea open_between(void* base, std::size_t body, std::size_t guard) {
  if (base == MAP_FAILED) throw std::bad_alloc();
  char* low = static_cast<char*>(base) + guard;
  if (mprotect(low, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, body + 2 * guard);
    throw std::bad_alloc();
  }
  return {low, low + body, guard};
}

std::string describe_overwrite(const Allocation& block, const unsigned char* byte) {
  return "out of bounds write, " + Extent{block.data, block.bytes, block.number}.distance(reinterpret_cast<const char*>(byte)) +
         " of a tensor or allocation of " + std::to_string(block.bytes) + " bytes";
}

}  // namespace

std::string Extent::distance(const char* byte) const {
  bool past = byte >= data + bytes;
  return std::to_string(past ? byte - (data + bytes) : data - byte) + (past ? " bytes past the end" : " bytes before the start");
}

GuardedArea GuardedArea::map(std::size_t bytes) {
  std::size_t body = round_up(std::max<std::size_t>(bytes, 1), page);
  return open_between(reserve(nullptr, body + 2 * guard_bytes, 0), body, guard_bytes);
}

GuardedArea GuardedArea::map_low(std::size_t bytes) {
  std::size_t body = round_up(std::max<std::size_t>(bytes, 1), page), size = body + 2 * page;
  for (std::uintptr_t start = low_start; start + size <= low_end; start += size) {
    void* base = reserve(reinterpret_cast<void*>(start), size, MAP_FIXED_NOREPLACE);
    if (reinterpret_cast<std::uintptr_t>(base) == start) return open_between(base, body, page);
    if (base != MAP_FAILED) munmap(base, size);  // a kernel that takes the address as a hint
  }
  throw std::bad_alloc();
}

void GuardedArea::unmap() { munmap(low - guard, static_cast<std::size_t>(high - low) + 2 * guard); }

void* allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  GuardedArea area = GuardedArea::map(round_up(bytes, alignment));
  char* data = area.high - round_up(bytes, alignment);
  char* end = data + bytes;
  auto& all = registry();
  std::unique_lock lock(all.mutex);
  std::uint64_t number = ++all.allocations, canary = canary_poison(number);
  lock.unlock();
  poison(area.low, static_cast<std::size_t>(data - area.low), canary);
  poison(data, bytes);
  poison(end, static_cast<std::size_t>(area.high - end), canary);
  lock.lock();
  all.live[data] = {area, data, bytes, number, canary};
  return data;
}

void release(void* data) {
  if (!data) return;
  auto& all = registry();
  GuardedArea area;
  {
    std::lock_guard lock(all.mutex);
    auto found = all.live.find(static_cast<const char*>(data));
    if (found == all.live.end()) return;
    area = found->second.area;
    all.live.erase(found);
  }
  area.unmap();
}

std::size_t allocation_size(const void* data) {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.live.find(static_cast<const char*>(data));
  return found == all.live.end() ? 0 : found->second.bytes;
}

Extent find_allocation(const char* byte) {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  auto found = all.live.upper_bound(byte);
  if (found == all.live.end() || !found->second.area.holds(byte)) {
    if (found == all.live.begin() || !(--found)->second.area.holds(byte)) return {};
  }
  return {found->first, found->second.bytes, found->second.number};
}

std::string find_overwritten() {
  auto& all = registry();
  std::lock_guard lock(all.mutex);
  for (const auto& [data, block] : all.live) {
    const char* end = data + block.bytes;
    if (auto* byte = find_unpoisoned(end, static_cast<std::size_t>(block.area.high - end), block.canary))
      return describe_overwrite(block, byte);
    auto front = std::min<std::size_t>(front_canary, static_cast<std::size_t>(data - block.area.low));
    if (auto* byte = find_unpoisoned(data - front, front, block.canary)) return describe_overwrite(block, byte);
  }
  for (const auto& [data, range] : all.watched)
    if (std::memcmp(data, range.copy.data(), range.copy.size()) != 0)
      return "out of bounds write into memory beside a tensor";
  return "";
}

}  // namespace cuda_on_cpu

extern "C" {

// Memory that kernels must not change (such as the bytes around a buffer that is not allocated here): compared with a
// copy after every launch until it is unwatched.
void cuda_on_cpu_watch(const void* data, std::size_t bytes) {
  auto& all = cuda_on_cpu::registry();
  std::lock_guard lock(all.mutex);
  auto* first = static_cast<const char*>(data);
  all.watched[first] = {first, std::vector<char>(first, first + bytes)};
}

void cuda_on_cpu_unwatch(const void* data) {
  auto& all = cuda_on_cpu::registry();
  std::lock_guard lock(all.mutex);
  all.watched.erase(static_cast<const char*>(data));
}

}  // extern "C"
