#include "streams.h"

#include <algorithm>
#include <atomic>

#include "cuda_on_cpu/runtime.h"

namespace cuda_on_cpu {

namespace {

thread_local StreamNumber current_stream = 0;

void join(LaunchTimes& into, const LaunchTimes& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

Streams& Streams::instance() {
  static auto* streams = new Streams;  // launches may run while the process ends
  return *streams;
}

StreamNumber Streams::create(bool waits_for_default) {
  std::lock_guard lock(mutex_);
  streams_.push_back({{}, waits_for_default});
  return streams_.size() - 1;
}

bool Streams::several() {
  std::lock_guard lock(mutex_);
  return streams_.size() > 1;
}

// A handle that was not made here counts as the default stream.
Streams::Stream& Streams::catch_up(StreamNumber number) {
  Stream& stream = streams_[number < streams_.size() ? number : 0];
  join(stream.known, host_);
  if (&stream == &streams_[0]) {
    for (const Stream& other : streams_)
      if (other.waits_for_default) join(stream.known, other.known);
  } else if (stream.waits_for_default) {
    join(stream.known, streams_[0].known);
  }
  return stream;
}

LaunchMoment Streams::begin_launch(StreamNumber number) {
  std::lock_guard lock(mutex_);
  Stream& stream = catch_up(number);
  LaunchMoment moment{static_cast<StreamNumber>(&stream - streams_.data()), ++stream.launches};
  LaunchTimes own(moment.stream + 1);
  own[moment.stream] = moment.time;
  join(stream.known, own);
  return moment;
}

LaunchTimes Streams::known(StreamNumber stream) {
  std::lock_guard lock(mutex_);
  return catch_up(stream).known;
}

void Streams::record(EventNumber event, StreamNumber stream) {
  std::lock_guard lock(mutex_);
  events_[event] = catch_up(stream).known;
}

void Streams::wait(StreamNumber stream, EventNumber event) {
  std::lock_guard lock(mutex_);
  join(catch_up(stream).known, events_[event]);
}

void Streams::forget(EventNumber event) {
  std::lock_guard lock(mutex_);
  events_.erase(event);
}

void Streams::synchronize(StreamNumber stream) {
  std::lock_guard lock(mutex_);
  join(host_, catch_up(stream).known);
}

void Streams::synchronize_event(EventNumber event) {
  std::lock_guard lock(mutex_);
  join(host_, events_[event]);
}

void Streams::synchronize_all() {
  std::lock_guard lock(mutex_);
  for (const Stream& stream : streams_) join(host_, stream.known);
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::Streams;

extern "C" {

cuda_on_cpu::StreamNumber cuda_on_cpu_create_stream(int waits_for_default) {
  return Streams::instance().create(waits_for_default != 0);
}
cuda_on_cpu::StreamNumber cuda_on_cpu_current_stream() { return cuda_on_cpu::current_stream; }
void cuda_on_cpu_set_current_stream(cuda_on_cpu::StreamNumber stream) { cuda_on_cpu::current_stream = stream; }
void cuda_on_cpu_synchronize_stream(cuda_on_cpu::StreamNumber stream) { Streams::instance().synchronize(stream); }
void cuda_on_cpu_synchronize_device() { Streams::instance().synchronize_all(); }

cuda_on_cpu::EventNumber cuda_on_cpu_create_event() {
  static std::atomic<cuda_on_cpu::EventNumber> events{0};
  return ++events;
}
void cuda_on_cpu_destroy_event(cuda_on_cpu::EventNumber event) { Streams::instance().forget(event); }
void cuda_on_cpu_record_event(cuda_on_cpu::EventNumber event, cuda_on_cpu::StreamNumber stream) {
  Streams::instance().record(event, stream);
}
void cuda_on_cpu_wait_event(cuda_on_cpu::StreamNumber stream, cuda_on_cpu::EventNumber event) {
  Streams::instance().wait(stream, event);
}
void cuda_on_cpu_synchronize_event(cuda_on_cpu::EventNumber event) { Streams::instance().synchronize_event(event); }

}  // extern "C"
