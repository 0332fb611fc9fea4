// Words for what the race detector found, with lines of the source.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "races.h"
#include "worker.h"

namespace cuda_on_cpu {

namespace {

constexpr std::size_t most_told = 4;

const char* verb(Kind kind) {
  switch (kind) {
    case Kind::read: return "reads";
    case Kind::write: return "writes";
    case Kind::atomic_read: return "reads atomically";
    case Kind::atomic_write: return "writes atomically";
    default: return "updates atomically";
  }
}

std::string position(std::uint32_t number, const dim3& size) {
  if (size.y == 1 && size.z == 1) return std::to_string(number);
  return "(" + std::to_string(number % size.x) + ", " + std::to_string(number / size.x % size.y) + ", " +
         std::to_string(number / size.x / size.y) + ")";
}

const char* noun(Kind kind) {
  switch (kind) {
    case Kind::read: return "a read ";
    case Kind::write: return "a write ";
    case Kind::atomic_read: return "an atomic read ";
    case Kind::atomic_write: return "an atomic write ";
    default: return "an atomic update ";
  }
}

std::string full_position(std::uint32_t number, const dim3& size) {
  return text_of({number % size.x, number / size.x % size.y, number / size.x / size.y});
}

std::string side(const Finding::Side& side, const LaunchInfo& info, const std::string& line) {
  return "block " + position(side.block, info.grid) + " thread " + position(side.thread, info.block) + " " +
         verb(side.kind) + (side.copies ? " by an asynchronous copy at " : " at ") + line;
}

const char* ending(Cause cause) {
  switch (cause) {
    case Cause::in_flight: return ", and the copy was not waited for";
    case Cause::lacks_fence: return ", only a fence after an atomic can order them";
    case Cause::sizes: return ", they are atomics of different sizes";
    case Cause::lost_update: return ", each stores what it made of a value that it loaded before, so an update can be lost";
    case Cause::read_only_noted:
    case Cause::read_only: return ", but a read-only load requires that the kernel does not write there";
    default: return ", nothing orders them";
  }
}

bool in_own_headers(const std::string& line) {
  return line.find("/cuda_on_cpu/include/") != std::string::npos || line.find("??") != std::string::npos;
}

// The innermost of the inlined functions' lines that is in the translated source, without its folder.
std::string choose_line(const std::vector<std::string>& frames) {
  for (const std::string& frame : frames)
    if (!in_own_headers(frame)) {
      std::string line = frame.substr(0, frame.find(" (discriminator"));
      return line.substr(line.rfind('/') + 1);
    }
  return unknown_line;
}

}  // namespace

std::vector<std::string> source_lines(const std::vector<std::uint64_t>& pcs) {
  std::map<std::string, std::vector<std::size_t>> by_file;
  std::vector<std::string> lines(pcs.size(), unknown_line);
  std::vector<std::uint64_t> offsets(pcs.size());
  for (std::size_t i = 0; i < pcs.size(); ++i) {
    Dl_info info{};
    if (!pcs[i] || !dladdr(reinterpret_cast<void*>(pcs[i]), &info)) continue;
    offsets[i] = pcs[i] - 1 - reinterpret_cast<std::uint64_t>(info.dli_fbase);
    by_file[info.dli_fname].push_back(i);
  }
  for (const auto& [file, indices] : by_file) {
    std::string command = "addr2line -a -i -e '" + file + "'";
    for (std::size_t i : indices) {
      char text[32];
      std::snprintf(text, sizeof text, " 0x%llx", static_cast<unsigned long long>(offsets[i]));
      command += text;
    }
    FILE* answer = popen((command + " 2>/dev/null").c_str(), "r");
    if (!answer) continue;
    std::vector<std::vector<std::string>> frames;
    char line[4096];
    while (std::fgets(line, sizeof line, answer)) {
      std::string text(line);
      text.erase(text.find_last_not_of("\n") + 1);
      if (text.rfind("0x", 0) == 0)
        frames.emplace_back();
      else if (!frames.empty())
        frames.back().push_back(text);
    }
    pclose(answer);
    for (std::size_t nth = 0; nth < std::min(frames.size(), indices.size()); ++nth)
      lines[indices[nth]] = choose_line(frames[nth]);
  }
  return lines;
}

std::string RaceDetector::describe(const Finding& finding, const std::string& first, const std::string& second) const {
  if (!finding.outside.empty())
    return std::string("out of bounds access in kernel ") + info_->kernel + ", block " +
           full_position(finding.second.block, info_->grid) + ", thread " +
           full_position(finding.second.thread, info_->block) + " at " + second + ": " + noun(finding.second.kind) +
           finding.outside;
  std::string where = finding.memory + " in kernel " + info_->kernel + ": ";
  if (!finding.first.pc)
    return "uninitialised read of " + where + side(finding.second, *info_, second) + " what nothing wrote";
  return (finding.cause == Cause::lost_update ? "lost update of " : "data race on ") + where + side(finding.second, *info_, second) + ", " + side(finding.first, *info_, first) +
         ending(finding.cause);
}

std::string RaceDetector::findings_so_far() {
  if (findings_.empty()) return "";
  std::vector<std::uint64_t> pcs;
  for (const Finding& finding : findings_) pcs.insert(pcs.end(), {finding.first.pc, finding.second.pc});
  std::vector<std::string> lines = source_lines(pcs);
  std::set<std::pair<bool, std::string>> wrong;  // accesses out of bounds first, because they can be the cause of others
  std::set<std::string> outside;  // one access out of bounds of each line is enough
  for (std::size_t i = 0; i < findings_.size(); ++i) {
    if (!findings_[i].outside.empty() && !outside.insert(lines[2 * i + 1]).second) continue;
    std::string text = describe(findings_[i], lines[2 * i], lines[2 * i + 1]);
    if (is_wrong(findings_[i]))
      wrong.emplace(findings_[i].outside.empty(), text);
    else if (notes_.find(text) == std::string::npos)
      notes_ += text + "\n";
  }
  std::string all;
  std::size_t told = 0;
  for (const auto& [_, text] : wrong)
    if (told++ < most_told) all += (all.empty() ? "" : "; ") + text;
  if (told > most_told) all += "; and " + std::to_string(told - most_told) + " more";
  return all;
}

}  // namespace cuda_on_cpu
