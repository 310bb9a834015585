#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::protocol {

/// The mode that a contender requests. kExclusive and kWrite conflict with every mode, kRead with
/// those two.
enum class Mode { kExclusive, kWrite, kRead };

/// How the znodes on the servers are named (zklock-protocol(7)).
enum class Dialect {
  kCurator,  ///< as in Curator, go-zookeeper and the C recipe; also the default here
  kKazoo,    ///< as in the Python library kazoo
  kSimple,   ///< no queue: the client that creates the single znode `lock` holds the lock
};

/// The only name in Dialect::kSimple. Unlike the names of other contenders, it is reused.
inline constexpr std::string_view kSimpleName = "lock";

/// The program that created a contender, judging by its name.
enum class Program { kZklock, kCurator, kKazoo, kCRecipe, kUnknown };

/// The mark in a contender's name, between the part that its program chose and the server's number.
enum class Mark {
  kLock,
  kCuratorWrite,
  kCuratorRead,
  kKazooLock,
  kKazooRead,
  kPermit,  ///< for a semaphore, in Curator's layout
  kCRecipe,
  kNone
};

[[nodiscard]] inline bool Reads(Mark mark) {
  return mark == Mark::kCuratorRead || mark == Mark::kKazooRead;
}

/// A child of a LOCK that counts in the queue, as described by its name.
///
/// A name counts if it ends in the server's number (`%010d`: ten digits, or a minus sign and nine
/// or ten). The number may follow a known mark, the prefix of the C recipe (`x-…-NNNNNNNNNN`), or
/// anything else: the servers number all children of a parent in one sequence, so it is safe to
/// wait for an unknown contender.
struct ContenderName {
  std::string full;         ///< the whole name
  std::int64_t number = 0;  ///< the server's sequence number; negative after its overflow
  Mark mark = Mark::kNone;
  Program program = Program::kUnknown;
  bool supersedes = false;  ///< created with --supersede: older such contenders leave the queue
  bool reserves = false;    ///< created with --reserve: is or will become a reservation

  /// Returns whether the mark is a reader's.
  [[nodiscard]] bool reads() const { return Reads(mark); }
  /// Returns the mode that the mark stands for; kExclusive for unknown names, and for kazoo's mark
  /// that writers and exclusive contenders share.
  [[nodiscard]] Mode mode() const;
};

/// Like ContenderName, but for reading whole queues: the name is not copied, and the parts that few
/// callers need are computed only on demand.
struct ContenderNameView {
  std::string_view full;
  std::string_view before_mark;  ///< the part that the program chose; empty without a mark
  std::int64_t number = 0;
  Mark mark = Mark::kNone;

  [[nodiscard]] bool reads() const { return Reads(mark); }
  [[nodiscard]] Program program() const;
  /// Like program() == Program::kCurator, but quicker for other programs.
  [[nodiscard]] bool is_curators() const;
  [[nodiscard]] bool supersedes() const;
  [[nodiscard]] bool reserves() const;
  /// Returns the part of the name that only the permits of the same zklock run (--take) share; the
  /// whole name if it is not a permit of zklock.
  [[nodiscard]] std::string_view run() const;
  [[nodiscard]] ContenderName ToName() const;
};

/// Parses a child's name; returns none if the child does not count in the queue.
[[nodiscard]] std::optional<ContenderName> ParseContenderName(std::string_view name);
[[nodiscard]] std::optional<ContenderNameView> ViewContenderName(std::string_view name);

/// Returns the part of a name before the server's number: `HOST-UUID`, `-newest` if it supersedes,
/// `-reserve` if it will become a reservation, and the mark. Only the first 40 characters of `host`
/// are used; characters outside `[A-Za-z0-9.-]` become '-', and an empty host becomes "host".
/// `uuid` is used as it is. In Dialect::kSimple, returns the whole name.
[[nodiscard]] std::string MakeContenderPrefix(std::string_view host, std::string_view uuid,
                                              Mode mode, Dialect dialect, bool supersedes = false,
                                              bool reserves = false);

/// Returns whether the name begins as MakeContenderPrefix() would begin one for `host`. This is
/// also true for a host whose name begins with `host` and a dash.
[[nodiscard]] bool IsOfHost(const ContenderName& contender, std::string_view host);

/// Like MakeContenderPrefix(), but for a permit of a semaphore.
[[nodiscard]] std::string MakePermitPrefix(std::string_view host, std::string_view uuid,
                                           bool reserves = false);

/// Higher numbers are refused: the server's counter is about to overflow, after which it assigns
/// the same number twice (measured; see zklock-protocol(7) on sequence numbers).
inline constexpr std::int64_t kLastUsableNumber = 2147480000 - 1;

/// Returns the word for a mode in messages, data and tables: "exclusive", "write", "read".
[[nodiscard]] std::string_view ModeName(Mode mode);
[[nodiscard]] std::optional<Mode> ParseMode(std::string_view word);

}  // namespace zklock::protocol
