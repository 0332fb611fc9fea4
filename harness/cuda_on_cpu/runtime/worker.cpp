#include "worker.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "cuda_on_cpu/poison.h"
#include "interleaving.h"
#include "races.h"

extern "C" {
CUDA_ON_CPU_TLS uint3 threadIdx;
CUDA_ON_CPU_TLS uint3 blockIdx;
CUDA_ON_CPU_TLS dim3 blockDim;
CUDA_ON_CPU_TLS dim3 gridDim;
CUDA_ON_CPU_TLS std::uint64_t cuda_on_cpu_block_epoch;
}

namespace cuda_on_cpu {

namespace {

constexpr std::size_t static_limit = 48 * 1024;    // what ptxas allows for static shared memory
constexpr std::size_t static_room = 1024 * 1024;   // with canaries and alignment in between
constexpr std::size_t dynamic_room = 256 * 1024;
constexpr std::size_t signal_stack_bytes = 64 * 1024;

CUDA_ON_CPU_TLS Worker* this_worker;

}  // namespace

std::string text_of(const dim3& size) {
  return "(" + std::to_string(size.x) + ", " + std::to_string(size.y) + ", " + std::to_string(size.z) + ")";
}

Worker::Worker()
    : fibres_(&Worker::fibre_main),
      static_area_(GuardedArea::map_low(static_room)),
      dynamic_area_(GuardedArea::map_low(dynamic_room)),
      signal_stack_(new char[signal_stack_bytes]) {
  // A fault is reported from a stack of its own: the faulting one may be the one that overflowed.
  stack_t stack{};
  stack.ss_sp = signal_stack_;
  stack.ss_size = signal_stack_bytes;
  sigaltstack(&stack, nullptr);
}

Worker::~Worker() {
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  delete[] signal_stack_;
  static_area_.unmap();
  dynamic_area_.unmap();
}

Worker& Worker::current() {
  if (!this_worker) {
    // On the heap, because there is little room for thread-local variables of a library that is loaded late.
    thread_local std::unique_ptr<Worker> worker(new Worker);
    this_worker = worker.get();
  }
  return *this_worker;
}

Worker* Worker::existing() { return this_worker; }

void Worker::begin(const Job& job) {
  job_ = &job;
  const LaunchInfo& info = *job.info;
  dim3 block = info.block;
  threads_in_block_ = block.x * block.y * block.z;
  index_.clear();
  for (unsigned z = 0; z < block.z; ++z)
    for (unsigned y = 0; y < block.y; ++y)
      for (unsigned x = 0; x < block.x; ++x) index_.push_back({x, y, z});
  threads_.resize(threads_in_block_);
  warps_.resize((threads_in_block_ + 31) / 32);
  ready_.reserve(threads_in_block_);
  gridDim = info.grid;
  blockDim = block;
  std::size_t padded = (info.shared_bytes + 127) / 128 * 128;
  dynamic_ = dynamic_area_.high - padded;
}

void Worker::end() {
  job_ = nullptr;
  race_thread = nullptr;
}

std::string Worker::run_block(uint3 block) {
  blockIdx = block;
  ++cuda_on_cpu_block_epoch;
  shared_variables_.clear();
  static_top_ = static_area_.low;
  static_bytes_ = 0;
  poison_dynamic();
  ready_.clear();
  ready_head_ = 0;
  at_barrier_.clear();
  barrier_ = {};
  for (NamedBarrier& barrier : named_barriers_) barrier = {};
  at_phase_.clear();
  progress_ = false;
  copies_.clear(threads_in_block_);
  started_ = 0;
  alive_ = threads_in_block_;
  for (unsigned warp = 0; warp < warps_.size(); ++warp) {
    unsigned lanes = std::min(32u, threads_in_block_ - warp * 32);
    warps_[warp] = {lanes == 32 ? 0xffffffffu : (1u << lanes) - 1, 0, 0};
  }
  error_.clear();
  if (job_->races) clock_.begin((block.z * gridDim.y + block.y) * gridDim.x + block.x, threads_in_block_);

  // A fibre comes back here only when no thread can run.
  while (alive_ && error_.empty()) {
    if (Fibre* next = next_runnable()) {
      fibre_ = next;
      switch_context(scheduler_, next->context);
    } else if (!release_converging() && !(progress_ && wake_phase_waiters(false))) {
      error_ = divergence();
    }
  }
  if (!error_.empty()) {
    fibres_.reset();
    return error_;
  }
  return find_shared_overrun();
}

void Worker::fibre_main() {
  for (;;) {
    Worker& worker = *this_worker;
    try {
      worker.job_->body(worker.job_->closure);
    } catch (const std::exception& exception) {
      worker.fail("exception in " + worker.place() + ": " + exception.what());
    } catch (...) {
      worker.fail("exception in " + worker.place());
    }
    worker.leave_fibre();
  }
}

// The thread order of the second schedule is the reverse, so that neither order hides a race for long.
void Worker::start(unsigned nth, Fibre* fibre) {
  unsigned thread = job_->reversed ? threads_in_block_ - 1 - nth : nth;
  threads_[thread].fibre = fibre;
  make_current(thread);
}

void Worker::make_current(unsigned thread) {
  running_ = thread;
  threads_[thread].state = State::running;
  threadIdx = index_[thread];
  if (job_->races) race_thread = &clock_.threads[thread];
}

void Worker::make_ready(unsigned thread) {
  threads_[thread].state = State::ready;
  ready_.push_back(thread);
}

// Threads that waited go first: a warp then runs on to its end, and its fibres serve the next warp.
Fibre* Worker::next_runnable() {
  if (ready_head_ < ready_.size()) {
    unsigned thread = ready_[ready_head_++];
    if (ready_head_ == ready_.size()) {
      ready_.clear();
      ready_head_ = 0;
    }
    make_current(thread);
    return threads_[thread].fibre;
  }
  if (started_ < threads_in_block_) {
    Fibre* fibre = fibres_.take();
    start(started_++, fibre);
    return fibre;
  }
  return nullptr;
}

void Worker::park() {
  Fibre* self = fibre_;
  Fibre* next = next_runnable();
  if (next == self) return;
  fibre_ = next;
  switch_context(self->context, next ? next->context : scheduler_);
}

void Worker::leave_fibre() {
  fibres_.give(fibre_);
  park();
}

bool Worker::next_thread() {
  thread_exited();
  if (started_ == threads_in_block_ || ready_head_ < ready_.size()) return false;
  start(started_++, fibre_);
  return true;
}

void Worker::thread_exited() {
  threads_[running_].state = State::exited;
  copies_.finish(running_);
  progress_ = true;
  --alive_;
  unsigned index = running_ / 32;
  Warp& warp = warps_[index];
  warp.alive &= ~(1u << (running_ & 31));
  if (barrier_.arrived && barrier_.arrived == alive_) release_barrier();
  // Whoever waited only for this lane can go on.
  for (unsigned waiting = warp.waiting; waiting;) {
    const Thread& thread = threads_[index * 32 + static_cast<unsigned>(__builtin_ctz(waiting))];
    bool completed = complete_warp_operation(index, thread.mask, thread.operation, -1);
    waiting &= completed ? warp.waiting : waiting - 1;
  }
}

int Worker::block_barrier(BlockBarrier kind, int value, int line) {
  if (barrier_.arrived == 0) {
    barrier_.kind = kind;
    barrier_.line = line;
    barrier_.count = 0;
  } else if (barrier_.line != line || barrier_.kind != kind) {
    threads_[running_].line = line;
    threads_[running_].state = State::block_barrier;
    fail(divergence());
  }
  ++barrier_.arrived;
  barrier_.count += value;
  if (barrier_.arrived == alive_) {
    release_barrier();
  } else {
    threads_[running_].state = State::block_barrier;
    threads_[running_].line = line;
    at_barrier_.push_back(running_);
    park();
  }
  return barrier_.result;
}

// The result stays until the next barrier is complete, and that needs every thread to have left this one.
void Worker::release_barrier() {
  int count = barrier_.count, arrived = static_cast<int>(barrier_.arrived);
  switch (barrier_.kind) {
    case BlockBarrier::sync: break;
    case BlockBarrier::grid: meet_other_blocks(); break;
    case BlockBarrier::count: barrier_.result = count; break;
    case BlockBarrier::all: barrier_.result = count == arrived; break;
    case BlockBarrier::any: barrier_.result = count != 0; break;
  }
  if (job_->races) clock_.barrier();
  for (unsigned thread : at_barrier_) make_ready(thread);
  at_barrier_.clear();
  barrier_.arrived = 0;
  progress_ = true;
  if (job_->races) Interleaving::yield();
}

void Worker::named_barrier(unsigned number, unsigned count, bool waits, int line) {
  std::string where = " at " + place() + ", line " + std::to_string(line);
  if (number >= std::size(named_barriers_)) fail("invalid barrier" + where + ": a block has barriers 0 to 15");
  if (count == 0 || count % 32 || count > (threads_in_block_ + 31) / 32 * 32)
    fail("invalid barrier" + where + ": the number of threads is not a multiple of 32, or exceeds the size of the block");
  NamedBarrier& barrier = named_barriers_[number];
  if (barrier.arrived && barrier.count != count)
    fail("invalid barrier" + where + ": " + std::to_string(count) + " threads are expected, but those that arrived " +
         "before expect " + std::to_string(barrier.count));
  barrier.count = count;
  race_arrive(&barrier, false);
  if (++barrier.arrived == count) {
    if (job_->races) clock_.complete(&barrier);
    for (unsigned thread : barrier.waiting) {
      if (job_->races) clock_.wait(clock_.threads[thread], &barrier, false);
      make_ready(thread);
    }
    if (waits) race_wait(&barrier, false);
    barrier = {};
    progress_ = true;
  } else if (waits) {
    threads_[running_].state = State::block_barrier;
    threads_[running_].line = line;
    barrier.waiting.push_back(running_);
    park();
  }
}

bool Worker::wait_for_phase(int line) {
  Thread& self = threads_[running_];
  self.state = State::phase;
  self.line = line;
  at_phase_.push_back(running_);
  park();
  return self.result;
}

void Worker::mbarrier_changed(const void* complete) {
  progress_ = true;
  if (!complete) return;
  copies_.complete(complete);
  if (job_->races) clock_.complete(complete);
  wake_phase_waiters(true);
}

// Those who wait look again. `complete` is false if no thread can run: one of them may have to do something else first.
bool Worker::wake_phase_waiters(bool complete) {
  progress_ = complete;
  for (unsigned thread : at_phase_) {
    threads_[thread].result = complete;
    make_ready(thread);
  }
  return !std::exchange(at_phase_, {}).empty();
}

// On the calling fibre the whole OS thread waits. It may be a fibre whose CUDA thread returned, which cannot fail.
void Worker::meet_other_blocks() {
  std::string place = std::string(job_->info->kernel) + ", line " + std::to_string(barrier_.line) + ": ";
  if (!job_->cooperative)
    error_ = "barrier divergence at " + place + "grid.sync() needs a launch by cudaLaunchCooperativeKernel";
  else if (!job_->cooperative->wait([this] {
             if (job_->races) RaceDetector::instance().grid_barrier();
           }))
    error_ = "barrier divergence at " + place + "some blocks of the grid end without this barrier";
}

void Worker::warp_collective(unsigned mask, void* post, WarpOperation operation, const char* name, int line) {
  unsigned index = running_ / 32, bit = 1u << (running_ & 31);
  Thread& self = threads_[running_];
  if (!(mask & bit))
    fail("invalid warp mask at " + place() + ", line " + std::to_string(line) + ": lane " + std::to_string(lane()) +
         " calls " + name + " with a mask that leaves itself out");
  self.state = State::warp;
  self.line = line;
  self.mask = mask;
  self.post = post;
  self.operation = operation;
  self.name = name;
  warps_[index].waiting |= bit;
  if (complete_warp_operation(index, mask, operation, static_cast<int>(running_)))
    self.state = State::running;
  else
    park();
}

// Lanes that returned, and lanes beyond the end of the block, do not count.
bool Worker::complete_warp_operation(unsigned index, unsigned mask, WarpOperation operation, int except) {
  Warp& warp = warps_[index];
  unsigned needed = mask & warp.alive;
  if (!needed || (warp.waiting & needed) != needed) return false;
  void* posts[32] = {};
  Thread* lanes = &threads_[index * 32];
  for (unsigned left = needed; left; left &= left - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(left));
    if (lanes[lane].mask != mask || lanes[lane].operation != operation) return false;
    posts[lane] = lanes[lane].post;
  }
  if (operation)
    operation(needed, posts);
  else if (job_->races)
    clock_.warp_sync(index, needed);
  warp.waiting &= ~needed;
  for (unsigned left = needed; left; left &= left - 1) {
    unsigned thread = index * 32 + static_cast<unsigned>(__builtin_ctz(left));
    if (static_cast<int>(thread) != except) make_ready(thread);
  }
  return true;
}

