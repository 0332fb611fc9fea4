// Launches: blocks of a grid, in parallel over OS threads, in one of two orders.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cooperative.h"
#include "faults.h"
#include "interleaving.h"
#include "cuda_on_cpu/runtime.h"
#include "memory.h"
#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

namespace {

constexpr int invalid_configuration = 9;   // cudaErrorInvalidConfiguration
constexpr int invalid_value = 1;           // cudaErrorInvalidValue
constexpr int launch_failure = 719;        // cudaErrorLaunchFailure
constexpr int too_many_blocks = 720;       // cudaErrorCooperativeLaunchTooLarge
constexpr unsigned most_workers = 16;      // each may keep 1024 stacks of two mappings; a process has 65530
constexpr std::uint64_t largest_chunk = 16;
constexpr std::uint64_t most_in_turns = 4;  // blocks that interleave
constexpr std::size_t default_dynamic_limit = 48 * 1024;
constexpr std::size_t largest_dynamic_limit = 227 * 1024;

std::atomic<int> sticky_error{0};
std::atomic<std::size_t> dynamic_limit{default_dynamic_limit};
std::atomic<bool> throw_errors{true};
std::mutex recorded_mutex;
std::string recorded_error;
std::string refused_launch;

// Ascending for seed 0. Otherwise a walk with a stride that has no factor in common with the number of blocks, so that
// each comes once without a table of them.
struct BlockOrder {
  std::uint64_t blocks = 1, stride = 1, offset = 0;

  BlockOrder(std::uint64_t blocks, unsigned seed) : blocks(blocks) {
    if (seed == 0 || blocks < 2) return;
    offset = 1 + seed * 2654435761u % (blocks - 1);
    stride = 2 + (static_cast<std::uint64_t>(static_cast<double>(blocks) * 0.6180339887) + seed) % blocks;
    while (std::gcd(stride, blocks) != 1) ++stride;
    if (stride % blocks == 1) stride = blocks - 1;
  }
  std::uint64_t operator[](std::uint64_t nth) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(nth) * stride + offset) % blocks);
  }
};

unsigned order_from_environment() {
  const char* order = std::getenv("CUDA_ON_CPU_BLOCK_ORDER");
  return order && std::strcmp(order, "shuffled") == 0 ? 1 : 0;
}
std::atomic<int> launch_count{0};

std::atomic<bool>& races_wanted() {
  static std::atomic<bool> wanted{std::getenv("CUDA_ON_CPU_RACES") != nullptr};
  return wanted;
}

std::atomic<unsigned>& order_seed() {
  static std::atomic<unsigned> seed{order_from_environment()};
  return seed;
}

unsigned worker_count() {
  const char* wanted = std::getenv("CUDA_ON_CPU_THREADS");
  int count = wanted ? std::atoi(wanted) : 0;
  if (count < 1) count = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(static_cast<unsigned>(count), 1u, most_workers);
}

// One launch, as the workers share it.
class Grid {
 public:
  Grid(const LaunchInfo& info, Body body, const void* closure, unsigned seed, unsigned workers, bool races)
      : job_{&info, body, closure, seed != 0, races},
        blocks_(std::uint64_t{info.grid.x} * info.grid.y * info.grid.z),
        order_(blocks_, seed),
        chunk_(std::clamp<std::uint64_t>(blocks_ / (workers * 8), 1, largest_chunk)) {}

  std::uint64_t blocks() const { return blocks_; }

  void work() {
    Worker& worker = Worker::current();
    worker.begin(job_);
    for (;;) {
      std::uint64_t first = taken_.fetch_add(chunk_);
      std::uint64_t last = std::min(first + chunk_, blocks_);
      if (first >= blocks_) break;
      for (std::uint64_t nth = first; nth < last && !failed_; ++nth) fail(worker.run_block(position(order_[nth])));
      if (failed_) break;
    }
    worker.end();
  }

  // The same by several OS threads of which one runs at a time.
  void work_in_turns() {
    chunk_ = 1;
    Interleaving turns;
    turns.run(static_cast<unsigned>(std::min<std::uint64_t>(blocks_, most_in_turns)), [this] { work(); });
  }

  void work_together() {
    CooperativeGrid blocks(blocks_);
    job_.cooperative = &blocks;
    blocks.run([this](std::uint64_t nth) {
      Worker& worker = Worker::current();
      worker.begin(job_);
      if (!failed_) fail(worker.run_block(position(order_[nth])));
      worker.end();
    });
  }

  const std::string& error() const { return error_; }
  bool races() const { return job_.races; }

