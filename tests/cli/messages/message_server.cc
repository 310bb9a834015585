// Messages about servers: no server at all, another service at the address, a server that refuses.

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/messages/provocation.h"
#include "cli/names.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

std::string ConfirmedTooSlowly() {
  Proxy proxy(TestServers());
  proxy.Delay(std::chrono::milliseconds(600));
  const Finished finished = RunZklock(
      {"try", "--session-timeout", "4s", "-z", proxy.address(), NewLock("said"), "--", "true"},
      Exited(69));
  return finished.err;
}

/// Returns the message of a waiter whose servers are gone for good. The proxy keeps its port, which
/// the proxy of another test would otherwise take.
std::string LostWaiting() {
  auto [lock, holder] = HoldNewLock("said");
  Proxy proxy(TestServers());
  Child waiter =
      StartWaiter({"exclusive", "-z", proxy.address(), "--connect-timeout", "200ms"}, lock);
  proxy.Freeze();
  proxy.Cut();
  CHECK(waiter.Wait() == Exited(69));
  return waiter.err();
}

/// A zklock that tries servers in vain until its time runs out, and the server it talks to.
struct Attempt {
  std::shared_ptr<void> server;
  Child zklock;
};

Child StartAt(const std::string& servers, const std::string& patience,
              const std::string& session_timeout = "4s") {
  return Child::Start(ZklockAt(servers, {"inspect", "--connect-timeout", patience,
                                         "--session-timeout", session_timeout, "/t/said"}));
}

/// Runs attempts in parallel: all of them start when the first message is requested.
class Attempts {
 public:
  /// Returns a function that provokes the message.
  std::function<std::string()> Add(std::function<Attempt()> start) {
    const std::size_t index = state_->starts.size();
    state_->starts.push_back(std::move(start));
    return [state = state_, index] {
      auto& begun = state->begun;
      while (begun.size() < state->starts.size()) begun.push_back(state->starts[begun.size()]());
      CHECK(begun[index].zklock.Wait() == Exited(69));
      return begun[index].zklock.err();
    };
  }
  std::function<std::string()> At(const std::string& servers) {
    return Add([=] { return Attempt{nullptr, StartAt(servers, "5s")}; });
  }
  std::function<std::string()> At(Peer::Manner manner) {
    return Add([=] {
      const auto peer = std::make_shared<Peer>(manner);
      return Attempt{peer, StartAt(peer->address(), "5s")};
    });
  }
  std::function<std::string()> Through(const std::string& proxy_command) {
    return Add([=] {
      return Attempt{nullptr, Child::Start(ZklockAt(
                                  TestServers(), {"inspect", "--connect-timeout", "5s",
                                                  "--proxy-command", proxy_command, "/t/said"}))};
    });
  }

