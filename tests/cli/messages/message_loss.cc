// Messages about a lock that is lost.

#include <sys/types.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/gate.h"
#include "cli/hold/hold_script.h"
#include "cli/messages/provocation.h"
#include "cli/servers/regranted.h"
#include "process/tree/process_tree.h"
#include "support/peer.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

const Words kShortLease = {"exclusive", "--session-timeout", "4s", "--on-lost", "warn"};

void TakeAway(const std::string& lock) {
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).front());
}

std::string TakenAway() {
  auto [lock, holder] = HoldNewLock("said");
  TakeAway(lock);
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

std::string RunsOn() {
  auto [lock, holder] = HoldNewLock("said", kShortLease);
  TakeAway(lock);
  holder.ReadErrUntil("--on-lost warn)\n");
  return holder.err();
}

/// The lock is lost to `release --force`, which writes the reason before it deletes the contender.
std::string TakenAwayBy() {
  const std::string lock = NewLock("said");
  Proxy proxy(TestServers());
  const auto read = std::make_shared<std::promise<void>>();
  proxy.EditReplies([read](const std::string& request, std::string reply) {
    const bool is_it = request.starts_with("get ") && reply.find("forced") != std::string::npos;
    if (is_it) read->set_value();
    return std::optional(std::move(reply));
  });
  Child holder = StartHolder({"exclusive", "--label", "nightly", "-z", proxy.address()}, lock);
  Tree tree;
  tree.SetData(lock + "/" + tree.Children(lock).front(),
               R"({"revoke":{"by":"me","reason":"for fun","forced":true}})");
  read->get_future().wait();
  CHECK_FALSE(holder.HasEnded());
  TakeAway(lock);
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

/// Only KILL ends the command.
std::string Killed(const std::string& kill_after) {
  const std::string lock = NewLock("said");
  Child holder =
      Child::Start(Zklock({"exclusive", "--kill-after", kill_after, lock, "--", "sh", "-c",
                           "trap '' TERM; echo held; while :; do sleep 0.1; done"}));
  CHECK(holder.ReadLine() == "held");
  TakeAway(lock);
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

/// zklock is stopped until the servers end its session. It detects the pause only if it was stopped
/// while asleep.
std::string Paused() {
  auto [lock, holder] = HoldNewLock("said", kShortLease);
  WaitUntil([pid = holder.pid()] {
    const auto stat = process::ReadProcessStat(pid);
    return stat && stat->state == 'S';
  });
  holder.Signal(SIGSTOP);
  holder.WaitUntilStopped();
  Tree().WaitForChildren(lock, 0);
  holder.Signal(SIGCONT);
  holder.ReadErrUntil("--on-lost warn)\n");
  return holder.err();
}

/// The lock is lost after the command has ended, while a nested run is still running.
std::string LostAfterEnd(const Words& more = {}) {
  const std::string lock = NewLock("said");
  ChildOptions options = Zklock(
      Words{"exclusive", "--descendants", "leave"} + more +
      Words{lock, "--", "sh", "-c",
            "\"$0\" exclusive " + lock + " -- sh -c 'echo held; exec sleep 1000' & read line",
            Binary()});
  options.keep_stdin = true;
  Child holder = Child::Start(std::move(options));
  CHECK(holder.ReadLine() == "held");
  holder.Write("\n");
  holder.ReadErrUntil("is held until its nested runs have ended");
  TakeAway(lock);
  CHECK(holder.Wait() == Exited(76));
  CHECK(holder.err().find("continues") == std::string::npos);
  return holder.err();
}

std::string Unproven() {
  Proxy proxy(TestServers());
  Words words = kShortLease + Words{"-z", proxy.address()};
  Child holder = StartHolder(words, NewLock("said"));
  proxy.Freeze();
  holder.ReadErrUntil("no server confirmed it for ");
  holder.ReadErrUntil("\n");
  return holder.err();
}

/// The holder is no longer allowed to read its own contender.
std::string MayNotRead() {
  auto [lock, holder] = HoldNewLock("said", kShortLease);
  Tree tree;
  tree.SetAcl(lock + "/" + tree.Children(lock).front(), kAdmin);
  holder.ReadErrUntil(" (Permission denied); sh continues");
  return holder.err();
}

/// A second server that grants too much for the first one's timeout, and whose pings are too rare.
std::string GrantedTooDifferently() {
  Regranted regranted(TestServers(), {6'000, 25'000});
  Child holder =
      StartHolder({"exclusive", "-q", "--session-timeout", "6s", "-z", regranted.proxy().address()},
                  NewLock("said"));
  regranted.proxy().Cut();
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

/// A server that no longer knows the session: its handshake grants nothing.
std::string Expired() {
  Proxy proxy(TestServers());
  const auto is_gone = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([is_gone](const std::string& request, std::string reply) {
    // After the length and the protocol's version: the timeout, the session.
    if (request == "connect" && *is_gone) reply.replace(8, 12, 12, '\0');
    return std::optional(std::move(reply));
  });
  Child holder = StartHolder({"exclusive", "-z", proxy.address()}, NewLock("said"));
  *is_gone = true;
  proxy.Cut();
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

/// Edits the timeouts that handshakes grant, from the second connect on.
class Grants {
 public:
  explicit Grants(std::vector<std::uint32_t> milliseconds) {
    const auto left = std::make_shared<std::vector<std::uint32_t>>(std::move(milliseconds));
    proxy_.EditReplies([left](const std::string& request, std::string reply) {
      if (request != "connect" || left->empty()) return std::optional(std::move(reply));
      // After the length and the protocol's version.
      for (std::size_t i = 0; i < 4; ++i) {
        reply[8 + i] = static_cast<char>(left->front() >> (24 - 8 * i));
      }
      left->erase(left->begin());
      return std::optional(std::move(reply));
    });
  }
  [[nodiscard]] Child Hold() const {
    return StartHolder({"exclusive", "-v", "-z", proxy_.address()}, NewLock("said"));
  }
  void Reconnect() { proxy_.Cut(); }

 private:
  Proxy proxy_{TestServers()};
};

std::string Shortened() {
  Grants grants({20'000, 12'000, 20'000});
  Child holder = grants.Hold();
  grants.Reconnect();
  holder.ReadErrUntil("this server shortened it from 20s\n");
  grants.Reconnect();
  holder.ReadErrUntil("still applies\n");
  CHECK(Finish(holder) == Exited(0));
  return holder.err();
}

std::string ShortGrant() {
  Grants grants({20'000, 3'000});
  Child holder = grants.Hold();
  grants.Reconnect();
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

/// The lock is acquired, but this request for the LOCK's `child` is never answered.
std::string LostBeforeRun(const std::string& verb, const std::string& child,
                          const std::string& option, int status) {
  const std::string lock = NewLock("said");
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string reply) {
    if (request == verb + " " + lock + child) *is_silent = true;
    return *is_silent ? std::nullopt : std::optional(std::move(reply));
  });
  return Said(Run(ZklockAt(proxy.address(), {"exclusive", "--session-timeout", "4s", option, "1h",
                                             lock, "--", "true"})),
              Exited(status));
}

/// TERM arrives while the commit of the start is not answered.
std::string InterruptedStarting() {
  const std::string lock = NewLock("said");
  Gate gate("create " + lock + "/last-start");
  Child zklock =
      Child::Start(gate.Before(Zklock({"exclusive", "--once-per", "1h", lock, "--", "true"})));
  gate.WaitUntilReached();
  zklock.Signal(SIGTERM);
  zklock.Wait();
  return zklock.err();
}

/// Either the answer to the conversion never arrives, or it is the last one that arrives.
std::string MayBeReserved(bool is_answered) {
  const std::string lock = NewLock("said");
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string reply) {
    // Its first operation deletes the contender.
    const bool is_conversion = request.starts_with("multi " + lock + "/");
    if (is_conversion) *is_silent = true;
    const bool passes = !*is_silent || (is_conversion && is_answered);
    return passes ? std::optional(std::move(reply)) : std::nullopt;
  });
  std::string said =
      Said(Run(ZklockAt(proxy.address(), {"exclusive", "--session-timeout", "4s",
                                          "--connect-timeout", "3s", "--reserve", "ci", lock})),
           Exited(69));
  RunZklock({"release", "--reserve", "ci", lock}, Exited(0));
  return said;
}

/// The session ends before the conversion is sent.
std::string NotReserved() {
  const std::string lock = NewLock("said");
  Proxy proxy(TestServers());
  const auto next_connect_expires = std::make_shared<std::atomic<bool>>(false);
  const auto is_cut = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string reply) {
    // The contender is read before the conversion. Nothing more reaches zklock over this
    // connection.
    if (request.starts_with("get " + lock + "/") && !is_cut->exchange(true)) {
      *next_connect_expires = true;
      return std::optional<std::string>();
    }
    // After the length and the protocol's version: the timeout, the session.
    const bool expires = request == "connect" && next_connect_expires->exchange(false);
    if (expires) reply.replace(8, 12, 12, '\0');
    return std::optional(std::move(reply));
  });
  std::string said = Said(Run(ZklockAt(proxy.address(), {"exclusive", "--session-timeout", "4s",
                                                         "-E", "7", "--reserve", "ci", lock})),
                          Exited(69));
  RunZklock({"release", "--reserve", "ci", lock}, Exited(75));
  return said;
}

/// A signal arrives while the answer to the conversion is in transit.
std::string StaysReserved() {
  const std::string lock = NewLock("said");
  Proxy proxy(TestServers());
  std::promise<pid_t> zklock;
  const std::shared_future<pid_t> pid = zklock.get_future().share();
  proxy.EditReplies([=](const std::string& request, std::string reply) {
    if (request.starts_with("multi " + lock + "/")) kill(pid.get(), SIGTERM);
    return std::optional(std::move(reply));
  });
  Child child =
      Child::Start(ZklockAt(proxy.address(), {"exclusive", "--reserve", "ci", lock, "--", "true"}));
  zklock.set_value(child.pid());
  CHECK(child.Wait() == Exited(128 + SIGTERM));
  RunZklock({"release", "--reserve", "ci", lock}, Exited(0));
  return child.err();
}

/// A run under a reservation that is released in the meantime.
std::string Outlived() {
  auto [lock, run] = HoldNewLock("said", {"exclusive", "--reserve", "ci", "--quiet"});
  RunZklock({"release", "--reserve", "ci", lock}, Exited(0));
  run.Write("0\n");
  CHECK(run.Wait() == Exited(0));
  return run.err();
}

std::string RanPastEnd() {
  return SaidBy(
      {"exclusive", "--reserve", "ci", "--for", "100ms", NewLock("said"), "--", "sleep", "0.2"}, 0);
}

std::string UnknownIfOutlived() {
  Proxy proxy(TestServers());
  Child run = StartHolder(
      {"exclusive", "--reserve", "ci", "--connect-timeout", "1s", "-z", proxy.address()},
      NewLock("said"));
  proxy.Freeze();
  run.Write("0\n");
  CHECK(run.Wait() == Exited(0));
  return run.err();
}

/// Returns what a shell's keeper writes to the system log after `act`.
std::string LoggedByKeeper(const std::function<void(const std::string& lock)>& act) {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("said");
  // The script runs in a mount namespace with a /dev/log of its own.
  ChildOptions options = With(
      Script(
          lock,
          "mkdir $D && exec unshare --user --map-root-user --mount sh -c '"
          "mount -t tmpfs none $D && touch $D/null $D/urandom || exit;"
          "mount --bind /dev/null $D/null; mount --bind /dev/urandom $D/urandom;"
          "mount --rbind $D /dev;"
          "perl -MSocket -e \"socket(S, AF_UNIX, SOCK_DGRAM, 0); bind(S, sockaddr_un(q(/dev/log)));"
          "open(F, q(>), q(/dev/up)); recv(S, \\$line, 4096, 0); print \\$line, chr(10)\" & "
          "until test -e /dev/up; do sleep 0.01; done; "
          "sh -c \"trap : TERM; $Z exclusive --hold $L || exit; echo held; read x\"; wait'"),
      {"D=" + directory.Path("dev")});
  Child script = Child::Start(options);
  if (script.ReadLine() != "held") return "";
  act(lock);
  const std::string line = script.ReadLine();
  const std::size_t begin = line.find(" zklock[");
  CHECK(line.starts_with("<12>"));
  REQUIRE(begin != std::string::npos);
  script.CloseInput();
  script.Wait();
  return "zklock: " + line.substr(line.find("]: ", begin) + 3) + "\n";
}

/// The lock is lost to `release --force`, and the keeper has read the reason.
std::string ForcedFromShell() {
  return LoggedByKeeper([](const std::string& lock) {
    RunZklock({"release", "--holders", "--force", "--yes", "--reason", "for fun", lock}, Exited(0));
  });
}

std::string AskedOfShell() {
  return LoggedByKeeper([](const std::string& lock) {
    RunZklock({"release", "--holders", "--yes", "--reason", "for fun", lock}, Exited(0));
  });
}

}  // namespace

Provocations LossProvocations() {
  return {
      {{"kOwnerSignalled", "kLost"},
       [] {
         const std::string said = ForcedFromShell();
         CHECK_THAT(said, Catch::Contains("taken away by ") && Catch::Contains("('for fun')"));
         return said;
       }},
      {{"kOwnerSignalled", "kReleaseRequested"}, AskedOfShell},
      {{"kOutlived"}, Outlived},
      {{"kRanPastEnd"}, RanPastEnd},
      {{"kOutlivedUnknown"}, UnknownIfOutlived},
      {{"kLost", Part("kDeleted", "our contender was deleted"),
        Part("kStopped", "sh was terminated with TERM")},
       TakenAway},
      {{Part("kRunTooLong").With({"", "500ms"}),
        Part("kStopped", "sleep was terminated with TERM")},
       [] {
         return Said(
             RunZklock({"exclusive", "--max-run", "500ms", NewLock("said"), "--", "sleep", "60"}),
             Exited(124));
       }},
      {{Part("kContinues", "sh continues, and others may run too (--on-lost warn)")}, RunsOn},
      {{Part("kTakenBy", "taken away by me ('for fun')"), Part("kWithLabel", "sh ('nightly')")},
       TakenAwayBy},
      {{Part("kKilled", "sh was killed")}, [] { return Killed("0"); }},
      {{Part("kSentStop", "sh was sent TERM"),
        Part("kKilledAfter", "sh was killed, since TERM did not end it in time")},
       [] { return Killed("2s"); }},
      {{Part("kHadEnded", "sh had already ended")},
       [] {
         return LostAfterEnd({"--on-lost", "warn"}) + LostAfterEnd();
       }},
      {{Part("kPaused").With({"\\d+s"})}, Paused},
      {{Part("kUnconfirmed").With({"\\d+s", ".* \\(Permission denied\\)"}).With({"\\d+s", ""})},
       Unproven},
      {{Part("kUnconfirmed")}, MayNotRead},
      {{Part("kGrantsTooDifferent").With({"6s", "25s"})}, GrantedTooDifferently},
      {{"kExpired", Part("kLastConfirmed").With({"[\\d.]+m?s"})}, Expired},
      {{"kMayBeReserved"}, [] { return MayBeReserved(false); }},
      {{"kMayBeReserved"}, [] { return MayBeReserved(true); }},
      {{"kExpiredWhileReserving"}, NotReserved},
      {{"kStaysReservedAfterSignal"}, StaysReserved},
      {{Saying("kTimeoutShortened").With({"", "12s", "20s"}),
        Saying("kShorterTimeoutCounts").With({"", "20s", "12s"})},
       Shortened},
      {{Part("kShortGrant").With({"", "", "3s"})}, ShortGrant},
      {{"kLostBeforeRun"}, [] { return LostBeforeRun("get", "/last-run", "--min-interval", 75); }},
      {{"kLostBeforeRun"}, [] { return LostBeforeRun("get", "/last-start", "--once-per", 75); }},
      {{"kLostStarting"}, [] { return LostBeforeRun("create", "/last-start", "--once-per", 76); }},
      {{"kStartMayCount"}, InterruptedStarting},
  };
}

}  // namespace zklock::test
