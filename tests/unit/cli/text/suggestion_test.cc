#include "cli/text/suggestion.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

namespace zklock::cli {
namespace {

const std::vector<std::string> kOptions = {
    "-c", "--wait", "--write", "--permits", "--read", "--root", "--conflict-exit-code"};

TEST_CASE("A misspelling suggests the nearest word") {
  CHECK(Nearest("--wiat", kOptions) == "--wait");
  CHECK(Nearest("--wat", kOptions) == "--wait");
  CHECK(Nearest("--waits", kOptions) == "--wait");
  CHECK(Nearest("-wait", kOptions) == "--wait");
  CHECK(Nearest("--premits", kOptions) == "--permits");
  CHECK(Nearest("--conflict-exitcode", kOptions) == "--conflict-exit-code");
  CHECK(Nearest("exlusive", {"exclusive", "inspect"}) == "exclusive");
}

TEST_CASE("A beginning suggests the whole word") {
  CHECK(Nearest("--conflict", kOptions) == "--conflict-exit-code");
  CHECK(Nearest("--perm", kOptions) == "--permits");
}

TEST_CASE("A word that is too different suggests nothing") {
  CHECK(Nearest("--frob", kOptions) == std::nullopt);
  CHECK(Nearest("--fast", kOptions) == std::nullopt);
  CHECK(Nearest("--timeout", kOptions) == std::nullopt);
  CHECK(Nearest("lock", {"exclusive", "read", "write", "try", "inspect", "release"}) ==
        std::nullopt);
}

TEST_CASE("A single letter and a very long word suggest nothing") {
  CHECK(Nearest("-x", kOptions) == std::nullopt);
  CHECK(Nearest("", kOptions) == std::nullopt);
  CHECK(Nearest("--", kOptions) == std::nullopt);
  CHECK(Nearest("--" + std::string(1000, 'w'), kOptions) == std::nullopt);
}

TEST_CASE("A word of another program suggests zklock's equivalent") {
  CHECK(KnownElsewhere("-s", "exclusive") == "; did you mean 'zklock read'?");
  CHECK(KnownElsewhere("-s", "") == "; did you mean 'zklock read'?");
  CHECK(KnownElsewhere("-x", "exclusive") == "; exclusive does that by default");
  CHECK(KnownElsewhere("-u", "try") == "; did you mean 'zklock release'?");
  CHECK(KnownElsewhere("-n", "try") == "; try does that by default");
  CHECK(KnownElsewhere("list", "") == "; did you mean 'inspect'?");
  CHECK(KnownElsewhere("lock", "") == "; did you mean 'exclusive'?");
  CHECK(KnownElsewhere("unlock", "") == "; did you mean 'release'?");
  CHECK(KnownElsewhere("-u", "release") == "; release does that by default");
  CHECK(KnownElsewhere("-s", "release").empty());
  CHECK(KnownElsewhere("--ttl", "exclusive") == "; did you mean '--session-timeout'?");
  CHECK(KnownElsewhere("--close", "try") == "; try does that by default");
  CHECK(KnownElsewhere("--close", "").empty());
  CHECK(KnownElsewhere("--close", "inspect").empty());
  CHECK(KnownElsewhere("-s", "inspect").empty());
  CHECK(KnownElsewhere("", "").empty());
  CHECK(KnownElsewhere("loc", "").empty());
}

TEST_CASE("Without a suggestion the given text is used") {
  CHECK(DidYouMean("--wiat", kOptions, "; else") == "; did you mean '--wait'?");
  CHECK(DidYouMean("--frob", kOptions, "; else") == "; else");
}

}  // namespace
}  // namespace zklock::cli
