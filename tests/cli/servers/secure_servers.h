#pragma once

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "cli/zklock.h"
#include "support/kept_port.h"
#include "support/own_server.h"
#include "support/temporary.h"

namespace zklock::test {

inline Words Joined(const Words& first, const Words& second) { return first + second; }

/// A directory with two CA certificates (ca.pem, other-ca.pem), and a key NAME.key, a certificate
/// NAME.crt, and both in NAME.pem for each of these names: server (for localhost and 127.0.0.1),
/// host, named (for zk1 and zk2), wrong-san (for the DNS name "127.0.0.1"), expired, self
/// (self-signed), and stranger (signed by other-ca).
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
      sign wrong-san ca 2 DNS:127.0.0.1
      sign expired ca 0 $here
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
  /// Options for zklock.
  [[nodiscard]] Words Ca() const { return {"--tls-ca", directory_.Path("ca.pem")}; }
  [[nodiscard]] Words Client(const std::string& name) const {
    return Ca() + Words{"--tls-cert", directory_.Path(name + ".pem")};
  }

 private:
  TemporaryDirectory directory_;
};

/// A server that speaks TLS on its own port, and requires a client certificate ("need") or does not
/// ("none").
class TlsServer {
 public:
  TlsServer(const Certificates& certificates, const std::string& client_auth,
            const Words& settings = {}, const Words& options = {})
      : server_(
            Words{"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                  "secureClientPort=" + secure_.number(), "secureClientPortAddress=127.0.0.1",
                  "ssl.keyStore.location=" + certificates("server.pem"),
                  "ssl.trustStore.location=" + certificates("ca.pem"),
                  "ssl.clientAuth=" + client_auth,
                  "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider"} +
                settings,
            1, options) {}
  [[nodiscard]] std::string address() const { return secure_.address(); }
  /// Returns the address by name, so that the name in the certificate is checked.
  [[nodiscard]] std::string named() const { return "localhost:" + secure_.number(); }
  /// Returns its port without TLS.
  [[nodiscard]] const std::string& plain() const { return server_.address(); }

 private:
  KeptPort secure_;
  OwnServer server_;
};

/// `openssl s_server` with these options: completes handshakes, then stays silent.
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
  OpenSslServer(const Certificates& certificates, const std::string& name)
      : OpenSslServer({"-cert", certificates(name + ".crt"), "-key", certificates(name + ".key")}) {
  }
  [[nodiscard]] std::string address() const { return port_.address(); }

 private:
  KeptPort port_;
  std::optional<Child> server_;
};

/// The configuration with which a server accepts the user alice, password tulip, by DIGEST-MD5.
class SaslUsers {
 public:
  SaslUsers()
      : file_(
            directory_.Write("jaas.conf",
                             "Server { org.apache.zookeeper.server.auth.DigestLoginModule required "
                             "user_alice=\"tulip\"; };\n")) {}
  /// Options for scripts/zookeeper.
  [[nodiscard]] Words Options() const {
    return {"--java", "-Djava.security.auth.login.config=" + file_};
  }

 private:
  TemporaryDirectory directory_;
  const std::string file_;
};

inline const Words kSaslSettings = {
    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"};
inline const Words kSaslRequired = {kSaslSettings[0], "sessionRequireClientSASLAuth=true"};

/// Returns `zklock WORDS` as alice, by DIGEST-MD5.
inline ChildOptions AsAlice(ChildOptions options, const std::string& password = "tulip") {
  options.argv.insert(options.argv.begin() + 2, {"--sasl", "digest-md5"});
  options.also_environment.push_back("ZKLOCK_AUTH=sasl:alice:" + password);
  return options;
}
inline ChildOptions AsAlice(const Words& words, const std::string& password = "tulip") {
  return AsAlice(Zklock(words), password);
}

}  // namespace zklock::test
