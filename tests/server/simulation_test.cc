#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "server/client.h"
#include "support/child.h"
#include "support/own_server.h"
#include "support/request_script.h"
#include "support/server.h"
#include "support/source.h"

// The simulation proves something only if its servers behave like real ones.

namespace zklock::test {
namespace {

class RealHost final : public ScriptHost {
 public:
  explicit RealHost(const std::string& servers) {
    std::istringstream list(servers);
    for (std::string one; std::getline(list, one, ',');) servers_.push_back(one);
  }
  zookeeper::Session& Open(Duration timeout) override {
    const std::string& server = servers_[next_++ % servers_.size()];
    loop_.Add(sessions_.emplace_back(std::vector<zookeeper::Endpoint>{{server, server}}, timeout,
                                     clock_));
    return sessions_.back();
  }
  void SetServed(zookeeper::Session& session, bool is_served) override {
    is_served ? loop_.Add(session) : loop_.Remove(session);
  }
  void Await(const std::function<bool()>& holds) override { RunUntil(loop_, holds); }

 private:
  std::vector<std::string> servers_;
  std::size_t next_ = 0;
  const SystemClock clock_;
  process::EventLoop loop_;
  std::deque<zookeeper::Session> sessions_;
};

void CheckAnswers(const std::string& servers, int count) {
  const std::string script = SourcePath("tests/simulation/requests");
  const char* const simulate = std::getenv("ZKLOCK_SIMULATE");
  REQUIRE(simulate != nullptr);
  const Finished simulated =
      Run({.argv = {simulate, "--answers", script, "--servers", std::to_string(count)}});
  REQUIRE(simulated.exit == Exited(0));
  Tree tree("", servers);
  const std::string root = tree.Create(NewLock("answers"));
  RealHost host(servers);
  std::string real;
  for (const std::string& line : RunRequestScript(script, root, host)) real += line + '\n';
  CHECK(simulated.out == real);
}

TEST_CASE("a simulated server answers like a real one") { CheckAnswers(TestServers(), 1); }

TEST_CASE("three simulated servers answer like three real ones") {
  // With a tick of 500 ms, servers that get no CPU time for 2.5 s drop each other and their
  // clients.
  const OwnServer ensemble({}, 3, {"--tick", "2000"});
  CheckAnswers(ensemble.address(), 3);
}

}  // namespace
}  // namespace zklock::test