 private:
  uint3 position(std::uint64_t block) const {
    const dim3& grid = job_.info->grid;
    return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
            static_cast<unsigned>(block / grid.x / grid.y)};
  }

  void fail(const std::string& message) {
    if (message.empty()) return;
    std::lock_guard lock(mutex_);
    if (!failed_) error_ = message;
    failed_ = true;
  }

  Job job_;
  std::uint64_t blocks_;
  BlockOrder order_;
  std::uint64_t chunk_;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string error_;
};

// OS threads that wait for grids. The launching thread takes part too, so there is one less of them.
class Pool {
 public:
  explicit Pool(unsigned workers) : process_(getpid()) {
    for (unsigned i = 1; i < workers; ++i) std::thread([this] { serve(); }).detach();
    helpers_ = workers - 1;
  }

  // After a fork the threads are gone; the child makes its own.
  bool usable() const { return process_ == getpid(); }

  void run(Grid& grid) {
    if (grid.blocks() > 1 && helpers_ && !grid.races()) {
      std::lock_guard lock(mutex_);
      grid_ = &grid;
      busy_ = helpers_;
      ++generation_;
      wake_.notify_all();
    }
    grid.work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    grid_ = nullptr;
  }

 private:
  void serve() {
    std::uint64_t seen = 0;
    for (;;) {
      Grid* grid;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_ != seen; });
        seen = generation_;
        grid = grid_;
      }
      grid->work();
      std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  pid_t process_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Grid* grid_ = nullptr;
  std::uint64_t generation_ = 0;
  unsigned busy_ = 0, helpers_ = 0;
};

Pool& pool() {
  // Not destroyed: its threads may still wait when the process ends.
  static Pool* instance = nullptr;
  if (!instance || !instance->usable()) instance = new Pool(worker_count());
  return *instance;
}

struct Refusal {
  int code = 0;  // cudaSuccess if the launch is not refused
  std::string limit;
};

Refusal check_configuration(const LaunchInfo& info) {
  const dim3 &grid = info.grid, &block = info.block;
  std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z) return {invalid_configuration, "the grid has no blocks"};
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return {invalid_configuration, "a grid has at most (2147483647, 65535, 65535) blocks"};
  if (threads == 0) return {invalid_configuration, "the block has no threads"};
  if (threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64)
    return {invalid_configuration, "a block has at most 1024 threads, and (1024, 1024, 64)"};
  if (info.shared_bytes > dynamic_limit)
    return {invalid_value, "at most " + std::to_string(dynamic_limit) + " bytes of dynamic shared memory are allowed" +
                               (dynamic_limit < largest_dynamic_limit ? " without cudaFuncSetAttribute" : "")};
  std::uint64_t resident = std::uint64_t{multiprocessors} * resident_blocks(static_cast<unsigned>(threads));
  if (info.cooperative && std::uint64_t{grid.x} * grid.y * grid.z > resident)
    return {too_many_blocks, "at most " + std::to_string(resident) + " blocks of this size can be there at once, which a " +
                                 "cooperative launch needs"};
  return {};
}

// As on a GPU nothing runs, and the error waits for cudaGetLastError. The first refusal is kept as a text, because many
// sources never ask.
void refuse(const LaunchInfo& info, const Refusal& refusal) {
  set_last_error(refusal.code);
  std::lock_guard lock(recorded_mutex);
  if (refused_launch.empty())
    refused_launch = std::string(info.kernel) + "<<<" + text_of(info.grid) + ", " + text_of(info.block) + ", " +
                     std::to_string(info.shared_bytes) + ">>> was not launched: " + refusal.limit +
                     (info.line ? " (line " + std::to_string(info.line) + ")" : "");
}

// Moves a recorded text into `text`; gives its length, 0 for none.
std::size_t take(std::string& recorded, char* text, std::size_t size) {
  std::lock_guard lock(recorded_mutex);
  std::string taken = std::move(recorded);
  recorded.clear();
  if (size) {
    std::size_t length = std::min(size - 1, taken.size());
    std::memcpy(text, taken.data(), length);
    text[length] = 0;
  }
  return taken.size();
}

void report(const std::string& error) {
  if (throw_errors) throw std::runtime_error("inlinebench: " + error);
  set_last_error(launch_failure);
  std::lock_guard lock(recorded_mutex);
  if (recorded_error.empty()) recorded_error = error;
}

}  // namespace

