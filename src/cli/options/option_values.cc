#include "cli/options/option_values.h"

#include <fmt/format.h>

#include <cctype>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "cli/text/messages.h"

namespace zklock::cli {

std::optional<int> ParseNumber(std::string_view text, int least, int most) {
  const auto number = ParseWhole<int>(text);
  if (!number || *number < least || *number > most) return std::nullopt;
  return number;
}

std::optional<int> ParseSignal(std::string text) {
  if (const auto number = ParseNumber(text, 1, SIGRTMAX)) return number;
  for (char& letter : text) letter = static_cast<char>(std::toupper(letter));
  if (text.rfind("SIG", 0) == 0) text.erase(0, 3);
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* name = sigabbrev_np(number);
    if (name != nullptr && text == name) return number;
  }
  return std::nullopt;
}

const char* PathText(protocol::BadPath bad) {
  using enum protocol::BadPath;
  switch (bad) {
    case kEmpty:
      return message::kIsEmpty;
    case kNotAbsolute:
      return message::kNotAbsolute;
    case kRoot:
      return message::kIsRoot;
    case kZooKeepers:
      return message::kZooKeepers;
    case kEndsInSlash:
      return message::kEndsInSlash;
    case kEmptyComponent:
      return message::kEmptyComponent;
    case kDot:
      return message::kDot;
    case kDotDot:
      return message::kDotDot;
    case kNoUtf8:
      return message::kNoUtf8;
    case kControlCharacter:
      return message::kControlCharacter;
    case kRefusedCharacter:
      break;
  }
  return message::kRefusedCharacter;
}

std::string ServersText(const zookeeper::BadServerList& bad) {
  using enum zookeeper::BadServerList::Why;
  switch (bad.why) {
    case kNoServer:
      return message::kNamesNone;
    case kScheme:
      return message::kHasScheme;
    case kServersBehind:
      return message::kServersBehind;
    case kChroot:
      return fmt::format(message::kItsChroot, PathText(bad.chroot));
    case kNoBracket:
      return fmt::format(message::kNoBracket, bad.server);
    case kNoIpv6:
      return fmt::format(message::kNoIpv6, bad.server);
    case kBehindBracket:
      return fmt::format(message::kBehindBracket, bad.server);
    case kSeveralColons:
      return fmt::format(message::kSeveralColons, bad.server);
    case kNoHost:
      return fmt::format(message::kNoHost, bad.server);
    case kBlank:
      return fmt::format(message::kHasBlank, bad.server);
    case kBadHost:
      return fmt::format(message::kBadHost, bad.server);
    case kBadPort:
      break;
  }
  return fmt::format(message::kBadPort, bad.server);
}

}  // namespace zklock::cli
