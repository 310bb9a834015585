// The input is parsed as the answer to each four-letter word and as an ensemble's configuration.

#include <algorithm>
#include <string>

#include "fuzz/fuzz.h"
#include "zookeeper/server_answers.h"

namespace zklock::fuzz {
namespace {

void TrySrvr(std::string_view input) {
  const auto state = zookeeper::ParseSrvr(input);
  if (!state) return;
  const bool serves = state->role != protocol::ServerRole::kNotServing;
  Require(state->role != protocol::ServerRole::kUnknown, "a state has a role");
  Require(state->version.empty() != serves, "a server that serves has a version");
  Require(state->version.size() <= 32 &&
              state->version.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz.") ==
                  std::string::npos,
          "a version is short and harmless on a terminal");
}

void TryCons(std::string_view input) {
  const auto lines = static_cast<std::uint64_t>(std::count(input.begin(), input.end(), '\n')) + 1;
  const auto ours = zookeeper::CountConnections(input, "10.0.0.1");
  const auto others = zookeeper::CountConnections(input, "::1");
  Require(ours.has_value() == others.has_value(), "an answer can be read for each address or none");
  if (ours) Require(*ours + *others <= lines, "a line is one connection of one address");
}

void TryMembers(std::string_view input) {
  const auto members = zookeeper::ParseMembers(input);
  if (!members) return;
  Require(!members->voters.empty(), "an ensemble has a voter");
  for (const int id : members->voters) {
    Require(id >= 0 && !members->observers.contains(id), "a member has one role");
  }
}

}  // namespace

void Try(std::string_view input) {
  TrySrvr(input);
  TryCons(input);
  TryMembers(input);
  (void)zookeeper::ParseConf(input);
  Require(!zookeeper::IsClosedWord(input, "srvr") || !zookeeper::ParseSrvr(input),
          "a closed word is no answer");
}

}  // namespace zklock::fuzz
