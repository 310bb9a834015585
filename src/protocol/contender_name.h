#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zklock::protocol {

/// What a contender asks for. kExclusive and kWrite conflict with everyone, kRead with those two.
enum class Mode { kExclusive, kWrite, kRead };

/// Whose node names are used on the servers (protocol, Znodes): those of Curator, go-zookeeper and
/// the C recipe, which are our own too; those of the Python library kazoo; or no queue but the one
/// znode `lock`, which who creates it holds.
enum class Dialect { kCurator, kKazoo, kSimple };

/// The only name in Dialect::kSimple. Unlike all others that we make it is used again.
inline constexpr std::string_view kSimpleName = "lock";

/// The program family that a contender's name shows.
enum class Program { kZklock, kCurator, kKazoo, kCRecipe, kUnknown };

/// The mark in a contender's name, between what its program chose and the server's number.
enum class Mark {
  kLock,
  kCuratorWrite,
  kCuratorRead,
  kKazooLock,
  kKazooRead,
  kPermit,  ///< of a semaphore, in Curator's layout
  kCRecipe,
  kNone
};

[[nodiscard]] inline bool Reads(Mark mark) {
  return mark == Mark::kCuratorRead || mark == Mark::kKazooRead;
}

/// A child of a LOCK that counts in its queue, read from its name.
///
/// Names that count end in a known mark and the server's number (`%010d`: ten digits, or a sign and
/// nine or ten), are of the C recipe (`x-…-NNNNNNNNNN`), or end in such a number at all: numbers
/// are given per parent, so waiting for an unknown one is safe.
struct ContenderName {
  std::string full;         ///< the child's whole name
  std::int64_t number = 0;  ///< the server's sequence number; negative after its overflow
  Mark mark = Mark::kNone;
  Program program = Program::kUnknown;
  bool supersedes = false;  ///< of --supersede: those of this kind that wait before it leave

  /// True for the marks that other readers may share the lock with.
  [[nodiscard]] bool reads() const { return Reads(mark); }
  /// What its mark says it asks for; kExclusive for unknown names. Kazoo's mark is the same for
  /// writers and exclusive ones: kExclusive.
  [[nodiscard]] Mode mode() const;
};

/// The same where a whole queue is read: the name is not copied, and what only few ask for is found
/// out when asked for.
struct ContenderNameView {
  std::string_view full;
  std::string_view before_mark;  ///< the part that its program chose; empty without a mark
  std::int64_t number = 0;
  Mark mark = Mark::kNone;

  [[nodiscard]] bool reads() const { return Reads(mark); }
  [[nodiscard]] Program program() const;
  /// As program() == Program::kCurator, and quicker for all others.
  [[nodiscard]] bool is_curators() const;
  [[nodiscard]] bool supersedes() const;
  [[nodiscard]] ContenderName ToName() const;
};

/// Reads a child's name; none when it does not count in the queue.
[[nodiscard]] std::optional<ContenderName> ParseContenderName(std::string_view name);
[[nodiscard]] std::optional<ContenderNameView> ViewContenderName(std::string_view name);

/// The part before the server's number: `HOST-UUID`, `-newest` if it supersedes, and the mark.
/// `host` is cut to 40 characters of
/// `[A-Za-z0-9.-]`, others become '-'; an empty one becomes "host". `uuid` is used as it is.
[[nodiscard]] std::string MakeContenderPrefix(std::string_view host, std::string_view uuid,
                                              Mode mode, Dialect dialect, bool supersedes = false);

/// Whether it is called as MakeContenderPrefix calls those of `host`. So are those of a host whose
/// name goes on with a dash.
[[nodiscard]] bool IsOfHost(const ContenderName& contender, std::string_view host);

/// As MakeContenderPrefix, for a permit of a semaphore.
[[nodiscard]] std::string MakePermitPrefix(std::string_view host, std::string_view uuid);

/// Numbers from here on are refused: the server is about to overflow and then hands out the same
/// number twice (measured; see the protocol page on sequence numbers).
inline constexpr std::int64_t kLastUsableNumber = 2147480000 - 1;

/// The word for a mode in messages, data and tables: "exclusive", "write", "read".
[[nodiscard]] std::string_view ModeName(Mode mode);
[[nodiscard]] std::optional<Mode> ParseMode(std::string_view word);

}  // namespace zklock::protocol
