#include "protocol/lock_path.h"

#include <catch2/catch.hpp>
#include <string>
#include <variant>
#include <vector>

#include "cli/options/option_values.h"

namespace zklock::protocol {
namespace {

std::string Show(const std::variant<std::string, BadPath>& result) {
  if (const auto* bad = std::get_if<BadPath>(&result)) {
    return std::string("bad: ") + cli::PathText(*bad);
  }
  return std::get<std::string>(result);
}

std::string Resolved(std::string_view lock, std::string_view root = "/zklock") {
  return Show(ResolveLock(lock, root));
}

std::string Checked(std::string_view path) { return Show(CheckAbsolutePath(path)); }

}  // namespace

TEST_CASE("An absolute LOCK is used as it is") {
  CHECK(Resolved("/jobs/backup") == "/jobs/backup");
  CHECK(Resolved("/a") == "/a");
  CHECK(Resolved("/jobs/with blank") == "/jobs/with blank");
}

TEST_CASE("A relative LOCK is below the root") {
  CHECK(Resolved("backup") == "/zklock/backup");
  CHECK(Resolved("a/b") == "/zklock/a/b");
  CHECK(Resolved("backup", "/x/y") == "/x/y/backup");
  CHECK(Resolved("backup", "/") == "/backup");
  CHECK(Resolved("zookeeper") == "/zklock/zookeeper");
}

TEST_CASE("Empty components are refused") {
  CHECK(Resolved("") == "bad: is empty");
  CHECK(Resolved("/") == "bad: is the root of all znodes");
  CHECK(Resolved("//") == "bad: contains an empty component");
  CHECK(Resolved("/a/") == "bad: ends in a slash");
  CHECK(Resolved("a/") == "bad: ends in a slash");
  CHECK(Resolved("/a//b") == "bad: contains an empty component");
  CHECK(Resolved("//a") == "bad: contains an empty component");
  CHECK(Resolved("a//b") == "bad: contains an empty component");
}

TEST_CASE("The components . and .. are refused, but dots in names are not") {
  for (const char* path : {".", "/.", "a/.", "./a", "/a/./b"}) {
    CHECK(Resolved(path) == "bad: contains '.' as a component");
  }
  for (const char* path : {"..", "/..", "a/..", "../a", "/a/../b"}) {
    CHECK(Resolved(path) == "bad: contains '..' as a component");
  }
  CHECK(Resolved("/...") == "/...");
  CHECK(Resolved("/.a/b./c..d") == "/.a/b./c..d");
}

TEST_CASE("ZooKeeper's own znodes are refused, but similar names are not") {
  CHECK(Resolved("/zookeeper") == "bad: is reserved for ZooKeeper");
  CHECK(Resolved("/zookeeper/quota") == "bad: is reserved for ZooKeeper");
  CHECK(Resolved("zookeeper", "/") == "bad: is reserved for ZooKeeper");
  CHECK(Resolved("/zookeeperx") == "/zookeeperx");
  CHECK(Resolved("/zookeepe") == "/zookeepe");
  CHECK(Resolved("/a/zookeeper") == "/a/zookeeper");
}

TEST_CASE("Control characters are refused") {
  for (const std::string& bad :
       std::vector<std::string>{std::string("/a\0b", 4), "/\x01", "/a\n", "a\t", "/\x1f", "/\x7f",
                                "/\xc2\x80", "/a\xc2\x9f"}) {
    CHECK(Resolved(bad) == "bad: contains a control character");
  }
  CHECK(Resolved("/ ~") == "/ ~");
  CHECK(Resolved("/\xc2\xa0") == "/\xc2\xa0");
}

TEST_CASE("Invalid UTF-8 is refused") {
  const std::vector<std::string> bad{
      "/\x80",              // a lone continuation byte
      "/\xff",              // never a byte of UTF-8
      "/\xc3",              // cut off
      "/\xe2\x82",          // cut off
      "/\xf0\x9f\x98",      // cut off
      "/\xc3/",             // a missing continuation byte
      "/\xc0\xaf",          // an overlong slash
      "/\xe0\x80\xaf",      // an overlong slash
      "/\xf0\x80\x80\xaf",  // an overlong slash
      "/\xc1\xbf",          // an overlong DEL
      "/\xed\xa0\x80",      // a surrogate
      "/\xed\xbf\xbf",      // a surrogate
      "/\xf4\x90\x80\x80",  // above U+10FFFF
      "/\xf8\x88\x80\x80\x80",
  };
  for (const std::string& path : bad) {
    CAPTURE(path);
    CHECK(Resolved(path) == "bad: is not valid UTF-8");
  }
}

TEST_CASE("Letters of any language are accepted, but code points that the servers refuse are not") {
  CHECK(Resolved("/\xc3\xa9t\xc3\xa9") == "/\xc3\xa9t\xc3\xa9");
  CHECK(Resolved("/\xe6\x97\xa5\xe6\x9c\xac") == "/\xe6\x97\xa5\xe6\x9c\xac");
  CHECK(Resolved("/\xed\x9f\xbf") == "/\xed\x9f\xbf");  // U+D7FF
  CHECK(Resolved("/\xef\xa4\x80") == "/\xef\xa4\x80");  // U+F900
  CHECK(Resolved("/\xef\xbf\xaf") == "/\xef\xbf\xaf");  // U+FFEF
  const std::vector<std::string> refused{
      "/\xee\x80\x80",      // U+E000
      "/\xef\xa3\xbf",      // U+F8FF
      "/\xef\xbf\xb0",      // U+FFF0
      "/\xef\xbf\xbf",      // U+FFFF
      "/\xf0\x90\x80\x80",  // U+10000: a pair of surrogates in UTF-16
      "/\xf0\x9f\x98\x80",  // U+1F600
      "/\xf4\x8f\xbf\xbf",  // U+10FFFF
  };
  for (const std::string& path : refused) {
    CAPTURE(path);
    CHECK(Resolved(path) == "bad: contains a character that ZooKeeper refuses in paths");
  }
}

TEST_CASE("A root or a chroot begins with a slash") {
  CHECK(Checked("/zklock") == "/zklock");
  CHECK(Checked("/a/b") == "/a/b");
  CHECK(Checked("") == "bad: is empty");
  CHECK(Checked("zklock") == "bad: does not begin with a slash");
  CHECK(Checked("/") == "bad: is the root of all znodes");
  CHECK(Checked("/a/") == "bad: ends in a slash");
  CHECK(Checked("/zookeeper/x") == "bad: is reserved for ZooKeeper");
}

TEST_CASE("A path has a parent and a last component") {
  CHECK(ParentOf("/a/b/c") == "/a/b");
  CHECK(ParentOf("/a") == "/");
  CHECK(ParentOf("/") == "/");
  CHECK(BaseOf("/a/b/c") == "c");
  CHECK(BaseOf("/a") == "a");
  CHECK(BaseOf("c") == "c");
}

TEST_CASE("A child's path has one more slash than its parent's, except under the root") {
  CHECK(ChildPath("/jobs/backup", "leases") == "/jobs/backup/leases");
  CHECK(ChildPath("/", "jobs") == "/jobs");
  CHECK(ChildPath("/jobs", "") == "/jobs/");
}

}  // namespace zklock::protocol
