// Asynchronous copies in the race detector. PTX performs the reads and writes of cp.async at some time before the wait for
// it returns, as weak accesses that nothing else orders. So from its start on they are marked in the shadow memory as
// unknown to every thread; at the end they become accesses of the thread that waited.
#include "races.h"

namespace cuda_on_cpu {

void RaceDetector::start_copy(ThreadClock& thread, const AsyncCopy& copy) {
  Access started{};
  started.pc = reinterpret_cast<std::uint64_t>(copy.pc);
  started.in_flight = 1;
  started.kind = Kind::read;
  access(thread, copy.from, copy.copied, started);
  started.kind = Kind::write;
  started.replaces = copy.replaces();
  access(thread, copy.to, copy.bytes, started);
}

void RaceDetector::end_copy(ThreadClock& thread, const AsyncCopy& copy, Moment moment) {
  if (left_ == 0) return;
  Access ended{};
  ended.pc = reinterpret_cast<std::uint64_t>(copy.pc);
  ended.warp = thread.warp();
  ended.lanes = 1u << thread.lane();
  ended.epoch = moment.epoch;
  ended.time = moment.time;
  auto is_own = [&ended](const Access& access) {
    return access.in_flight && access.pc == ended.pc && access.warp == ended.warp && (access.lanes & ended.lanes);
  };
  ended.kind = Kind::write;
  for_each_cell(copy.to, copy.bytes, [&](Page&, Cell& cell, std::uintptr_t) {
    if (is_own(cell.write)) cell.write = ended;
  });
  ended.kind = Kind::read;
  for_each_cell(copy.from, copy.copied, [&](Page&, Cell& cell, std::uintptr_t) {
    for (std::uint32_t* link = &cell.others; *link; link = &shadow_.node(*link).next) {
      std::uint32_t index = *link;
      Access& started = shadow_.node(index).access;
      if (!is_own(started)) continue;
      started.lanes &= ~ended.lanes;
      if (!started.lanes) {
        *link = shadow_.node(index).next;
        shadow_.node(index).next = 0;
        shadow_.release(index);
      }
      return remember(thread, cell, ended);
    }
  });
}

void race_copy_starts(std::uint32_t thread, const AsyncCopy& copy) {
  if (race_thread) RaceDetector::instance().start_copy(race_thread->block->threads[thread], copy);
}
void race_copy_ends(std::uint32_t thread, const AsyncCopy& copy, Moment moment) {
  if (race_thread) RaceDetector::instance().end_copy(race_thread->block->threads[thread], copy, moment);
}
Moment race_now(std::uint32_t thread) {
  if (!race_thread) return {};
  const BlockClock& block = *race_thread->block;
  return {block.epoch, block.threads[thread].time};
}

}  // namespace cuda_on_cpu
