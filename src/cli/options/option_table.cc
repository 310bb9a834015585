#include "cli/options/option_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "base/read_file.h"
#include "base/text.h"
#include "base/transport_interface.h"
#include "cli/options/config.h"
#include "cli/options/credentials.h"
#include "cli/options/option_values.h"
#include "cli/text/duration.h"
#include "cli/text/messages.h"
#include "lock/data/contender_data.h"
#include "lock/data/run_history.h"
#include "protocol/lock_path.h"
#include "protocol/reservation.h"

namespace zklock::cli {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

/// The client library doubles the timeout in an int of milliseconds. Above 12 days and 10 hours
/// that overflows, and the library would never connect.
constexpr Duration kLongestSessionTimeout = std::chrono::days(12);

// Functions that store a value. `kField` points to a member of OptionFields or one of its parts.

template <typename Part, typename T>
T& In(OptionFields& fields, T Part::*field) {
  if constexpr (std::is_same_v<Part, RunOptions>) return fields.run.*field;
  if constexpr (std::is_same_v<Part, InspectOptions>) return fields.inspect.*field;
  if constexpr (std::is_same_v<Part, ReleaseOptions>) return fields.release.*field;
  if constexpr (std::is_same_v<Part, ServerOptions>) return fields.server.*field;
  if constexpr (std::is_same_v<Part, OptionFields>) return fields.*field;
}

template <auto kField>
std::string Flag(const OptionValue& value, OptionFields& fields) {
  In(fields, kField) = value.flag;
  return "";
}

/// Stores one value of an enumeration if the flag is set.
template <auto kField, auto kValue>
std::string EnumFlag(const OptionValue& value, OptionFields& fields) {
  if (value.flag) In(fields, kField) = kValue;
  return "";
}

template <auto kField>
std::string TextValue(const OptionValue& value, OptionFields& fields) {
  In(fields, kField) = value.text;
  return "";
}

constexpr bool kMayBeZero = true;
constexpr bool kNotZero = false;

template <auto kField, bool kZero>
std::string DurationValue(const OptionValue& value, OptionFields& fields) {
  if (!value.IsSet()) return "";
  const auto duration = ParseDuration(value.text);
  if (!duration && IsTooLongDuration(value.text)) {
    return fmt::format(message::kTooLong, value.spec->Name(), value.text,
                       FormatDuration(Duration::max()));
  }
  if (!duration) return fmt::format(message::kNoDuration, value.spec->Name(), value.text);
  if (*duration == Duration::zero() && kZero == kNotZero) {
    return fmt::format(message::kZero, value.spec->Name());
  }
  In(fields, kField) = *duration;
  return "";
}

template <typename T>
struct Inner {
  using Type = T;
};
template <typename T>
struct Inner<std::optional<T>> {
  using Type = T;
};

template <auto kField, int kLeast, int kMost = kMaxInt>
std::string Number(const OptionValue& value, OptionFields& fields) {
  if (!value.IsSet()) return "";
  const auto number = ParseNumber(value.text, kLeast, kMost);
  if (!number) {
    return fmt::format(message::kNoNumber, value.spec->Name(), value.text, kLeast, kMost);
  }
  auto& field = In(fields, kField);
  field = static_cast<typename Inner<std::remove_reference_t<decltype(field)>>::Type>(*number);
  return "";
}

template <auto kField>
std::string Signal(const OptionValue& value, OptionFields& fields) {
  const auto signal = ParseSignal(value.text);
  if (!signal) return fmt::format(message::kNoSignal, value.spec->Name(), value.text);
  In(fields, kField) = *signal;
  return "";
}

/// Returns the index of the value among the metavar's words; none if it is not one of them.
std::optional<std::size_t> ChoiceIndex(const OptionValue& value) {
  const std::vector<std::string> choices = value.spec->Choices();
  const auto found = std::find(choices.begin(), choices.end(), value.text);
  if (found == choices.end()) return std::nullopt;
  return static_cast<std::size_t>(found - choices.begin());
}

std::string NoChoice(const OptionValue& value) {
  std::string known;
  for (const std::string& choice : value.spec->Choices()) {
    known += (known.empty() ? "" : ", ") + choice;
  }
  return fmt::format(message::kNoChoice, value.spec->Name(), value.text, known);
}

/// `kValues`: the meanings of the metavar's words, in the same order.
template <auto kField, auto... kValues>
std::string Choice(const OptionValue& value, OptionFields& fields) {
  constexpr std::array kMeanings = {kValues...};
  const auto index = ChoiceIndex(value);
  if (!index) return NoChoice(value);
  In(fields, kField) = kMeanings.at(*index);
  return "";
}

// Options that need functions of their own.

std::string PathFault(std::string_view what, const std::string& path) {
  const auto checked = protocol::CheckAbsolutePath(path);
  const auto* bad = std::get_if<protocol::BadPath>(&checked);
  return bad == nullptr ? "" : fmt::format(message::kBadPath, what, path, PathText(*bad));
}

std::string Servers(const OptionValue& value, OptionFields& fields) {
  auto list = zookeeper::ParseServerList(value.text);
  if (const auto* bad = std::get_if<zookeeper::BadServerList>(&list)) {
    const bool has_semicolon = value.text.find(';') < value.text.find('/');
    return fmt::format(message::kBadServers, value.text,
                       has_semicolon ? message::kHasSemicolon : ServersText(*bad));
  }
  fields.server.servers = std::get<zookeeper::ServerList>(std::move(list));
  fields.server.servers_text = value.text;
  fields.server.servers_origin = value.OriginText();
  fields.server.names_no_server = !value.WasGiven();
  const std::string& chroot = fields.server.servers.chroot;
  return chroot.empty() ? "" : PathFault("the chroot", chroot);
}

std::string Root(const OptionValue& value, OptionFields& fields) {
  fields.server.root = value.text;
  fields.server.has_own_root = value.WasGiven();
  return value.text == "/" ? "" : PathFault(value.spec->Name(), value.text);
}

std::string SessionTimeout(const OptionValue& value, OptionFields& fields) {
  fields.server.asks_session_timeout = value.WasGiven();
  std::string fault = DurationValue<&ServerOptions::session_timeout, kNotZero>(value, fields);
  if (!fault.empty() || fields.server.session_timeout <= kLongestSessionTimeout) return fault;
  return fmt::format(message::kTooLong, value.spec->Name(), value.text,
                     FormatDuration(kLongestSessionTimeout));
}

std::string MaxRun(const OptionValue& value, OptionFields& fields) {
  // `none` cancels the limit that a configuration file sets.
  if (value.text == "none") return "";
  return DurationValue<&RunOptions::max_run, kNotZero>(value, fields);
}

std::string ReservationId(const OptionValue& value, std::string& field) {
  if (!value.WasGiven()) return "";
  field = value.text;
  return protocol::IsReservationId(field)
             ? ""
             : fmt::format(message::kNoReservationId, value.spec->Name(), field);
}

std::string Reserve(const OptionValue& value, OptionFields& fields) {
  return ReservationId(value, fields.run.reserve);
}

std::string Resume(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  fields.run.resumes = true;
  return ReservationId(value, fields.run.reserve);
}

std::string ReserveFor(const OptionValue& value, OptionFields& fields) {
  std::string fault = DurationValue<&RunOptions::reserve_for, kNotZero>(value, fields);
  constexpr Duration kLongest = protocol::kLongestReservation;
  if (!fault.empty() || fields.run.reserve_for.value_or(kLongest) <= kLongest) return fault;
  return fmt::format(message::kTooLong, value.spec->Name(), value.text, FormatDuration(kLongest));
}

std::string ReleasedReservation(const OptionValue& value, OptionFields& fields) {
  if (value.WasGiven()) fields.release.target = ReleaseOptions::Target::kReservation;
  return ReservationId(value, fields.release.reserve);
}

std::string Credentials(const OptionValue& value, OptionFields& fields) {
  // Both variables are removed from the environment, even if they are not used.
  const auto text = TakeSecret("ZKLOCK_AUTH");
  unsetenv("ZKLOCK_AUTH_FILE");
  auto& credentials = fields.server.access.credentials;
  if (text && value.origin != Origin::kArgument) {
    credentials = ParseCredentials(*text, "ZKLOCK_AUTH");
  } else if (value.WasGiven()) {
    credentials = ReadCredentialsFile(value.text);
  }
  return "";
}

/// Must come after the row of the credentials, on which the default depends.
std::string AclOfZnodes(const OptionValue& value, OptionFields& fields) {
  using zookeeper::Acl;
  const process::TransportSpec& transport = fields.server.transport;
  const bool with_credentials =
      !fields.server.access.credentials.empty() || !transport.sasl.empty();
  Acl acl = with_credentials ? Acl::kCreator : Acl::kOpen;
  if (value.WasGiven()) {
    const auto index = ChoiceIndex(value);
    if (!index) return NoChoice(value);
    acl = std::array{Acl::kOpen, Acl::kCreator}.at(*index);
  }
  // A client certificate is an identity only if the servers have the x509 provider.
  const bool has_identity = with_credentials || !transport.tls_cert.empty();
  if (acl == Acl::kCreator && !has_identity) return message::kAclNeedsCredentials;
  fields.server.access.acl = acl;
  return "";
}

/// Throws if zklock-transport is not installed: zklock must not connect without the TLS or SASL
/// that an option requests.
void RequireTransport(const OptionValue& value) {
  if (process::FindTransportProgram()) return;
  throw ConfigError((value.place.empty() ? "" : value.place + ": ") +
                    fmt::format(message::kNoTransport, value.spec->Name()));
}

void TurnTlsOn(const OptionValue& value, OptionFields& fields) {
  fields.server.transport.tls = true;
  RequireTransport(value);
}

std::string Tls(const OptionValue& value, OptionFields& fields) {
  if (value.flag) TurnTlsOn(value, fields);
  return "";
}

template <std::string process::TransportSpec::*kField>
std::string TlsFile(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  RequireReadable(value.text, value.spec->Name());
  // zklock changes its working directory, but uses the file again for each connection.
  fields.server.transport.*kField = AbsolutePath(value.text);
  TurnTlsOn(value, fields);
  return "";
}

/// Must come after the row of the certificate, whose file may contain the key too.
std::string TlsKey(const OptionValue& value, OptionFields& fields) {
  process::TransportSpec& transport = fields.server.transport;
  if (transport.tls_cert.empty()) return value.WasGiven() ? message::kKeyNeedsCert : "";
  const std::string file = value.WasGiven() ? value.text : transport.tls_cert;
  if (!value.WasGiven()) RequireKey(file);
  (void)OpenSecret(file, value.spec->Name());
  transport.tls_key = AbsolutePath(file);
  return "";
}

std::string TlsVerify(const OptionValue& value, OptionFields& fields) {
  const auto index = ChoiceIndex(value);
  if (!index) return NoChoice(value);
  fields.server.transport.tls_checks_name = *index == 0;
  return "";
}

/// Must come after the row of the credentials, from which it takes the one for scheme "sasl".
std::string Sasl(const OptionValue& value, OptionFields& fields) {
  auto& credentials = fields.server.access.credentials;
  process::TransportSpec& transport = fields.server.transport;
  const auto is_sasl = [](const auto& one) { return one.scheme == "sasl"; };
  const auto found = std::find_if(credentials.begin(), credentials.end(), is_sasl);
  const bool has_line = found != credentials.end();
  if (has_line) {
    transport.sasl_secret = found->credential;
    credentials.erase(found);
  }
  // The remaining credentials are sent to the servers in clear text.
  if (std::any_of(credentials.begin(), credentials.end(), is_sasl)) return message::kTwoSecrets;
  transport.sasl = value.text;
  if (value.WasGiven() && !ChoiceIndex(value)) return NoChoice(value);
  const bool has_secret = transport.sasl_secret.find(':') != std::string::npos;
  const bool needs_secret = transport.sasl == "digest-md5";
  if (needs_secret && !has_secret) return message::kSaslNeedsSecret;
  if (transport.sasl_secret.size() > transport_interface::kLongestSecret) {
    return fmt::format(message::kLongSecret, transport_interface::kLongestSecret);
  }
  if (!needs_secret && has_line) return message::kSecretNeedsSasl;
  if (!transport.sasl.empty()) RequireTransport(value);
  return "";
}

std::string SaslService(const OptionValue& value, OptionFields& fields) {
  fields.server.transport.sasl_service = value.text;
  const bool is_name = !value.text.empty() && value.text.find_first_of("/@ ") == std::string::npos;
  return is_name ? "" : fmt::format(message::kNoService, value.spec->Name(), value.text);
}

std::string ProxyCommand(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  std::string& line = fields.server.transport.proxy_command;
  line = value.text == "none" ? "" : value.text;
  std::string expanded;
  if (value.text.empty()) return fmt::format(message::kNoProxyCommand, value.spec->Name());
  return process::ExpandProxyCommand(line, "", "", expanded)
             ? ""
             : fmt::format(message::kBadProxyCommand, value.spec->Name(), value.text);
}

std::string Events(const OptionValue& value, OptionFields& fields) {
  fields.run.events = value.text;
  fields.run.events_place = value.place;
  return value.WasGiven() && value.text.empty() ? message::kNoEvents : "";
}

/// Reads `[WARN:]CRIT`, each part with `parse`. Returns the invalid part, or "" if there
/// is none or it is empty.
template <typename Parse>
std::string ReadLimit(const std::string& text, std::optional<CheckLimit>& limit, Parse parse) {
  const std::size_t colon = text.find(':');
  const std::string critical = colon == std::string::npos ? text : text.substr(colon + 1);
  limit.emplace();
  if (colon != std::string::npos && !parse(text.substr(0, colon), limit->warning.emplace())) {
    return text.substr(0, colon);
  }
  return parse(critical, limit->critical) ? "" : critical;
}

/// Rejects a limit whose WARN is more than its CRIT: the warning would never be seen.
std::string CheckOrder(const OptionValue& value, const std::optional<CheckLimit>& limit) {
  const bool is_ordered = !limit->warning || *limit->warning <= limit->critical;
  return is_ordered ? "" : fmt::format(message::kLimitOrder, value.spec->Name(), value.text);
}

template <std::optional<CheckLimit> CheckLimits::*kLimit>
std::string DurationLimit(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  bool is_valid = true;
  auto& limit = fields.inspect.limits.*kLimit;
  const std::string bad =
      ReadLimit(value.text, limit, [&](const std::string& text, std::int64_t& milliseconds) {
        const auto duration = ParseDuration(text);
        is_valid = duration.has_value();
        if (duration) {
          milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count();
        }
        return is_valid;
      });
  if (!is_valid) return fmt::format(message::kNoDurationLimit, value.spec->Name(), bad);
  return CheckOrder(value, limit);
}

std::string WaitingLimit(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  bool is_valid = true;
  auto& limit = fields.inspect.limits.waiting;
  const std::string bad =
      ReadLimit(value.text, limit, [&](const std::string& text, std::int64_t& count) {
        const auto number = ParseNumber(text, 0, kMaxInt);
        is_valid = number.has_value();
        count = number.value_or(0);
        return is_valid;
      });
  if (!is_valid) return fmt::format(message::kNoNumber, value.spec->Name(), bad, 0, kMaxInt);
  return CheckOrder(value, limit);
}

std::string LastRunLimit(const OptionValue& value, OptionFields& fields) {
  fields.inspect.limits.last_run = value.flag;
  return "";
}

std::string OutputFile(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  if (value.text.empty()) return message::kNoOutput;
  fields.inspect.output = AbsolutePath(value.text);
  return "";
}

std::string OwnerPid(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  fields.run.owner_pid = ParseNumber(value.text, 1, std::numeric_limits<std::int32_t>::max());
  return fields.run.owner_pid ? "" : fmt::format(message::kNoProcessNumber, value.text);
}

std::string QueuePosition(const OptionValue& value, OptionFields& fields) {
  if (value.WasGiven()) fields.release.target = ReleaseOptions::Target::kPosition;
  return Number<&ReleaseOptions::position, 1>(value, fields);
}

std::string ContenderHost(const OptionValue& value, OptionFields& fields) {
  if (value.WasGiven()) fields.release.target = ReleaseOptions::Target::kHost;
  return TextValue<&ReleaseOptions::host>(value, fields);
}

std::string ContenderName(const OptionValue& value, OptionFields& fields) {
  if (!value.WasGiven()) return "";
  const std::string& name = value.text;
  fields.release.contender = name;
  fields.release.target = ReleaseOptions::Target::kContender;
  const bool is_name =
      !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
  return is_name ? "" : fmt::format(message::kNoName, name);
}

constexpr Subcommands kQueues = kExclusive | kRead | kWrite;  // not try, which does not wait
constexpr Subcommands kRuns = kQueues | kTry;
constexpr Subcommands kAll = kRuns | kInspect | kRelease;

using Form = InspectOptions::Form;
using Target = ReleaseOptions::Target;

// clang-format off
constexpr OptionSpec kTable[] = {
    {.letter = 'h', .name = "help", .help = "this text",
     .section = Section::kOutput, .is_common = true,
     .subcommands = kAll},

    // exclusive, read, write
    {.letter = 'w', .name = "wait", .alias = "timeout", .metavar = "DURATION",
     .help = "give up after this long in the queue",
     .section = Section::kWaiting, .is_common = true,
     .subcommands = kQueues, .in_file = true, .store = DurationValue<&RunOptions::wait, kMayBeZero>},
    {.letter = 'n', .name = "nonblock", .alias = "nb",
     .help = "do not wait at all: the same as 'try'",
     .section = Section::kWaiting, .is_common = true,
     .subcommands = kQueues, .store = Flag<&RunOptions::try_only>},
    {.name = "any", .help = "run under one of the LOCKs, whichever is free",
     .section = Section::kWaiting,
     .subcommands = kRuns, .store = Flag<&RunOptions::any>},
    {.name = "max-queue", .metavar = "N", .help = "leave at once if N already wait",
     .section = Section::kWaiting,
     .subcommands = kQueues, .in_file = true, .store = Number<&RunOptions::max_queue, 0>},
    {.name = "supersede", .help = "leave when a newer such run arrives",
     .section = Section::kWaiting,
     .subcommands = kQueues, .in_file = true, .store = Flag<&RunOptions::supersede>},
    {.name = "preempt", .metavar = "nobody|waiters|all", .fallback = "nobody",
     .help = "ask those before this run to leave",
     .section = Section::kWaiting,
     .subcommands = kQueues,
     .store = Choice<&RunOptions::preempt, Preempt::kNobody, Preempt::kWaiters, Preempt::kAll>},
    {.name = "also-read", .metavar = "LOCK", .help = "also lock this LOCK, for reading",
     .section = Section::kSharing, .is_common = true,
     .subcommands = kQueues, .repeatable = true},
    {.name = "also-write", .metavar = "LOCK", .help = "also lock this LOCK, for writing",
     .section = Section::kSharing, .is_common = true,
     .subcommands = kQueues, .repeatable = true},

    // try
    {.name = "read", .help = "lock for reading, together with others",
     .section = Section::kSharing, .is_common = true,
     .subcommands = kTry},
    {.name = "write", .help = "lock for writing, alone",
     .section = Section::kSharing, .is_common = true,
     .subcommands = kTry},

    // inspect
    {.name = "json", .help = "print JSON, for jq",
     .section = Section::kView,
     .subcommands = kInspect, .store = EnumFlag<&InspectOptions::form, Form::kJson>},
    {.name = "dot", .help = "print the graph of who waits for whom, for dot",
     .section = Section::kView,
     .subcommands = kInspect, .store = EnumFlag<&InspectOptions::form, Form::kDot>},
    {.name = "watch", .help = "show it again whenever it changes",
     .section = Section::kView,
     .subcommands = kInspect, .store = Flag<&InspectOptions::watch>},
    {.name = "mine", .help = "only check if the caller still holds LOCK",
     .section = Section::kView,
     .subcommands = kInspect, .store = Flag<&InspectOptions::mine>},
    {.name = "servers-report", .help = "are the servers fit for locks?",
     .section = Section::kView,
     .subcommands = kInspect, .store = Flag<&InspectOptions::servers_report>},
    {.name = "check", .help = "one line and exit status, for monitoring",
     .section = Section::kView,
     .subcommands = kInspect, .store = EnumFlag<&InspectOptions::form, Form::kCheck>},
    {.name = "max-held", .metavar = "[WARN:]CRIT", .help = "with --check: how long a lock may be held",
     .section = Section::kView,
     .subcommands = kInspect, .store = DurationLimit<&CheckLimits::held>},
    {.name = "max-wait", .metavar = "[WARN:]CRIT", .help = "with --check: how long one may have waited",
     .section = Section::kView,
     .subcommands = kInspect, .store = DurationLimit<&CheckLimits::wait>},
    {.name = "max-waiting", .metavar = "[WARN:]CRIT", .help = "with --check: how many may wait",
     .section = Section::kView,
     .subcommands = kInspect, .store = WaitingLimit},
    {.name = "max-age", .metavar = "[WARN:]CRIT", .help = "with --check: how old a success may be",
     .section = Section::kView,
     .subcommands = kInspect, .store = DurationLimit<&CheckLimits::age>},
    {.name = "last-run", .help = "with --check: a failed or lost run is critical",
     .section = Section::kView,
     .subcommands = kInspect, .store = LastRunLimit},
    {.name = "prometheus", .help = "print metrics for Prometheus",
     .section = Section::kView,
     .subcommands = kInspect, .store = EnumFlag<&InspectOptions::form, Form::kMetrics>},
    {.name = "output", .metavar = "FILE", .help = "with --prometheus: replace FILE atomically",
     .section = Section::kView,
     .subcommands = kInspect, .store = OutputFile},
    {.name = "history", .help = "show the last runs that --history has kept",
     .section = Section::kView,
     .subcommands = kInspect, .store = Flag<&InspectOptions::history>},
    {.name = "runs", .metavar = "N", .help = "with --history: at most N runs",
     .section = Section::kView,
     .subcommands = kInspect, .store = Number<&InspectOptions::most_runs, 1>},

    // release
    {.name = "contender", .metavar = "NAME", .help = "the one that inspect -v shows by this name",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = ContenderName},
    {.name = "position", .metavar = "N", .help = "the one that inspect shows at this place",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = QueuePosition},
    {.name = "host", .metavar = "NAME", .help = "all on this host, as inspect shows it",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = ContenderHost},
    {.name = "holders", .help = "all holders of LOCK",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = EnumFlag<&ReleaseOptions::target, Target::kHolders>},
    {.name = "all", .help = "all holders of LOCK and all waiters",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = EnumFlag<&ReleaseOptions::target, Target::kAll>},
    {.name = "reserve", .metavar = "ID", .help = "the reservation for this ID",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = ReleasedReservation},
    {.name = "any", .help = "with --reserve: one of the LOCKs is enough",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = Flag<&ReleaseOptions::any>},
    {.name = "force", .help = "delete the contender, do not ask its program",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = Flag<&ReleaseOptions::force>},
    {.name = "reason", .metavar = "TEXT", .help = "shown to the loser",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = TextValue<&ReleaseOptions::reason>},
    {.name = "wait-released", .help = "wait until they have released the lock",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = Flag<&ReleaseOptions::wait>},
    {.name = "yes", .help = "do not ask for confirmation",
     .section = Section::kTargets,
     .subcommands = kRelease, .store = Flag<&ReleaseOptions::yes>},

    // Subcommands that run a command: the queue
    {.name = "permits", .metavar = "N", .help = "a semaphore: at most N holders together",
     .section = Section::kSharing, .is_common = true,
     .subcommands = kExclusive | kTry, .in_file = true, .store = Number<&RunOptions::permits, 1>},
    {.name = "take", .metavar = "W", .fallback = "1", .help = "with --permits: take W of them at once",
     .section = Section::kSharing,
     .subcommands = kExclusive | kTry, .store = Number<&RunOptions::take, 1, lock::kMostTake>},
    {.name = "reserve", .metavar = "ID", .help = "keep the lock for ID after this run",
     .section = Section::kReservations, .is_common = true,
     .subcommands = kRuns, .store = Reserve},
    {.name = "resume", .metavar = "ID", .help = "run only under the reservation for ID",
     .section = Section::kReservations, .is_common = true,
     .subcommands = kRuns, .store = Resume},
    {.name = "for", .metavar = "DURATION", .help = "how long the reservation lasts, from now",
     .section = Section::kReservations, .is_common = true,
     .subcommands = kRuns, .store = ReserveFor},
    {.name = "reason", .metavar = "TEXT", .help = "why it is reserved, shown by inspect",
     .section = Section::kReservations, .is_common = true,
     .subcommands = kRuns, .store = TextValue<&RunOptions::reserve_reason>},
    {.name = "min-interval", .metavar = "DURATION",
     .help = "skip if a successful run began within this",
     .section = Section::kWaiting, .is_common = true,
     .subcommands = kExclusive | kWrite | kTry, .in_file = true, .store = DurationValue<&RunOptions::min_interval, kNotZero>},
    {.name = "once-per", .metavar = "DURATION",
     .help = "do not run if a run began within this",
     .section = Section::kWaiting, .is_common = true,
     .subcommands = kExclusive | kWrite | kTry, .in_file = true,
     .store = DurationValue<&RunOptions::once_per, kNotZero>},
    {.name = "history", .metavar = "N", .help = "keep the last N runs, for inspect --history",
     .section = Section::kCommand, .is_common = true,
     .subcommands = kExclusive | kWrite | kTry, .in_file = true,
     .store = Number<&RunOptions::history, 1, static_cast<int>(lock::kMostRuns)>},
    {.letter = 'E', .name = "conflict-exit-code", .metavar = "N", .fallback = "75",
     .help = "status if the lock was not acquired",
     .section = Section::kWaiting,
     .subcommands = kRuns, .in_file = true,
     .store = Number<&RunOptions::conflict_exit_code, 0, 255>},

    // The servers
    {.letter = 'z', .name = "servers", .metavar = "HOST:PORT[,...][/CHROOT]",
     .fallback = "127.0.0.1:2181", .help = "the servers",
     .section = Section::kServers, .is_common = true,
     .subcommands = kAll, .environment = "ZKLOCK_SERVERS", .in_file = true, .decides_lock = true,
     .store = Servers},
    {.name = "root", .metavar = "PATH", .fallback = "/zklock",
     .help = "the parent of LOCKs without a slash",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_ROOT", .in_file = true, .decides_lock = true,
     .store = Root},
    {.name = "connect-timeout", .metavar = "DURATION", .fallback = "15s",
     .help = "how long to look for a server",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_CONNECT_TIMEOUT", .in_file = true,
     .store = DurationValue<&ServerOptions::connect_timeout, kNotZero>},
    {.name = "session-timeout", .metavar = "DURATION", .fallback = "30s",
     .help = "how long the lock lasts without contact",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_SESSION_TIMEOUT", .in_file = true,
     .store = SessionTimeout},
    {.name = "auth-file", .metavar = "FILE", .help = "credentials, one scheme:credential per line",
     .section = Section::kServers, .is_common = true,
     .subcommands = kAll, .environment = "ZKLOCK_AUTH_FILE", .in_file = true,
     .store = Credentials},
    {.name = "proxy-command", .metavar = "'SHELL LINE'",
     .help = "connect through this command, as in ssh",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_PROXY_COMMAND", .in_file = true,
     .store = ProxyCommand},
    {.name = "tls", .help = "speak TLS to the servers",
     .section = Section::kServers,
     .subcommands = kAll, .in_file = true, .store = Tls},
    {.name = "tls-ca", .metavar = "FILE", .help = "TLS; trust only these authorities",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_TLS_CA", .in_file = true,
     .store = TlsFile<&process::TransportSpec::tls_ca>},
    {.name = "tls-cert", .metavar = "FILE", .help = "TLS; show this certificate",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_TLS_CERT", .in_file = true,
     .store = TlsFile<&process::TransportSpec::tls_cert>},
    {.name = "tls-key", .metavar = "FILE", .help = "the key of --tls-cert, if not in its file",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_TLS_KEY", .in_file = true, .store = TlsKey},
    {.name = "tls-verify", .metavar = "full|ca", .fallback = "full",
     .help = "whether to check the server's name too",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_TLS_VERIFY", .in_file = true,
     .store = TlsVerify},
    {.name = "sasl", .metavar = "gssapi|digest-md5", .help = "authenticate by SASL",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_SASL", .in_file = true, .store = Sasl},
    {.name = "sasl-service", .metavar = "NAME", .fallback = "zookeeper",
     .help = "start of the servers' principal",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_SASL_SERVICE", .in_file = true,
     .store = SaslService},
    {.name = "config", .metavar = "FILE", .help = "read options from it (/etc/zklock.conf)",
     .section = Section::kServers,
     .subcommands = kAll, .environment = "ZKLOCK_CONFIG"},

    // Subcommands that run a command: the znodes, the command, the output
    {.name = "acl", .metavar = "open|creator",
     .help = "who may access znodes that zklock creates",
     .section = Section::kServers,
     .subcommands = kRuns, .in_file = true, .store = AclOfZnodes},
    {.letter = 'k', .name = "kill-after", .metavar = "DURATION", .fallback = "5s",
     .help = "time from the stop signal to KILL",
     .section = Section::kCommand, .is_common = true,
     .subcommands = kRuns, .in_file = true, .store = DurationValue<&RunOptions::kill_after, kMayBeZero>},
    {.name = "max-run", .metavar = "DURATION|none",
     .help = "end the run after this, with status 124",
     .section = Section::kCommand, .is_common = true,
     .subcommands = kRuns, .in_file = true, .store = MaxRun},
    {.name = "stop-signal", .metavar = "SIGNAL", .fallback = "TERM",
     .help = "the first signal sent to end it",
     .section = Section::kCommand,
     .subcommands = kRuns, .in_file = true, .store = Signal<&RunOptions::stop_signal>},
    {.name = "on-lost", .metavar = "stop|warn", .fallback = "stop",
     .help = "end the command if the lock is lost",
     .section = Section::kCommand,
     .subcommands = kRuns, .in_file = true,
     .store = Choice<&RunOptions::on_lost, OnLost::kStop, OnLost::kWarn>},
    {.name = "descendants", .metavar = "leave|wait|kill", .fallback = "leave",
     .help = "what becomes of processes left behind",
     .section = Section::kCommand,
     .subcommands = kRuns, .in_file = true,
     .store = Choice<&RunOptions::descendants, process::Descendants::kLeave,
                     process::Descendants::kWait, process::Descendants::kKill>},
    {.name = "contain", .metavar = "auto|require|off", .fallback = "auto",
     .help = "run the command in a cgroup of its own",
     .section = Section::kCommand,
     .subcommands = kRuns, .in_file = true,
     .store = Choice<&RunOptions::contain, Contain::kAuto, Contain::kRequire, Contain::kOff>},
    {.name = "dialect", .metavar = "curator|kazoo|simple", .fallback = "curator",
     .help = "programs that share LOCK",
     .section = Section::kSharing,
     .subcommands = kRuns, .environment = "ZKLOCK_DIALECT", .in_file = true, .decides_lock = true,
     .store = Choice<&RunOptions::dialect, protocol::Dialect::kCurator,
                     protocol::Dialect::kKazoo, protocol::Dialect::kSimple>},
    {.name = "no-nest", .help = "queue even if a zklock above holds LOCK",
     .section = Section::kSharing,
     .subcommands = kRuns, .store = Flag<&RunOptions::no_nest>},
    {.letter = 'c', .metavar = "'SHELL LINE'", .help = "run /bin/sh -c 'SHELL LINE'",
     .section = Section::kCommand, .is_common = true,
     .subcommands = kRuns},
    {.name = "hold", .help = "run no command: hold LOCK for this shell",
     .section = Section::kCommand, .is_common = true,
     .subcommands = kRuns, .store = Flag<&RunOptions::hold>},
    {.name = "owner-pid", .metavar = "PID", .help = "with --hold: for this process (the parent)",
     .section = Section::kCommand,
     .subcommands = kRuns, .store = OwnerPid},
    {.name = "on-lost-signal", .metavar = "SIGNAL", .fallback = "TERM",
     .help = "with --hold: sent if the lock is lost",
     .section = Section::kCommand,
     .subcommands = kRuns, .store = Signal<&RunOptions::on_lost_signal>},
    {.letter = 'l', .name = "label", .metavar = "TEXT", .help = "shown to those who inspect or wait",
     .section = Section::kOutput, .is_common = true,
     .subcommands = kRuns, .environment = "ZKLOCK_LABEL", .in_file = true,
     .store = TextValue<&RunOptions::label>},
    {.name = "publish-command", .help = "show others the command's arguments too",
     .section = Section::kOutput,
     .subcommands = kRuns, .in_file = true, .store = Flag<&RunOptions::publish_command>},
    {.name = "events", .metavar = "FD|FILE", .help = "write each event there, as a line of JSON",
     .section = Section::kOutput,
     .subcommands = kRuns, .in_file = true, .store = Events},
    {.name = "progress", .metavar = "auto|bar|plain|none", .fallback = "auto",
     .help = "how a wait is shown on standard error",
     .section = Section::kWaiting,
     .subcommands = kRuns, .in_file = true,
     .store = Choice<&RunOptions::progress, ProgressStyle::kAuto, ProgressStyle::kBar,
                     ProgressStyle::kPlain, ProgressStyle::kNone>},

    {.name = "dry-run", .help = "only show what would be done, and do nothing",
     .section = Section::kOutput, .is_common = true,
     .subcommands = kRuns | kRelease, .store = Flag<&OptionFields::dry_run>},
    {.letter = 'q', .name = "quiet", .help = "report only defects and lost locks",
     .section = Section::kOutput, .is_common = true,
     .subcommands = kRuns, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kQuiet>},
    {.letter = 'v', .name = "verbose", .help = "report each event",
     .section = Section::kOutput, .is_common = true,
     .subcommands = kRuns, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kVerbose>},
    {.letter = 'q', .name = "quiet", .help = "print nothing: status 0 free, 75 held",
     .section = Section::kOutput,
     .subcommands = kInspect, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kQuiet>},
    {.letter = 'v', .name = "verbose", .help = "show the names of znodes too",
     .section = Section::kOutput,
     .subcommands = kInspect, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kVerbose>},
    {.letter = 'q', .name = "quiet", .help = "report only errors",
     .section = Section::kOutput,
     .subcommands = kRelease, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kQuiet>},
    {.letter = 'v', .name = "verbose", .help = "report what was released",
     .section = Section::kOutput,
     .subcommands = kRelease, .in_file = true,
     .store = EnumFlag<&OptionFields::verbosity, Verbosity::kVerbose>},
};

using enum OptionRule::Kind;

constexpr bool kOnlyArguments = true;
constexpr std::string_view kViews =
    "--json --dot --watch --mine --servers-report --history --check --prometheus";
constexpr std::string_view kTargets =
    "--contender --position --host --holders --all --reserve";

constexpr OptionRule kRules[] = {
    {kAll, "--tls-verify", kRequires, "--tls --tls-ca --tls-cert", "", kOnlyArguments},
    {kAll, "--sasl-service", kRequires, "--sasl", "", kOnlyArguments},

    {kTry, "--read", kExcludes, "--write"},
    {kRuns, "--stop-signal --on-lost --descendants --contain --publish-command --events", kExcludes,
     "--hold", "it runs no command", kOnlyArguments},
    {kRuns, "--owner-pid --on-lost-signal", kRequires, "--hold"},
    {kQueues, "--reserve --wait --max-queue --supersede --preempt", kExcludes, "--resume", "",
     kOnlyArguments},
    {kTry, "--reserve", kExcludes, "--resume"},
    {kRuns, "--for --reason", kExcludes, "--resume"},
    {kRuns, "--for", kRequires, "--reserve"},
    {kQueues, "--reason", kRequires, "--reserve --preempt"},
    {kTry, "--reason", kRequires, "--reserve"},
    {kRuns, "--reserve --resume", kExcludes, "--hold"},
    {kRuns, "--on-lost", kExcludes, "--reserve --resume",
     "no lease ends a command under a reservation", kOnlyArguments},
    {kExclusive | kWrite | kTry, "--min-interval --once-per", kExcludes,
     "--hold --reserve --resume"},
    {kQueues, "--any", kExcludes, "--also-read --also-write --supersede --preempt"},
    {kTry, "--any", kExcludes, "--reserve"},
    {kExclusive | kTry, "--any", kExcludes, "--permits"},
    {kExclusive | kWrite | kTry, "--any", kExcludes, "--min-interval --once-per"},
    {kExclusive, "--permits", kExcludes, "--supersede"},
    {kExclusive | kTry, "--take", kRequires, "--permits"},
    {kExclusive | kTry, "--permits", kExcludes, "--min-interval --once-per"},

    {kInspect, "--json", kExcludes, "--dot"},
    {kInspect, "--dot", kExcludes, "--watch"},
    {kInspect, "--check --prometheus", kExcludes, kViews},
    {kInspect, "--max-held --max-wait --max-waiting --max-age --last-run", kRequires, "--check"},
    {kInspect, "--output", kRequires, "--prometheus"},
    {kInspect, "--runs", kRequires, "--history"},
    {kInspect, "--history", kExcludes, "--dot --watch"},
    {kInspect, "--servers-report", kExcludes, "--dot --watch --mine --history"},
    {kInspect, "--mine", kExcludes, "--json --dot --watch --history", "it prints nothing"},
    {kInspect, "--quiet", kExcludes, "--json --dot --watch --history --check --prometheus",
     "it prints nothing", kOnlyArguments},

    {kRelease, kTargets, kExcludes, kTargets},
    {kRelease, "--yes", kExcludes, "--position", "the queue may have moved; use --contender"},
    {kRelease, "--force --wait-released --reason", kExcludes, "--reserve",
     "a reservation is released at once"},
    {kRelease, "--wait-released", kExcludes, "--force", "it sends no release request"},
    {kRelease, "--any", kRequires, "--reserve"},
    {kRelease, "--force --wait-released --reason", kRequires,
     "--contender --position --host --holders --all"},
};
// clang-format on

constexpr std::string_view kRunArguments = "[OPTIONS] LOCK... -- COMMAND [ARG...]";
constexpr SubcommandSpec kSubcommandTable[] = {
    {"exclusive", kExclusive, kRunArguments, "run a command under the lock, one at a time"},
    {"read", kRead, kRunArguments, "run it together with other readers"},
    {"write", kWrite, kRunArguments, "run it as a writer, alone"},
    {"try", kTry, kRunArguments, "run it at once or not at all"},
    {"inspect", kInspect,
     "[OPTIONS] [LOCK]\n"
     "       zklock inspect [OPTIONS] --check [LOCK...]",
     "show who holds a lock and who waits for it"},
    {"release", kRelease,
     "[OPTIONS] LOCK [--contender NAME|--holders|--all]\n"
     "       zklock release [OPTIONS] LOCK... --reserve ID",
     "release a lock, or take one away"},
};
constexpr SubcommandSpec kPrintConfig = {"--print-config", kExclusive, "[OPTIONS]",
                                         "each option's value, and where it comes from"};

}  // namespace

bool SubcommandSpec::RunsCommand() const { return (bit & kRuns) != 0; }

std::string OptionSpec::Name() const {
  return name.empty() ? std::string{'-', letter} : "--" + std::string(name);
}

bool OptionSpec::HasName(std::string_view word) const {
  if (!word.starts_with("--")) return word.size() == 2 && word[0] == '-' && word[1] == letter;
  const std::string_view typed = word.substr(2, word.find('=') - 2);
  return !typed.empty() && (typed == name || typed == alias);
}

std::string OptionSpec::Help() const {
  return fallback.empty() ? std::string(help) : fmt::format("{} ({})", help, fallback);
}

std::vector<std::string> OptionSpec::Choices() const {
  std::vector<std::string> words;
  // "FD|FILE" names kinds of values, not words to choose from.
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::any_of(metavar.begin(), metavar.end(), is_upper)) return words;
  std::string_view rest = metavar;
  while (!rest.empty()) words.emplace_back(TakeUntil(rest, '|'));
  return words;
}

std::span<const OptionRule> OptionRules() { return kRules; }

std::vector<std::string_view> NamesIn(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) names.push_back(TakeUntil(list, ' '));
  return names;
}

