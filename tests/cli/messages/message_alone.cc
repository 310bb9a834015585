// Messages that cannot be provoked reliably by running zklock. The tests call the function that
// prints each message. The comments say why, and which test covers the condition.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <system_error>

#include "cli/messages/provocation.h"
#include "cli/reports/end_reason.h"
#include "cli/reports/report.h"
#include "cli/reports/report_progress.h"
#include "cli/reports/report_queue.h"
#include "cli/reports/report_reasons.h"
#include "cli/servers/servers_findings.h"
#include "cli/servers/servers_view.h"
#include "process/loop/message_sink.h"
#include "process/tree/cgroup.h"
#include "process/tree/process_tree.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

using namespace std::chrono_literals;

/// Returns the text that a Report writes.
std::string Reported(const std::function<void(cli::Report&)>& tell,
                     cli::Verbosity verbosity = cli::Verbosity::kNormal) {
  const TemporaryDirectory directory;
  const std::string file = directory.Write("said", "");
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  process::MessageSink sink("", fd.get());
  cli::Report report(sink, verbosity);
  tell(report);
  return directory.Read("said");
}

// A test cannot control where memory runs out: the sanitizers' runtime would hit a limit before
// zklock does.
std::string NoMemory() {
  return Reported([](cli::Report& report) { report.NoMemory(); });
}

// The history is no larger than the contender written before it, so a quota would refuse the
// contender first. tests/unit/lock/hold/run_recorder_test.cc covers a refused history.
std::string HistoryNotWritten() {
  return Reported(
      [](cli::Report& report) {
        report.NoHistory({"/l", zookeeper::Error::kQuotaExceeded});
      },
      cli::Verbosity::kVerbose);
}

// Requires permission to mount. With it, tests/unit/process/refusal_test.cc hides /proc.
std::string NoProc() {
  return Reported([](cli::Report& report) {
    report.SystemRefused(
        process::NoProcessTree(ENOENT, std::generic_category(), "opening /proc/self/task"));
  });
}

// A killed look-up helper is replaced within a second, so it depends on the scheduler whether the
// timeout finds the old helper or the new one. tests/cli/servers/lookup_test.cc has a resolver that
// does not answer.
std::string LookupEnded() { return cli::LookupText(process::LookupFailure{{"zk1", "2181"}, {}}); }

// Only root and a setuid program can make a process that zklock is not permitted to signal: where
// they are available, tests/unit/process/survivor_test.cc creates one.
std::string Survivor() {
  return Reported([](cli::Report& report) {
    report.Survivor({.pid = 7, .name = "sudo"});
    report.AwaitedSurvivor("/l", {.pid = 7, .name = "sudo"}, 0);
    report.Error(cli::FateText(cli::Fate::kUnsignalled, "sudo", "", SIGTERM));
  });
}

// sasl_test.cc and tls_test.cc have servers for these.
std::string OtherIdentities() {
  process::TransportSpec transport;
  transport.sasl = "gssapi";
  transport.tls_cert = "/etc/zklock.pem";
  zookeeper::Access access;
  access.credentials = {{"token", "4711", "/etc/zk-auth:2"}};
  return cli::IdentityText(access, transport);
}

// zklock and its guard watch the same lease; which of them sees its end first depends on the
// scheduler. tests/unit/process/guard/guard_test.cc tests the guard alone. Nor can a test know
// whether zklock or the guard controls a command that has not been executed yet, or how long ago
// the last confirmation was when another contender's lease is about to end.
std::string LeaseRanOut() {
  return cli::CauseText(EndCause::kLeaseRanOut, "/jobs/backup") + "; " +
         cli::FateText(cli::Fate::kNotBegun, "./backup.sh", "", SIGTERM);
}

// Which cgroups a process may create differs from host to host. Where a test may mount the
// hierarchy, tests/cli/command/contain_test.cc makes a real zklock print these messages.
std::string Containment() {
  return Reported(
      [](cli::Report& report) {
        report.Contained("/sys/fs/cgroup/zklock-6fa459ea-ee8a-4ca4-894e-db77e160355e");
        report.NotContained({.why = process::NoCgroup::Why::kNotMounted});
        report.Undelegated("/sys/fs/cgroup");
        report.OrphanEnded({.path = "/sys/fs/cgroup/a"});
        report.OrphanEnded({.path = "/sys/fs/cgroup/a", .is_gone = false});
        report.SystemRefused(process::CgroupUnavailable(
            process::NoCgroup{.why = process::NoCgroup::Why::kOldKernel}));
      },
      cli::Verbosity::kVerbose);
}

std::string NoCgroup(process::NoCgroup::Why why) {
  return cli::NoCgroupText({.why = why, .path = "/sys/fs/cgroup", .error = EROFS});
}

// All signals that zklock handles have names.
std::string SignalWithoutName() { return cli::SignalName(63); }

#ifdef ZKLOCK_SANITIZED
// The sanitizers need descriptors before zklock does; in other builds,
// tests/cli/messages/message_run.cc leaves a whole zklock too few.
std::string NoDescriptors() {
  return Reported([](cli::Report& report) {
    report.SystemRefused(std::system_error(EMFILE, std::generic_category(), "poll"));
  });
}
#endif

