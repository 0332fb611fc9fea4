// Finds data races: two accesses to the same bytes, one of them a write, not both atomic, that nothing orders.
//
// Translated sources are compiled with -fsanitize=thread, which calls the functions in race_hooks.cpp before each
// access. Each access is compared with the earlier ones to its bytes (shadow.h): it races with one that its thread does
// not know of (clocks.h). So a race is found whatever order the threads ran in; only which branches are taken, and what
// atomics return, depends on the order. Between launches nothing is kept, unless there are several streams
// (stream_races.cpp).
//
// What the shadow keeps: the last plain write, and of reads and atomics after it those of two warps in each of two
// blocks. That is enough for every race as long as barriers alone order threads. From the first fence or arrival of a
// launch on, all are kept (most_kept), because a write may be ordered after some of them and not after others.
//
// The detector is used by one OS thread at a time: blocks run one after the other while it is on, or take turns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "async_copies.h"
#include "clocks.h"
#include "cuda_on_cpu/runtime.h"
#include "shadow.h"
#include "streams.h"

namespace cuda_on_cpu {

enum class Cause : std::uint8_t {
  unordered,
  in_flight,  // the first one is a copy that was not waited for
  // A fence after an atomic would order them. PTX wants that fence. But popular kernels lack it, among them NVIDIA's own
  // sample of a sum in one pass, and the hardware does not run later loads ahead of an atomic whose result they depend
  // on. So it is a note, and so are the next three.
  lacks_fence,
  sizes,        // both are atomics, but of different sizes
  lost_update,  // both store what they made of a value that they loaded before
  // They are ordered, but one of them reads memory that must not change during the launch. Noted where the hardware gives
  // the right value: the read came first, or the same thread wrote.
  read_only_noted,
  read_only,
};

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
  Cause cause = Cause::unordered;
  std::string outside;  // where an access lies that is out of bounds

  bool only_noted() const { return cause >= Cause::lacks_fence && cause <= Cause::read_only_noted; }
  int grade() const { return only_noted() ? 0 : changes || !outside.empty() ? 2 : 1; }
};

class RaceDetector {
 public:
  static RaceDetector& instance();

  // Looks at as many accesses from here on as take some seconds. Those of later ones are not seen.
  void begin_call();
  void begin_launch(const LaunchInfo& info);
  // The launch that writes these bytes on a stream for which the default stream, where results are read, does not wait; or "".
  std::string find_unordered(const char* data, std::size_t bytes);
  // Whether an earlier launch of this kernel in the process updated global memory atomically.
  bool uses_atomics(const LaunchInfo& info) const { return atomic_kernels_.count(info.kernel) != 0; }
  // Ends the launch. Gives what makes it wrong, or "", and appends what does not to the notes.
  std::string end_launch();
  std::string take_notes();
  // What was found so far, for a launch that cannot end.
  std::string findings_so_far();

  void grid_barrier();
  // Checks and remembers an access; adds to it who makes it and when.
  void access(ThreadClock& thread, const void* data, std::size_t bytes, Access& access);
  void fence(ThreadClock& thread, bool block_scope, bool acquires, bool releases);
  // From here on, threads order others one by one in this launch.
  void orders_threads() { keeps_all_ = true; }
  // What is not an error by itself, once.
  void add_note(const std::string& note);
  void start_copy(ThreadClock& thread, const AsyncCopy& copy);
  void end_copy(ThreadClock& thread, const AsyncCopy& copy, Moment moment);

 private:
  // Bytes of an allocation that a launch accesses at one place of the source.
  struct Range {
    std::uintptr_t low, high;
    std::uint64_t pc;
    std::uint64_t allocation;
    Kind kind;
  };
  // All that a launch accesses.
  struct Footprint {
    std::string kernel;
    LaunchMoment moment;
    std::vector<Range> ranges;
  };

  struct Pending {
    std::size_t finding;
    std::uintptr_t address;
    std::vector<char> before;
  };
  struct RecentRead {
    const ThreadClock* thread;
    std::uintptr_t address;
    std::uint64_t pc;
    bool is_by(const ThreadClock& other, std::uintptr_t at) const { return thread == &other && address == at; }
  };
  // The last reads of all threads, for what the same thread does to the address afterwards.
  struct RecentReads {
    RecentRead reads[16] = {};
    unsigned next = 0;
    void add(const RecentRead& read) { reads[next++ % std::size(reads)] = read; }
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
  void report(ThreadClock& thread, Cause cause, const Access& first, const Access& second, std::uintptr_t address,
              const Page& page, const Cell& cell);
  void follow_reads(ThreadClock& thread, std::uintptr_t address, Access& access);
  void settle();
  std::vector<Range> accessed();
  std::string compare_streams(std::vector<Range> ranges);
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
  RecentReads plain_reads_, atomic_reads_;
  Extent recent_arrays_[4];  // of the launch's last accesses; most are in one of them
  unsigned next_array_ = 0;
  bool keeps_all_ = false;
  bool updates_global_ = false;           // whether the launch does so atomically
  std::set<std::string> atomic_kernels_;  // the names of those that did
  std::string notes_;
  LaunchTimes known_;  // what the launch is ordered after
  LaunchMoment moment_;
  std::vector<Footprint> footprints_;  // of this call's launches, where there are several streams
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

// The return address of the last access that the runtime made itself, such as an atomic: a fault in it is the source's.
extern CUDA_ON_CPU_TLS void* runtime_access;

// For accesses that the runtime makes for a thread. `pc` is where the source asked for them.
void remember_access(ThreadClock& thread, const void* data, std::size_t bytes, Kind kind, void* pc);
inline void race_access(const void* data, std::size_t bytes, Kind kind, void* pc) {
  if (race_thread) remember_access(*race_thread, data, bytes, kind, pc);
}

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
