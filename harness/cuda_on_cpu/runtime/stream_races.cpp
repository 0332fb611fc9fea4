// Launches on different streams, which may run at the same time unless events, a wait of the host, or the default stream
// order them. Only here something is kept between launches: which bytes each one accessed, and where.
#include <algorithm>
#include <set>

#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

namespace {

constexpr std::size_t most_footprints = 64;
constexpr std::size_t most_told = 4;

const char* verb(Kind kind) { return writes(kind) ? " writes at " : " reads at "; }

}  // namespace

void RaceDetector::begin_call() {
  left_ = most_accesses;
  footprints_.clear();
  Streams::instance().synchronize_all();  // the caller has waited for the call before
}

// One range for neighbours that the same place accessed in the same way. The last write stands for the reads before it.
std::vector<RaceDetector::Range> RaceDetector::accessed() {
  std::vector<Range> ranges;
  shadow_.for_each_page([&](const Page& page, std::uintptr_t address) {
    if (!page.array.data) return;
    const std::size_t first = ranges.size();
    auto add = [&](std::uintptr_t low, const Access& access) {
      std::uintptr_t high = low + (std::uintptr_t{1} << page.shift);
      for (std::size_t i = first; i < ranges.size(); ++i) {
        Range& range = ranges[i];
        if (range.pc != access.pc || range.kind != access.kind || range.high < low) continue;
        range.high = high;
        return;
      }
      ranges.push_back({low, high, access.pc, page.array.number, access.kind});
    };
    for (std::size_t i = 0; i < page.cells.size(); ++i) {
      const std::uintptr_t low = address + (i << page.shift);
      if (page.cells[i].write.pc) add(low, page.cells[i].write);
      for (std::uint32_t index = page.cells[i].others; index; index = shadow_.node(index).next)
        add(low, shadow_.node(index).access);
    }
  });
  return ranges;
}

std::string RaceDetector::compare_streams(std::vector<Range> ranges) {
  std::set<std::string> found;
  for (const Footprint& earlier : footprints_) {
    if (earlier.moment.is_known(known_)) continue;
    for (const Range& before : earlier.ranges)
      for (const Range& now : ranges) {
        bool meet = before.allocation == now.allocation && before.low < now.high && now.low < before.high;
        bool conflict = (writes(before.kind) || writes(now.kind)) && !(is_atomic(before.kind) && is_atomic(now.kind));
        if (!meet || !conflict || found.size() == most_told) continue;
        std::vector<std::string> lines = source_lines({before.pc, now.pc});
        auto* byte = reinterpret_cast<const char*>(std::max(before.low, now.low));
        found.insert("data race on " + name_global(byte, *info_) + " between two streams: kernel " + info_->kernel +
                     verb(now.kind) + lines[1] + ", kernel " + earlier.kernel + " on another stream" +
                     verb(before.kind) + lines[0] + ", no event orders them");
      }
  }
  if (footprints_.size() < most_footprints) footprints_.push_back({info_->kernel, moment_, std::move(ranges)});
  std::string all;
  for (const std::string& text : found) all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::string RaceDetector::find_unordered(const char* data, std::size_t bytes) {
  LaunchTimes known = Streams::instance().known(0);
  auto low = reinterpret_cast<std::uintptr_t>(data);
  std::uint64_t allocation = find_allocation(data).number;
  for (const Footprint& footprint : footprints_) {
    if (footprint.moment.is_known(known)) continue;
    for (const Range& range : footprint.ranges)
      if (writes(range.kind) && range.allocation == allocation && range.low < low + bytes && low < range.high)
        return "data race on a result: kernel " + footprint.kernel + " writes at " + source_lines({range.pc})[0] +
               " on a stream of its own, for which the default stream does not wait before the result is read";
  }
  return "";
}

}  // namespace cuda_on_cpu
