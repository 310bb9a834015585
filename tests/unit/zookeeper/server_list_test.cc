#include "zookeeper/server_list.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>

#include "cli/options/option_values.h"

namespace zklock::zookeeper {
namespace {

/// Returns `host|port host|port /chroot`, or the reason why the list is bad.
std::string Parsed(std::string_view text) {
  const auto result = ParseServerList(text);
  if (const auto* bad = std::get_if<BadServerList>(&result)) {
    return "bad: " + cli::ServersText(*bad);
  }
  const auto& list = std::get<ServerList>(result);
  std::string shown;
  for (const Server& server : list.servers) shown += server.host + "|" + server.port + " ";
  return shown + list.chroot;
}

}  // namespace

TEST_CASE("One server is a name or an address with a port") {
  CHECK(Parsed("zk1:2181") == "zk1|2181 ");
  CHECK(Parsed("zk-1.example_org.:2182") == "zk-1.example_org.|2182 ");
  CHECK(Parsed("10.0.0.1:2181") == "10.0.0.1|2181 ");
  CHECK(Parsed("[::1]:2181") == "::1|2181 ");
  CHECK(Parsed("[fe80::1%eth0]:2181") == "fe80::1%eth0|2181 ");
  CHECK(Parsed("[::ffff:10.0.0.1]:1") == "::ffff:10.0.0.1|1 ");
}

TEST_CASE("A missing port is 2181") {
  CHECK(Parsed("zk1") == "zk1|2181 ");
  CHECK(Parsed("[::1]") == "::1|2181 ");
  CHECK(Parsed("zk1,zk2:5") == "zk1|2181 zk2|5 ");
  CHECK(Parsed("zk1/app") == "zk1|2181 /app");
}

TEST_CASE("Several servers are separated by commas, and blanks around them are ignored") {
  CHECK(Parsed("a:1,b:2,[::1]:3") == "a|1 b|2 ::1|3 ");
  CHECK(Parsed(" a:1 ,\tb:2 ") == "a|1 b|2 ");
  CHECK(Parsed("a:1,b:2,") == "a|1 b|2 ");
  CHECK(Parsed("a:1, ") == "a|1 ");
  CHECK(Parsed("a:1,/app") == "a|1 /app");
  CHECK(Parsed("a:1 /app") == "a|1 /app");
}

TEST_CASE("A chroot follows the last server") {
  CHECK(Parsed("a:1,b:2/app") == "a|1 b|2 /app");
  CHECK(Parsed("a:1/app/sub") == "a|1 /app/sub");
  CHECK(Parsed("[::1]:1/app") == "::1|1 /app");
}

TEST_CASE("A chroot's trailing slash is dropped") {
  CHECK(Parsed("a:1/") == "a|1 ");
  CHECK(Parsed("a:1/app/") == "a|1 /app");
}

TEST_CASE("A chroot that no server accepts is refused") {
  CHECK(Parsed("a:1//") == "bad: its chroot is the root of all znodes");
  CHECK(Parsed("a:1/app//") == "bad: its chroot ends in a slash");
  CHECK(Parsed("a:1//app") == "bad: its chroot contains an empty component");
  CHECK(Parsed("a:1/../app") == "bad: its chroot contains '..' as a component");
  CHECK(Parsed("a:1/zookeeper") == "bad: its chroot is reserved for ZooKeeper");
}

TEST_CASE("A chroot after each server is refused: the others would be part of the first one's") {
  for (const char* text : {"a:1/app,b:2/app", "a/app,b", "a/app:2181", "a:1/app,"}) {
    CAPTURE(text);
    CHECK(Parsed(text) ==
          "bad: its chroot contains a comma or a colon (the chroot belongs at the end of the "
          "list, once)");
  }
}

TEST_CASE("A URL's scheme is refused by name") {
  for (const char* text : {"zk://a:1", "zk://a:1,b:2/app", "http://a"}) {
    CAPTURE(text);
    CHECK(Parsed(text) == "bad: it must not begin with a scheme such as zk://");
  }
}

TEST_CASE("A blank does not separate servers") {
  CHECK(Parsed("a:1 b:2") == "bad: server 1 contains a blank (separate servers with commas)");
  CHECK(Parsed("c,a\tb") == "bad: server 2 contains a blank (separate servers with commas)");
  CHECK(Parsed("a: 1") == "bad: server 1 contains a blank (separate servers with commas)");
}

TEST_CASE("A list without a server is refused") {
  for (const char* text : {"", "  ", ",", "/app", " /app"}) {
    CAPTURE(text);
    CHECK(Parsed(text) == "bad: it names no server");
  }
}

TEST_CASE("A server without a host is refused, and its number is given") {
  CHECK(Parsed(":2181") == "bad: server 1 has no host");
  CHECK(Parsed("a:1,,b:2") == "bad: server 2 has no host");
  CHECK(Parsed(",a:1") == "bad: server 1 has no host");
  CHECK(Parsed("a:1,,") == "bad: server 2 has no host");
}

TEST_CASE("Ports are 1 to 65535") {
  CHECK(Parsed("a:1") == "a|1 ");
  CHECK(Parsed("a:65535") == "a|65535 ");
  CHECK(Parsed("a:02181") == "a|2181 ");
  for (const char* text : {"a:", "a:0", "a:65536", "a:99999999999", "a:-1", "a:+1", "a:21x", "a:zk",
                           "[::1]:", "[::1]:0"}) {
    CAPTURE(text);
    CHECK(Parsed(text) == "bad: server 1 has no port from 1 to 65535 after the colon");
  }
}

TEST_CASE("Text that is not a host is refused without being repeated") {
  for (const char* text : {"user@a:1", "a\n:1", "a;b:1", "\xc3\xa9:1", "fe80%1:1"}) {
    CAPTURE(text);
    CHECK(Parsed(text) == "bad: server 1 contains a character that is not allowed in a host name");
  }
}

TEST_CASE("An IPv6 address needs brackets, which must contain a real address") {
  CHECK(Parsed("::1:2181") ==
        "bad: server 1 has several colons (write an IPv6 address between [ and ])");
  CHECK(Parsed("a:1:2") ==
        "bad: server 1 has several colons (write an IPv6 address between [ and ])");
  CHECK(Parsed("[::1:2181") == "bad: server 1 has a [ without a ]");
  CHECK(Parsed("[::1]2181") == "bad: server 1 has text after ]");
  for (const std::string& text :
       {std::string("[]:1"), std::string("[zk1]:1"), std::string("[::g]:1"),
        std::string("[1.2.3.4]:1"), std::string("[::1%]:1"), std::string("[::1\0x]:1", 9)}) {
    CAPTURE(text);
    CHECK(Parsed(text) == "bad: server 1 has no IPv6 address between [ and ]");
  }
}

TEST_CASE("A server is displayed as it would be typed") {
  CHECK(ToString({"zk1", "2181"}) == "zk1:2181");
  CHECK(ToString({"::1", "2181"}) == "[::1]:2181");
}

}  // namespace zklock::zookeeper
