#include "clocks.h"

#include <algorithm>
#include <utility>

namespace cuda_on_cpu {

namespace {

bool knows_lane_by(const ClockPointer& clock, const BlockClock& block, const Access& access, std::uint32_t lane) {
  if (!clock) return false;
  auto known = clock->find(access.warp / block.warps);
  if (known == clock->end()) return false;
  const auto& [epoch, threads] = known->second;
  return access.epoch < epoch ||
         (threads && (*threads)[access.warp % block.warps * lanes_of_warp + lane] >= access.time);
}

}  // namespace

// What is known of single threads belongs to the epoch or to earlier ones, so a later epoch includes it.
void KnownBlock::join(const KnownBlock& other) {
  if (other.epoch > epoch) *this = other;
  if (other.epoch < epoch || !other.threads || threads == other.threads) return;
  if (!threads) {
    threads = other.threads;
    return;
  }
  if (threads.use_count() > 1) threads = std::make_shared<Times>(*threads);
  std::transform(threads->begin(), threads->end(), other.threads->begin(), threads->begin(),
                 [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}

void join(ClockPointer& into, const ClockPointer& from) {
  if (!from || into == from) return;
  if (!into) {
    into = from;
    return;
  }
  if (into.use_count() > 1) into = std::make_shared<Clock>(*into);
  for (const auto& [number, theirs] : *from) (*into)[number].join(theirs);
}

void Channel::join(const Channel& other) {
  cuda_on_cpu::join(fenced, other.fenced);
  cuda_on_cpu::join(loaded, other.loaded);
  cuda_on_cpu::join(relied, other.relied);
}

void Channel::learn(ClockPointer& learned) {
  cuda_on_cpu::join(learned, loaded);
  cuda_on_cpu::join(learned, relied);
  loaded.reset();
  relied.reset();
}

// Barriers pass fences on, in both directions. By the PTX model's causality order, a fence.sc of thread A that precedes
// an atomic write of thread B through a barrier synchronizes with a fence.sc of C after a read of that write: if C's came
// first in Fence-SC order, C's read would precede B's write. Likewise for a fence of D behind a barrier after C's read.
// So the writer's fence may be on either side of a barrier, and so may the reader's; a barrier alone is not a fence.
void Knowledge::join(const Knowledge& other) {
  cuda_on_cpu::join(learned, other.learned);
  device.join(other.device);
  block.join(other.block);
}

void Knowledge::pass_barrier() {
  for (Channel* channel : {&device, &block}) {
    cuda_on_cpu::join(channel->relied, channel->loaded);
    channel->loaded.reset();
  }
}

bool ThreadClock::knows(const Access& access) const {
  std::uint32_t in_block = access.warp - block->first_warp;
  if (in_block < block->warps) {
    if (access.epoch < block->epoch) return true;
    if (in_block != number / lanes_of_warp && !known.learned) return false;
  } else if (!known.learned) {
    return false;
  }
  for (std::uint32_t left = access.lanes; left; left &= left - 1)
    if (!knows_lane(access, static_cast<std::uint32_t>(__builtin_ctz(left)))) return false;
  return true;
}

bool ThreadClock::knows_lane(const Access& access, std::uint32_t lane) const {
  std::uint32_t in_block = access.warp - block->first_warp;
  if (in_block == number / lanes_of_warp && (lane == this->lane() || seen[lane] >= access.time)) return true;
  return knows_lane_by(known.learned, *block, access, lane);
}

bool ThreadClock::lacks_only_a_fence(const Access& access) const {
  if (!known.device.relied && !known.block.relied) return false;
  for (std::uint32_t left = access.lanes; left; left &= left - 1) {
    auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    if (!knows_lane(access, lane) && !knows_lane_by(known.device.relied, *block, access, lane) &&
        !knows_lane_by(known.block.relied, *block, access, lane))
      return false;
  }
  return true;
}

void ThreadClock::tell(ClockPointer& into) {
  if (!into)
    into = std::make_shared<Clock>();
  else if (into.use_count() > 1)
    into = std::make_shared<Clock>(*into);
  KnownBlock& own = (*into)[block->number];
  if (own.epoch < block->epoch) own = {block->epoch, nullptr};
  if (!own.threads)
    own.threads = std::make_shared<KnownBlock::Times>(block->warps * lanes_of_warp);
  else if (own.threads.use_count() > 1)
    own.threads = std::make_shared<KnownBlock::Times>(*own.threads);
  std::uint32_t* lanes = own.threads->data() + (number - lane());
  for (std::uint32_t other = 0; other < lanes_of_warp; ++other) lanes[other] = std::max(lanes[other], seen[other]);
  lanes[lane()] = time++;
}

// Threads of different blocks are in each other's scope only at device scope; else their fences and atomics are not
// morally strong, and do not synchronize.
void ThreadClock::fence_now(bool block_scope, bool acquires, bool releases) {
  block->differs = true;
  if (acquires) known.block.learn(known.learned);
  if (acquires && !block_scope) known.device.learn(known.learned);
  if (!releases) return;
  ClockPointer published = known.learned;
  tell(published);
  (block_scope ? known.block : known.device).fenced = std::move(published);
}

void BlockClock::begin(std::uint32_t block_number, std::uint32_t thread_count) {
  number = block_number;
  epoch = 1;
  warps = (thread_count + lanes_of_warp - 1) / lanes_of_warp;
  first_warp = number * warps;
  differs = false;
  meetings.clear();
  threads.resize(thread_count);
  for (std::uint32_t i = 0; i < thread_count; ++i) threads[i] = {this, i, 1, {}, {}};
}

void BlockClock::barrier() {
  ++epoch;
  if (!differs) return;
  differs = false;
  Knowledge all;
  for (ThreadClock& thread : threads) all.join(thread.known);
  all.pass_barrier();
  for (ThreadClock& thread : threads) thread.known = all;
}

void BlockClock::warp_sync(unsigned warp, unsigned lanes) {
  ThreadClock* first = &threads[warp * lanes_of_warp];
  std::uint32_t seen[lanes_of_warp] = {};
  Knowledge all;
  for (unsigned left = lanes; left; left &= left - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(left));
    ThreadClock& thread = first[lane];
    for (unsigned i = 0; i < lanes_of_warp; ++i) seen[i] = std::max(seen[i], thread.seen[i]);
    seen[lane] = std::max(seen[lane], thread.time++);
    if (differs) all.join(thread.known);
  }
  all.pass_barrier();
  for (unsigned left = lanes; left; left &= left - 1) {
    ThreadClock& thread = first[__builtin_ctz(left)];
    std::copy(std::begin(seen), std::end(seen), std::begin(thread.seen));
    if (differs) thread.known = all;
  }
}

void BlockClock::arrive(ThreadClock& thread, const void* barrier, bool relaxed) {
  Knowledge& arriving = meetings[barrier].arriving;
  if (relaxed) {
    join(arriving.learned, thread.known.device.fenced);
    join(arriving.learned, thread.known.block.fenced);
    return;
  }
  arriving.join(thread.known);
  arriving.pass_barrier();
  thread.tell(arriving.learned);
}

void BlockClock::complete(const void* barrier) {
  Meeting& meeting = meetings[barrier];
  meeting.complete = std::move(meeting.arriving);
  meeting.arriving = {};
}

void BlockClock::wait(ThreadClock& thread, const void* barrier, bool relaxed) {
  const Knowledge& complete = meetings[barrier].complete;
  differs = true;
  if (relaxed)
    join(thread.known.block.loaded, complete.learned);
  else
    thread.known.join(complete);
}

void Published::store(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope) {
  const ClockPointer &device = thread.known.device.fenced, &block = thread.known.block.fenced;
  if (kind == Kind::atomic_write && !at_.empty()) at_.erase(address);
  if (!device && !block) return;
  Entry& entry = at_[address];
  if (!block_scope) join(entry.device, device);
  if (entry.block_number != thread.block->number) entry.block.reset();
  entry.block_number = thread.block->number;
  join(entry.block, device);
  join(entry.block, block);
}

void Published::load(ThreadClock& thread, std::uintptr_t address, Kind kind, bool block_scope) {
  if (at_.empty()) return;
  auto found = at_.find(address);
  if (found == at_.end()) return;
  ClockPointer Channel::* into = kind == Kind::update ? &Channel::relied : &Channel::loaded;
  if (!block_scope) join(thread.known.device.*into, found->second.device);
  if (found->second.block_number == thread.block->number) join(thread.known.block.*into, found->second.block);
  thread.block->differs = true;
}

}  // namespace cuda_on_cpu