std::string OptionValue::OriginText() const {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kSystemConfig:
    case Origin::kConfig:
      return place;
    case Origin::kEnvironment:
      return fmt::format("${}", spec->environment);
    case Origin::kArgument:
      break;
  }
  return "argument";
}

std::span<const OptionSpec> OptionTable() { return kTable; }

std::vector<const OptionSpec*> OptionsOf(Subcommands subcommand) {
  std::vector<const OptionSpec*> options;
  for (const OptionSpec& option : kTable) {
    if ((option.subcommands & subcommand) != 0) options.push_back(&option);
  }
  return options;
}

std::vector<std::string_view> SubcommandsWith(std::string_view option) {
  std::vector<std::string_view> names;
  for (const SubcommandSpec& subcommand : SubcommandTable()) {
    const bool has_it = std::any_of(std::begin(kTable), std::end(kTable), [&](const auto& one) {
      return one.HasName(option) && (one.subcommands & subcommand.bit) != 0;
    });
    if (has_it) names.push_back(subcommand.name);
  }
  return names;
}

const std::vector<std::string_view>& ConfigurableNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const OptionSpec& option : kTable) {
      if (option.in_file) names.push_back(option.name);
    }
    return names;
  }();
  return kNames;
}

std::span<const SubcommandSpec> SubcommandTable() { return kSubcommandTable; }

const SubcommandSpec* FindSubcommand(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSubcommandTable), std::end(kSubcommandTable),
                                   [&](const SubcommandSpec& one) { return one.name == name; });
  return found != std::end(kSubcommandTable) ? found : nullptr;
}

const SubcommandSpec& PrintConfigSpec() { return kPrintConfig; }

}  // namespace zklock::cli
