#include "process/loop/locked_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/read_file.h"
#include "base/text.h"

namespace zklock::process {

namespace {

// The part of the limit to leave unused: a process whose locked stack cannot grow is killed.
constexpr std::uintptr_t kReserve = 512 * 1024;

/// A mapping of this process.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_writable = false;  // can be swapped out; other mappings can be reread from their file
};

/// Parses a line of /proc/self/maps ("BEGIN-END rwxp ..."). Returns none if it cannot be locked.
std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, mapping.begin, 16);
  if (first.ptr == end) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, mapping.end, 16);
  if (end - second.ptr < 3 || second.ptr[1] != 'r') return std::nullopt;
  // The kernel never locks its own mappings, [vvar] and [vdso], so they do not use up the limit.
  if (line.find(" [v") != std::string_view::npos) return std::nullopt;
  mapping.is_writable = second.ptr[2] == 'w';
  return mapping;
}

void Lock(const Mapping& mapping) {
  if (mapping.begin == mapping.end) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel names addresses as numbers
  (void)mlock2(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MLOCK_ONFAULT);
}

}  // namespace

void LockMemory() {
  rlimit limit{};
  const std::optional<std::string> text = ReadFile("/proc/self/maps");
  if (!text || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur < kReserve) return;
  std::uintptr_t budget = limit.rlim_cur - kReserve;
  std::vector<Mapping> mappings;
  std::string_view rest(*text);
  while (!rest.empty()) {
    const std::string_view line = TakeUntil(rest, '\n');
    if (const auto mapping = ParseMapping(line)) mappings.push_back(*mapping);
  }
  std::stable_partition(mappings.begin(), mappings.end(),
                        [](const Mapping& one) { return one.is_writable; });
  Mapping run;  // adjacent mappings, to lock in one call
  for (const Mapping& one : mappings) {
    // The limit counts the whole mapping, although only the pages in use are locked.
    const std::uintptr_t size = one.end - one.begin;
    if (size > budget) continue;
    budget -= size;
    if (one.begin != run.end) Lock(std::exchange(run, one));
    run.end = one.end;
  }
  Lock(run);
}

}  // namespace zklock::process
