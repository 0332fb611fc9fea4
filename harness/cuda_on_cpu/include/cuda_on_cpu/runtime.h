// What a translated source needs from the runtime library (runtime/*.cpp): launches, barriers, memory.
//
// One copy of the runtime serves all extension modules of a process, so there is one scheduler and one registry of
// allocations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_on_cpu/stream.h"
#include "cuda_on_cpu/vector_types.h"

// CUDA's built-in variables. They change at every switch of the running CUDA thread, so they are not const: the compiler
// has to read them again after each call into the runtime. "initial-exec" makes a read two instructions instead of a
// call; the few bytes fit the space that the loader keeps for libraries opened late.
#define CUDA_ON_CPU_TLS __thread __attribute__((tls_model("initial-exec")))

extern "C" {
extern CUDA_ON_CPU_TLS uint3 threadIdx;
extern CUDA_ON_CPU_TLS uint3 blockIdx;
extern CUDA_ON_CPU_TLS dim3 blockDim;
extern CUDA_ON_CPU_TLS dim3 gridDim;
// Differs for every block that an OS thread runs: tells whether a __shared__ variable was set up for this block yet.
extern CUDA_ON_CPU_TLS std::uint64_t cuda_on_cpu_block_epoch;
}

constexpr int warpSize = 32;

namespace cuda_on_cpu {

struct LaunchInfo {
  const char* kernel;
  int line;
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  // For messages: the names that the launch gives the arguments, one a line, and the pointers among them.
  const char* argument_names = "";
  const void* const* pointers = nullptr;
  std::size_t arguments = 0;
  bool cooperative = false;
  StreamNumber stream = no_stream;  // no_stream: its accesses are not compared with those of other streams
};

// Runs CUDA threads of the current block, one after the other, until `next_thread` says stop.
using Body = void (*)(const void* closure);

// Runs the whole grid and returns when it has ended. Throws std::runtime_error ("inlinebench: ...") for bugs found on the
// way; a configuration that CUDA would refuse sets the last error instead and runs nothing.
void launch(const LaunchInfo& info, Body body, const void* closure);

// Ends the current CUDA thread. True: this stack now is the block's next thread, run it.
bool next_thread();

enum class BlockBarrier { sync, count, all, any, grid };
constexpr unsigned multiprocessors = 8, threads_per_multiprocessor = 2048, blocks_per_multiprocessor = 32;

// How many blocks of this many threads a multiprocessor runs at once.
constexpr unsigned resident_blocks(unsigned threads) {
  unsigned blocks = threads ? threads_per_multiprocessor / threads : 0;
  return blocks < blocks_per_multiprocessor ? blocks : blocks_per_multiprocessor;
}

// Waits for all threads of the block that have not returned, and `grid` for those of all blocks of a cooperative launch;
// gives the reduction of `value` over the block's.
int block_barrier(BlockBarrier kind, int value, int line);
// Arrives at one of the block's 16 barriers for `count` threads, and waits for the others if `waits`.
void named_barrier(unsigned number, unsigned count, bool waits, int line);

// Lets other threads run until some mbarrier's phase is complete. False if no other thread can run.
bool wait_for_phase(int line);
// Tells the threads that wait that an mbarrier changed. `complete` is the mbarrier if its phase is, else null.
void mbarrier_changed(const void* complete);

// The lanes of a warp that meet run `operation` once, on what each of them posted (null for lanes that take no part).
// No operation is __syncwarp: it alone orders the lanes' memory accesses.
using WarpOperation = void (*)(unsigned lanes, void* const* posts);
void warp_collective(unsigned mask, void* post, WarpOperation operation, const char* name, int line);

// For the race detector: what a thread did before it arrives at a barrier is ordered before what a thread of its block
// does after it waited for this phase of the barrier, unless one of them is relaxed.
void race_begin_phases(const void* barrier);
void race_arrive(const void* barrier, bool relaxed);
void race_wait(const void* barrier, bool relaxed);
void race_fence(bool block_scope, bool acquires, bool releases);
// The calling thread reads memory that must not change while the kernel runs.
void race_read_only(const void* data, std::size_t bytes);
// A lane of the running warp reads another lane, which takes no part in the operation.
void race_missing_lane(unsigned lane, unsigned missing);

// The lanes of this warp that reach this line together.
unsigned active_mask(int line);

unsigned lane();

// Memory of the running block.
void* shared_allocate(std::size_t bytes, std::size_t alignment, const char* name);
void* dynamic_shared();
std::size_t dynamic_shared_bytes();
void set_dynamic_shared_limit(std::size_t bytes);

// Guarded memory, poisoned with NaN patterns; null for 0 bytes.
void* allocate(std::size_t bytes);
void release(void* data);
std::size_t allocation_size(const void* data);  // 0 where not allocated here

// The error that cudaGetLastError gives: 0 or a cudaError_t.
int last_error();
void set_last_error(int code);

// Ends the process with a message that names the kernel, the block and the thread.
[[noreturn]] void trap(const char* what);
[[noreturn]] void trap_misaligned(const void* address, std::size_t bytes);

}  // namespace cuda_on_cpu
