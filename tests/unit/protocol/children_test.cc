#include "protocol/children.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "protocol/queue.h"

namespace zklock::protocol {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("Names are listed as they were added, in order") {
  const Words names = {"b", "", "a-long-one-0000000001", "b"};
  Children children(names);
  CHECK(children.size() == 4);
  CHECK(Words(children.begin(), children.end()) == names);
  CHECK(children[1].empty());
  CHECK(children[2] == names[2]);
  children.Add("c");
  CHECK(children[4] == "c");
}

TEST_CASE("A list contains whole names, not parts of them") {
  const Children children = {"ab", "cd"};
  CHECK(children.Has("ab"));
  CHECK(children.Has("cd"));
  for (const char* other : {"a", "b", "bc", "abcd", ""}) CHECK_FALSE(children.Has(other));
}

TEST_CASE("Lists are compared name by name, not as one string") {
  CHECK(Children{"ab", "c"} == Children{"ab", "c"});
  CHECK_FALSE(Children{"ab", "c"} == Children{"a", "bc"});
  CHECK_FALSE(Children{"ab", "c"} == Children{"c", "ab"});
  CHECK(Children{} == Children(Words{}));
}

TEST_CASE("Contenders refer to the list's memory") {
  const Children children = {"zzz", "n_0000000002", "x", "n_0000000001"};
  const Contenders contenders(children);
  REQUIRE(contenders.size() == 2);
  CHECK(contenders.begin()->full.data() == children[1].data());
  REQUIRE(contenders.First() != nullptr);
  CHECK(contenders.First()->full.data() == children[3].data());
  CHECK(contenders.Find("n_0000000002") == &*contenders.begin());
  CHECK(contenders.Find("zzz") == nullptr);
  CHECK(Contenders(Children{"zzz"}).First() == nullptr);
}

}  // namespace
}  // namespace zklock::protocol
