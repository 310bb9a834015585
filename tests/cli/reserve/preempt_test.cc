// --preempt: a run that asks the contenders ahead of it to leave.

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/zklock.h"

namespace zklock::test {

TEST_CASE("a freeze takes effect after the running command, whatever waits ahead of it") {
  auto [lock, holder] = HoldNewLock("preempt");
  Child first = StartWaiter({"exclusive", "-E", "5"}, lock);
  Child second = StartWaiter(lock);
  Child freeze = Child::Start(Zklock({"exclusive", "--preempt", "waiters", "--reserve", "freeze",
                                      "--reason", "incident 4711", lock}));
  CHECK(first.Wait() == Exited(5));
  CHECK(second.Wait() == Exited(75));
  CHECK_THAT(first.err(), Catch::Contains("asked to leave the queue of " + lock) &&
                              Catch::Contains("('incident 4711')"));
  freeze.ReadErrUntil("asked 2 ahead of this run in " + lock + " to leave\n");
  CHECK_FALSE(holder.HasEnded());
  CHECK_FALSE(freeze.HasEnded());
  CHECK(Finish(holder) == Exited(0));
  CHECK(freeze.Wait() == Exited(0));
  RunZklock({"try", lock, "--", "true"}, Exited(75));
}

TEST_CASE("--preempt all ends the running command, and the preempting run gets the lock") {
  auto [lock, holder] = HoldNewLock("preempt");
  Child waiter = StartWaiter(lock);
  CHECK(RunZklock({"exclusive", "--preempt", "all", lock, "--", "echo", "ran"}, Exited(0)).out ==
        "ran\n");
  CHECK(holder.Wait() == Exited(76));
  CHECK(waiter.Wait() == Exited(75));
}

TEST_CASE("a command that has begun ignores a request to waiters, but obeys a release request") {
  auto [lock, holder] = HoldNewLock("preempt");
  Tree tree;
  const std::string path = lock + "/" + tree.Children(lock).at(0);
  auto data = nlohmann::json::parse(tree.Get(path)->data);
  data["revoke"] = {{"by", "root"}, {"onlyWaiting", true}};
  tree.SetData(path, data.dump());
  RunZklock({"release", "--holders", "--yes", lock}, Exited(0));
  CHECK(holder.Wait() == Exited(76));
  CHECK_THAT(holder.err(), !Catch::Contains(lock + " by root;"));
}

TEST_CASE("two runs that preempt do not ask each other, and run one after another") {
  auto [lock, holder] = HoldNewLock("preempt");
  Child first = StartWaiter({"exclusive", "--preempt", "waiters"}, lock);
  Child second = StartWaiter({"exclusive", "--preempt", "waiters"}, lock);
  holder.CloseInput();
  CHECK(first.ReadLine() == "held");
  CHECK(Finish(first) == Exited(0));
  CHECK(second.ReadLine() == "held");
  CHECK(Finish(second) == Exited(0));
}

TEST_CASE("a run below another that holds the lock does not ask that one to leave") {
  const std::string lock = NewLock("preempt");
  const std::string other = NewLock("preempt");
  CHECK(RunZklock({"exclusive", lock, "--", Binary(), "exclusive", "--preempt", "all", lock, other,
                   "--", "echo", "ran"},
                  Exited(0))
            .out == "ran\n");
}

TEST_CASE("with permits, waiters leave the turnstile, and all leave their permits") {
  const std::string lock = NewLock("preempt");
  const bool all = GENERATE(false, true);
  Child holder = StartHolder({"exclusive", "--permits", "1"}, lock);
  Child waiter = StartWaiter({"exclusive", "--permits", "1"}, lock);
  Child run = Child::Start(Zklock({"exclusive", "--permits", "1", "--preempt",
                                   all ? "all" : "waiters", lock, "--", "echo", "ran"}));
  CHECK(waiter.Wait() == Exited(75));
  if (!all) holder.CloseInput();
  CHECK(holder.Wait() == Exited(all ? 76 : 0));
  CHECK(run.Wait() == Exited(0));
}

}  // namespace zklock::test
