#include "races.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda_on_cpu/poison.h"
#include "memory.h"
#include "worker.h"

namespace cuda_on_cpu {

CUDA_ON_CPU_TLS ThreadClock* race_thread;

namespace {

constexpr std::size_t most_findings = 64;
constexpr unsigned most_kept = 64;  // accesses of one kind to a granule

std::uint32_t bytes_at(std::uintptr_t address, unsigned count) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, reinterpret_cast<const void*>(address), count);
  return bytes;
}

bool same_moment(const Access& a, const Access& b) {
  return a.warp == b.warp && a.lanes == b.lanes && a.epoch == b.epoch && a.time == b.time;
}

// Whether whoever races with the older access also races with the newer one, which the same thread or a later one made.
bool covers(const Access& newer, const Access& older) {
  return (newer.kind == older.kind || (newer.kind == Kind::update && is_atomic(older.kind))) &&
         !newer.in_flight && !older.in_flight && (newer.read_only || !older.read_only);
}

// Whether both are by the same instruction at the same time, if perhaps by other lanes.
bool is_repeated(const Access& a, const Access& b) {
  return a.word == b.word && a.warp == b.warp && a.epoch == b.epoch && a.time == b.time;
}

bool filters_an_update(const Access& read, const Access& update) {
  return read.kind == Kind::read && update.kind == Kind::update && !update.accumulates;
}

// Only a barrier can order such a pair in shared memory, so bytes that happen to be equal do not excuse it.
bool lacks_barrier(const Access& a, const Access& b) {
  return (a.kind == Kind::read && b.kind == Kind::write) || (a.kind == Kind::write && b.kind == Kind::read);
}

// Whether a thread read what it wrote itself, as where all threads write one value and use it.
bool reads_own_write(const Access& read, const Cell& cell) {
  return read.kind == Kind::read && cell.write.pc && cell.write.warp == read.warp && cell.write.lanes == read.lanes &&
         cell.write.epoch == read.epoch;
}

}  // namespace

Region region_at(std::uintptr_t address) {
  auto* byte = reinterpret_cast<const char*>(address);
  if (Worker::existing()->in_shared(byte)) return {Memory::shared, {}};
  Extent array = find_allocation(byte);
  return {array.data || in_instrumented_module(address) ? Memory::global : Memory::ignored, array};
}

RaceDetector& RaceDetector::instance() {
  static auto* detector = new RaceDetector;  // kernels may run while the process ends
  return *detector;
}

void RaceDetector::begin_launch(const LaunchInfo& info) {
  info_ = &info;
  keeps_all_ = updates_global_ = false;
  std::fill(std::begin(recent_arrays_), std::end(recent_arrays_), Extent{});
  if (info.stream != no_stream) {
    known_ = Streams::instance().known(info.stream);
    moment_ = Streams::instance().begin_launch(info.stream);
  }
  grid_barrier();
}

void RaceDetector::grid_barrier() {
  settle();
  shadow_.clear();
  published_.clear();
}

std::string RaceDetector::end_launch() {
  settle();
  std::string text = findings_so_far();
  if (info_->stream != no_stream && Streams::instance().several()) {
    std::string unordered = compare_streams(accessed());
    if (text.empty()) text = std::move(unordered);
  }
  if (updates_global_) atomic_kernels_.insert(info_->kernel);
  info_ = nullptr;
  findings_.clear();
  filters_.clear();
  return text;
}

std::string RaceDetector::take_notes() { return std::exchange(notes_, std::string()); }

void RaceDetector::access(ThreadClock& thread, const void* data, std::size_t bytes, Access& access) {
  if (!pending_.empty()) settle();
  if (left_ == 0) return;
  if (--left_ == 0) notes_ += "data races: only the first accesses of a call were looked at, because it has too many\n";
  auto address = reinterpret_cast<std::uintptr_t>(data);
  if (!is_atomic(access.kind) && address % page_bytes + bytes <= page_bytes &&
      shadow_.page(address, region_at).memory == Memory::ignored)
    return;  // most often a thread's own variable
  access.warp = thread.warp();
  access.lanes = 1u << thread.lane();
  access.epoch = thread.block->epoch;
  access.time = thread.time;
  if (!check_bounds(thread, static_cast<const char*>(data), bytes, access)) return;
  follow_reads(thread, address, access);
  if (access.kind == Kind::update || access.kind == Kind::atomic_read)
    published_.load(thread, address, access.kind, access.block_scope);
  for_each_cell(data, bytes, [&](Page& page, Cell& cell, std::uintptr_t at) { check(thread, page, cell, at, access); });
  if (access.kind == Kind::update || access.kind == Kind::atomic_write)
    published_.store(thread, address, access.kind, access.block_scope);
}

