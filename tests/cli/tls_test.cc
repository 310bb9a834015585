// TLS through zklock-transport: real servers (Netty) that do and do not require a client
// certificate, and servers whose TLS is wrong in some way.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "cli/mark.h"
#include "cli/zklock.h"
#include "support/kept_port.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// A directory with two authorities (ca.pem, other-ca.pem) and keys with certificates, NAME.key,
/// NAME.crt, and both as NAME.pem: server (for localhost and 127.0.0.1), host, named (for zk1 and
/// zk2), expired, future-less self (signed by itself), and stranger (by other-ca).
class Certificates {
 public:
  Certificates() {
    ChildOptions options;
    options.argv = {"sh", "-ec", R"sh(
      key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
      for ca in ca other-ca; do
        openssl req -x509 $key -keyout $ca.key -out $ca.pem -subj "/CN=$ca" -days 2
      done
      sign() {
        openssl req $key -keyout $1.key -out $1.csr -subj "/CN=$1"
        echo "subjectAltName=$4" >extensions
        openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days $3 \
          -extfile extensions -out $1.crt
        cat $1.key $1.crt >$1.pem
        chmod 600 $1.key $1.pem
      }
      here=DNS:localhost,IP:127.0.0.1
      sign server ca 2 $here
      sign host ca 2 DNS:host
      sign named ca 2 DNS:zk1,DNS:zk2
      sign expired ca -1 $here
      sign stranger other-ca 2 $here
      openssl req -x509 $key -keyout self.key -out self.crt -subj /CN=self -days 2)sh"};
    options.directory = directory_.path();
    const Finished made = Run(std::move(options));
    CAPTURE(made.err);
    REQUIRE(made.exit == Exited(0));
  }
  [[nodiscard]] std::string operator()(const std::string& name) const {
    return directory_.Path(name);
  }

 private:
  TemporaryDirectory directory_;
};

/// A server that speaks TLS on its own port, and requires a client certificate or does not.
class TlsServer {
 public:
  TlsServer(const Certificates& certificates, const std::string& client_auth)
      : server_(
            {"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
             "secureClientPort=" + secure_.number(), "secureClientPortAddress=127.0.0.1",
             "ssl.keyStore.location=" + certificates("server.pem"),
             "ssl.trustStore.location=" + certificates("ca.pem"), "ssl.clientAuth=" + client_auth,
             "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider"}) {}
  [[nodiscard]] std::string address() const { return secure_.address(); }
  /// By name, so that the certificate's name counts.
  [[nodiscard]] std::string named() const { return "localhost:" + secure_.number(); }
  [[nodiscard]] const std::string& plain() const { return server_.address(); }

 private:
  KeptPort secure_;
  OwnServer server_;
};

/// `openssl s_server` with these options.
class OpenSslServer {
 public:
  explicit OpenSslServer(Words options) {
    options.insert(options.begin(), {"openssl", "s_server", "-accept", port_.address()});
    ChildOptions child;
    child.argv = std::move(options);
    child.keep_stdin = true;
    server_.emplace(Child::Start(std::move(child)));
    server_->ReadUntil("ACCEPT");
  }
  [[nodiscard]] std::string address() const { return port_.address(); }

 private:
  KeptPort port_;
  std::optional<Child> server_;
};

Words Mutual(const Certificates& certificates) {
  return {"--tls-ca",  certificates("ca.pem"),  "--tls-cert", certificates("host.crt"),
          "--tls-key", certificates("host.key")};
}

