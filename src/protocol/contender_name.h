#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::protocol {

/// What a contender asks for. kExclusive and kWrite conflict with every mode, kRead with those two.
enum class Mode { kExclusive, kWrite, kRead };

/// The names of the znodes on the servers (zklock-protocol(7)).
enum class Dialect {
  kCurator,  ///< those of Curator, go-zookeeper and the C recipe; also the default here
  kKazoo,    ///< those of the Python library kazoo
  kSimple,   ///< no queue: the client that creates the one znode `lock` holds the lock
};

/// The only name in Dialect::kSimple. Unlike the names of other contenders, it is used again.
inline constexpr std::string_view kSimpleName = "lock";

/// The program that created a contender, as far as its name shows.
enum class Program { kZklock, kCurator, kKazoo, kCRecipe, kUnknown };

/// The mark in a contender's name, between the part that its program chose and the server's number.
enum class Mark {
  kLock,
  kCuratorWrite,
  kCuratorRead,
  kKazooLock,
  kKazooRead,
  kPermit,  ///< a semaphore's, in Curator's layout
  kCRecipe,
  kNone
};

[[nodiscard]] inline bool Reads(Mark mark) {
  return mark == Mark::kCuratorRead || mark == Mark::kKazooRead;
}

/// A child of a LOCK that counts in its queue, as its name shows.
///
/// A name counts if it ends in the server's number (`%010d`: ten digits, or a minus sign and nine
/// or ten), with a known mark before it, with the prefix of the C recipe (`x-…-NNNNNNNNNN`), or
/// with anything else: the servers number all children of a parent alike, so it is safe to wait for
/// an unknown one.
struct ContenderName {
  std::string full;         ///< the whole name
  std::int64_t number = 0;  ///< the server's sequence number; negative after its overflow
  Mark mark = Mark::kNone;
  Program program = Program::kUnknown;
  bool supersedes = false;  ///< made with --supersede: older ones of its kind leave the queue
  bool reserves = false;    ///< made with --reserve: a reservation, or to become one

  /// True for readers' marks.
  [[nodiscard]] bool reads() const { return Reads(mark); }
  /// The mode that the mark stands for; kExclusive for unknown names, and for kazoo's, which has
  /// one mark for writers and exclusive contenders.
  [[nodiscard]] Mode mode() const;
};

/// The same for reading whole queues: the name is not copied, and what few callers need is computed
/// only for them.
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
  /// The same for all permits of one zklock run (--take), and for no other contender.
  [[nodiscard]] std::string_view run() const;
  [[nodiscard]] ContenderName ToName() const;
};

/// Parses a child's name; none if it does not count in the queue.
[[nodiscard]] std::optional<ContenderName> ParseContenderName(std::string_view name);
[[nodiscard]] std::optional<ContenderNameView> ViewContenderName(std::string_view name);

/// The part of a name before the server's number: `HOST-UUID`, `-newest` if it supersedes,
/// `-reserve` if it is to become a reservation, and the mark. Of `host`, 40 characters are used,
/// and those outside `[A-Za-z0-9.-]` become '-'; an empty one becomes "host". `uuid` is used as it
/// is.
[[nodiscard]] std::string MakeContenderPrefix(std::string_view host, std::string_view uuid,
                                              Mode mode, Dialect dialect, bool supersedes = false,
                                              bool reserves = false);

/// Whether the name begins as MakeContenderPrefix makes it for `host`. That is also true for a host
/// whose name is `host`, a dash and more.
[[nodiscard]] bool IsOfHost(const ContenderName& contender, std::string_view host);

/// Like MakeContenderPrefix, for a permit of a semaphore.
[[nodiscard]] std::string MakePermitPrefix(std::string_view host, std::string_view uuid,
                                           bool reserves = false);

/// Higher numbers are refused: the server's counter is about to overflow, after which it gives the
/// same number twice (measured; see zklock-protocol(7) on sequence numbers).
inline constexpr std::int64_t kLastUsableNumber = 2147480000 - 1;

/// The word for a mode in messages, data and tables: "exclusive", "write", "read".
[[nodiscard]] std::string_view ModeName(Mode mode);
[[nodiscard]] std::optional<Mode> ParseMode(std::string_view word);

}  // namespace zklock::protocol
