#include "clocks.h"

#include <algorithm>

namespace cuda_on_cpu {

void join(ClockPointer& into, const ClockPointer& from) {
  if (!from || into == from) return;
  if (!into) {
    into = from;
    return;
  }
  if (into.use_count() > 1) into = std::make_shared<Clock>(*into);
  for (const auto& [number, theirs] : *from) {
    KnownBlock& ours = (*into)[number];
    ours.epoch = std::max(ours.epoch, theirs.epoch);
    for (const auto& [thread, time] : theirs.threads) {
      std::uint32_t& known = ours.threads[thread];
      known = std::max(known, time);
    }
  }
}

bool ThreadClock::knows(const Access& access) const {
  std::uint32_t in_block = access.warp - block->first_warp;
  if (in_block < block->warps) {
    if (access.epoch < block->epoch) return true;
    if (in_block != number / lanes_of_warp && !learned) return false;
  } else if (!learned) {
    return false;
  }
  for (std::uint32_t left = access.lanes; left; left &= left - 1)
    if (!knows_lane(access, static_cast<std::uint32_t>(__builtin_ctz(left)))) return false;
  return true;
}

bool ThreadClock::knows_lane(const Access& access, std::uint32_t lane) const {
  std::uint32_t in_block = access.warp - block->first_warp;
  if (in_block == number / lanes_of_warp && (lane == this->lane() || seen[lane] >= access.time)) return true;
  if (!learned) return false;
  auto known = learned->find(access.warp / block->warps);
  if (known == learned->end()) return false;
  if (access.epoch < known->second.epoch) return true;
  auto thread = known->second.threads.find(access.warp % block->warps * lanes_of_warp + lane);
  return thread != known->second.threads.end() && thread->second >= access.time;
}

void ThreadClock::fence_now(bool block_scope) {
  join(learned, pending);
  pending.reset();
  block->learned |= learned != nullptr;
  auto mine = std::make_shared<Clock>();
  KnownBlock& own = (*mine)[block->number];
  own.epoch = block->epoch;
  std::uint32_t first = number - lane();
  for (std::uint32_t other = 0; other < lanes_of_warp; ++other)
    if (seen[other]) own.threads[first + other] = seen[other];
  own.threads[number] = time++;
  join(mine, learned);
  (block_scope ? block_fence : fence) = std::move(mine);
}

void BlockClock::begin(std::uint32_t block_number, std::uint32_t thread_count) {
  number = block_number;
  epoch = 1;
  warps = (thread_count + lanes_of_warp - 1) / lanes_of_warp;
  first_warp = number * warps;
  learned = false;
  threads.resize(thread_count);
  for (std::uint32_t i = 0; i < thread_count; ++i) threads[i] = {this, i, 1, {}, {}, {}, {}, {}};
}

void BlockClock::barrier() {
  ++epoch;
  if (!learned) return;
  learned = false;
  ClockPointer all;
  for (ThreadClock& thread : threads) {
    join(all, thread.learned);
    join(all, thread.pending);
    thread.pending.reset();
  }
  for (ThreadClock& thread : threads) thread.learned = all;
}

void BlockClock::warp_sync(unsigned warp, unsigned lanes) {
  ThreadClock* first = &threads[warp * lanes_of_warp];
  std::uint32_t seen[lanes_of_warp] = {};
  ClockPointer all;
  for (unsigned left = lanes; left; left &= left - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(left));
    ThreadClock& thread = first[lane];
    for (unsigned i = 0; i < lanes_of_warp; ++i) seen[i] = std::max(seen[i], thread.seen[i]);
    seen[lane] = std::max(seen[lane], thread.time++);
    join(all, thread.learned);
    join(all, thread.pending);
    thread.pending.reset();
  }
  for (unsigned left = lanes; left; left &= left - 1) {
    ThreadClock& thread = first[__builtin_ctz(left)];
    std::copy(std::begin(seen), std::end(seen), std::begin(thread.seen));
    thread.learned = all;
  }
}

void Published::store(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope) {
  bool publishes = thread.fence || thread.block_fence;
  if (kind == Kind::atomic_write && !at_.empty()) at_.erase(address);
  if (!publishes) return;
  Entry& entry = at_[address];
  if (!block_scope) join(entry.device, thread.fence);
  if (entry.block_number != thread.block->number) entry.block.reset();
  entry.block_number = thread.block->number;
  join(entry.block, thread.fence);
  join(entry.block, thread.block_fence);
}

void Published::load(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope) {
  if (at_.empty()) return;
  auto found = at_.find(address);
  if (found == at_.end()) return;
  // An update is taken for an acquire. PTX wants a fence after it as well, but the programming guide's own sum of block
  // results has none, and the hardware does not run loads ahead of it.
  ClockPointer& into = kind == Kind::update ? thread.learned : thread.pending;
  if (!block_scope) join(into, found->second.device);
  if (found->second.block_number == thread.block->number) join(into, found->second.block);
  thread.block->learned = true;
}

}  // namespace cuda_on_cpu