Words Joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The reason that zklock gives for not using a server.
std::string ReasonOf(const std::string& server, const Words& options,
                     const std::string& patience = "1s") {
  const Mark mark;
  const Finished finished = Run(mark.On(Zklock(Joined(
      {"inspect", "-z", server, "--connect-timeout", patience}, Joined(options, {"/t/x"})))));
  CHECK(finished.exit == Exited(69));
  CHECK(mark.Processes().empty());
  const std::string begin = server + " (";
  const std::size_t from = finished.err.find(begin);
  const std::size_t to = finished.err.find("); is one running?");
  CAPTURE(finished.err);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  return finished.err.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

TEST_CASE("zklock speaks TLS to a server's secure port, with and without a client certificate") {
  const Certificates certificates;
  const TlsServer open(certificates, "none");
  const TlsServer mutual(certificates, "need");
  const Words ca = {"--tls-ca", certificates("ca.pem")};
  const Words own = Mutual(certificates);

  for (const auto& [server, options] : std::vector<std::pair<std::string, Words>>{
           {open.named(), ca}, {open.address(), ca}, {mutual.named(), own}}) {
    const Mark mark;
    const Finished finished = Run(mark.On(
        Zklock(Joined({"try", "-z", server}, Joined(options, {"/x", "--", "echo", "locked"})))));
    CAPTURE(server, finished.err);
    CHECK(finished.exit == Exited(0));
    CHECK(finished.out == "locked\n");
    CHECK(mark.Processes().empty());
  }
  // The client certificate is an identity.
  CHECK(
      Run(Zklock(Joined({"exclusive", "-z", mutual.named()}, Joined(own, {"/x509", "--", "true"}))))
          .exit == Exited(0));

  CHECK_THAT(ReasonOf(mutual.named(), ca, "5s"), Catch::Contains("requires a client certificate"));
  Words stranger = own;
  stranger[3] = certificates("stranger.crt");
  stranger[5] = certificates("stranger.key");
  CHECK_THAT(ReasonOf(mutual.named(), stranger, "5s"), Catch::Contains("client certificate"));
  // The port without TLS, with TLS; and the other way round.
  CHECK_THAT(ReasonOf(open.plain(), ca), Catch::Contains("a port without TLS"));
  CHECK(Run(Zklock({"try", "-z", open.address(), "--connect-timeout", "1s", "/x", "--", "true"}))
            .exit == Exited(69));

  SECTION("through a proxy command, too") {
    const Finished finished =
        Run(Zklock(Joined({"try", "-z", open.named(), "--proxy-command", "socat - TCP:%h:%p"},
                          Joined(ca, {"/x", "--", "echo", "locked"}))));
    CAPTURE(finished.err);
    CHECK(finished.exit == Exited(0));
  }
  SECTION("inspect, waiters and the guard of a killed zklock use TLS") {
    const Mark mark;
    const auto at = [&](const std::string& subcommand) {
      return Joined({subcommand, "-z", open.named()}, ca);
    };
    Child holder = Child::Start(mark.On(HolderOptions(at("exclusive"), "/killed")));
    REQUIRE(holder.ReadLine() == "held");
    Child next =
        Child::Start(mark.On(HolderOptions(Joined(at("exclusive"), {"--verbose"}), "/killed")));
    next.ReadErrUntil("waiting for /killed");
    CHECK_THAT(Run(Zklock(Joined(at("inspect"), {"/killed"}))).out, Catch::Contains("held"));
    const auto killed = std::chrono::steady_clock::now();
    holder.Signal(SIGKILL);
    CHECK(next.ReadLine() == "held");
    // Far below the session time-out of 30 s, which would end the session otherwise.
    CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(5));
    // The helper dies: the command lives on.
    kill(mark.One("zklock-transpor"), SIGKILL);
    WaitUntil([&] { return !mark.Processes("zklock-transpor").empty(); });
    next.CloseInput();
    CHECK(next.Wait() == Exited(0));
    mark.WaitForEnd();
  }
}

