#include "protocol/contender_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace zklock::protocol {
namespace {

constexpr std::size_t kLongestHost = 40;
constexpr std::size_t kUuidLength = 36;
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kSmallest = std::numeric_limits<std::int32_t>::min();

struct KnownMark {
  std::string_view text;
  Mark mark;
};

// None of these is the ending of another ("__lock__" does not end in "lock-"), so their order does
// not matter.
constexpr std::array kKnownMarks{
    KnownMark{"lock-", Mark::kLock},           KnownMark{"__WRIT__", Mark::kCuratorWrite},
    KnownMark{"__READ__", Mark::kCuratorRead}, KnownMark{"__lock__", Mark::kKazooLock},
    KnownMark{"__rlock__", Mark::kKazooRead},  KnownMark{"lease-", Mark::kPermit},
};

// Not <cctype>, which depends on the locale.
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsHostCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
}

/// A name split before the server's number.
struct Split {
  std::string_view before;
  std::int64_t number;
};

/// Splits off ten digits if their value fits in the server's 32-bit counter.
std::optional<Split> SplitPositive(std::string_view name) {
  constexpr std::size_t kDigits = 10;
  if (name.size() < kDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : name.substr(name.size() - kDigits)) {
    if (!IsDigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (value > kLargest) return std::nullopt;
  return Split{name.substr(0, name.size() - kDigits), value};
}

/// Splits off a minus sign and the digits that `%010d` prints after it: nine, or ten without a
/// leading zero.
std::optional<Split> SplitNegative(std::string_view name) {
  std::size_t digits = 0;
  std::int64_t value = 0;
  std::int64_t unit = 1;
  while (digits < name.size() && digits < 10 && IsDigit(name[name.size() - 1 - digits])) {
    value -= unit * (name[name.size() - 1 - digits] - '0');
    unit *= 10;
    ++digits;
  }
  if (digits < 9 || digits >= name.size()) return std::nullopt;
  const std::size_t sign = name.size() - 1 - digits;
  if (name[sign] != '-' || value == 0 || value < kSmallest) return std::nullopt;
  if (digits == 10 && name[sign + 1] == '0') return std::nullopt;
  return Split{name.substr(0, sign), value};
}

const KnownMark* FindMark(std::string_view before_number) {
  const auto* const found =
      std::find_if(kKnownMarks.begin(), kKnownMarks.end(),
                   [&](const KnownMark& known) { return before_number.ends_with(known.text); });
  return found == kKnownMarks.end() ? nullptr : &*found;
}

/// Returns whether the prefix is `x-SESSION-`: the C recipe prints the session in hex, its Java
/// version in signed decimal.
bool IsCRecipePrefix(std::string_view before_number) {
  if (!before_number.starts_with("x-") || !before_number.ends_with('-')) return false;
  before_number.remove_prefix(2);
  if (before_number.empty()) return false;
  before_number.remove_suffix(1);
  if (before_number.starts_with('-')) before_number.remove_prefix(1);
  return !before_number.empty() &&
         std::all_of(before_number.begin(), before_number.end(), IsHexDigit);
}

bool IsUuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !IsHexDigit(text[i])) return false;
  }
  return true;
}

constexpr std::string_view kNewest = "-newest";
constexpr std::string_view kReserve = "-reserve";

/// Removes `word` from the end of `text`, if it is there.
bool RemoveWord(std::string_view& text, std::string_view word) {
  if (!text.ends_with(word)) return false;
  text.remove_suffix(word.size());
  return true;
}

/// Returns whether the prefix is one that MakeContenderPrefix() writes: `HOST-UUID-`, or
/// `HOST-UUID` before one of kazoo's marks, with or without `-newest` and `-reserve`.
bool IsOurPrefix(std::string_view before_mark, bool kazoo_mark) {
  if (!kazoo_mark) {
    if (!before_mark.ends_with('-')) return false;
    before_mark.remove_suffix(1);
  }
  RemoveWord(before_mark, kReserve);
  RemoveWord(before_mark, kNewest);
  if (before_mark.size() < kUuidLength + 2) return false;
  const std::size_t uuid = before_mark.size() - kUuidLength;
  const std::string_view host = before_mark.substr(0, uuid - 1);
  return IsUuid(before_mark.substr(uuid)) && before_mark[uuid - 1] == '-' &&
         host.size() <= kLongestHost && std::all_of(host.begin(), host.end(), IsHostCharacter);
}

// Curator's prefix. go-zookeeper uses it too.
constexpr std::string_view kCuratorPrefix = "_c_";

/// Returns none if there is no known mark before the number.
std::optional<ContenderNameView> ReadMark(std::string_view name, const Split& split) {
  if (const KnownMark* const known = FindMark(split.before)) {
    const std::size_t size = split.before.size() - known->text.size();
    return ContenderNameView{name, split.before.substr(0, size), split.number, known->mark};
  }
  if (!IsCRecipePrefix(split.before)) return std::nullopt;
  return ContenderNameView{name, split.before, split.number, Mark::kCRecipe};
}

