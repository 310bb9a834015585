// TLS through zklock-transport: real servers (Netty) that do and do not require a client
// certificate, and servers whose TLS is wrong in some way.

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "cli/mark.h"
#include "cli/servers/secure_servers.h"
#include "cli/servers/unreached.h"
#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// A zklock that connects to an `openssl s_server` with the certificate of this name.
struct Trial {
  Trial(const Certificates& certificates, const std::string& name, const Words& options)
      : server(certificates, name), zklock(server.address(), options) {}
  std::string Reason() { return zklock.Reason(); }

  OpenSslServer server;
  Unreached zklock;
};

}  // namespace

TEST_CASE("zklock speaks TLS to a server's secure port, with and without a client certificate") {
  const Certificates certificates;
  const TlsServer open(certificates, "none");
  const TlsServer mutual(certificates, "need");
  const Words ca = certificates.Ca();
  const Words own = certificates.Client("host");

  // The key may be in the certificate's file or in a file of its own.
  const Words apart =
      ca + Words{"--tls-cert", certificates("host.crt"), "--tls-key", certificates("host.key")};
  for (const auto& [server, options] :
       std::vector<std::pair<std::string, Words>>{{open.named(), ca},
                                                  {open.address(), ca},
                                                  {mutual.named(), own},
                                                  {mutual.named(), apart}}) {
    const Mark mark;
    CAPTURE(server);
    const Finished finished = Run(
        mark.On(Zklock(Words{"try", "-z", server} + options + Words{"/x", "--", "echo", "locked"})),
        Exited(0));
    CHECK(finished.out == "locked\n");
    mark.WaitForEnd();
  }
  Unreached anonymous(mutual.named(), ca);
  Unreached stranger(mutual.named(), certificates.Client("stranger"));
  // TLS to the port without TLS, and vice versa.
  Unreached tls(open.plain(), ca);
  Run(Zklock({"try", "-z", open.address(), "--connect-timeout", "1s", "/x", "--", "true"}),
      Exited(69));
  CHECK_THAT(anonymous.Reason(), Catch::Contains("requires a client certificate"));
  CHECK_THAT(stranger.Reason(), Catch::StartsWith("rejects the client certificate"));
  CHECK_THAT(tls.Reason(), Catch::Contains("a port without TLS"));
}

TEST_CASE("zklock-transport can get no privileges, execute no program and leave no core") {
  const Certificates certificates;
  const TlsServer server(certificates, "none");
  const Mark mark;
  Child holder = Child::Start(mark.On(
      HolderOptions(Words{"exclusive", "-z", server.named()} + certificates.Ca(), "/limited")));
  REQUIRE(holder.ReadLine() == "held");
  const std::string process = "/proc/" + std::to_string(mark.One("zklock-transpor"));
  const std::string status = ReadFile(process + "/status").value_or("");
  CHECK_THAT(status, Catch::Contains("NoNewPrivs:\t1\n") && Catch::Contains("Seccomp:\t2\n"));
  std::istringstream limits(ReadFile(process + "/limits").value_or(""));
  for (std::string line; std::getline(limits, line);) {
    if (line.starts_with("Max core file size")) CHECK_THAT(line, Catch::Contains(" 0  "));
  }
  CHECK(Finish(holder) == Exited(0));
}

TEST_CASE("inspect, waiters and the guard of a killed zklock use TLS") {
  const Certificates certificates;
  const TlsServer server(certificates, "none");
  const Mark mark;
  const auto at = [&](const std::string& subcommand, const Words& more = {}) {
    return Words{subcommand, "-z", server.named()} + certificates.Ca() + more;
  };
  Child holder = Child::Start(mark.On(HolderOptions(at("exclusive"), "/killed")));
  REQUIRE(holder.ReadLine() == "held");
  Child next = Child::Start(mark.On(HolderOptions(at("exclusive", {"--verbose"}), "/killed")));
  next.ReadErrUntil("waiting for /killed");
  CHECK_THAT(Run(Zklock(at("inspect", {"/killed"}))).out, Catch::Contains("held"));
  const auto killed = std::chrono::steady_clock::now();
  holder.Signal(SIGKILL);
  CHECK(next.ReadLine() == "held");
  // This is well before the session timeout of 30 s, which would otherwise end the session.
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(20));
  // When the helper dies, the command continues.
  kill(mark.One("zklock-transpor"), SIGKILL);
  next.ReadErrUntil("confirmed");
  CHECK(Finish(next) == Exited(0));
  mark.WaitForEnd();
}

