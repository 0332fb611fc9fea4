// Traces the GPU's activity with CUPTI directly: PyTorch's profiler uses CUPTI too, but takes seconds to start in each
// process. Needs neither torch nor linking with CUPTI: the copy that fits torch's CUDA is already loaded, and is found
// by name.
//
// Also finds which library launches each kernel. The driver's functions that launch a kernel call back here, on the
// thread that called them, so the nearest library on the stack that is not CUDA's own is the one that launches.
//
// Reads only fields that are at the start of every version of these records, so an older header works too.

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};
constexpr CUpti_CallbackId kLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};
// Libraries between a launch and the library that asked for it, by the beginnings of their names.
constexpr const char* kCuda[] = {"libcuda.", "libcudart", "libcupti", "libnvidia-"};

struct Activity {
  std::string name;
  uint64_t begin;  // ns
  uint64_t end;
  uint64_t launched[4];  // blocks, threads of a block, registers of a thread, bytes of shared memory
};

struct Library {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped;
  decltype(&cuptiSubscribe) subscribe;
  decltype(&cuptiUnsubscribe) unsubscribe;
  decltype(&cuptiEnableCallback) enable_callback;
};

Library cupti;
std::mutex lock;  // CUPTI may return buffers on a thread of its own
std::vector<Activity> activities;
size_t lost = 0;
CUpti_SubscriberHandle subscriber = nullptr;
std::set<std::pair<std::string, std::string>> launches;  // the name of a kernel, and the file of what launches it

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
    const uint64_t blocks = static_cast<uint64_t>(kernel->gridX) * kernel->gridY * kernel->gridZ;
    const uint64_t threads = static_cast<uint64_t>(kernel->blockX) * kernel->blockY * kernel->blockZ;
    const uint64_t shared = static_cast<uint64_t>(kernel->staticSharedMemory) + kernel->dynamicSharedMemory;
    activities.push_back({demangled(kernel->name), kernel->start, kernel->end,
                          {blocks, threads, kernel->registersPerThread, shared}});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy5*>(record);
    activities.push_back({"Memcpy", copy->start, copy->end, {}});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* fill = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    activities.push_back({"Memset", fill->start, fill->end, {}});
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

bool is_cuda(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  for (const char* beginning : kCuda) {
    if (name.rfind(beginning, 0) == 0) return true;
  }
  return false;
}

_Unwind_Reason_Code visit(_Unwind_Context* context, void* file) {
  static const char anchor = 0;  // its address is in this library
  Dl_info frame, own;
  if (!dladdr(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1), &frame) || !frame.dli_fname) return _URC_NO_REASON;
  if (dladdr(&anchor, &own) && own.dli_fbase == frame.dli_fbase) return _URC_NO_REASON;
  if (is_cuda(frame.dli_fname)) return _URC_NO_REASON;
  *static_cast<std::string*>(file) = frame.dli_fname;
  return _URC_NORMAL_STOP;
}

void CUPTIAPI on_launch(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite != CUPTI_API_ENTER || !call->symbolName) return;
  std::string file;
  _Unwind_Backtrace(visit, &file);
  std::lock_guard<std::mutex> guard(lock);
  if (!file.empty()) launches.emplace(demangled(call->symbolName), file);
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
  FIND(subscribe, "cuptiSubscribe");
  FIND(unsubscribe, "cuptiUnsubscribe");
  FIND(enable_callback, "cuptiEnableCallback");
#undef FIND
  return cupti.register_callbacks(give_buffer, take_buffer);
}

int trace_begin() {
  int worst = cupti.flush(1);  // drops earlier records, and returns buffers to whoever gave them
  // Each time, because a profiler that ran since then, such as PyTorch's, has registered its own callbacks.
  if (const int status = cupti.register_callbacks(give_buffer, take_buffer)) worst = status;
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

// Gives the name of an activity, cut to `size` including the terminating zero, and six numbers: its begin and end in
// ns, and what `Activity::launched` has, which is 0 for a copy or a fill.
void trace_get(size_t index, char* name, size_t size, uint64_t* numbers) {
  std::lock_guard<std::mutex> guard(lock);
  const Activity& activity = activities.at(index);
  snprintf(name, size, "%s", activity.name.c_str());
  numbers[0] = activity.begin;
  numbers[1] = activity.end;
  std::copy(std::begin(activity.launched), std::end(activity.launched), numbers + 2);
}

// Begins to record which library launches each kernel. Fails if the process has another subscriber: CUPTI allows one.
int launches_begin() {
  {
    std::lock_guard<std::mutex> guard(lock);
    launches.clear();
  }
  if (const int status = cupti.subscribe(&subscriber, on_launch, nullptr)) return status;
  int worst = 0;
  for (const CUpti_CallbackId launch : kLaunches) {
    if (const int status = cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launch)) worst = status;
  }
  if (worst) cupti.unsubscribe(subscriber);
  return worst;
}

// Gives the number of launches with different names or launching libraries.
int launches_end(size_t* found) {
  const int status = cupti.unsubscribe(subscriber);
  std::lock_guard<std::mutex> guard(lock);
  *found = launches.size();
  return status;
}

// Gives the name of a kernel and the file of a library that launched it, each cut to `size` with the terminating zero.
void launches_get(size_t index, char* name, char* file, size_t size) {
  std::lock_guard<std::mutex> guard(lock);
  const auto& launch = *std::next(launches.begin(), static_cast<std::ptrdiff_t>(index));
  snprintf(name, size, "%s", launch.first.c_str());
  snprintf(file, size, "%s", launch.second.c_str());
}

}  // extern "C"
