// Streams and events. Everything runs at once, in program order; the race detector finds work that nothing orders.
#pragma once

#include <cstdint>

struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using CUstream = cudaStream_t;
using CUevent = cudaEvent_t;

namespace cuda_on_cpu {

using StreamNumber = std::uintptr_t;  // the value of its handle; 0 is the default stream
using EventNumber = std::uint64_t;
constexpr StreamNumber no_stream = ~StreamNumber{0};

inline StreamNumber number_of(cudaStream_t stream) { return reinterpret_cast<StreamNumber>(stream); }
inline cudaStream_t stream_of(StreamNumber number) { return reinterpret_cast<cudaStream_t>(number); }

}  // namespace cuda_on_cpu

extern "C" {
cuda_on_cpu::StreamNumber cuda_on_cpu_create_stream(int waits_for_default);
cuda_on_cpu::StreamNumber cuda_on_cpu_current_stream();
void cuda_on_cpu_set_current_stream(cuda_on_cpu::StreamNumber stream);
void cuda_on_cpu_synchronize_stream(cuda_on_cpu::StreamNumber stream);
void cuda_on_cpu_synchronize_device();
cuda_on_cpu::EventNumber cuda_on_cpu_create_event();
void cuda_on_cpu_destroy_event(cuda_on_cpu::EventNumber event);
void cuda_on_cpu_record_event(cuda_on_cpu::EventNumber event, cuda_on_cpu::StreamNumber stream);
void cuda_on_cpu_wait_event(cuda_on_cpu::StreamNumber stream, cuda_on_cpu::EventNumber event);
void cuda_on_cpu_synchronize_event(cuda_on_cpu::EventNumber event);
}
