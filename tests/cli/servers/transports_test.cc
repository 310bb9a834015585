// Transports that combine TLS, SASL and proxy commands, and servers that stall during connection
// set-up.

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/mark.h"
#include "cli/servers/secure_servers.h"
#include "cli/zklock.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

const Words kThroughSocat = {"--proxy-command", "exec socat - TCP:%h:%p"};

/// Checks that alice acquires a lock, and that it belongs to her. `plain`: the address of a port
/// without TLS on the same server.
void CheckAlice(const Words& way, const std::string& plain) {
  const Mark mark;
  Child holder = Child::Start(mark.On(AsAlice(HolderOptions(Words{"exclusive"} + way, "/held"))));
  REQUIRE(holder.ReadLine() == "held");
  CHECK(Tree("", plain).GetAcl("/held") == Words{"sasl:alice 31", "world:anyone 1"});
  CHECK(Finish(holder) == Exited(0));
  mark.WaitForEnd();
  CHECK_THAT(
      Run(AsAlice(Words{"try"} + way + Words{"/held", "--", "true"}, "rose"), Exited(77)).err,
      Catch::Contains("SASL failed at"));
}

/// Holds a lock through a server that cuts the connection, so that the next server in the list is
/// tried; that one stalls. The command must continue. The first connect may take long: the first
/// TLS handshake of a new JVM under load exceeds a share of the default connect timeout.
void CheckStallBetween(const std::string& real, const std::string& stalling,
                       const std::function<ChildOptions(ChildOptions)>& with) {
  Proxy proxy(real);
  const Mark mark;
  Child holder = Child::Start(mark.On(
      with(HolderOptions({"exclusive", "--verbose", "--session-timeout", "24s", "--connect-timeout",
                          "60s", "-z", proxy.address() + "," + stalling},
                         "/stall"))));
  REQUIRE(holder.ReadLine() == "held");
  proxy.Cut();
  holder.ReadErrUntil("confirmed");
  CHECK(Finish(holder) == Exited(0));
  mark.WaitForEnd();
}

}  // namespace

TEST_CASE(
    "a LOCK created with a client certificate belongs to it, and another one is not permitted to "
    "queue there") {
  const Certificates certificates;
  const TlsServer server(certificates, "need");
  const auto run = [&](const std::string& subcommand, const std::string& certificate,
                       const Words& words) {
    return Zklock(Words{subcommand, "-z", server.named()} + certificates.Client(certificate) +
                  words);
  };
  Run(run("try", "host", {"--acl", "creator", "/owned/lock", "--", "true"}), Exited(0));
  CHECK(Tree("", server.plain()).GetAcl("/owned/lock") ==
        Words{"world:anyone 1", "x509:CN=host 31"});

  const Finished other = Run(run("try", "named", {"/owned/lock", "--", "true"}), Exited(77));
  CHECK(Lines(other.err).size() == 1);
  CHECK_THAT(other.err, Catch::Contains("not authorised: CREATE on /owned/lock is missing for "
                                        "the client certificate;"));
  Run(run("try", "named", {"/owned/new", "--", "true"}), Exited(0));
  Run(run("inspect", "named", {"/owned/lock"}), Exited(0));
  Run(run("try", "host", {"/owned/new", "--", "true"}), Exited(0));
}

TEST_CASE("SASL works over TLS, and both work through a proxy command") {
  const Certificates certificates;
  const SaslUsers users;
  const TlsServer server(certificates, "none", kSaslSettings, users.Options());
  const Words plain = {"-z", server.plain()};
  const Words secure = Words{"-z", server.named()} + certificates.Ca();
  SECTION("SASL over TLS") { CheckAlice(secure, server.plain()); }
  SECTION("SASL through a proxy command") { CheckAlice(plain + kThroughSocat, server.plain()); }
  SECTION("SASL over TLS through a proxy command") {
    CheckAlice(secure + kThroughSocat, server.plain());
  }
  SECTION("TLS through a proxy command") {
    const Mark mark;
    const Words words = secure + kThroughSocat + Words{"/x", "--", "echo", "locked"};
    CHECK(Run(mark.On(Zklock(Words{"try"} + words))).out == "locked\n");
    mark.WaitForEnd();
  }
}

TEST_CASE(
    "through a proxy command, the reason combines the command's and zklock-transport's reports") {
  const Certificates certificates;
  CHECK_THAT(Run(Zklock(Words{"inspect", "--connect-timeout", "5s", "--proxy-command",
                              "echo no way >&2; exit 1"} +
                        certificates.Ca() + Words{"/t/x"}),
                 Exited(69))
                 .err,
             Catch::Contains("(no way; closes the connection in the TLS handshake"));
}

TEST_CASE("a holder leaves a server that stalls in TLS for the next one in time", "[slow]") {
  const Certificates certificates;
  const TlsServer server(certificates, "none");
  const auto check = [&](const std::string& stalling) {
    CheckStallBetween(server.address(), stalling, [&](ChildOptions options) {
      const Words ca = certificates.Ca();
      options.argv.insert(options.argv.begin() + 2, ca.begin(), ca.end());
      return options;
    });
  };
  SECTION("in the connect") { check(BlackHole().address()); }
  SECTION("in the handshake of TLS") { check(Peer(Peer::Manner::kSaysNothing).address()); }
  SECTION("in the request for a session") {
    check(OpenSslServer(certificates, "server").address());
  }
}

TEST_CASE("a holder leaves a server that stalls in SASL for the next one in time") {
  const SaslUsers users;
  const OwnServer server(kSaslSettings, 1, users.Options());
  const auto check = [&](const std::string& stalling) {
    CheckStallBetween(server.address(), stalling,
                      [&](ChildOptions options) { return AsAlice(std::move(options)); });
  };
  SECTION("in the connect") { check(BlackHole().address()); }
  SECTION("in the request for a session") { check(Peer(Peer::Manner::kSaysNothing).address()); }
  SECTION("in the exchange") {
    Proxy stalling(server.address());
    stalling.EditReplies([](const std::string& request, std::string reply) {
      return request == "connect" ? std::optional(std::move(reply)) : std::nullopt;
    });
    check(stalling.address());
  }
}

TEST_CASE("a holder leaves a proxy command that stalls for the next server in time") {
  const BlackHole unreached;
  const std::string port = unreached.address().substr(unreached.address().rfind(':') + 1);
  CheckStallBetween(TestServers(), unreached.address(), [&](ChildOptions options) {
    options.argv.insert(
        options.argv.begin() + 2,
        {"--proxy-command", "[ %p != " + port + " ] || exec sleep 1000; exec socat - TCP:%h:%p"});
    return options;
  });
}

TEST_CASE("zklock gives up on a server that stalls in the SASL exchange, with that reason") {
  const SaslUsers users;
  const OwnServer server(kSaslSettings, 1, users.Options());
  Proxy stalling(server.address());
  stalling.EditReplies([](const std::string& request, std::string reply) {
    return request == "connect" ? std::optional(std::move(reply)) : std::nullopt;
  });
  const Mark mark;
  CHECK_THAT(Run(mark.On(AsAlice(
                     {"inspect", "-z", stalling.address(), "--connect-timeout", "5s", "/t/x"})),
                 Exited(69))
                 .err,
             Catch::Contains("does not complete SASL"));
  mark.WaitForEnd();
}

}  // namespace zklock::test
