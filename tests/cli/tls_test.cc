// TLS through stunnel, configured as in README, to a real server's secure port.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/zklock.h"
#include "support/kept_port.h"
#include "support/own_server.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

void Replace(std::string& text, const std::string& old, const std::string& replacement) {
  CAPTURE(old);
  REQUIRE(text.find(old) != std::string::npos);
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos;) {
    text.replace(at, old.size(), replacement);
    at += replacement.size();
  }
}

/// The fenced block after `<!-- stunnel: NAME -->` in README.
std::string Block(const std::string& name) {
  const char* source = getenv("ZKLOCK_SOURCE_DIR");
  REQUIRE(source != nullptr);
  std::ifstream file(std::string(source) + "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::string mark = "<!-- stunnel: " + name + " -->\n```";
  const std::size_t found = readme.find(mark);
  REQUIRE(found != std::string::npos);
  const std::size_t begin = readme.find('\n', found + mark.size()) + 1;
  return readme.substr(begin, readme.find("```", begin) - begin);
}

/// Writes to `directory`: ca.pem, other-ca.pem, and server.pem and host.pem, each a key and a
/// certificate signed by ca.pem.
void MakeCertificates(const TemporaryDirectory& directory) {
  ChildOptions options;
  options.argv = {"sh", "-ec", R"(
    key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
    for ca in ca other-ca; do
      openssl req -x509 $key -keyout $ca.key -out $ca.pem -subj "/CN=$ca" -days 2
    done
    for name in server host; do
      openssl req $key -keyout $name.key -out $name.csr -subj "/CN=$name"
      echo 'subjectAltName=DNS:zk1,DNS:zk2' >extensions
      openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
        -extfile extensions -out $name.crt
      cat $name.key $name.crt >$name.pem
      chmod 600 $name.pem
    done)"};
  options.directory = directory.path();
  const Finished made = Run(std::move(options));
  CAPTURE(made.err);
  REQUIRE(made.exit == Exited(0));
}

TEST_CASE(
    "README's stunnel connects zklock to the servers' secure ports, and to no other server's") {
  const TemporaryDirectory directory;
  MakeCertificates(directory);
  const KeptPort secure;
  const OwnServer server({"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                          "secureClientPort=" + secure.number(),
                          "secureClientPortAddress=127.0.0.1",
                          "ssl.keyStore.location=" + directory.Path("server.pem"),
                          "ssl.trustStore.location=" + directory.Path("ca.pem")});
  std::string ca = "ca.pem";
  bool works = true;
  SECTION("the right authority") {}
  SECTION("another authority") {
    ca = "other-ca.pem";
    works = false;
  }

  const KeptPort first;
  const KeptPort second;
  std::string configuration = Block("client");
  Replace(configuration, "127.0.0.1:2181", first.address());
  Replace(configuration, "127.0.0.1:2182", second.address());
  Replace(configuration, "connect = zk1:2281", "connect = " + secure.address());
  Replace(configuration, "connect = zk2:2281", "connect = " + secure.address());
  Replace(configuration, "/etc/stunnel/zookeeper-ca.pem", directory.Path(ca));
  Replace(configuration, "/etc/stunnel/host.pem", directory.Path("host.pem"));
  const std::string file =
      directory.Write("stunnel.conf", "foreground = yes\npid =\n" + configuration);
  Child stunnel = Child::Start({.argv = {"stunnel", file}});
  stunnel.ReadErrUntil("Configuration successful");

  std::string script = Block("use");
  Replace(script, "127.0.0.1:2181", first.address());
  Replace(script, "127.0.0.1:2182", second.address());
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c",
                  script + Binary() + " try --connect-timeout " + (works ? "30s" : "1s") +
                      " /x -- echo locked"};
  const Finished finished = Run(std::move(options));
  CAPTURE(finished.err, stunnel.err());
  CHECK(finished.exit == Exited(works ? 0 : 69));
  CHECK(finished.out == (works ? "locked\n" : ""));
  // Without stunnel zklock cannot talk to the secure port.
  const Finished plain =
      RunZklock({"try", "-z", secure.address(), "--connect-timeout", "1s", "/x", "--", "true"});
  CHECK(plain.exit == Exited(69));
}

}  // namespace
}  // namespace zklock::test
