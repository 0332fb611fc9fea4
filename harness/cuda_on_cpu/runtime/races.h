// Finds data races: two accesses to the same bytes, one of them a write, not both atomic, that nothing orders.
//
// Translated sources are compiled with -fsanitize=thread, which calls the functions in race_hooks.cpp before each
// access. Each access is compared with the earlier ones to its bytes (shadow.h): it races with one that its thread does
// not know of (clocks.h). So a race is found whatever order the threads ran in; only which branches are taken, and what
// atomics return, depends on the order. Launches are ordered, so nothing is kept between them.
//
// What the shadow keeps: the last plain write, and of reads and atomics after it those of two warps in each of two
// blocks. That is enough for every race, unless atomics order a write after the ones that are kept and not after one
// that is not kept.
//
// The detector is used by one OS thread at a time: blocks run one after the other while it is on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "async_copies.h"
#include "clocks.h"
#include "cuda_on_cpu/runtime.h"
#include "shadow.h"

namespace cuda_on_cpu {

// A race, a read of what nobody wrote, or an access out of bounds, at a pair of places in the source.
struct Finding {
  struct Side {
    std::uint64_t pc;
    Kind kind;
    std::uint32_t block, thread;
    bool copies;  // asynchronously
    bool is_like(const Side& other) const { return pc == other.pc && kind == other.kind; }
  };
  Side first, second;  // only a race has a first one
  std::string memory;  // "`out` (global)"
  bool changes;        // whether other bytes were written, or a result can change
  bool filters;        // a plain read against an update that has no effect when it is repeated, such as atomicMax
  // Whether a fence after an atomic would order them. PTX wants that fence. But popular kernels lack it, among them
  // NVIDIA's own sample of a sum in one pass, and the hardware does not run later loads ahead of an atomic whose result
  // they depend on. So it is a note.
  bool unfenced = false;

  bool in_flight = false;  // whether the first one is a copy that was not waited for
  std::string outside;     // where an access lies that is out of bounds

  int grade() const { return unfenced ? 0 : changes || !outside.empty() ? 2 : 1; }
};

class RaceDetector {
 public:
  static RaceDetector& instance();

  // Looks at as many accesses from here on as take some seconds. Those of later ones are not seen.
  void begin_call() { left_ = most_accesses; }
  void begin_launch(const LaunchInfo& info);
  // Ends the launch. Gives what makes it wrong, or "", and appends what does not to the notes.
  std::string end_launch();
  std::string take_notes();
  // What was found so far, for a launch that cannot end.
  std::string findings_so_far();

  void grid_barrier();
  void access(ThreadClock& thread, const void* data, std::size_t bytes, Access access);
  void fence(ThreadClock& thread, bool block_scope, bool acquires, bool releases);
  void start_copy(ThreadClock& thread, const AsyncCopy& copy);
  void end_copy(ThreadClock& thread, const AsyncCopy& copy, Moment moment);

 private:
  struct Pending {
    std::size_t finding;
    std::uintptr_t address;
    std::vector<char> before;
  };
  struct RecentRead {
    const ThreadClock* thread;
    std::uintptr_t address;
    std::uint64_t pc;
  };

  // Calls `visit(page, cell, address)` for each granule of memory that is looked at.
  template <class Visit>
  void for_each_cell(const void* data, std::size_t bytes, Visit visit);
  // Whether it lies in one array, or in memory that has no known arrays.
  bool check_bounds(ThreadClock& thread, const char* data, std::size_t bytes, const Access& access);
  void check(ThreadClock& thread, Page& page, Cell& cell, std::uintptr_t address, const Access& access);
  bool is_written(const Cell& cell);
  bool knows_newest_update(const ThreadClock& thread, const Cell& cell);
  void check_initialised(ThreadClock& thread, const Page& page, std::uintptr_t address, const Access& access);
  void remember(ThreadClock& thread, Cell& cell, const Access& access);
  void report(ThreadClock& thread, const Access& first, const Access& second, std::uintptr_t address, const Page& page,
              const Cell& cell);
  void settle();
  std::size_t add(Finding finding);
  std::string describe(const Finding& finding, const std::string& first, const std::string& second) const;
  bool is_wrong(const Finding& finding) const;

  static constexpr std::uint64_t most_accesses = 200'000'000;

  const LaunchInfo* info_ = nullptr;
  std::uint64_t left_ = most_accesses;
  Shadow shadow_;
  Published published_;
  std::vector<Finding> findings_;
  std::vector<Pending> pending_;
  std::vector<std::uint64_t> filters_;  // plain reads that a thread follows up with an atomic on the same address
  RecentRead recent_[16] = {};
  unsigned next_recent_ = 0;
  std::string notes_;
};

Region region_at(std::uintptr_t address);

template <class Visit>
void RaceDetector::for_each_cell(const void* data, std::size_t bytes, Visit visit) {
  auto address = reinterpret_cast<std::uintptr_t>(data);
  while (bytes) {
    Page& page = shadow_.page(address, region_at);
    std::size_t inside = std::min<std::size_t>(bytes, page_bytes - address % page_bytes);
    if (page.memory != Memory::ignored) {
      auto aligned = static_cast<unsigned>(__builtin_ctzll(address | inside | 4));
      if (aligned < page.shift) shadow_.split(page, aligned);
      std::size_t granule = std::size_t{1} << page.shift;
      for (std::size_t done = 0; done < inside; done += granule)
        visit(page, page.cells[(address + done) % page_bytes >> page.shift], address + done);
    }
    address += inside;
    bytes -= inside;
  }
}

// The CUDA thread that runs on this OS thread, or null where races are not looked for.
extern CUDA_ON_CPU_TLS ThreadClock* race_thread;

// For accesses that the runtime makes for a thread. `pc` is where the source asked for them.
void race_access(const void* data, std::size_t bytes, Kind kind, void* pc);

// Copies by threads of the running block. They read and write at some time between their start and their end.
void race_copy_starts(std::uint32_t thread, const AsyncCopy& copy);
void race_copy_ends(std::uint32_t thread, const AsyncCopy& copy, Moment moment);
Moment race_now(std::uint32_t thread);

// Modules that are instrumented: their global variables are global memory.
void add_instrumented_module(const void* code);
bool in_instrumented_module(std::uintptr_t address);

constexpr const char* unknown_line = "an unknown line";
// "kernel.cu:41" for each return address, by addr2line; the innermost line that is not in the headers of this package.
std::vector<std::string> source_lines(const std::vector<std::uint64_t>& pcs);

}  // namespace cuda_on_cpu