bool RaceDetector::check_bounds(ThreadClock& thread, const char* data, std::size_t bytes, const Access& access) {
  for (const Extent& array : recent_arrays_)
    if (array.holds(data, bytes)) return true;
  const Page& page = shadow_.page(reinterpret_cast<std::uintptr_t>(data), region_at);
  if (page.memory == Memory::ignored) return true;
  const Worker& worker = *Worker::existing();
  Extent array = page.memory == Memory::shared ? worker.shared_array(data) : page.array;
  if (!array.data) return true;
  if (array.holds(data, bytes)) {
    recent_arrays_[next_array_++ % std::size(recent_arrays_)] = array;
    return true;
  }
  Finding finding;
  finding.second = {access.pc, access.kind, thread.block->number, thread.number, access.in_flight != 0};
  finding.outside = worker.describe_outside(array.holds(data, 1) ? array.data + array.bytes : data, array);
  add(std::move(finding));
  return false;
}

// Finds out what an access does with a value that its thread read before from the same address: a plain read is a filter
// of an update, and an atomic read makes an overwriting access a modification.
void RaceDetector::follow_reads(ThreadClock& thread, std::uintptr_t address, Access& access) {
  if (access.kind == Kind::read) return plain_reads_.add({&thread, address, access.pc});
  if (access.kind == Kind::write) return;
  if (access.kind == Kind::update)
    for (const RecentRead& read : plain_reads_.reads)
      if (read.is_by(thread, address) && std::find(filters_.begin(), filters_.end(), read.pc) == filters_.end())
        filters_.push_back(read.pc);
  if (access.kind == Kind::atomic_read || access.keeps) return atomic_reads_.add({&thread, address, access.pc});
  for (RecentRead& read : atomic_reads_.reads) {
    if (!read.is_by(thread, address)) continue;
    access.modifies = access.overwrites;
    read = {};
  }
}

void RaceDetector::check(ThreadClock& thread, Page& page, Cell& cell, std::uintptr_t address, const Access& access) {
  if (cell.others) {
    const Access& last = shadow_.node(cell.others).access;
    if (is_repeated(last, access) && (last.lanes & access.lanes)) return;
  }
  if (page.memory == Memory::shared) {  // what an earlier block left there is not this block's
    std::uint32_t warp = cell.write.pc ? cell.write.warp : cell.others ? shadow_.node(cell.others).access.warp : 0;
    if ((cell.write.pc || cell.others) && warp - thread.block->first_warp >= thread.block->warps) {
      shadow_.release(cell.others);
      cell = {};
    }
  }
  updates_global_ |= access.kind == Kind::update && page.memory == Memory::global;
  bool reads = access.kind != Kind::write && access.kind != Kind::atomic_write;
  if (reads && !is_written(cell)) check_initialised(thread, page, address, access);

  bool raced = cell.write.pc && (cell.write.in_flight || !thread.knows(cell.write));
  if (raced) report(thread, Cause::unordered, cell.write, access, address, page, cell);
  else if (cell.write.pc && access.read_only)
    report(thread, thread.made(cell.write) ? Cause::read_only_noted : Cause::read_only, cell.write, access, address, page,
           cell);
  bool knows_newest = knows_newest_update(thread, cell);
  for (std::uint32_t index = cell.others; index; index = shadow_.node(index).next) {
    const Access other = shadow_.node(index).access;
    if (!writes(access.kind) && !writes(other.kind)) continue;
    bool ordered = !other.in_flight && thread.knows(other);
    bool atomics = is_atomic(access.kind) && is_atomic(other.kind);
    bool other_scope = (access.block_scope || other.block_scope) &&
                       other.warp - thread.block->first_warp >= thread.block->warps;
    if (access.modifies && other.modifies && !ordered)
      report(thread, Cause::lost_update, other, access, address, page, cell);
    else if (access.read_only && ordered)
      report(thread, Cause::read_only, other, access, address, page, cell);
    else if (other.read_only && ordered && !thread.made(other))
      report(thread, Cause::read_only_noted, other, access, address, page, cell);
    else if (ordered || (knows_newest && is_atomic(other.kind) && !other.block_scope))
      continue;
    else if (!atomics || other_scope)
      report(thread, Cause::unordered, other, access, address, page, cell);
    else if (access.size != other.size && (access.kind == Kind::update || other.kind == Kind::update))
      report(thread, Cause::sizes, other, access, address, page, cell);
  }
  if (access.kind != Kind::write) return remember(thread, cell, access);
  shadow_.release(cell.others);
  cell.others = 0;
  // Of several writes that a reader can miss together, the bytes before the first one count.
  if (!raced && !(cell.write.pc && same_moment(cell.write, access))) cell.before = bytes_at(address, 1u << page.shift);
  cell.write = access;
}

