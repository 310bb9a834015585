#include "cli/reports/report_reasons.h"

#include <catch2/catch.hpp>

namespace zklock::cli {

TEST_CASE("A reason that applies to several servers is given once") {
  CHECK(TriedText({{"a:1", "refused"}}) == "a:1 (refused)");
  CHECK(TriedText({{"a:1", "refused"}, {"b:1", "silent"}}) == "a:1 (refused), b:1 (silent)");
  CHECK(TriedText({{"a:1", "refused"}, {"b:1", "silent"}, {"c:1", "refused"}}) ==
        "a:1, c:1 (each: refused), b:1 (silent)");
}

TEST_CASE("A caller is named without the secret part of the credentials") {
  zookeeper::Access access;
  process::TransportSpec transport;
  CHECK(IdentityText(access, transport) == "a caller without credentials");
  access.credentials = {{"digest", "alice:tulip"}, {"digest-us-rose", "4711", "auth:2"}};
  transport.sasl_secret = "bob:rose";
  transport.tls_cert = "/etc/zklock.pem";
  CHECK(IdentityText(access, transport) ==
        "digest:alice, the credentials in auth:2, sasl:bob, the client certificate");
}

}  // namespace zklock::cli