// The value is not defined, but the lane may discard it, as after a reduction of fewer lanes.
void Worker::missing_lane(unsigned lane, unsigned missing) const {
  if (!job_->races) return;
  unsigned number = running_ / 32 * 32 + lane;
  const Thread& thread = threads_[number];
  RaceDetector::instance().add_note("uninitialised read of lane " + std::to_string(missing) + " in kernel " +
                                    job_->info->kernel + ": lane " + std::to_string(lane) + " reads it by " + thread.name +
                                    ", line " + std::to_string(thread.line) + ", in which it takes no part");
}

unsigned Worker::active_mask(int line) {
  Thread& self = threads_[running_];
  self.state = State::converging;
  self.line = line;
  warps_[running_ / 32].converging |= 1u << (running_ & 31);
  park();
  return threads_[running_].result;
}

// When nothing else can run, the lanes of a warp that wait at the same line are the ones that are there together.
bool Worker::release_converging() {
  for (unsigned index = 0; index < warps_.size(); ++index) {
    Warp& warp = warps_[index];
    if (!warp.converging) continue;
    int line = threads_[index * 32 + static_cast<unsigned>(__builtin_ctz(warp.converging))].line;
    unsigned together = 0;
    for (unsigned left = warp.converging; left; left &= left - 1) {
      auto lane = static_cast<unsigned>(__builtin_ctz(left));
      if (threads_[index * 32 + lane].line == line) together |= 1u << lane;
    }
    warp.converging &= ~together;
    for (unsigned left = together; left; left &= left - 1) {
      unsigned thread = index * 32 + static_cast<unsigned>(__builtin_ctz(left));
      threads_[thread].result = together;
      make_ready(thread);
    }
    return true;
  }
  return false;
}

