// Stands in for CUPTI and for a GPU: `fake_launch` calls back and records a kernel as CUPTI does for a launch.

#include <cupti.h>

#include <cstring>
#include <vector>

namespace {

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
CUpti_CallbackFunc callback = nullptr;
bool launches_enabled = false;
bool kernels_enabled = false;
std::vector<CUpti_ActivityKernel9> kernels;

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  kernels_enabled = kernels_enabled || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  kernels_enabled = kernels_enabled && kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  if (kernels.empty()) return CUPTI_SUCCESS;
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 0;
  request(&buffer, &size, &most);
  const size_t used = kernels.size() * sizeof(kernels[0]);
  if (used > size) return CUPTI_ERROR_OUT_OF_MEMORY;
  std::memcpy(buffer, kernels.data(), used);
  kernels.clear();
  complete(nullptr, 0, buffer, size, used);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t used, CUpti_Activity** record) {
  uint8_t* next = *record ? reinterpret_cast<uint8_t*>(*record) + sizeof(CUpti_ActivityKernel9) : buffer;
  if (next >= buffer + used) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void*) {
  if (callback) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  callback = function;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  callback = nullptr;
  launches_enabled = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  launches_enabled = launches_enabled || (enable && domain == CUPTI_CB_DOMAIN_DRIVER_API &&
                                          id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  return CUPTI_SUCCESS;
}

void fake_launch(const char* name) {
  CUpti_CallbackData data = {};
  data.symbolName = name;
  for (const CUpti_ApiCallbackSite site : {CUPTI_API_ENTER, CUPTI_API_EXIT}) {
    data.callbackSite = site;
    if (callback && launches_enabled) {
      callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    }
  }
  CUpti_ActivityKernel9 kernel = {};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = name;
  kernel.start = 1000;
  kernel.end = 3000;
  kernel.gridX = 66, kernel.gridY = 2, kernel.gridZ = 3;
  kernel.blockX = 32, kernel.blockY = 4, kernel.blockZ = 2;
  kernel.registersPerThread = 255;
  kernel.staticSharedMemory = 1024, kernel.dynamicSharedMemory = 2048;
  if (kernels_enabled) kernels.push_back(kernel);
}

}  // extern "C"