void launch(const LaunchInfo& info, Body body, const void* closure) {
  if (Worker* worker = Worker::existing(); worker && worker->job())
    trap("unsupported on the CPU (run with a CUDA device): dynamic parallelism, a launch");
  if (Refusal refusal = check_configuration(info); refusal.code) return refuse(info, refusal);
  ++launch_count;
  static std::mutex one_at_a_time;
  std::string error;
  {
    std::lock_guard lock(one_at_a_time);
    install_fault_handlers();
    bool races = races_wanted();
    if (races) RaceDetector::instance().begin_launch(info);
    Grid grid(info, body, closure, order_seed(), worker_count(), races);
    if (info.cooperative)
      grid.work_together();
    else if (races && order_seed() != 0 && RaceDetector::instance().uses_atomics(info))
      grid.work_in_turns();
    else
      pool().run(grid);
    error = grid.error();
    if (races) {
      std::string found = RaceDetector::instance().end_launch();
      // It has the line, and an access out of bounds can be the cause of anything else.
      if (error.empty() || found.rfind("out of bounds", 0) == 0) error = found;
    }
    if (error.empty())
      if (std::string overwritten = find_overwritten(); !overwritten.empty())
        error = "out of bounds access in kernel " + std::string(info.kernel) + ": " + overwritten;
  }
  if (!error.empty()) report(error);
}

bool next_thread() { return Worker::existing()->next_thread(); }
int block_barrier(BlockBarrier kind, int value, int line) {
  return Worker::existing()->block_barrier(kind, value, line);
}
void named_barrier(unsigned number, unsigned count, bool waits, int line) {
  Worker::existing()->named_barrier(number, count, waits, line);
}
bool wait_for_phase(int line) { return Worker::existing()->wait_for_phase(line); }
void mbarrier_changed(const void* complete) { Worker::existing()->mbarrier_changed(complete); }
void warp_collective(unsigned mask, void* post, WarpOperation operation, const char* name, int line) {
  Worker::existing()->warp_collective(mask, post, operation, name, line);
}
unsigned active_mask(int line) { return Worker::existing()->active_mask(line); }
void race_missing_lane(unsigned lane, unsigned missing) { Worker::existing()->missing_lane(lane, missing); }
unsigned lane() { return Worker::existing()->lane(); }
void* shared_allocate(std::size_t bytes, std::size_t alignment, const char* name) {
  return Worker::existing()->shared_allocate(bytes, alignment, name);
}
void* dynamic_shared() { return Worker::existing()->dynamic_shared(); }
std::size_t dynamic_shared_bytes() { return Worker::existing()->dynamic_shared_bytes(); }

void set_dynamic_shared_limit(std::size_t bytes) {
  if (bytes > dynamic_limit) dynamic_limit = std::min(bytes, largest_dynamic_limit);
}

int last_error() { return sticky_error; }
void set_last_error(int code) { sticky_error = code; }

}  // namespace cuda_on_cpu

extern "C" {

// 0: blocks, and the threads of a block, in ascending order. Other: blocks shuffled, threads descending.
void cuda_on_cpu_set_block_order(unsigned seed) { cuda_on_cpu::order_seed() = seed; }

// How many launches there were in this process.
int cuda_on_cpu_launches() { return cuda_on_cpu::launch_count; }

// Whether a bug found by a launch is thrown (the default), or kept for cuda_on_cpu_take_error, for callers that cannot
// catch C++ exceptions, such as ctypes.
void cuda_on_cpu_throw_errors(int yes) { cuda_on_cpu::throw_errors = yes != 0; }

// Copies the first error since the last call into `text` and forgets it; gives its length, 0 for none.
std::size_t cuda_on_cpu_take_error(char* text, std::size_t size) {
  return cuda_on_cpu::take(cuda_on_cpu::recorded_error, text, size);
}

// Whether later launches look for data races. They find those of sources compiled with RACE_FLAGS.
void cuda_on_cpu_find_races(int yes) {
  cuda_on_cpu::races_wanted() = yes != 0;
  cuda_on_cpu::RaceDetector::instance().begin_call();
}

// Copies what writes to a result although the default stream does not wait for it; gives its length, 0 for none.
std::size_t cuda_on_cpu_find_unordered(const void* data, std::size_t bytes, char* text, std::size_t size) {
  std::string found = cuda_on_cpu::RaceDetector::instance().find_unordered(static_cast<const char*>(data), bytes);
  return cuda_on_cpu::take(found, text, size);
}

// Copies what was found and does not make a result wrong, one finding a line.
std::size_t cuda_on_cpu_take_race_notes(char* text, std::size_t size) {
  std::string notes = cuda_on_cpu::RaceDetector::instance().take_notes();
  return cuda_on_cpu::take(notes, text, size);
}

// The same for the first launch since the last call that a GPU would refuse.
std::size_t cuda_on_cpu_take_refused_launch(char* text, std::size_t size) {
  return cuda_on_cpu::take(cuda_on_cpu::refused_launch, text, size);
}

}  // extern "C"
