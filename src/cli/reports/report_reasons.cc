#include "cli/reports/report_reasons.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <system_error>

#include "cli/reports/report_progress.h"
#include "cli/text/duration.h"
#include "cli/text/messages.h"
#include "cli/text/printable.h"
#include "cli/text/queue_view.h"
#include "cli/text/run_messages.h"
#include "cli/text/server_messages.h"
#include "protocol/run_records.h"

namespace zklock::cli {
namespace {

using zookeeper::Error;

/// Describes an answer that a correct server never gives.
const char* AnswerText(Error error) {
  switch (error) {
    case Error::kNoNode:
      return message::kNoZnode;
    case Error::kNodeExists:
      return message::kZnodeExists;
    case Error::kNoChildrenForEphemerals:
      return message::kChildOfEphemeral;
    case Error::kNotEmpty:
      return message::kHasChildren;
    case Error::kBadVersion:
      return message::kZnodeChanged;
    case Error::kUnimplemented:
      return message::kUnknownRequest;
    default:
      return message::kUnexpectedAnswer;
  }
}

}  // namespace

std::string AttemptText(const zookeeper::AttemptEnd& end) {
  using enum zookeeper::AttemptEnd::How;
  switch (end.how) {
    case kConnectUnanswered:
      return message::kConnectUnanswered;
    case kNoSession:
      return message::kGrantsNoSession;
    case kClosedAtOnce:
      return message::kClosesAtOnce;
    case kNoZooKeeper:
      return message::kNotZooKeeper;
    case kClosed:
      return message::kClosedLater;
    case kFellSilent:
      return message::kFellSilent;
    case kClosesOnRequest:
      return message::kClosesOnRequest;
    case kThrottles:
      return message::kThrottles;
    case kNotUnderstood:
      return message::kNotUnderstood;
    case kHelper:
    case kHelperRefused:
      return end.words;
    case kHelperClosed:
      return message::kHelperClosed;
    case kHelperSilent:
      return message::kHelperSilent;
    case kLoopback:
      return fmt::format(message::kLoopback, std::generic_category().message(end.error));
    case kSystem:
      break;
  }
  return std::generic_category().message(end.error);
}

std::string NoCgroupText(const process::NoCgroup& reason) {
  using Why = process::NoCgroup::Why;
  const std::string path = Printable(reason.path);
  const std::string error = std::generic_category().message(reason.error);
  switch (reason.why) {
    case Why::kNotMounted:
      return message::kNoHierarchy;
    case Why::kNotDelegated:
      return fmt::format(message::kNotDelegated, path);
    case Why::kOldKernel:
      return message::kNoCgroupKill;
    case Why::kThreaded:
      return fmt::format(message::kThreadedCgroup, path);
    case Why::kNotCreated:
      return fmt::format(message::kCgroupNotCreated, path, error);
    case Why::kNotEntered:
      break;
  }
  return fmt::format(message::kCgroupNotEntered, path, error);
}

std::string UselessSessionText(const std::string& tried) {
  return fmt::format(message::kNoUsableServer, Printable(tried));
}

std::string UnreachableText(const std::string& tried, Duration time_out, bool hopeless,
                            bool names_no_server, const std::string& proxy_command,
                            int proxy_failure) {
  if (hopeless) return fmt::format(message::kNoSuchServer, Printable(tried));
  const std::string time = FormatDuration(time_out);
  if (!proxy_command.empty() && !names_no_server) {
    if (proxy_failure != 0) {
      return fmt::format(message::kProxyFailed, time, Printable(tried), proxy_failure,
                         Printable(proxy_command));
    }
    return fmt::format(message::kNoServerThroughProxy, time, Printable(tried),
                       Printable(proxy_command));
  }
  return names_no_server ? fmt::format(message::kNoServerNamed, time, Printable(tried))
                         : fmt::format(message::kNoServer, time, Printable(tried));
}

std::string TooSlowText(const std::string& lock, const lock::TooSlow& slow) {
  const std::string timeout = FormatDuration(slow.timeout);
  const std::string span = FormatDuration(slow.ping_span);
  return slow.ping_span > slow.timeout / 4
             ? fmt::format(message::kPingsTooRare, lock, timeout, span)
             : fmt::format(message::kTooSlow, lock, timeout, FormatDuration(slow.answer), span);
}

std::string IdentityText(const zookeeper::Access& access, const process::TransportSpec& transport) {
  std::vector<std::string> identities;
  const auto user_of = [](const std::string& user_and_password) {
    return user_and_password.substr(0, user_and_password.find(':'));
  };
  for (const zookeeper::AuthInfo& one : access.credentials) {
    // In other schemes, everything may be secret, even what precedes the colon in a misspelt line.
    identities.push_back(one.scheme == "digest" ? one.scheme + ":" + user_of(one.credential)
                                                : fmt::format(message::kByLine, one.where));
  }
  if (transport.sasl == "gssapi") identities.emplace_back(message::kByKerberos);
  if (!transport.sasl_secret.empty()) {
    identities.push_back("sasl:" + user_of(transport.sasl_secret));
  }
  if (!transport.tls_cert.empty()) identities.emplace_back(message::kByCertificate);
  if (identities.empty()) return message::kNoIdentity;
  return Printable(fmt::format("{}", fmt::join(identities, ", ")));
}

std::string CredentialsRefusedText(const zookeeper::Access& access) {
  // Every server knows the scheme digest, and accepts any password for it. Do not show another
  // scheme: if its colon is missing or misplaced, the "scheme" includes the secret.
  const auto suspect =
      std::find_if(access.credentials.begin(), access.credentials.end(),
                   [](const zookeeper::AuthInfo& one) { return one.scheme != "digest"; });
  const bool is_known = suspect != access.credentials.end() && !suspect->where.empty();
  return fmt::format(
      message::kCredentialsRefused,
      is_known ? fmt::format(message::kMaybeUnknownScheme, Printable(suspect->where)) : "");
}

std::string QueueFullText(std::size_t most) {
  return most == 0 ? message::kNoneMayWait : fmt::format(message::kManyWait, most);
}

std::string RefusedText(const lock::Refused& refused, const std::string& identity) {
  switch (refused.error) {
    case Error::kAuthFailed:
      return CredentialsRefusedText({});
    case Error::kAuthRequired:
      return message::kCredentialsRequired;
    case Error::kInvalidAcl:
      return fmt::format(message::kAclRefused, refused.operation, refused.path);
    default:
      return fmt::format(
          message::kNotAuthorised, refused.operation, refused.path, refused.right,
          refused.right_path, identity,
          identity.find("digest:") != std::string::npos ? message::kOrWrongPassword : "");
  }
}

std::string SaslText(const std::string& server) {
  return fmt::format(message::kSaslRefused, Printable(server));
}

std::string OtherSchemeText() { return message::kOtherSchemeRequired; }

std::string UnusableText(const std::string& lock, const lock::Unusable& unusable) {
  using enum lock::Unusable::Why;
  switch (unusable.why) {
    case kShortSessions:
      return fmt::format(message::kShortSessions, lock);
    case kNumbersUsedUp:
      return fmt::format(message::kNumbersUsedUp, lock);
    case kNobodysContender:
      return fmt::format(message::kNotContender, lock, Printable(unusable.child));
    case kEphemeral:
      return fmt::format(message::kEphemeralLock, lock);
    case kBelowEphemeral:
      return fmt::format(message::kEphemeralAbove, lock);
    case kLocalSessions:
      return fmt::format(message::kLocalSessions, lock);
    case kOldServers:
      return fmt::format(message::kOldServers, lock);
    case kRecordUnknown:
      return fmt::format(
          message::kRecordUnknown, lock,
          unusable.child == protocol::kLastStartChild ? "--once-per" : "--min-interval",
          Printable(unusable.child));
    case kHasPermits:
      return fmt::format(message::kHasPermits, lock);
    case kHasNoPermits:
      return fmt::format(message::kHasNoPermits, lock);
    case kOtherPermits:
      return fmt::format(message::kOtherPermits, lock, unusable.permits);
    case kUnknownPermits:
      return fmt::format(message::kUnknownPermits, lock, lock);
    case kReservedWithOtherTake:
      return fmt::format(message::kReservedWithOtherTake, lock, unusable.permits);
    case kReservedInOtherMode:
      return fmt::format(message::kReservedInOtherMode, lock,
                         protocol::ModeName(unusable.reserved_mode), Printable(unusable.child));
    case kIncompatible:
      break;
  }
  const protocol::IncompatibleContender incompatible =
      unusable.incompatible.value_or(protocol::IncompatibleContender{});
  return fmt::format(message::kIncompatibleThere, lock, Printable(incompatible.child),
                     IncompatibleText(incompatible.kind));
}

std::string OverlapText(const protocol::IncompatibleContender& contender) {
  return fmt::format(message::kMayOverlap, Printable(contender.child),
                     IncompatibleText(contender.kind));
}

const char* IncompatibleText(protocol::IncompatibleContender::Kind kind) {
  using enum protocol::IncompatibleContender::Kind;
  switch (kind) {
    case kKazoo:
      return message::kKazooProgram;
    case kKazooPermit:
      return message::kKazooPermit;
    case kOneZnode:
      return message::kOneZnode;
    case kCuratorMutex:
      return message::kCuratorMutex;
    case kCuratorReadWrite:
      return message::kCuratorReadWrite;
    case kCRecipe:
      return message::kCRecipe;
    case kZklockKazoo:
      return message::kZklockKazoo;
    case kZklockCurator:
      return message::kZklockCurator;
    case kCuratorNames:
      return message::kCuratorNames;
    case kQueue:
      break;
  }
  return message::kQueues;
}

std::string QuotaText(const lock::QuotaExceeded& quota) {
  return quota.limit.empty() ? fmt::format(message::kQuotaAbove, quota.path)
                             : fmt::format(message::kQuotaExceeded, quota.path, quota.limit);
}

std::string DefectText(const lock::Defect& defect) {
  using enum lock::Defect::What;
  std::string what;
  switch (defect.what) {
    case kNotListed:
      what = fmt::format(message::kNotListed, defect.path);
      break;
    case kVanishes:
      what = fmt::format(message::kVanishes, defect.path);
      break;
    case kAnswer:
      what = fmt::format(message::kCannot, defect.operation, defect.path, AnswerText(defect.error));
      break;
  }
  return fmt::format(message::kDefect, Printable(what));
}

namespace {

std::string NameOf(const lock::Reserved& reserved) {
  return Printable(ReservationText(reserved, /*overdue=*/false), 2 * kWidestForeign);
}

/// Returns the contender or reservation in the way.
std::string BlockerName(const lock::Busy& busy) {
  const std::string name =
      busy.reserved ? NameOf(*busy.reserved) : ProcessText(busy.blocker, busy.blocker_data);
  return busy.more_hold == 0 ? name : name + fmt::format(message::kMoreHold, busy.more_hold);
}

}  // namespace

std::string HeldText(const lock::Busy& busy) {
  if (busy.reserved) return fmt::format(message::kIsReserved, BlockerName(busy));
  if (busy.holds) return fmt::format(message::kIsHeldBy, BlockerName(busy));
  return fmt::format(message::kIsHeld, BlockerText(busy));
}

std::string BlockerText(const lock::Busy& busy) {
  if (busy.blocker.empty()) return "";
  if (busy.reserved) return fmt::format(message::kBlockerReserved, BlockerName(busy));
  if (busy.holds) return fmt::format(message::kBlockerHolds, BlockerName(busy));
  return fmt::format(message::kBlocker, BlockerName(busy));
}

std::string OtherReservationText(const std::optional<lock::Reserved>& other) {
  return other ? fmt::format(message::kButReserved, NameOf(*other)) : "";
}

std::string AskerText(const lock::ReleaseRequest& request) {
  if (request.program == protocol::Program::kCurator) return message::kCuratorProgram;
  std::string by = request.by.empty() ? message::kSomeone : Printable(request.by, kWidestForeign);
  if (request.reason.empty()) return by;
  return fmt::format(message::kAsker, by, Printable(request.reason, 2 * kWidestForeign));
}

std::string TriedText(const std::vector<TriedServer>& servers) {
  std::string text;
  for (auto first = servers.begin(); first != servers.end(); ++first) {
    const auto has_its_reason = [&](const TriedServer& one) { return one.reason == first->reason; };
    if (std::any_of(servers.begin(), first, has_its_reason)) continue;
    std::string names = first->server;
    for (auto other = first + 1; other != servers.end(); ++other) {
      if (has_its_reason(*other)) names += ", " + other->server;
    }
    const char* const form =
        names == first->server ? message::kTriedServer : message::kTriedServers;
    if (!text.empty()) text += ", ";
    text += fmt::format(fmt::runtime(form), names, first->reason);
  }
  return text;
}

std::string SilentReason() { return message::kAnswersNothing; }

std::string LookupText(const process::LookupFailure& failure) {
  return failure.error ? gai_strerror(*failure.error) : message::kLookupEnded;
}

std::string LookingUpReason() { return message::kLookupRuns; }

}  // namespace zklock::cli