 private:
  struct State {
    std::vector<std::function<Attempt()>> starts;
    std::vector<Attempt> begun;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

Attempt AtBlackHole() {
  const auto hole = std::make_shared<BlackHole>();
  return {hole, StartAt(hole->address(), "5s", "40s")};
}

std::string TooManyConnections() {
  const OwnServer server({"maxClientCnxns=1"});
  const Tree first("", server.address());
  Child zklock = StartAt(server.address(), "4s");
  CHECK(zklock.Wait() == Exited(69));
  return zklock.err();
}

std::string LocalSessions() {
  const OwnServer servers({"localSessionsEnabled=true"}, 3);
  return Said(Run(ZklockAt(servers.address(), {"exclusive", "/t/said", "--", "true"})), Exited(78));
}

/// Returns an attempt whose first sync is answered with `reply`, or not at all if `reply` is empty.
/// Nothing is answered after that. A server has a third of the session timeout to answer, and the
/// same time for a handshake.
Attempt WithList(const std::string& reply, const std::string& patience,
                 const std::string& session_timeout) {
  const auto proxy = std::make_shared<Proxy>(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy->EditReplies([=](const std::string& request, std::string real) {
    if (*is_silent) return std::optional<std::string>();
    if (!request.starts_with("sync")) return std::optional(std::move(real));
    *is_silent = true;
    return reply.empty() ? std::nullopt : std::optional(reply);
  });
  return {proxy, StartAt(proxy->address(), patience, session_timeout)};
}

/// The answer to every read is "not executed at all, please retry".
Attempt Throttled() {
  const auto proxy = std::make_shared<Proxy>(TestServers());
  proxy->EditReplies([](const std::string& request, std::string real) {
    if (request == "connect") return std::optional(std::move(real));
    return std::optional(std::string("\0\0\0\x10", 4) + real.substr(4, 12) + "\xff\xff\xff\x81");
  });
  return {proxy, StartAt(proxy->address(), "3s")};
}

/// The connection is closed after the session is established; later handshakes are not answered.
/// The first of them must still be in progress when zklock gives up: it may take a third of the
/// session timeout.
std::string ClosedLater() {
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& /*request*/, std::string real) {
    return *is_silent ? std::nullopt : std::optional(std::move(real));
  });
  const std::string lock = NewLock("said");
  Tree().Create(lock);
  Child child = Child::Start(
      ZklockAt(proxy.address(), {"inspect", "--json", "--watch", "--connect-timeout", "2s", lock}));
  child.ReadLine();
  *is_silent = true;
  proxy.Cut();
  CHECK(child.Wait() == Exited(69));
  return child.err();
}

std::string SlowName() {
  const Names names;
  names.SetSlow("slow");
  return Said(
      Run(names.Use(ZklockAt("slow:2181", {"inspect", "--connect-timeout", "300ms", "/t/said"}))),
      Exited(69));
}

std::string NoServerNamed() {
  ChildOptions options =
      Zklock({"inspect", "--connect-timeout", "1s", "--proxy-command", "exec false", "/t/said"});
  std::erase_if(*options.environment,
                [](const std::string& one) { return one.starts_with("ZKLOCK_SERVERS="); });
  const std::string said = Said(Run(options), Exited(69));
  CHECK_THAT(said, Catch::Contains("127.0.0.1:2181"));
  return said;
}

std::string WithCredentials(const std::string& credentials, const Words& words) {
  return Said(Run(With(Zklock(words), {"ZKLOCK_AUTH=" + credentials})), Exited(77));
}

std::string CredentialsWanted() {
  const OwnServer server({"enforce.auth.enabled=true", "enforce.auth.schemes=digest"});
  return Said(Run(ZklockAt(server.address(), {"inspect", "/t/said"})), Exited(77));
}

std::string SaslWanted() {
  const OwnServer server({"sessionRequireClientSASLAuth=true",
                          "authProvider.1=org.apache.zookeeper.server.auth."
                          "SASLAuthenticationProvider"});
  CHECK_THAT(Run(ZklockAt(server.address(), {"inspect", "/t/said"})).err, Catch::Contains("SASL"));
  return Said(Run(With(ZklockAt(server.address(), {"exclusive", "/t/said", "--", "true"}),
                       {"ZKLOCK_AUTH=digest:me:secret"})),
              Exited(77));
}

/// A server that closes the connection because a contender's data is too large.
std::string ClosesOnRequest() {
  const OwnServer server({}, 1, {"--java", "-Djute.maxbuffer=1500"});
  return Said(Run(ZklockAt(server.address(), {"exclusive", "--connect-timeout", "8s", "--label",
                                              std::string(2000, 'x'), "/t/said", "--", "true"})),
              Exited(69));
}

std::string AclRefused() {
  const std::string place = Tree().Create(NewLock("said"));
  return WithCredentials("ip:me", {"exclusive", place + "/lock", "--", "true"});
}

std::string NotAuthorised() {
  auto [tree, lock] = MadeLock("said");
  tree.SetAcl(lock, kRead | kAdmin);
  return SaidBy({"exclusive", lock, "--", "true"}, 77);
}

/// The servers accept any password for digest: only a missing permission shows that it is wrong.
std::string PerhapsWrongPassword() {
  auto [tree, lock] = MadeLock("said");
  tree.SetAcl(lock, kRead | kAdmin);
  return WithCredentials("digest:me:secret", {"exclusive", lock, "--", "true"});
}

std::string InterruptedBySignal() {
  const Peer peer(Peer::Manner::kSaysNothing);
  Child child = Child::Start(ZklockAt(peer.address(), {"inspect", "/t/said"}));
  peer.WaitForConnections(1);
  child.Signal(SIGTERM);
  CHECK(child.Wait() == Exited(128 + SIGTERM));
  return child.err();
}

std::string WithoutLoopback() {
  ChildOptions options =
      Zklock({"inspect", "--connect-timeout", "500ms", "--proxy-command", "cat", "/t/said"});
  options.argv.insert(options.argv.begin(),
                      {"/usr/bin/unshare", "--user", "--map-root-user", "--net"});
  return Said(Run(options), Exited(69));
}

// A reply with an xid that no request has used, preceded by its length.
const std::string kNonsense("\0\0\0\x10\x7f\x7f\x7f\x7f\0\0\0\0\0\0\0\x01\0\0\0\0", 20);

}  // namespace