/// Returns the mark, with the dash that separates it from the UUID.
std::string_view CuratorMark(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "-lock-";
    case Mode::kWrite:
      return "-__WRIT__";
    case Mode::kRead:
      return "-__READ__";
  }
  return "";
}

std::string HostAndUuid(std::string_view host, std::string_view uuid) {
  std::string text(host.substr(0, kLongestHost));
  if (text.empty()) text = "host";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !IsHostCharacter(c); }, '-');
  return text.append("-").append(uuid);
}

}  // namespace

Mode ContenderName::mode() const {
  switch (mark) {
    case Mark::kCuratorWrite:
      return Mode::kWrite;
    case Mark::kCuratorRead:
    case Mark::kKazooRead:
      return Mode::kRead;
    case Mark::kLock:
    case Mark::kKazooLock:
    case Mark::kPermit:
    case Mark::kCRecipe:
    case Mark::kNone:
      break;
  }
  return Mode::kExclusive;
}

Program ContenderNameView::program() const {
  switch (mark) {
    case Mark::kKazooLock:
    case Mark::kKazooRead:
      return IsOurPrefix(before_mark, true) ? Program::kZklock : Program::kKazoo;
    case Mark::kCRecipe:
      return Program::kCRecipe;
    case Mark::kNone:
      return Program::kUnknown;
    case Mark::kLock:
    case Mark::kCuratorWrite:
    case Mark::kCuratorRead:
    case Mark::kPermit:
      break;
  }
  if (before_mark.starts_with(kCuratorPrefix)) return Program::kCurator;
  return IsOurPrefix(before_mark, false) ? Program::kZklock : Program::kUnknown;
}

bool ContenderNameView::is_curators() const {
  return before_mark.starts_with(kCuratorPrefix) && program() == Program::kCurator;
}

bool ContenderNameView::supersedes() const {
  std::string_view words = before_mark;
  RemoveWord(words, "-");
  RemoveWord(words, kReserve);
  return words.ends_with(kNewest) && program() == Program::kZklock;
}

bool ContenderNameView::reserves() const {
  std::string_view words = before_mark;
  RemoveWord(words, "-");
  return words.ends_with(kReserve) && program() == Program::kZklock;
}

std::string_view ContenderNameView::run() const {
  const bool is_our_permit = mark == Mark::kPermit && program() == Program::kZklock;
  return is_our_permit ? before_mark : full;
}

ContenderName ContenderNameView::ToName() const {
  return {std::string(full), number, mark, program(), supersedes(), reserves()};
}

std::optional<ContenderNameView> ViewContenderName(std::string_view name) {
  const std::optional<Split> positive = SplitPositive(name);
  // A known mark shows where the number begins, and hence whether a dash before the digits is a
  // minus sign.
  if (positive) {
    if (const auto marked = ReadMark(name, *positive)) return marked;
  }
  const std::optional<Split> negative = SplitNegative(name);
  if (negative) {
    if (const auto marked = ReadMark(name, *negative)) return marked;
  }
  // In an unknown name, a dash is more likely to be a separator than a minus sign.
  const std::optional<Split>& split = positive ? positive : negative;
  if (!split) return std::nullopt;
  return ContenderNameView{name, {}, split->number, Mark::kNone};
}

std::optional<ContenderName> ParseContenderName(std::string_view name) {
  const auto view = ViewContenderName(name);
  if (!view) return std::nullopt;
  return view->ToName();
}

std::string MakeContenderPrefix(std::string_view host, std::string_view uuid, Mode mode,
                                Dialect dialect, bool supersedes, bool reserves) {
  std::string prefix = HostAndUuid(host, uuid);
  if (supersedes) prefix += kNewest;
  if (reserves) prefix += kReserve;
  switch (dialect) {
    case Dialect::kCurator:
      return prefix.append(CuratorMark(mode));
    case Dialect::kKazoo:
      return prefix.append(mode == Mode::kRead ? "__rlock__" : "__lock__");
    case Dialect::kSimple:
      return std::string(kSimpleName);
  }
  return prefix;
}

bool IsOfHost(const ContenderName& contender, std::string_view host) {
  return contender.full.starts_with(HostAndUuid(host, ""));
}

std::string MakePermitPrefix(std::string_view host, std::string_view uuid, bool reserves) {
  return HostAndUuid(host, uuid).append(reserves ? kReserve : "").append("-lease-");
}

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kExclusive:
      return "exclusive";
    case Mode::kWrite:
      return "write";
    case Mode::kRead:
      return "read";
  }
  return "";
}

std::optional<Mode> ParseMode(std::string_view word) {
  for (const Mode mode : {Mode::kExclusive, Mode::kWrite, Mode::kRead}) {
    if (word == ModeName(mode)) return mode;
  }
  return std::nullopt;
}

}  // namespace zklock::protocol