// Leaves the calling fibre for good: the scheduler sees the error and abandons the block.
void Worker::fail(std::string message) {
  error_ = std::move(message);
  Fibre* self = fibre_;
  switch_context(self->context, scheduler_);
  __builtin_unreachable();
}

std::string Worker::place() const {
  return std::string(job_->info->kernel) + ", block " + text_of(blockIdx) + ", thread " + text_of(index_[running_]);
}

std::string Worker::divergence() const {
  std::map<std::pair<int, const char*>, unsigned> waiting;  // by line and what they wait for
  for (unsigned nth = 0; nth < started_; ++nth) {
    const Thread& thread = threads_[job_->reversed ? threads_in_block_ - 1 - nth : nth];
    if (thread.state == State::block_barrier) ++waiting[{thread.line, "barrier"}];
    if (thread.state == State::phase) ++waiting[{thread.line, "mbarrier"}];
    if (thread.state == State::warp) ++waiting[{thread.line, thread.name}];
  }
  std::string message = std::string("barrier divergence at ") + job_->info->kernel;
  if (!waiting.empty()) message += ", line " + std::to_string(waiting.begin()->first.first);
  message += ": in block " + text_of(blockIdx);
  const char* separator = " ";
  for (const auto& [where, count] : waiting) {
    message += separator + std::to_string(count) + (count == 1 ? " thread waits at the " : " threads wait at the ") +
               where.second + " of line " + std::to_string(where.first);
    separator = ", ";
  }
  return message + "; they can never meet";
}

void Worker::poison_dynamic() {
  if (dynamic_ == dynamic_area_.high) return;
  poison(dynamic_ - canary, static_cast<std::size_t>(dynamic_area_.high - dynamic_) + canary, shared_poison());
}

void* Worker::shared_allocate(std::size_t bytes, std::size_t alignment, const char* name) {
  static_bytes_ += bytes;
  if (static_bytes_ > static_limit)
    fail("too much static shared memory in " + std::string(job_->info->kernel) + ": " + std::to_string(static_bytes_) +
         " bytes with `" + name + "`, at most " + std::to_string(static_limit) + " are allowed");
  std::size_t unit = std::max<std::size_t>(alignment, 128);
  auto start = (reinterpret_cast<std::uintptr_t>(static_top_) + canary + unit - 1) / unit * unit;
  auto* data = reinterpret_cast<char*>(start);
  static_top_ = data + bytes;
  poison(data - canary, bytes + 2 * canary, shared_poison());
  shared_variables_.push_back({data, bytes, name});
  return data;
}

}  // namespace cuda_on_cpu
