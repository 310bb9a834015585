#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/contender_data.h"
#include "lock/survey.h"
#include "protocol/contender_name.h"

namespace zklock::cli {

enum class ContenderState {
  kHeld,
  kWaiting,
  kNoContender,  ///< a znode that ends with no session: nobody's
};

/// One contender as people are shown it: what the servers know, and what it says of itself.
struct ContenderView {
  std::string name;                     ///< the child of the LOCK
  std::optional<std::size_t> position;  ///< from 1; none: no contender
  ContenderState state = ContenderState::kHeld;
  protocol::Mode mode = protocol::Mode::kExclusive;  ///< what its name asks for
  protocol::Program program = protocol::Program::kUnknown;
  bool readable = true;
  /// What it says of itself, never believed; all unknown for other programs' contenders.
  ContenderData data;
  /// Since when it is in its state, by the servers' clock, in ms since 1970.
  std::optional<std::int64_t> since_ms;
  bool since_exact = true;  ///< false: the earliest it can have been
  std::optional<std::int64_t> token;
  std::optional<std::size_t> waits_for;  ///< the position of its predecessor
};

/// The queue in order, the holders first; after it what is no contender.
[[nodiscard]] std::vector<ContenderView> DescribeQueue(const lock::LockSurvey& lock);

/// "zklock", "Curator", "kazoo", "C recipe", "unknown".
[[nodiscard]] std::string_view ProgramName(protocol::Program program);

/// Local time, "2024-03-01 14:03:11".
[[nodiscard]] std::string FormatTime(std::int64_t ms_since_1970);

/// How much room there is, and how much is shown.
struct ViewStyle {
  std::size_t width = 0;    ///< of the terminal; 0: no limit
  bool with_names = false;  ///< each contender's whole name too, for `release --contender`
};

/// What `inspect LOCK` prints of one LOCK: a line of summary and, unless it is free, the table of
/// its queue.
[[nodiscard]] std::string LockText(const lock::LockSurvey& lock, const ViewStyle& style);

/// What `inspect` prints of the LOCKs below `path`: a line each.
[[nodiscard]] std::string TreeText(const std::string& path,
                                   const std::vector<lock::LockSurvey>& locks,
                                   const ViewStyle& style);

}  // namespace zklock::cli
