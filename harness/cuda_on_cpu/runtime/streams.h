// Which launches are ordered: by their streams, by events, and by the host. All work has finished when a launch returns,
// but the race detector asks what a GPU would have to wait for.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "cuda_on_cpu/stream.h"

namespace cuda_on_cpu {

// Of each stream, how many of its launches are known to have ended.
using LaunchTimes = std::vector<std::uint32_t>;

// A launch, by its stream and its number in it.
struct LaunchMoment {
  StreamNumber stream = 0;
  std::uint32_t time = 0;

  bool is_known(const LaunchTimes& times) const { return stream < times.size() && times[stream] >= time; }
};

class Streams {
 public:
  static Streams& instance();

  StreamNumber create(bool waits_for_default);
  bool several();
  LaunchMoment begin_launch(StreamNumber stream);
  // What the next launch on the stream would be ordered after.
  LaunchTimes known(StreamNumber stream);
  void record(EventNumber event, StreamNumber stream);
  void wait(StreamNumber stream, EventNumber event);
  void forget(EventNumber event);
  void synchronize(StreamNumber stream);
  void synchronize_event(EventNumber event);
  void synchronize_all();

 private:
  struct Stream {
    LaunchTimes known;
    bool waits_for_default;  // and the default stream for it, as for those that are not made with cudaStreamNonBlocking
    std::uint32_t launches = 0;
  };

  Stream& catch_up(StreamNumber stream);

  std::mutex mutex_;
  std::vector<Stream> streams_ = {{{}, false}};  // by number; 0 is the default stream
  std::map<EventNumber, LaunchTimes> events_;
  LaunchTimes host_;
};

}  // namespace cuda_on_cpu
