#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/contender_name.h"

namespace zklock::cli {

/// The most that a contender's data takes on the servers, and the most that is read of anybody's.
inline constexpr std::size_t kMostContenderData = 4096;

/// What a contender's znode says of the one who queues: for people who look, never needed for
/// correctness. Read from the servers it is somebody else's word: anyone may have written it.
struct ContenderData {
  std::optional<std::int64_t> version = 1;
  std::optional<protocol::Mode> mode{};
  std::optional<std::string> host{};
  std::optional<std::string> user{};
  std::optional<std::int64_t> pid{};
  std::optional<std::string> boot_id{};
  std::optional<std::uint64_t> start_time{};  ///< of the process, in clock ticks since boot
  std::optional<std::string> command{};  ///< its program's name, or the whole line if published
  std::optional<std::string> label{};
  std::optional<std::int64_t> owner{};  ///< the pid of the shell that holds, with --hold

  friend bool operator==(const ContenderData&, const ContenderData&) = default;
};

/// One JSON object of at most kMostContenderData bytes. What is not known or empty is left out,
/// invalid UTF-8 is replaced, and a command or label that is too long is cut.
[[nodiscard]] std::string FormatContenderData(const ContenderData& data);

/// Reads what FormatContenderData wrote, or anything else that somebody put there: never throws. A
/// field of a wrong type or an impossible value is not known; none when it is no JSON object, or
/// longer than kMostContenderData.
[[nodiscard]] std::optional<ContenderData> ParseContenderData(std::string_view text);

}  // namespace zklock::cli
