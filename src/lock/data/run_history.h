#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/contender_name.h"
#include "protocol/run_records.h"

namespace zklock::lock {

/// The maximum size of the data of LOCK/last-run with a history.
inline constexpr std::size_t kMostHistoryData = 16384;
/// The maximum number of times that a writer retries because another writer was first. Higher than
/// the number of holders of a busy semaphore, one of which succeeds each time.
inline constexpr int kMostHistoryConflicts = 100;
/// The maximum number of runs that --history keeps.
inline constexpr std::size_t kMostRuns = 100;

/// One run under a LOCK, as --history keeps it. Anyone may have written this data.
struct RunRecord {
  enum class End {
    kNone,   ///< not recorded: it is running if its contender exists, otherwise it was lost
    kEnded,  ///< it released the lock
    kLost,   ///< its end was not recorded, and its contender was gone when a later run looked
  };
  End end = End::kNone;
  protocol::ServerTime began{};                       ///< when the command was started
  std::optional<std::chrono::milliseconds> waited{};  ///< in the queue
  std::optional<std::chrono::milliseconds> duration{};
  std::optional<int> status{};  ///< as in a shell; none if unknown, as usual with --hold
  std::string host{};
  std::string user{};
  std::string label{};
  std::int64_t token = 0;  ///< identifies it among the runs under this LOCK; positive
  protocol::Mode mode = protocol::Mode::kExclusive;
  std::string contender{};  ///< its name; written only until the end is known
  std::string id{};         ///< of a reservation
  std::string reason{};     ///< of a reservation; may be empty
  std::string cause{};      ///< what ended it (EndCause); empty if it ended by itself or was lost
  /// The user who requested its release or deleted its contender (release --force), if known.
  std::string taken_by{};
  std::string taken_reason{};  ///< the reason given for that; may be empty
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

/// The data of LOCK/last-run: the last success and the last runs, newest first.
class RunHistory {
 public:
  struct Entry {
    RunRecord run;
    /// The line as found, including any keys from later versions, or as this version formats `run`.
    std::string line;
  };

  /// `data`: any bytes. Returns none unless a version of zklock that we understand wrote it. Empty
  /// data is an empty history.
  [[nodiscard]] static std::optional<RunHistory> Parse(std::string_view data);

  [[nodiscard]] const std::optional<protocol::LastSuccess>& success() const { return success_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const RunRecord* Find(std::int64_t token) const;

  /// Keeps the newer of the two successes.
  void AddSuccess(const protocol::LastSuccess& success);
  /// Replaces the entry with the same token, or adds `run` as the newest.
  void Enter(const RunRecord& run);
  /// Records as lost all runs without an end whose contenders are not in `present`, except the run
  /// with the token `own`.
  void EnterLost(const std::vector<std::string>& present, std::int64_t own);
  /// Records that the run with this token was lost, who deleted its contender, and why. Returns
  /// false if there is no such run or it had already ended.
  bool EnterTaken(std::int64_t token, const std::string& by, const std::string& reason);
  /// Records the end of the run with this token, unless it already has one. The run gets no status.
  void EnterEnd(std::int64_t token, std::chrono::milliseconds duration);

  /// Formats the success and the newest runs: at most `most_runs`, and as many as fit in
  /// kMostHistoryData.
  [[nodiscard]] std::string Format(std::size_t most_runs) const;

 private:
  std::optional<protocol::LastSuccess> success_;
  std::vector<Entry> entries_;
};

}  // namespace zklock::lock