Provocations ServerProvocations() {
  Attempts attempts;
  return {
      {{"kNoSuchServer"},
       [] {
         return Said(Run(ZklockAt("no-such-host.invalid:2181", {"inspect", "/t/said"})),
                     Exited(69));
       }},
      {{Saying("kTooSlow").With({"", "4s", "[\\d.]+s", "1s"}), "kFirst"}, ConfirmedTooSlowly},
      {{Saying("kNoServerNamed").With({"1s", ""})}, NoServerNamed},
      {{Saying("kNoServer").With({"5s", ""}),
        Part("kTriedServers", "127.0.0.1:1, 127.0.0.1:1 (each: Connection refused)")},
       attempts.At("127.0.0.1:1,127.0.0.1:1")},
      {{"kLostWaiting"}, LostWaiting},
      {{Saying("kNoServer").With({"5s", ""}),
        Part("kTriedServer", "127.0.0.1:1 (Connection refused)")},
       attempts.At("127.0.0.1:1")},
      {{Part("kConnectUnanswered")}, attempts.Add(AtBlackHole)},
      {{Part("kGrantsNoSession")}, attempts.At(Peer::Manner::kSaysNothing)},
      {{Part("kClosesAtOnce")}, TooManyConnections},
      {{"kLocalSessions"}, LocalSessions},
      {{Part("kNotZooKeeper")}, attempts.At(Peer::Manner::kSpeaksHttp)},
      {{Part("kClosedLater")}, ClosedLater},
      {{"kNoUsableServer", Part("kAnswersNothing")},
       attempts.Add([] { return WithList("", "5s", "40s"); })},
      // 9 s: after 6 s the answer is overdue; after 12 s zklock would also give up the new
      // handshake.
      {{Part("kFellSilent")}, attempts.Add([] { return WithList("", "9s", "18s"); })},
      {{"kNoUsableServer", Part("kThrottles")}, attempts.Add(Throttled)},
      {{"kNoUsableServer", Part("kNotUnderstood")},
       attempts.Add([] { return WithList(kNonsense, "5s", "40s"); })},
      {{Saying("kNoServerThroughProxy").With({"5s", "", "true"}), Part("kHelperClosed")},
       attempts.Through("true")},
      {{Saying("kProxyFailed").With({"5s", "", "255", "exit 255"})}, attempts.Through("exit 255")},
      {{Part("kHelperSilent")}, attempts.Through("sleep 1000")},
      {{Part("kLoopback",
             "not tried: zklock cannot connect to itself over the loopback interface (Network is "
             "unreachable): is it up?")},
       WithoutLoopback},
      {{Part("kLookupRuns")}, SlowName},
      {{"kCredentialsRefused", Part("kMaybeUnknownScheme")},
       [] {
         return WithCredentials("nosuchscheme:x", {"exclusive", NewLock("said"), "--", "true"});
       }},
      {{"kSaslRefused"},
       [] {
         return WithCredentials("sasl:me:secret",
                                {"inspect", "--sasl", "digest-md5", NewLock("said")});
       }},
      {{"kCredentialsRequired"}, CredentialsWanted},
      {{"kOtherSchemeRequired"}, SaslWanted},
      {{"kNoUsableServer", Part("kClosesOnRequest")}, ClosesOnRequest},
      {{"kAclRefused"}, AclRefused},
      {{"kNotAuthorised", Part("kNoIdentity", "a caller without credentials")}, NotAuthorised},
      {{"kNotAuthorised", Part("kOrWrongPassword")}, PerhapsWrongPassword},
      {{"kInterruptedBy", Part("kSignal", "SIGTERM")}, InterruptedBySignal},
  };
}

}  // namespace zklock::test