// Whoever knows of the newest update is ordered after all atomics on these bytes: they are in one order, fences or not.
// So the last block to count itself may clear the counter.
bool RaceDetector::knows_newest_update(const ThreadClock& thread, const Cell& cell) {
  for (std::uint32_t index = cell.others; index; index = shadow_.node(index).next) {
    const Access& other = shadow_.node(index).access;
    if (other.kind == Kind::update) return !other.block_scope && thread.knows(other);
  }
  return false;
}

bool RaceDetector::is_written(const Cell& cell) {
  bool written = cell.write.pc != 0;
  for (std::uint32_t index = cell.others; index && !written; index = shadow_.node(index).next)
    written = writes(shadow_.node(index).access.kind);
  return written;
}

void RaceDetector::check_initialised(ThreadClock& thread, const Page& page, std::uintptr_t address,
                                     const Access& access) {
  std::uint64_t unwritten = page.memory == Memory::shared ? Worker::existing()->shared_poison() : plain_poison;
  // All four bytes, because one or two of them can be a value that was written.
  if (find_unpoisoned(reinterpret_cast<const void*>(address & ~std::uintptr_t{3}), 4, unwritten)) return;
  Finding::Side side{access.pc, access.kind, thread.block->number, thread.number, access.in_flight != 0};
  add({{}, side, Worker::existing()->name_memory(reinterpret_cast<const void*>(address)), false, false});
}

// Adds a read or an atomic to the list, newest first. The list stays short: older ones that it covers go, and while
// barriers alone order threads, of concurrent ones those of two other warps of the block and of two other blocks are enough. Then it takes the place of one
// of them, if it is an update, because the newest one has to be known.
void RaceDetector::remember(ThreadClock& thread, Cell& cell, const Access& access) {
  constexpr std::uint32_t none = ~0u;
  std::uint32_t a_warp = none, a_block = none;
  bool two_warps = false, two_blocks = false, own_warp = false;
  unsigned kept = 0;
  std::uint32_t* replaced = nullptr;
  for (std::uint32_t* link = &cell.others; *link;) {
    std::uint32_t index = *link;
    Access& other = shadow_.node(index).access;
    bool same_warp = other.warp == access.warp;
    if (is_repeated(other, access)) {
      other.lanes |= access.lanes;
      return;
    }
    if (covers(access, other) && thread.knows(other)) {
      *link = shadow_.node(index).next;
      shadow_.node(index).next = 0;
      shadow_.release(index);
      continue;
    }
    if (other.kind == access.kind) {
      ++kept;
      if (same_warp) {
        own_warp = true;
      } else if (other.warp - thread.block->first_warp < thread.block->warps) {
        two_warps |= a_warp != none && a_warp != other.warp;
        a_warp = other.warp;
        replaced = link;
      } else {
        std::uint32_t block = other.warp / thread.block->warps;
        two_blocks |= a_block != none && a_block != block;
        a_block = block;
        if (a_warp == none) replaced = link;
      }
    }
    link = &shadow_.node(index).next;
  }
  bool enough = keeps_all_ ? kept >= most_kept : !own_warp && (a_warp == none ? two_blocks : two_warps);
  if (enough && access.kind != Kind::update) return;
  if (enough && replaced) {
    std::uint32_t index = *replaced;
    *replaced = shadow_.node(index).next;
    shadow_.node(index).next = 0;
    shadow_.release(index);
  }
  shadow_.push(cell, access);
}

