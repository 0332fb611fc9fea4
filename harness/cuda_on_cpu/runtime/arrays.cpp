// The arrays of a running block: which memory an address belongs to, and whether it lies outside.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "worker.h"

namespace cuda_on_cpu {

namespace {
constexpr std::uintptr_t never_mapped = 1 << 16;  // Linux keeps the lowest addresses free (vm.mmap_min_addr)
}

std::string name_global(const char* byte, const LaunchInfo& info) {
  Extent found = find_allocation(byte);
  std::istringstream names(info.argument_names);
  std::string name;
  for (std::size_t i = 0; found.data && i < info.arguments; ++i) {
    if (!std::getline(names, name)) name.clear();
    if (found.holds(static_cast<const char*>(info.pointers[i]), 1))
      return (name.empty() ? "argument " + std::to_string(i + 1) : "`" + name + "`") + " (global)";
  }
  Dl_info symbol{};
  if (!found.data && dladdr(byte, &symbol) && symbol.dli_sname) return std::string("`") + symbol.dli_sname + "` (global)";
  return "global memory";
}

Extent Worker::shared_array(const char* byte) const {
  if (dynamic_area_.holds(byte)) return {dynamic_, dynamic_shared_bytes(), 0};
  Extent nearest;
  std::ptrdiff_t least = PTRDIFF_MAX;
  for (const SharedVariable& variable : shared_variables_) {
    std::ptrdiff_t before = variable.data - byte, past = byte - (variable.data + variable.bytes) + 1;
    if (std::ptrdiff_t distance = std::max({before, past, std::ptrdiff_t{0}}); distance < least) {
      least = distance;
      nearest = {variable.data, variable.bytes, 0};
    }
  }
  return nearest;
}

std::string Worker::find_shared_overrun() const {
  auto report = [&](const char* name) {
    return "out of bounds access in kernel " + std::string(job_->info->kernel) + ", block " + text_of(blockIdx) +
           ": a write outside the shared array `" + name + "`";
  };
  std::uint64_t word = shared_poison();
  for (const SharedVariable& variable : shared_variables_)
    if (find_unpoisoned(variable.data - canary, canary, word) ||
        find_unpoisoned(variable.data + variable.bytes, canary, word))
      return report(variable.name);
  const char* end = dynamic_ + dynamic_shared_bytes();
  if (end != dynamic_ && (find_unpoisoned(dynamic_ - canary, canary, word) ||
                          find_unpoisoned(end, static_cast<std::size_t>(dynamic_area_.high - end), word)))
    return report("extern __shared__");
  return "";
}

std::string Worker::name_memory(const void* address) const {
  auto* byte = static_cast<const char*>(address);
  for (const SharedVariable& variable : shared_variables_)
    if (byte >= variable.data && byte < variable.data + variable.bytes)
      return std::string("`") + variable.name + "` (shared)";
  if (in_shared(byte)) return "dynamic shared memory";
  return name_global(byte, *job_->info);
}

std::string Worker::describe_outside(const char* byte, const Extent& array) const {
  std::string name = name_memory(array.data);
  if (name == "global memory") name = "a tensor or allocation";
  return array.distance(byte) + " of " + name + ", which has " + std::to_string(array.bytes) + " bytes";
}

std::string Worker::describe_fault(const void* address) const {
  if (fibres_.in_guard(address)) return "stack overflow: local arrays or recursion too deep";
  auto* byte = static_cast<const char*>(address);
  Extent array = in_shared(byte) ? shared_array(byte) : find_allocation(byte);
  if (array.data) return describe_outside(byte, array);
  auto offset = reinterpret_cast<std::uintptr_t>(address);
  if (!offset) return "null or misaligned address";
  if (offset < never_mapped) return std::to_string(offset) + " bytes past a null pointer";
  std::ostringstream text;
  text << "address " << address << " is in no tensor or allocation";
  return text.str();
}

}  // namespace cuda_on_cpu
