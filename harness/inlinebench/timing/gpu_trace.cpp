// Traces the GPU's activity with CUPTI directly: PyTorch's profiler uses CUPTI too, but takes seconds to start in each
// process. Needs neither torch nor linking with CUPTI: the copy that fits torch's CUDA is already loaded, and is found
// by name.
//
// Reads only fields that are at the start of every version of these records, so an older header works too.

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

struct Activity {
  std::string name;
  uint64_t begin;  // ns
  uint64_t end;
};

struct Library {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped;
};

Library cupti;
std::mutex lock;  // CUPTI may return buffers on a thread of its own
std::vector<Activity> activities;
size_t lost = 0;

std::string demangled(const char* name) {
  if (!name) return "?";
  int status = 0;
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string found = status == 0 ? plain : name;
  free(plain);
  return found;
}

void read(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    activities.push_back({demangled(kernel->name), kernel->start, kernel->end});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
    activities.push_back({"Memcpy", copy->start, copy->end});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    activities.push_back({"Memset", fill->start, fill->end});
  }
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // no limit
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t used) {
  std::lock_guard<std::mutex> guard(lock);
  CUpti_Activity* record = nullptr;
  while (used && cupti.next(buffer, used, &record) == CUPTI_SUCCESS) read(record);
  size_t missing = 0;
  if (cupti.dropped(context, stream, &missing) == CUPTI_SUCCESS) lost += missing;
  free(buffer);
}

}  // namespace

extern "C" {

// Returns 0, -1 if the library was not found, or CUPTI's status.
int trace_open(const char* library) {
  void* handle = dlopen(library, RTLD_NOW);
  if (!handle) return -1;
#define FIND(member, name)                                                   \
  cupti.member = reinterpret_cast<decltype(cupti.member)>(dlsym(handle, name)); \
  if (!cupti.member) return -1
  FIND(register_callbacks, "cuptiActivityRegisterCallbacks");
  FIND(enable, "cuptiActivityEnable");
  FIND(disable, "cuptiActivityDisable");
  FIND(flush, "cuptiActivityFlushAll");
  FIND(next, "cuptiActivityGetNextRecord");
  FIND(dropped, "cuptiActivityGetNumDroppedRecords");
#undef FIND
  return cupti.register_callbacks(give_buffer, take_buffer);
}

int trace_begin() {
  int worst = cupti.flush(1);  // drops earlier records
  std::lock_guard<std::mutex> guard(lock);
  activities.clear();
  lost = 0;
  for (const CUpti_ActivityKind kind : kKinds) {
    if (const int status = cupti.enable(kind)) worst = status;
  }
  return worst;
}

// Call it after waiting for the device. Gives the number of activities, and how many CUPTI dropped.
int trace_end(size_t* found, size_t* dropped) {
  int worst = cupti.flush(1);
  for (const CUpti_ActivityKind kind : kKinds) {
    if (const int status = cupti.disable(kind)) worst = status;
  }
  std::lock_guard<std::mutex> guard(lock);
  *found = activities.size();
  *dropped = lost;
  return worst;
}

// Gives the name of an activity, cut to `size` including the terminating zero, and its begin and end in ns.
void trace_get(size_t index, char* name, size_t size, uint64_t* begin, uint64_t* end) {
  std::lock_guard<std::mutex> guard(lock);
  const Activity& activity = activities.at(index);
  snprintf(name, size, "%s", activity.name.c_str());
  *begin = activity.begin;
  *end = activity.end;
}

}  // extern "C"
