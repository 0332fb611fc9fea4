#include "async_copies.h"

#include <algorithm>
#include <cstring>

#include "cuda_on_cpu/async_copies.h"
#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

bool AsyncCopy::replaces() const {
  auto* rest = static_cast<const char*>(to) + copied;
  return std::memcmp(to, from, copied) != 0 || std::any_of(rest, rest + (bytes - copied), [](char byte) { return byte; });
}

void AsyncCopy::make() const {
  std::memcpy(to, from, copied);
  std::memset(static_cast<char*>(to) + copied, 0, bytes - copied);
}

void AsyncCopies::clear(std::size_t threads) {
  threads_.resize(threads);
  for (Thread& thread : threads_) {
    thread.pending.clear();
    thread.attached.clear();
    thread.ended = 0;
    thread.groups = 0;
  }
  attached_ = false;
}

void AsyncCopies::add(unsigned thread, const AsyncCopy& copy, bool at_once) {
  race_copy_starts(thread, copy);
  if (at_once) copy.make();
  threads_[thread].pending.push_back({copy, threads_[thread].groups, at_once});
}

void AsyncCopies::wait(unsigned thread, unsigned newest) {
  const Thread& owner = threads_[thread];
  const unsigned complete = owner.groups - std::min(newest, owner.groups);
  std::size_t copies = 0;
  while (copies < owner.pending.size() && owner.pending[copies].group < complete) ++copies;
  end(thread, copies);
}

void AsyncCopies::attach(unsigned thread, const void* barrier) {
  Thread& owner = threads_[thread];
  owner.attached.push_back({barrier, owner.ended + owner.pending.size(), race_now(thread)});
  attached_ = true;
}

void AsyncCopies::complete(const void* barrier) {
  if (!attached_) return;
  for (unsigned thread = 0; thread < threads_.size(); ++thread) {
    Thread& owner = threads_[thread];
    for (const Attachment& attachment : owner.attached)
      if (attachment.barrier == barrier && attachment.copies > owner.ended)
        end(thread, attachment.copies - owner.ended);
    owner.attached.erase(std::remove_if(owner.attached.begin(), owner.attached.end(),
                                        [barrier](const Attachment& known) { return known.barrier == barrier; }),
                         owner.attached.end());
  }
}

void AsyncCopies::finish(unsigned thread) {
  end(thread, threads_[thread].pending.size());
}

// For the race detector, a copy that is attached ends when it was attached: that is what those learn who wait for the
// phase.
void AsyncCopies::end(unsigned thread, std::size_t copies) {
  if (!copies) return;
  Thread& owner = threads_[thread];
  auto last = owner.pending.begin() + static_cast<std::ptrdiff_t>(copies);
  auto attachment = owner.attached.begin();
  for (auto next = owner.pending.begin(); next != last; ++next, ++owner.ended) {
    if (!next->made) next->copy.make();
    while (attachment != owner.attached.end() && attachment->copies <= owner.ended) ++attachment;
    race_copy_ends(thread, next->copy, attachment == owner.attached.end() ? race_now(thread) : attachment->moment);
  }
  owner.pending.erase(owner.pending.begin(), last);
}

void copy_async(void* to, const void* from, std::size_t bytes, std::size_t copied) {
  Worker& worker = *Worker::existing();
  worker.copies().add(worker.running(), {to, from, bytes, copied, __builtin_return_address(0)}, worker.job()->reversed);
}
void commit_copies() {
  Worker& worker = *Worker::existing();
  worker.copies().commit(worker.running());
}
void wait_for_copies(unsigned newest) {
  Worker& worker = *Worker::existing();
  worker.copies().wait(worker.running(), newest);
}
void attach_copies(const void* barrier) {
  Worker& worker = *Worker::existing();
  worker.copies().attach(worker.running(), barrier);
}

}  // namespace cuda_on_cpu
