// SASL through zklock-transport: DIGEST-MD5 and GSSAPI with real servers and a real KDC.

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "cli/mark.h"
#include "cli/zklock.h"
#include "support/own_server.h"
#include "support/peer.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

const Words kSaslSettings = {
    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"};

const Words kSaslRequired = {kSaslSettings[0], "sessionRequireClientSASLAuth=true"};

/// `words` as alice, by DIGEST-MD5.
ChildOptions AsAlice(const Words& words, const std::string& password = "tulip") {
  Words all = words;
  all.insert(all.begin() + 1, {"--sasl", "digest-md5"});
  ChildOptions options = Zklock(all);
  options.also_environment.push_back("ZKLOCK_AUTH=sasl:alice:" + password);
  return options;
}

/// The only line of a run that is refused.
std::string RefusalOf(ChildOptions options) {
  const Mark mark;
  const Finished finished = Run(mark.On(std::move(options)));
  CAPTURE(finished.err);
  CHECK(finished.exit == Exited(77));
  CHECK(Lines(finished.err).size() == 1);
  CHECK(mark.Processes().empty());
  return finished.err;
}

}  // namespace

TEST_CASE("zklock authenticates by DIGEST-MD5, and what it creates belongs to the SASL user") {
  const TemporaryDirectory directory;
  const std::string jaas = directory.Write(
      "jaas.conf",
      "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_alice=\"tulip\"; "
      "};\n");
  const Words java = {"--java", "-Djava.security.auth.login.config=" + jaas};
  const OwnServer server(kSaslSettings, 1, java);
  const OwnServer strict(kSaslRequired, 1, java);

  const Mark mark;
  Child holder = Child::Start(mark.On([&] {
    ChildOptions options =
        HolderOptions({"exclusive", "--sasl", "digest-md5", "-z", server.address()}, "/t/held");
    options.also_environment.push_back("ZKLOCK_AUTH=sasl:alice:tulip");
    return options;
  }()));
  REQUIRE(holder.ReadLine() == "held");
  CHECK(Tree("", server.address()).GetAcl("/t/held") == Words{"sasl:alice 31", "world:anyone 1"});
  // No argument and no variable has the password.
  CHECK(Run({.argv = {"sh", "-c",
                      "! tr '\\0' '\\n' </proc/$1/environ | grep tulip && "
                      "! tr '\\0' '\\n' </proc/$1/cmdline | grep tulip",
                      "sh", std::to_string(mark.One("zklock-transpor"))}})
            .exit == Exited(0));
  // After KILL the guard authenticates too, and closes the session.
  Child next =
      Child::Start(AsAlice({"exclusive", "-z", server.address(), "/t/held", "--", "true"}));
  holder.Signal(SIGKILL);
  CHECK(next.Wait(std::chrono::seconds(10)) == Exited(0));
  mark.WaitForEnd();

  CHECK(Run(AsAlice({"try", "-z", strict.address(), "/t/x", "--", "true"})).exit == Exited(0));
  CHECK_THAT(RefusalOf(AsAlice({"try", "-z", strict.address(), "/t/x", "--", "true"}, "rose")),
             Catch::Contains("SASL failed at " + strict.address() + " (the server rejects"));
  CHECK_THAT(RefusalOf(AsAlice({"inspect", "-z", strict.address(), "/t/x"}, "rose")),
             Catch::Contains("SASLAUTH"));
}

TEST_CASE("a server without SASL is refused, and one that stalls is not waited for") {
  CHECK_THAT(RefusalOf(AsAlice({"try", NewLock("sasl"), "--", "true"})),
             Catch::Contains("no SASL"));
  const Peer silent(Peer::Manner::kSaysNothing);
  const Finished finished =
      Run(AsAlice({"inspect", "-z", silent.address(), "--connect-timeout", "500ms", "/t/x"}));
  CHECK(finished.exit == Exited(69));
  CHECK_THAT(finished.err, Catch::Contains("does not complete SASL"));
  const Peer web(Peer::Manner::kSpeaksHttp);
  CHECK_THAT(
      Run(AsAlice({"inspect", "-z", web.address(), "--connect-timeout", "500ms", "/t/x"})).err,
      Catch::Contains("not as a ZooKeeper server"));
}

}  // namespace zklock::test