TEST_CASE("each fault in a server's TLS is reported with its own reason") {
  const Certificates certificates;
  const Words ca = certificates.Ca();
  Trial expired(certificates, "expired", ca);
  Trial stranger(certificates, "stranger", ca);
  Trial by_system(certificates, "server", {"--tls"});
  Trial self(certificates, "self", ca);
  CHECK_THAT(expired.Reason(), Catch::StartsWith("its certificate expired on 20"));
  CHECK(stranger.Reason() ==
        "its certificate is from an unknown authority, other-ca; see --tls-ca");
  CHECK_THAT(by_system.Reason(),
             Catch::StartsWith("its certificate is from an unknown authority, ca;"));
  CHECK(self.Reason() == "its certificate (self) is self-signed; see --tls-ca");

  Trial named(certificates, "named", ca);
  // Without the name check, the handshake succeeds, but no session follows.
  Trial unchecked(certificates, "named", ca + Words{"--tls-verify", "ca"});
  const OpenSslServer old_server({"-cert", certificates("server.crt"), "-key",
                                  certificates("server.key"), "-tls1_1", "-cipher",
                                  "DEFAULT:@SECLEVEL=0"});
  Unreached old(old_server.address(), ca);
  const Peer web_server(Peer::Manner::kSpeaksHttp);
  Unreached web(web_server.address(), ca);
  CHECK_THAT(named.Reason(),
             Catch::StartsWith("its certificate is for zk1, zk2, not for 127.0.0.1;"));
  CHECK_THAT(unchecked.Reason(), Catch::Contains("is the server hung?"));
  CHECK(old.Reason() == "speaks no TLS of version 1.2 or newer: see its ssl.enabledProtocols");
  CHECK_THAT(web.Reason(), Catch::Contains("does not answer in TLS"));

  const Peer closing_server(Peer::Manner::kClosesAtOnce);
  const Peer silent_server(Peer::Manner::kSaysNothing);
  const ClosedPort closed_port;
  const BlackHole black_hole;
  Unreached closing(closing_server.address(), ca);
  Unreached silent(silent_server.address(), ca);
  Unreached closed(closed_port.address(), ca);
  Unreached dropping(black_hole.address(), ca);
  CHECK_THAT(closing.Reason(), Catch::Contains("closes the connection in the TLS handshake"));
  CHECK(silent.Reason() ==
        "accepts the connection, but does not answer in TLS: a port without TLS, or is it hung?");
  CHECK(closed.Reason() == "Connection refused");
  CHECK_THAT(dropping.Reason(), Catch::Contains("does not answer connection attempts"));
}

TEST_CASE("a certificate that has the server's IP address only as a DNS name is rejected") {
  const Certificates certificates;
  Trial in_san(certificates, "wrong-san", certificates.Ca());
  CHECK(in_san.Reason() ==
        "its certificate has 127.0.0.1 as a DNS name, not as an IP address: issue it for "
        "IP:127.0.0.1");
}

TEST_CASE("a server's name may end in a dot, which its certificate does not have") {
  const Certificates certificates;
  const TlsServer server(certificates, "none");
  const std::string port = server.address().substr(server.address().rfind(':'));
  // The name is not looked up: not every resolver knows it with the trailing dot.
  const Words options =
      certificates.Ca() + Words{"--proxy-command", "socat - TCP:127.0.0.1:%p", "/x"};
  Run(Zklock(Words{"try", "-z", "localhost." + port} + options + Words{"--", "true"}), Exited(0));
}

TEST_CASE("the mode of a key is checked again for each connection") {
  const Certificates certificates;
  const OpenSslServer server(certificates, "server");
  const std::string key = certificates("host.key");
  REQUIRE(chmod(key.c_str(), 0640) == 0);
  const std::string program = Binary().substr(0, Binary().rfind('/')) + "/zklock-transport";
  CHECK_THAT(Run({.argv = {program, server.address(), server.address(), "--tls", "--tls-ca",
                           certificates("ca.pem"), "--tls-cert", certificates("host.crt"),
                           "--tls-key", key}},
                 Exited(1))
                 .err,
             Catch::Contains(key + ": other users can access it"));
}

TEST_CASE("a server whose name cannot be checked is not used") {
  const Certificates certificates;
  const OpenSslServer server(certificates, "server");
  const std::string port = server.address().substr(server.address().rfind(':'));
  // zklock does not look this name up, and it is too long for SNI.
  const std::string name(256, 'x');
  CHECK_THAT(Unreached(name + port,
                       certificates.Ca() + Words{"--proxy-command", "socat - TCP:127.0.0.1:%p"})
                 .Reason(),
             Catch::Contains("is not a name that a certificate can have"));
  // zklock-transport also refuses what zklock refuses in --servers.
  const std::string program = Binary().substr(0, Binary().rfind('/')) + "/zklock-transport";
  for (const std::string bad : {"", "[::g]"}) {
    CAPTURE(bad);
    const Finished finished = Run({.argv = {program, server.address(), bad + port, "--tls",
                                            "--tls-ca", certificates("ca.pem")}},
                                  Exited(1));
    CHECK_THAT(finished.err, Catch::Contains("is not a name that a certificate can have"));
  }
}

