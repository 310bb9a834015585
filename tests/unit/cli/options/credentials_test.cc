#include "cli/options/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/options/config.h"
#include "support/skip.h"
#include "support/temporary.h"

namespace zklock::cli {
namespace {

using zookeeper::AuthInfo;
using Credentials = std::vector<AuthInfo>;

std::string CredentialsErrorOf(const std::string& text) {
  try {
    static_cast<void>(ParseCredentials(text, "FILE"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

/// The outcome of reading a credentials file.
enum class Fate { kRead, kUnsafe, kBad };
Fate FateOf(const std::string& path) {
  try {
    static_cast<void>(ReadCredentialsFile(path));
    return Fate::kRead;
  } catch (const UnsafeFile&) {
    return Fate::kUnsafe;
  } catch (const ConfigError&) {
    return Fate::kBad;
  }
}

TEST_CASE("credentials are read literally, one per line") {
  CHECK(ParseCredentials("digest:alice:secret\n", "F") ==
        Credentials{{"digest", "alice:secret", "F:1"}});
  CHECK(ParseCredentials("digest:alice:secret", "F") ==
        Credentials{{"digest", "alice:secret", "F:1"}});
  CHECK(ParseCredentials("# who we are\n\ndigest:alice:a b:c# \n  \nkerberos:x\n", "F") ==
        Credentials{{"digest", "alice:a b:c# ", "F:3"}, {"kerberos", "x", "F:5"}});
  CHECK(ParseCredentials("digest:\xc3\xa9:\xff", "F") ==
        Credentials{{"digest", "\xc3\xa9:\xff", "F:1"}});
}

TEST_CASE("an error names the number of the line, and does not show the line") {
  for (const std::string line :
       {"secret", "digest", "digest:", ":secret", "di gest:alice:secret", " digest:alice:secret"}) {
    CAPTURE(line);
    CHECK(CredentialsErrorOf("digest:a:b\n" + line + "\n") ==
          "FILE:2: expected scheme:credential, such as digest:user:password");
  }
  CHECK(CredentialsErrorOf("digest:secret") == "FILE:1: expected digest:user:password");
  CHECK(CredentialsErrorOf("#\ndigest:alice:secret\r\n") ==
        "FILE:2: the line contains a control character, such as a tab or a carriage return");
  CHECK(CredentialsErrorOf(std::string("digest:a:b\0c", 12)) ==
        "FILE:1: the line contains a control character, such as a tab or a carriage return");
}

TEST_CASE("a text without credentials is refused") {
  CHECK(CredentialsErrorOf("") ==
        "FILE: no credentials found; expected one scheme:credential per line");
  CHECK(CredentialsErrorOf("# none\n\n") ==
        "FILE: no credentials found; expected one scheme:credential per line");
}

TEST_CASE("a file that other users can access is not used, whatever it contains") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.Write("auth", "digest:alice:secret\n");
  for (const mode_t mode : {0600u, 0400u}) {
    REQUIRE(chmod(file.c_str(), mode) == 0);
    CHECK(FateOf(file) == Fate::kRead);
  }
  for (const mode_t mode : {0640u, 0620u, 0610u, 0604u, 0602u, 0601u, 0644u, 0666u}) {
    CAPTURE(mode);
    REQUIRE(chmod(file.c_str(), mode) == 0);
    CHECK(FateOf(file) == Fate::kUnsafe);
  }
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  const std::string link = directory.Path("link");
  REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
  CHECK(FateOf(link) == Fate::kRead);
}

TEST_CASE("another user's file is not used") {
  if (geteuid() != 0) return test::Skip("root, to give a file away");
  const test::TemporaryDirectory directory;
  const std::string file = directory.Write("auth", "digest:alice:secret\n");
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  REQUIRE(chown(file.c_str(), 1, 0) == 0);
  CHECK(FateOf(file) == Fate::kUnsafe);
}

TEST_CASE("anything but a readable regular file is refused, without blocking") {
  const test::TemporaryDirectory directory;
  const std::string pipe = directory.Path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string large = directory.Write("large", std::string(100'000, '#'));
  REQUIRE(chmod(large.c_str(), 0600) == 0);
  for (const std::string& path : {directory.Path("not-there"), directory.path(), pipe, large,
                                  std::string("/dev/null"), std::string()}) {
    CAPTURE(path);
    CHECK(FateOf(path) == Fate::kBad);
  }
}

TEST_CASE("a secret is removed from the environment, and from the memory that /proc shows") {
  setenv("ZKLOCK_TEST_SECRET", "digest:alice:secret", 1);
  const char* where = getenv("ZKLOCK_TEST_SECRET");
  CHECK(TakeSecret("ZKLOCK_TEST_SECRET") == "digest:alice:secret");
  CHECK(getenv("ZKLOCK_TEST_SECRET") == nullptr);
  CHECK(*where == '\0');
  CHECK(TakeSecret("ZKLOCK_TEST_SECRET") == std::nullopt);
}

}  // namespace
}  // namespace zklock::cli
