#include "async_copies.h"

#include <algorithm>
#include <cstring>

#include "cuda_on_cpu/async_copies.h"
#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

void AsyncCopies::clear(std::size_t threads) {
  threads_.resize(threads);
  for (Thread& thread : threads_) thread.pending.clear(), thread.groups = 0;
}

void AsyncCopies::add(unsigned thread, void* to, const void* from, std::size_t bytes, std::size_t copied,
                      void* pc) {
  threads_[thread].pending.push_back({to, from, bytes, copied, pc, threads_[thread].groups});
}

void AsyncCopies::wait(unsigned thread, unsigned newest) {
  auto& [pending, groups] = threads_[thread];
  const unsigned complete = groups - std::min(newest, groups);
  std::size_t made = 0;
  while (made < pending.size() && pending[made].group < complete) make(pending[made++]);
  pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(made));
}

void AsyncCopies::finish(unsigned thread) {
  for (const Copy& copy : threads_[thread].pending) make(copy);
  threads_[thread].pending.clear();
}

void AsyncCopies::make(const Copy& copy) {
  race_access(copy.from, copy.copied, Kind::read, copy.pc);
  race_access(copy.to, copy.bytes, Kind::write, copy.pc);
  std::memcpy(copy.to, copy.from, copy.copied);
  std::memset(static_cast<char*>(copy.to) + copy.copied, 0, copy.bytes - copy.copied);
}

void copy_async(void* to, const void* from, std::size_t bytes, std::size_t copied) {
  Worker& worker = *Worker::existing();
  worker.copies().add(worker.running(), to, from, bytes, copied, __builtin_return_address(0));
  if (worker.job()->reversed) worker.copies().finish(worker.running());
}
void commit_copies() {
  Worker& worker = *Worker::existing();
  worker.copies().commit(worker.running());
}
void wait_for_copies(unsigned newest) {
  Worker& worker = *Worker::existing();
  worker.copies().wait(worker.running(), newest);
}
void finish_copies() {
  Worker& worker = *Worker::existing();
  worker.copies().finish(worker.running());
}

}  // namespace cuda_on_cpu
