#include "zookeeper/result.h"

#include <zookeeper/zookeeper.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace zklock::zookeeper {
namespace {

/// Returns the enumerators of ZOO_ERRORS in the client library's header.
std::map<std::string, int> HeaderCodes() {
  const char* header = std::getenv("ZKLOCK_TEST_ZOOKEEPER_HEADER");
  REQUIRE(header != nullptr);
  std::stringstream text;
  text << std::ifstream(header).rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("enum ZOO_ERRORS {");
  REQUIRE(begin != std::string::npos);
  const std::string codes = all.substr(begin, all.find("};", begin) - begin);
  static const std::regex code("\\b(Z[A-Z]+) = (-?[0-9]+)");
  std::map<std::string, int> found;
  for (std::sregex_iterator it(codes.begin(), codes.end(), code), end; it != end; ++it) {
    found[(*it)[1]] = std::stoi((*it)[2]);
  }
  return found;
}

}  // namespace

TEST_CASE("Every result code of the client library has a meaning") {
  const std::map<std::string, Error> meanings = {
      {"ZOK", Error::kNone},
      {"ZSYSTEMERROR", Error::kConnectionLoss},
      {"ZRUNTIMEINCONSISTENCY", Error::kConnectionLoss},
      {"ZDATAINCONSISTENCY", Error::kOther},
      {"ZCONNECTIONLOSS", Error::kConnectionLoss},
      {"ZMARSHALLINGERROR", Error::kConnectionLoss},
      {"ZUNIMPLEMENTED", Error::kUnimplemented},
      {"ZOPERATIONTIMEOUT", Error::kConnectionLoss},
      {"ZBADARGUMENTS", Error::kOther},
      {"ZINVALIDSTATE", Error::kConnectionLoss},
      {"ZNEWCONFIGNOQUORUM", Error::kOther},
      {"ZRECONFIGINPROGRESS", Error::kOther},
      {"ZSSLCONNECTIONERROR", Error::kConnectionLoss},
      {"ZAPIERROR", Error::kOther},
      {"ZNONODE", Error::kNoNode},
      {"ZNOAUTH", Error::kNoAuth},
      {"ZBADVERSION", Error::kBadVersion},
      {"ZNOCHILDRENFOREPHEMERALS", Error::kNoChildrenForEphemerals},
      {"ZNODEEXISTS", Error::kNodeExists},
      {"ZNOTEMPTY", Error::kNotEmpty},
      {"ZSESSIONEXPIRED", Error::kConnectionLoss},
      {"ZINVALIDCALLBACK", Error::kOther},
      {"ZINVALIDACL", Error::kInvalidAcl},
      {"ZAUTHFAILED", Error::kAuthFailed},
      {"ZCLOSING", Error::kConnectionLoss},
      {"ZNOTHING", Error::kOther},
      {"ZSESSIONMOVED", Error::kConnectionLoss},
      {"ZNOTREADONLY", Error::kConnectionLoss},
      {"ZEPHEMERALONLOCALSESSION", Error::kLocalSession},
      {"ZNOWATCHER", Error::kOther},
      {"ZRECONFIGDISABLED", Error::kOther},
      {"ZSESSIONCLOSEDREQUIRESASLAUTH", Error::kAuthRequired},
      {"ZTHROTTLEDOP", Error::kThrottled},
  };
  const auto codes = HeaderCodes();
  CHECK(codes.size() == meanings.size());
  for (const auto& [name, code] : codes) {
    CAPTURE(name, code);
    REQUIRE(meanings.count(name) == 1);
    CHECK(ToError(code) == meanings.at(name));
    const Error meaning = meanings.at(name);
    CHECK(IsAnswer(code) == (meaning != Error::kConnectionLoss && meaning != Error::kAuthFailed));
  }
}

TEST_CASE("Codes that only newer servers use have a meaning too") {
  CHECK(ToError(-125) == Error::kQuotaExceeded);
  CHECK(ToError(-122) == Error::kConnectionLoss);
  for (const int code : {1, -10, -50, -126, -128, -999, 1 << 30}) {
    CAPTURE(code);
    CHECK(ToError(code) == Error::kOther);
    CHECK(IsAnswer(code));
  }
}

}  // namespace zklock::zookeeper