TEST_CASE("each fault of a server's TLS has a reason of its own") {
  const Certificates certificates;
  const Words ca = {"--tls-ca", certificates("ca.pem")};
  const auto reason = [&](const std::string& name, const Words& options) {
    const OpenSslServer server(
        {"-cert", certificates(name + ".crt"), "-key", certificates(name + ".key")});
    return ReasonOf(server.address(), options);
  };
  CHECK_THAT(reason("expired", ca), Catch::StartsWith("its certificate expired on 20"));
  CHECK(reason("stranger", ca) ==
        "its certificate is from an unknown authority, other-ca; see --tls-ca");
  CHECK_THAT(reason("server", {"--tls"}),
             Catch::StartsWith("its certificate is from an unknown authority, ca;"));
  CHECK(reason("self", ca) == "its certificate (self) is self-signed; see --tls-ca");
  CHECK_THAT(reason("named", ca),
             Catch::StartsWith("its certificate is for zk1, zk2, not for 127.0.0.1;"));
  // Without a check of the name the handshake succeeds.
  CHECK(reason("named", Joined(ca, {"--tls-verify", "ca"})).find("zk1") == std::string::npos);

  const OpenSslServer old({"-cert", certificates("server.crt"), "-key", certificates("server.key"),
                           "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"});
  CHECK(ReasonOf(old.address(), ca) == "speaks no TLS of version 1.2 or newer");
  CHECK_THAT(ReasonOf(Peer(Peer::Manner::kSpeaksHttp).address(), ca),
             Catch::Contains("does not answer in TLS"));
  CHECK_THAT(ReasonOf(Peer(Peer::Manner::kClosesAtOnce).address(), ca),
             Catch::Contains("closes the connection in the TLS handshake"));
  CHECK_THAT(ReasonOf(Peer(Peer::Manner::kSaysNothing).address(), ca),
             Catch::Contains("does not answer in TLS"));
  CHECK(ReasonOf(ClosedPort().address(), ca) == "Connection refused");
  CHECK_THAT(ReasonOf(BlackHole().address(), ca),
             Catch::Contains("does not answer connection attempts"));
}

TEST_CASE("files of TLS that cannot be used are named") {
  const Certificates certificates;
  const auto run = [&](const Words& options) {
    return Run(Zklock(
        Joined({"try", "--connect-timeout", "1s"}, Joined(options, {"/t/x", "--", "true"}))));
  };
  const std::string key = certificates("host.key");
  const std::string cert = certificates("host.crt");
  SECTION("a key that others can read is refused") {
    REQUIRE(chmod(key.c_str(), 0644) == 0);
    const Finished finished = run({"--tls-cert", cert, "--tls-key", key});
    CHECK(finished.exit == Exited(77));
    CHECK_THAT(finished.err, Catch::StartsWith("zklock: " + key + ": other users can access it"));
  }
  SECTION("so is a file with both") {
    const std::string both = certificates("host.pem");
    REQUIRE(chmod(both.c_str(), 0640) == 0);
    CHECK(run({"--tls-cert", both}).exit == Exited(77));
  }
  SECTION("files that are not there") {
    for (const char* option : {"--tls-ca", "--tls-cert"}) {
      const Finished finished = run({option, "/no/such.pem"});
      CHECK(finished.exit == Exited(78));
      CHECK_THAT(finished.err, Catch::Contains("/no/such.pem: cannot be read"));
    }
    CHECK(run({"--tls-key", key}).exit == Exited(64));
  }
  SECTION("files with something else, and a key of another certificate") {
    const std::string server = TestServers();
    CHECK_THAT(run({"--tls-ca", key}).err, Catch::Contains(key + ": has no certificate in PEM"));
    CHECK_THAT(run({"--tls-cert", cert, "--tls-key", certificates("server.key")}).err,
               Catch::Contains("is not the key of " + cert));
  }
}

TEST_CASE("without zklock-transport the options of TLS name the package that has it") {
  const TemporaryDirectory directory;
  const std::string alone = directory.Path("zklock");
  REQUIRE(Run({.argv = {"cp", Binary(), alone}}).exit == Exited(0));
  ChildOptions options = Zklock({"try", "--tls", "/t/x", "--", "true"});
  options.argv.front() = alone;
  const Finished finished = Run(std::move(options));
  CHECK(finished.exit == Exited(78));
  CHECK(Lines(finished.err).size() == 1);
  CHECK_THAT(finished.err, Catch::Contains("zklock-transport"));
  CHECK_THAT(Run({.argv = {alone, "--version"}}).out,
             Catch::Contains("transports: proxy command\n"));
  CHECK_THAT(Run({.argv = {Binary(), "--version"}}).out, Catch::Contains("TLS"));
}

}  // namespace zklock::test
