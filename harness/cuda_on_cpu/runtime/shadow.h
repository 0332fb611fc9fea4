// Shadow memory of the race detector: for each granule of a kernel's memory, who accessed it last.
//
// A granule has 4 bytes, until a page sees an access that is smaller or not aligned; then the granules of this page have
// 2 bytes or 1. So 16-bit neighbours are never taken for one variable. Only memory that threads can share is shadowed:
// tensors and allocations, __shared__ memory, and the global variables of translated modules. Stacks and the host's
// heap are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "memory.h"

namespace cuda_on_cpu {

enum class Kind : std::uint8_t { read, write, atomic_read, atomic_write, update };  // update: reads and writes atomically

constexpr bool is_atomic(Kind kind) { return kind >= Kind::atomic_read; }
constexpr bool writes(Kind kind) { return kind != Kind::read && kind != Kind::atomic_read; }

// One access, or several by lanes of a warp at the same line and time.
//
// The order of the fields and `word` are for speed: what is written in parts and read at once stalls, and accesses are
// copied right after they are made, 16 bytes and then 8 at a time.
struct Access {
  std::uint32_t warp = 0;   // counted over the whole grid
  std::uint32_t lanes = 0;
  std::uint32_t epoch = 0;  // how many barriers the block had passed
  std::uint32_t time = 0;   // the thread's own time, which counts what it published
  union {
    std::uint64_t word = 0;
    struct {
      std::uint64_t pc : 48;         // the return address of the instrumentation's call; 0 if there was no access
      Kind kind : 3;
      std::uint8_t size : 3;         // of an atomic: log2 of its bytes
      std::uint8_t block_scope : 1;  // an atomic that is one for its own block only
      std::uint8_t accumulates : 1;  // an update whose result depends on how often it runs, such as atomicAdd
      std::uint8_t in_flight : 1;    // by an asynchronous copy that was not waited for: no thread knows it, not even its own
      std::uint8_t replaces : 1;     // by a copy of other bytes than there were
      std::uint8_t read_only : 1;    // a read of what must not change during the launch, such as __ldg
      std::uint8_t overwrites : 1;   // an atomic write or exchange, which forgets the value before it
      std::uint8_t modifies : 1;     // one that follows a read of the same thread: together they should be one update
      std::uint8_t keeps : 1;        // an update that changes nothing, such as atomicAdd(x, 0): a way to read
      std::uint8_t unused : 2;
    };
  };

  Access() = default;
  Access(const void* place, Kind how, unsigned log2_bytes = 0)
      : word(reinterpret_cast<std::uintptr_t>(place) | std::uint64_t(how) << 48 | std::uint64_t(log2_bytes) << 51) {}
};

struct Node {
  Access access;
  std::uint32_t next;  // 0 ends a list
};

struct Cell {
  Access write{};            // the last plain write
  std::uint32_t before = 0;  // the bytes that it replaced
  std::uint32_t others = 0;  // later plain reads, and atomics
};

enum class Memory : std::uint8_t { ignored, global, shared };

struct Region {
  Memory memory = Memory::ignored;
  Extent array;  // the tensor or allocation that the page belongs to, if any
};

constexpr unsigned page_bits = 12;
constexpr std::uintptr_t page_bytes = std::uintptr_t{1} << page_bits;

struct Page {
  std::uint64_t generation = 0;
  Memory memory = Memory::ignored;
  Extent array;
  unsigned shift = 2;  // a granule has 1 << shift bytes
  std::vector<Cell> cells;
};

class Shadow {
 public:
  // Forgets all accesses: everything before is ordered before everything after.
  void clear();
  // The page around an address. `region_at` says what memory this is, and is asked once after each clear().
  Page& page(std::uintptr_t address, Region (*region_at)(std::uintptr_t)) {
    Page* known = cache_[(address >> page_bits) % cached];
    if (known && known->generation == generation_ && tags_[(address >> page_bits) % cached] == address >> page_bits)
      return *known;
    return load(address, region_at);
  }
  // Makes the granules of a page at most 1 << shift bytes.
  void split(Page& page, unsigned shift);

  // Calls `visit(page, address)` for each page that was accessed since the last clear().
  template <class Visit>
  void for_each_page(Visit visit) {
    for (const auto& [tag, page] : pages_)
      if (page->generation == generation_ && page->memory != Memory::ignored) visit(*page, tag << page_bits);
  }

  Node& node(std::uint32_t index) { return nodes_[index]; }
  void push(Cell& cell, const Access& access);
  void release(std::uint32_t list);

 private:
  static constexpr std::size_t cached = 4096;

  Page& load(std::uintptr_t address, Region (*region_at)(std::uintptr_t));

  std::uint64_t generation_ = 1;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::vector<Page*> cache_ = std::vector<Page*>(cached);
  std::vector<std::uintptr_t> tags_ = std::vector<std::uintptr_t>(cached);
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::uint32_t free_ = 0;
};

}  // namespace cuda_on_cpu