// Most findings require an ensemble with the fault in question.
// tests/cli/inspect/servers_report_test.cc gets some of them from a whole zklock.
std::string Findings() {
  using protocol::WordEnd;
  using Kind = protocol::Finding::Kind;
  cli::ServersReport report;
  report.root = "/zklock";
  report.facts.servers = {{.name = "zk1:2181", .reached = true, .granted = 30s},
                          {.name = "zk2:2181", .reached = true, .granted = 30s}};
  report.facts.servers[0].same_ensemble = true;
  report.texts = {{.address = "10.0.0.1:2181"}, {.address = "10.0.0.2:2181", .reason = "no"}};
  std::string said;
  const auto say = [&](const protocol::Finding& finding) {
    said += cli::FindingText(finding, report) + "\n";
  };
  for (const Kind kind : {Kind::kUnreached,     Kind::kNoQuorum,           Kind::kOtherEnsemble,
                          Kind::kLocalSessions, Kind::kUselessGrant,       Kind::kTooSlow,
                          Kind::kEvenMembers,   Kind::kFewConnectionsLeft, Kind::kSlow,
                          Kind::kShortGrant,    Kind::kGrantBelowAsked,    Kind::kEvenList,
                          Kind::kSingleServer,  Kind::kPartialList,        Kind::kUnreachedAddress,
                          Kind::kClockUnknown,  Kind::kNotCompared,        Kind::kDifferentGrants,
                          Kind::kOldVersion,    Kind::kNotMember,          Kind::kNoChroot}) {
    say({.kind = kind, .servers = {1}, .count = 4, .least_count = 2});
  }
  say({.kind = Kind::kSameServer, .servers = {0, 1}});
  say({.kind = Kind::kClockOff, .servers = {1}, .most = 2s});
  say({.kind = Kind::kClockOff, .servers = {1}, .most = -2s});
  report.facts.servers[1].srvr = WordEnd::kClosed;
  say({.kind = Kind::kWordsClosed, .servers = {1}});
  report.facts.servers[1].conf = WordEnd::kUnusable;
  say({.kind = Kind::kWordsUnusable, .servers = {1}});
  said += cli::WithoutServersText(report) + "\n";
  report.facts.servers.clear();
  report.texts.clear();
  return said + cli::ServersReportText(report, {});
}

}  // namespace

Provocations SaidAloneProvocations() {
  return {
      {{Part("kServerUnreached"),     Part("kServerNoQuorum"),     Part("kOtherEnsemble"),
        Part("kSameServer"),          Part("kGrantsDiffer"),       Part("kUselessGrant"),
        Part("kCommitsTooSlow"),      Part("kEvenMembers"),        Part("kClockAhead"),
        Part("kClockBehind"),         Part("kFewConnectionsLeft"), Part("kCommitsSlow"),
        Part("kBriefGrant"),          Part("kGrantBelowAsked"),    Part("kEvenList"),
        Part("kSingleServer"),        Part("kPartialList"),        Part("kAddressUnreached"),
        Part("kClockUnknown"),        Part("kWordsClosed"),        Part("kWordsUnusable"),
        Part("kNotCompared"),         Part("kWithoutServers"),     Part("kNothingToFix"),
        Part("kServerLocalSessions"), Part("kOldServer"),          Part("kNotMember"),
        Part("kChrootMissing")},
       Findings},
#ifdef ZKLOCK_SANITIZED
      {{"kNoDescriptors"}, NoDescriptors},
#endif
      {{"kNoMemory"}, NoMemory},
      {{"kNoProc"}, NoProc},
      {{"kLastRunQuota"}, HistoryNotWritten},
      {{Part("kLookupEnded")}, LookupEnded},
      {{Part("kByKerberos", "the Kerberos principal"),
        Part("kByCertificate", "the client certificate"),
        Part("kByLine", "the credentials in /etc/zk-auth:2")},
       OtherIdentities},
      {{"kSurvivor", "kAwaitedSurvivor", Part("kUnsignalled", "sudo could not be signalled")},
       Survivor},
      {{"kContained", "kNotContained", "kUndelegated", "kOrphansEnded", "kOrphansAlive",
        "kContainRequired"},
       Containment},
      {{Part("kNoHierarchy")}, [] { return NoCgroup(process::NoCgroup::Why::kNotMounted); }},
      {{Part("kNotDelegated", "/sys/fs/cgroup is not delegated by systemd")},
       [] { return NoCgroup(process::NoCgroup::Why::kNotDelegated); }},
      {{Part("kNoCgroupKill")}, [] { return NoCgroup(process::NoCgroup::Why::kOldKernel); }},
      {{Part("kThreadedCgroup", "/sys/fs/cgroup is a threaded cgroup")},
       [] { return NoCgroup(process::NoCgroup::Why::kThreaded); }},
      {{Part("kCgroupNotCreated",
             "cannot create a cgroup in /sys/fs/cgroup: Read-only file system")},
       [] { return NoCgroup(process::NoCgroup::Why::kNotCreated); }},
      {{Part("kCgroupNotEntered",
             "cannot start a process in a cgroup in /sys/fs/cgroup: Read-only file system")},
       [] { return NoCgroup(process::NoCgroup::Why::kNotEntered); }},
      {{Part("kNotInTime", "it could not be confirmed in time"),
        Part("kNotBegun", "./backup.sh was not run")},
       LeaseRanOut},
      {{Part("kSignalNumber")}, SignalWithoutName},
  };
}

}  // namespace zklock::test