TEST_CASE("a certificate's names cannot add a line to a reason") {
  const Certificates certificates;
  const TemporaryDirectory directory;
  ChildOptions options;
  options.argv = {"openssl",
                  "req",
                  "-x509",
                  "-newkey",
                  "ec",
                  "-pkeyopt",
                  "ec_paramgen_curve:P-256",
                  "-nodes",
                  "-keyout",
                  "liar.key",
                  "-out",
                  "liar.crt",
                  "-subj",
                  "/CN=liar\n!rejected",
                  "-days",
                  "2"};
  options.argv[13] = "/CN=liar\n!rejected";
  options.directory = directory.path();
  REQUIRE(Run(std::move(options)).exit == Exited(0));
  const OpenSslServer server(
      {"-cert", directory.Path("liar.crt"), "-key", directory.Path("liar.key")});
  CHECK_THAT(Unreached(server.address(), certificates.Ca()).Reason(),
             Catch::StartsWith("its certificate (liar?!rejected) is self-signed"));
}

TEST_CASE("TLS files that cannot be used are named") {
  const Certificates certificates;
  const auto run = [&](const Words& options) {
    return Run(
        Zklock(Words{"try", "--connect-timeout", "1s"} + options + Words{"/t/x", "--", "true"}));
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
  SECTION("missing files") {
    for (const char* option : {"--tls-ca", "--tls-cert"}) {
      const Finished finished = run({option, "/no/such.pem"});
      CHECK(finished.exit == Exited(78));
      CHECK_THAT(finished.err, Catch::Contains("/no/such.pem: cannot be read"));
    }
    CHECK(run({"--tls-key", key}).exit == Exited(64));
  }
  SECTION("a certificate without its key") {
    const Finished finished = run({"--tls-cert", cert});
    CHECK(finished.exit == Exited(78));
    CHECK_THAT(finished.err, Catch::Contains("host.crt: contains no private key; name the file"));
  }
  SECTION("files with other contents, and the key of another certificate") {
    // This is detected before any connection.
    const ClosedPort closed;
    const auto attempt = [&](const Words& options) { return Unreached(closed.address(), options); };
    const std::string locked = certificates("locked.key");
    REQUIRE(Run({.argv = {"openssl", "ec", "-in", key, "-aes128", "-passout", "pass:x", "-out",
                          locked}})
                .exit == Exited(0));
    REQUIRE(chmod(locked.c_str(), 0600) == 0);
    Unreached no_ca = attempt({"--tls-ca", key});
    Unreached no_cert = attempt({"--tls-cert", certificates("ca.key"), "--tls-key", key});
    Unreached other_key = attempt({"--tls-cert", cert, "--tls-key", certificates("server.key")});
    Unreached locked_key = attempt({"--tls-cert", cert, "--tls-key", locked});
    CHECK_THAT(no_ca.Reason(), Catch::StartsWith(key + ": has no certificate in PEM"));
    CHECK_THAT(no_cert.Reason(),
               Catch::StartsWith(certificates("ca.key") + ": has no certificate in PEM"));
    CHECK_THAT(other_key.Reason(), Catch::Contains("is not the key of " + cert));
    CHECK_THAT(locked_key.Reason(), Catch::Contains("has no key in PEM without a passphrase"));
  }
}

TEST_CASE("zklock itself needs neither OpenSSL nor Cyrus SASL") {
  const Finished libraries = Run({.argv = {"ldd", Binary()}});
  CHECK_THAT(libraries.out, Catch::Contains("libc.so"));
  for (const char* name : {"libssl", "libcrypto", "libsasl"}) {
    CHECK_THAT(libraries.out, !Catch::Contains(name));
  }
}

TEST_CASE("without zklock-transport the TLS options name the package that contains it") {
  const TemporaryDirectory directory;
  const std::string alone = directory.Path("zklock");
  REQUIRE(Run({.argv = {"cp", Binary(), alone}}).exit == Exited(0));
  ChildOptions options = Zklock({"try", "--tls", "/t/x", "--", "true"});
  options.argv.front() = alone;
  const Finished finished = Run(std::move(options), Exited(78));
  CHECK(Lines(finished.err).size() == 1);
  CHECK_THAT(finished.err, Catch::Contains("zklock-transport"));
  CHECK_THAT(Run({.argv = {alone, "--version"}}).out,
             Catch::EndsWith("transports: proxy command\n"));
  CHECK_THAT(Run({.argv = {Binary(), "--version"}}).out,
             Catch::EndsWith("transports: proxy command, TLS, SASL\n"));

  // If the system cannot execute zklock-transport, that is reported like any other reason.
  REQUIRE(chmod(directory.Write("zklock-transport", "not a program").c_str(), 0755) == 0);
  ChildOptions broken = Zklock({"inspect", "--tls", "--connect-timeout", "2s", "/t/x"});
  broken.argv.front() = alone;
  CHECK_THAT(Run(std::move(broken), Exited(69)).err,
             Catch::Contains("zklock-transport cannot be executed"));
}

}  // namespace zklock::test
