// Messages about servers: none at all, something else in their place, servers that refuse.

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "cli/names.h"
#include "cli/provocation.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

/// Tried for so long, in vain.
std::string TryAt(const std::string& servers, const std::string& patience,
                  const std::string& session_timeout = "4s") {
  return Said(Run(ZklockAt(servers, {"inspect", "--connect-timeout", patience, "--session-timeout",
                                     session_timeout, "/t/said"})),
              Exited(69));
}

/// Tried in vain by a proxy command.
std::string TryThrough(const std::string& line) {
  return Said(Run(ZklockAt(TestServers(), {"inspect", "--connect-timeout", "2s", "--proxy-command",
                                           line, "/t/said"})),
              Exited(69));
}

std::string TooManyConnections() {
  const OwnServer server({"maxClientCnxns=1"});
  const Tree first("", server.address());
  return TryAt(server.address(), "4s");
}

std::string LocalSessions() {
  const OwnServer servers({"localSessionsEnabled=true"}, 3);
  return Said(Run(ZklockAt(servers.address(), {"exclusive", "/t/said", "--", "true"})), Exited(78));
}

/// What comes of the first list that is asked for; nothing is answered any more after it. A server
/// has a third of the session time-out to answer, and as long for a handshake.
std::string TryWithList(const std::string& reply, const std::string& patience,
                        const std::string& session_timeout) {
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string real) {
    if (*is_silent) return std::optional<std::string>();
    if (!request.starts_with("sync")) return std::optional(std::move(real));
    *is_silent = true;
    return reply.empty() ? std::nullopt : std::optional(reply);
  });
  return TryAt(proxy.address(), patience, session_timeout);
}

/// All reads are answered by "not executed at all, please retry".
std::string Throttled() {
  Proxy proxy(TestServers());
  proxy.EditReplies([](const std::string& request, std::string real) {
    if (request == "connect") return std::optional(std::move(real));
    return std::optional(std::string("\0\0\0\x10", 4) + real.substr(4, 12) + "\xff\xff\xff\x81");
  });
  return TryAt(proxy.address(), "3s");
}

/// A session, and the connection is closed; from then on handshakes are not answered.
std::string ClosedLater() {
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& /*request*/, std::string real) {
    return *is_silent ? std::nullopt : std::optional(std::move(real));
  });
  const std::string lock = NewLock("said");
  Tree().Create(lock);
  Child child = Child::Start(
      ZklockAt(proxy.address(), {"inspect", "--json", "--watch", "--connect-timeout", "5s", lock}));
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

std::string WithCredentials(const std::string& credentials, const Words& words) {
  ChildOptions options = Zklock(words);
  options.also_environment.push_back("ZKLOCK_AUTH=" + credentials);
  return Said(Run(options), Exited(77));
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
  ChildOptions options = ZklockAt(server.address(), {"exclusive", "/t/said", "--", "true"});
  options.also_environment.push_back("ZKLOCK_AUTH=digest:me:secret");
  return Said(Run(options), Exited(77));
}

/// Closes on a contender's data.
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
  Tree tree;
  const std::string lock = tree.Create(NewLock("said"));
  tree.SetAcl(lock, kRead | kAdmin);
  return SaidBy({"exclusive", lock, "--", "true"}, 77);
}

std::string InterruptedBySignal() {
  const Peer peer(Peer::Manner::kSaysNothing);
  Child child = Child::Start(ZklockAt(peer.address(), {"inspect", "/t/said"}));
  peer.WaitForConnections(1);
  child.Signal(SIGTERM);
  CHECK(child.Wait() == Exited(128 + SIGTERM));
  return child.err();
}

// A reply's length, and in it an xid that nobody has used.
const std::string kNonsense("\0\0\0\x10\x7f\x7f\x7f\x7f\0\0\0\0\0\0\0\x01\0\0\0\0", 20);

}  // namespace

Provocations ServerProvocations() {
  return {
      {{"kNoSuchServer"},
       [] {
         return Said(Run(ZklockAt("no-such-host.invalid:2181", {"inspect", "/t/said"})),
                     Exited(69));
       }},
      {{"kNoServer", Part("kTriedServer", "127.0.0.1:1 (Connection refused)")},
       [] { return TryAt("127.0.0.1:1", "2s"); }},
      {{Part("kConnectUnanswered")}, [] { return TryAt(BlackHole().address(), "1s"); }},
      {{Part("kGrantsNoSession")},
       [] { return TryAt(Peer(Peer::Manner::kSaysNothing).address(), "1s"); }},
      {{Part("kClosesAtOnce")}, TooManyConnections},
      {{"kLocalSessions"}, LocalSessions},
      {{Part("kNotZooKeeper")},
       [] { return TryAt(Peer(Peer::Manner::kSpeaksHttp).address(), "4s"); }},
      {{Part("kClosedLater")}, ClosedLater},
      {{Part("kAnswersNothing")}, [] { return TryWithList("", "5s", "40s"); }},
      // Between the 6 s for the answer and the 12 s at which a new handshake is given up too.
      {{Part("kFellSilent")}, [] { return TryWithList("", "9s", "18s"); }},
      {{Part("kThrottles")}, Throttled},
      {{Part("kNotUnderstood")}, [] { return TryWithList(kNonsense, "5s", "40s"); }},
      {{Part("kHelperClosed")}, [] { return TryThrough("true"); }},
      {{Part("kHelperSilent")}, [] { return TryThrough("sleep 1000"); }},
      {{Part("kLookupRuns")}, SlowName},
      {{"kCredentialsRefused"},
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
      {{Part("kClosesOnRequest")}, ClosesOnRequest},
      {{"kAclRefused"}, AclRefused},
      {{"kNotAuthorised"}, NotAuthorised},
      {{"kInterruptedBy", Part("kSignal", "SIGTERM")}, InterruptedBySignal},
  };
}

}  // namespace zklock::test