void RaceDetector::report(ThreadClock& thread, Cause cause, const Access& first, const Access& second,
                          std::uintptr_t address, const Page& page, const Cell& cell) {
  std::uint32_t lanes = first.lanes;
  while (lanes & (lanes - 1) && !first.in_flight && thread.knows_lane(first, static_cast<std::uint32_t>(__builtin_ctz(lanes))))
    lanes &= lanes - 1;
  std::uint32_t warps = thread.block->warps;
  auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
  Finding finding;
  bool copies = second.in_flight && writes(second.kind);
  finding.first = {first.pc, first.kind, first.warp / warps, first.warp % warps * lanes_of_warp + lane,
                   first.in_flight != 0};
  finding.second = {second.pc, second.kind, thread.block->number, thread.number, second.in_flight != 0};
  finding.filters = filters_an_update(first, second) || filters_an_update(second, first);
  unsigned bytes = 1u << page.shift;
  bool decided_later = !copies && second.kind == Kind::write && !(is_atomic(first.kind) && writes(first.kind));
  std::uint32_t now = bytes_at(address, bytes), mask = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
  finding.cause = first.in_flight                                                       ? Cause::in_flight
                  : cause == Cause::unordered && thread.lacks_only_a_fence(first) ? Cause::lacks_fence
                                                                                  : cause;
  finding.changes = !decided_later && !(first.kind == Kind::write && !writes(second.kind) && now == (cell.before & mask));
  if (page.memory == Memory::shared && lacks_barrier(first, second) && !reads_own_write(first, cell)) finding.changes = true;
  // The data of copies arrive later, or have arrived.
  if (copies) finding.changes = second.replaces;
  if (first.in_flight && first.replaces) finding.changes = true;
  auto index = add(std::move(finding));
  if (index == most_findings) return;
  if (findings_[index].memory.empty())
    findings_[index].memory = Worker::existing()->name_memory(reinterpret_cast<const void*>(address));
  if (decided_later && !findings_[index].changes) {
    auto* data = reinterpret_cast<const char*>(address);
    pending_.push_back({index, address, std::vector<char>(data, data + bytes)});
  }
}

// The instrumentation calls before a write. What it changed is seen at the next call.
void RaceDetector::settle() {
  for (const Pending& write : pending_)
    if (std::memcmp(reinterpret_cast<const void*>(write.address), write.before.data(), write.before.size()) != 0)
      findings_[write.finding].changes = true;
  pending_.clear();
}

// One finding for each pair of places, in either order; gives its index.
std::size_t RaceDetector::add(Finding finding) {
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    Finding& known = findings_[i];
    bool same = known.first.is_like(finding.first) && known.second.is_like(finding.second);
    if (!same && !(known.first.is_like(finding.second) && known.second.is_like(finding.first))) continue;
    if (finding.grade() > known.grade()) {
      finding.memory = std::move(known.memory);
      known = std::move(finding);
    }
    return i;
  }
  if (findings_.size() == most_findings) return most_findings;
  findings_.push_back(std::move(finding));
  return findings_.size() - 1;
}

bool RaceDetector::is_wrong(const Finding& finding) const {
  if (!finding.filters || finding.only_noted()) return finding.grade() == 2;
  std::uint64_t read = finding.first.kind == Kind::read ? finding.first.pc : finding.second.pc;
  return finding.changes && std::find(filters_.begin(), filters_.end(), read) == filters_.end();
}

void race_begin_phases(const void* barrier) {
  if (race_thread) race_thread->block->meetings.erase(barrier);
}
void race_arrive(const void* barrier, bool relaxed) {
  if (!race_thread) return;
  RaceDetector::instance().orders_threads();
  race_thread->block->arrive(*race_thread, barrier, relaxed);
}
void race_wait(const void* barrier, bool relaxed) {
  if (race_thread) race_thread->block->wait(*race_thread, barrier, relaxed);
}
void race_fence(bool block_scope, bool acquires, bool releases) {
  if (race_thread) RaceDetector::instance().fence(*race_thread, block_scope, acquires, releases);
}

void RaceDetector::add_note(const std::string& note) {
  if (notes_.find(note) == std::string::npos) notes_ += note + "\n";
}

void RaceDetector::fence(ThreadClock& thread, bool block_scope, bool acquires, bool releases) {
  if (!pending_.empty()) settle();
  orders_threads();
  thread.fence_now(block_scope, acquires, releases);
}

}  // namespace cuda_on_cpu
