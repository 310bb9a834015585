// SASL through zklock-transport: DIGEST-MD5 and GSSAPI with real servers and a real KDC.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <utility>

#include "cli/mark.h"
#include "cli/servers/secure_servers.h"
#include "cli/zklock.h"
#include "support/hostile_server.h"
#include "support/kept_port.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/process.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

/// Runs zklock, which must be refused, and returns its only line.
std::string RefusalOf(ChildOptions options) {
  const Mark mark;
  const Finished finished = Run(mark.On(std::move(options)), Exited(77));
  CHECK(Lines(finished.err).size() == 1);
  mark.WaitForEnd();
  return finished.err;
}

/// A realm with the principals alice and zookeeper/localhost, each with a keytab.
class Kdc {
 public:
  Kdc() {
    ChildOptions options;
    options.argv = {"sh", "-ec", R"sh(
      cat >krb5.conf <<END
[libdefaults]
  default_realm = TEST
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
[realms]
  TEST = {
    kdc = 127.0.0.1:$1
  }
END
      cat >kdc.conf <<END
[realms]
  TEST = {
    kdc_listen = 127.0.0.1:$1
    kdc_tcp_listen = 127.0.0.1:$1
    database_name = $PWD/principal
    key_stash_file = $PWD/stash
    acl_file = $PWD/acl
  }
END
      kdb5_util create -s -r TEST -P master
      for name in alice zookeeper/localhost; do
        kadmin.local -r TEST addprinc -randkey $name
        kadmin.local -r TEST ktadd -k ${name%%/*}.keytab $name
      done
      cat >jaas.conf <<END
Server {
  com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true
  useTicketCache=false keyTab="$PWD/zookeeper.keytab" principal="zookeeper/localhost";
};
END
)sh",
                    "sh", port_.number()};
    options.directory = directory_.path();
    options.also_environment = Variables();
    const Finished made = Run(std::move(options));
    CAPTURE(made.out, made.err);
    REQUIRE(made.exit == Exited(0));
    ChildOptions daemon;
    daemon.argv = {"krb5kdc", "-n", "-r", "TEST", "-P", directory_.Path("pid")};
    daemon.also_environment = Variables();
    kdc_.emplace(Child::Start(std::move(daemon)));
    WaitUntil([&] { return access(directory_.Path("pid").c_str(), F_OK) == 0; });
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return directory_.Path(name); }
  [[nodiscard]] Words Variables() const {
    return {"KRB5_CONFIG=" + directory_.Path("krb5.conf"),
            "KRB5_KDC_PROFILE=" + directory_.Path("kdc.conf"),
            "KRB5CCNAME=FILE:" + directory_.Path("cache"), "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  }
  [[nodiscard]] ChildOptions Use(ChildOptions options) const {
    for (const std::string& variable : Variables()) options.also_environment.push_back(variable);
    return options;
  }

 private:
  TemporaryDirectory directory_;
  KeptPort port_;
  std::optional<Child> kdc_;
};

}  // namespace

TEST_CASE("zklock authenticates by DIGEST-MD5, and what it creates belongs to the SASL user") {
  const SaslUsers users;
  const OwnServer server(kSaslSettings, 1, users.Options());
  const OwnServer strict(kSaslRequired, 1, users.Options());

  const Mark mark;
  Child holder = Child::Start(
      mark.On(AsAlice(HolderOptions({"exclusive", "-z", server.address()}, "/t/held"))));
  REQUIRE(holder.ReadLine() == "held");
  CHECK(Tree("", server.address()).GetAcl("/t/held") == Words{"sasl:alice 31", "world:anyone 1"});
  // No argument and no variable contains the password.
  Run({.argv = {"sh", "-c",
                "! tr '\\0' '\\n' </proc/$1/environ | grep tulip && "
                "! tr '\\0' '\\n' </proc/$1/cmdline | grep tulip",
                "sh", std::to_string(mark.One("zklock-transpor"))}},
      Exited(0));
  // After KILL the guard authenticates too, and closes the session.
  Child next =
      Child::Start(AsAlice({"exclusive", "-z", server.address(), "/t/held", "--", "true"}));
  holder.Signal(SIGKILL);
  CHECK(next.Wait(std::chrono::seconds(20)) == Exited(0));
  mark.WaitForEnd();

  Run(AsAlice({"try", "-z", strict.address(), "/t/x", "--", "true"}), Exited(0));
  CHECK_THAT(RefusalOf(AsAlice({"try", "-z", strict.address(), "/t/x", "--", "true"}, "rose")),
             Catch::Contains("SASL failed at " + strict.address() + " (the server rejects") &&
                 Catch::Contains("-Dzookeeper.fips-mode=false, or use gssapi or TLS"));
  CHECK_THAT(RefusalOf(AsAlice({"inspect", "-z", strict.address(), "/t/x"}, "rose")),
             Catch::Contains("SASLAUTH"));
}

TEST_CASE("a server that refuses SASL at the close does not keep zklock from the others") {
  const SaslUsers users;
  const OwnServer server(kSaslSettings, 1, users.Options());
  Proxy one(server.address());
  Proxy two(server.address());
  // Grants the session, and answers the first SASL request without a token.
  const HostileServer without_sasl([](int socket, int) {
    using Server = HostileServer;
    if (!Server::Receive(socket)) return;
    Server::Send(socket, Server::Grant());
    if (!Server::Receive(socket)) return;
    Server::Send(socket, Server::Frame(Server::Number(0x7a6b7361) + std::string(12, '\0') +
                                       Server::Number(-1)));
    Server::Receive(socket);
  });
  ChildOptions options = AsAlice({"exclusive", "-z", one.address() + "," + two.address(), "/t/held",
                                  "--", "sh", "-c", "echo $$; read x"});
  options.keep_stdin = true;
  Child holder = Child::Start(std::move(options));
  const pid_t command = std::stoi(holder.ReadLine());
  Proxy& used = one.connections() > 0 ? one : two;
  Proxy& other = one.connections() > 0 ? two : one;
  other.Redirect(without_sasl.address());
  used.Freeze();
  holder.CloseInput();
  WaitUntilGone(command);
  used.Cut();  // the connection breaks during the close, and before the server has seen it
  used.Thaw();
  CHECK(holder.Wait() == Exited(1));
  CHECK(other.connections() > 0);
  // If zklock had no time for the close, its guard closes the session.
  Tree("", server.address()).WaitForChildren("/t/held", 0, std::chrono::seconds(15));
}

TEST_CASE("zklock refuses a server without SASL, and does not wait for one that stalls") {
  CHECK_THAT(RefusalOf(AsAlice({"try", NewLock("sasl"), "--", "true"})),
             Catch::Contains("no SASL") && Catch::Contains("-Dzookeeper.fips-mode=false"));
  const Peer silent(Peer::Manner::kSaysNothing);
  const Peer web(Peer::Manner::kSpeaksHttp);
  // The runs are parallel, because each lasts until its --connect-timeout.
  const auto inspect = [](const Peer& peer) {
    return Child::Start(
        AsAlice({"inspect", "-z", peer.address(), "--connect-timeout", "5s", "/t/x"}));
  };
  Child stalled = inspect(silent);
  Child answered = inspect(web);
  CHECK(stalled.Wait() == Exited(69));
  CHECK_THAT(stalled.err(), Catch::Contains("does not complete SASL"));
  CHECK(answered.Wait() == Exited(69));
  CHECK_THAT(answered.err(), Catch::Contains("not as a ZooKeeper server"));
}

TEST_CASE("zklock authenticates by Kerberos only with a ticket or a keytab") {
  const Kdc kdc;
  const OwnServer server(kSaslRequired, 1,
                         {"--java", "-Djava.security.auth.login.config=" + kdc.Path("jaas.conf"),
                          "--java", "-Djava.security.krb5.conf=" + kdc.Path("krb5.conf")});
  const std::string port = server.address().substr(server.address().rfind(':'));
  const auto run = [&](const Words& more = {}) {
    Words words = Words{"try", "--sasl", "gssapi", "-z", "localhost" + port} + more +
                  Words{"/t/x", "--", "echo", "locked"};
    return kdc.Use(Zklock(words));
  };
  const auto kinit = [&](const Words& options) {
    Words words = Words{"kinit", "-k", "-t", kdc.Path("alice.keytab")} + options;
    words.emplace_back("alice");
    const Finished finished = Run(kdc.Use({.argv = words}));
    CAPTURE(finished.err);
    REQUIRE(finished.exit == Exited(0));
  };
  CHECK_THAT(RefusalOf(run()), Catch::Contains("GSSAPI: No Kerberos credentials available") &&
                                   Catch::Contains("; run kinit"));

  const Finished locked = Run(With(run(), {"KRB5_CLIENT_KTNAME=" + kdc.Path("alice.keytab"),
                                           "KRB5CCNAME=FILE:" + kdc.Path("other-cache")}),
                              Exited(0));
  CHECK(locked.out == "locked\n");

  kinit({});
  Run(run(), Exited(0));
  CHECK_THAT(RefusalOf(run({"--sasl-service", "other"})),
             Catch::Contains("not found") && Catch::Contains("; see --sasl-service"));
  kinit({"-l", "1s"});
  sleep(2);
  CHECK_THAT(RefusalOf(run()), Catch::Contains("expired; run kinit"));
}

}  // namespace zklock::test
