// How operations handle errors that no operation expects.

#include "lock/operations/server_operation.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "lock/operations/calls.h"
#include "lock/operations/contender_operations.h"
#include "lock/survey/holders.h"
#include "lock/survey/survey.h"
#include "support/fake_store.h"
#include "unit/lock/run_calls.h"

namespace zklock::lock {
namespace {

using namespace std::chrono_literals;
using test::FakeClock;
using test::FakeServers;
using test::FakeStore;
using zookeeper::Error;

const LockName kLock{"/c/l", "/c"};
const ContenderId kReused{"/c/l/lock", 1};

struct Kind {
  const char* name;
  std::string request;  ///< the request that gets the error
  std::string operation;
  std::string right;
  std::string right_path;
  std::function<OperationFailure(FakeStore&, FakeClock&)> run;
};

/// Returns a function that runs `work`, which must fail, and returns its failure.
template <typename F>
std::function<OperationFailure(FakeStore&, FakeClock&)> Asking(F work) {
  return [work](FakeStore& store, FakeClock& clock) { return RunFailingCalls(store, clock, work); };
}

std::vector<Kind> Kinds(const ContenderId& id) {
  const std::string path = kLock.DisplayPath(id.path);
  const auto wait = Asking([=](Calls& calls) {
    WaitUntilGone(calls, kLock, id);
    return true;
  });
  const auto remove = [](const ContenderId& one) {
    return Asking([=](Calls& calls) { return DeleteContender(calls, kLock, one); });
  };
  const auto check = [](const ContenderId& one) {
    return Asking([=](Calls& calls) { return AreHeld(calls, kLock, {one}); });
  };
  const auto ask = Asking([=](Calls& calls) {
    return RequestRelease(calls, kLock, id, [](const std::string& old) { return old; });
  });
  return {
      {"wait", "get ", "read a contender in", "READ", path, wait},
      {"deletion", "delete ", "delete a contender in", "DELETE", "/l", remove(id)},
      {"deletion that reads", "get ", "read a contender in", "READ", "/l/lock", remove(kReused)},
      {"ownership check", "check ", "check a contender in", "READ", path, check(id)},
      {"ownership check that reads", "get ", "check a contender in", "READ", "/l/lock",
       check(kReused)},
      {"release request that reads", "get ", "read a contender in", "READ", path, ask},
      {"release request that writes", "set ", "write to a contender in", "WRITE", path, ask},
      {"holders", "list ", "list", "READ", "/l",
       Asking([](Calls& calls) { return ReadHolders(calls, kLock); })},
      {"survey", "list ", "list", "READ", "/l",
       [](FakeStore& store, FakeClock& clock) {
         const Survey survey(store, clock, SurveyRequest{.place = kLock});
         store.Run();
         REQUIRE(survey.failure());
         return *survey.failure();
       }},
  };
}

/// Calls `check` with the failure of each kind of operation whose request gets this error.
template <typename F>
void ForEachAnswered(Error answer, F check) {
  FakeServers servers;
  FakeClock clock;
  servers.Put("/c", 0);
  servers.Put("/c/l", 0);
  servers.Put(kReused.path, 7);
  const std::string node = servers.Put("/c/l/_c_x-lock-", 7, true);
  for (const Kind& kind : Kinds({node, servers.nodes.at(node).czxid})) {
    // A contender that may not be read still exists.
    if (kind.name == std::string("wait") && answer == Error::kNoAuth) continue;
    CAPTURE(kind.name, static_cast<int>(answer));
    FakeStore store(servers, clock);
    store.Refuse(kind.request, answer);
    check(kind, kind.run(store, clock));
  }
}

}  // namespace

TEST_CASE("Every error that means a refusal is reported as one") {
  for (const Error refusal : {Error::kNoAuth, Error::kAuthFailed, Error::kAuthRequired}) {
    ForEachAnswered(refusal, [&](const Kind& kind, const OperationFailure& failure) {
      REQUIRE(std::holds_alternative<Refused>(failure));
      const auto& refused = std::get<Refused>(failure);
      CHECK(refused.operation == kind.operation);
      CHECK(refused.path == "/l");
      CHECK(refused.error == refusal);
      CHECK(refused.right == kind.right);
      CHECK(refused.right_path == kind.right_path);
    });
  }
}

TEST_CASE("Servers that answer only a first request are left soon after --connect-timeout") {
  FakeServers servers;
  FakeClock clock;
  servers.Put("/c", 0);
  servers.Put("/c/l", 0);
  servers.Put("/c/l/_c_x-lock-", 7, true);
  FakeStore store(servers, clock);
  const TimePoint begin = clock.Now();
  int servers_tried = 0;
  const auto serve = [&](EventSource& source, const std::function<bool()>& is_done) {
    while (!is_done()) {
      if (!store.IsConnected()) {
        REQUIRE(++servers_tried < 8);
        store.Connect();
        continue;
      }
      REQUIRE(store.Step());  // the sync; nothing after it is answered
      const TimePoint wake = source.GetInterest().wake;
      REQUIRE(wake != kNever);
      clock.Advance(wake - clock.Now());
      source.OnReady(0);
      if (is_done()) return;
      CHECK(store.server_given_up());
      store.Disconnect();
    }
  };
  Calls calls(store, clock, 15s, serve);
  try {
    (void)ReadHolders(calls, kLock);
    FAIL("no server has answered");
  } catch (const OperationFailed& failed) {
    CHECK(std::holds_alternative<Unreachable>(failed.failure()));
  }
  // The second server still gets its full time.
  CHECK(clock.Now() - begin < 2 * 15s);
}

TEST_CASE("An error that correct servers do not send is a defect with operation and path") {
  ForEachAnswered(Error::kUnimplemented, [](const Kind& kind, const OperationFailure& failure) {
    REQUIRE(std::holds_alternative<Defect>(failure));
    const auto& defect = std::get<Defect>(failure);
    CHECK(defect.what == Defect::What::kAnswer);
    CHECK(defect.operation == kind.operation);
    CHECK(defect.path == "/l");
    CHECK(defect.error == Error::kUnimplemented);
  });
}

}  // namespace zklock::lock
