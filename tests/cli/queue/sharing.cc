#include "cli/queue/sharing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <utility>

#include "cli/queue/meeting.h"

namespace zklock::test {
namespace {

constexpr int kRounds = 5;

std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text;
}

/// Returns the peer's command that makes a lock take part in the meeting.
std::string Rounds(const Meeting& meeting, int count, const std::string& limit) {
  return "rounds " + std::to_string(count) + " " + meeting.path() + " " + limit;
}

}  // namespace

SharedLocks::SharedLocks(const Pairing& pairing) : locks{NewLock("shared")} {
  if (pairing.is_set) locks.push_back(locks.front() + "-too");
  queue = pairing.permits != 0 ? locks.front() + "/leases" : locks.front();
}

Words SharedLocks::With(Words words) const {
  words.insert(words.end(), locks.begin() + 1, locks.end());
  return words;
}

void CheckHandOver(LockPeer& peer, const std::string& name, const Pairing& pairing) {
  INFO(pairing.recipe << " and" << Joined(pairing.zklock));
  const SharedLocks shared(pairing);
  const std::string& lock = shared.locks.front();
  const Words words = shared.With(pairing.zklock);
  Tree tree;
  // All permits but one are taken by other holders.
  std::vector<Child> others;
  for (std::size_t i = 1; i < pairing.permits; ++i) others.push_back(StartHolder(words, lock));

  REQUIRE(peer.Ask(name, "make " + pairing.recipe + Joined(shared.locks)) == "made");
  REQUIRE(peer.Ask(name, "acquire") == "acquired");
  RunZklock(words + Words{"--nonblock", lock, "--", "true"}, Exited(75));
  Child ours = StartWaiter(words, lock);
  CHECK(ours.out().empty());
  CHECK(peer.Ask(name, "release") == "released");
  CHECK(ours.ReadLine() == "held");

  if (pairing.has_limit) CHECK(peer.Ask(name, "acquire 200") == "busy");
  peer.Tell(name, "acquire");
  if (pairing.has_queue) tree.WaitForChildren(shared.queue, others.size() + 2, kPeerPatience);
  ours.CloseInput();
  CHECK(peer.Answer(name) == "acquired");
  CHECK(ours.Wait() == Exited(0));
  RunZklock(words + Words{"--nonblock", lock, "--", "true"}, Exited(75));
  CHECK(peer.Ask(name, "release") == "released");
  RunZklock(words + Words{"--nonblock", lock, "--", "true"}, Exited(0));
}

void CheckContention(LockPeer& peer, const std::string& prefix, const std::vector<Side>& sides,
                     const SharedLocks& shared) {
  const Meeting meeting;
  std::vector<std::string> names;
  std::vector<Child> callers;
  int alone = 0;
  for (const Side& side : sides) {
    INFO(side.recipe << Joined(side.zklock));
    for (int i = 0; i < 2; ++i) {
      std::string name = prefix + "-" + std::to_string(names.size() + callers.size());
      if (side.limit == "1") alone += kRounds;
      if (side.recipe.empty()) {
        callers.push_back(
            StartRounds(kRounds, side.zklock + shared.locks, meeting.Visit(name, side.limit)));
        continue;
      }
      REQUIRE(peer.Ask(name, "make " + side.recipe + Joined(shared.locks)) == "made");
      peer.Tell(name, Rounds(meeting, kRounds, side.limit));
      names.push_back(std::move(name));
    }
  }
  for (const std::string& name : names) CHECK(peer.Answer(name) == "done");
  for (Child& caller : callers) {
    const Exit exit = caller.Wait(kPeerPatience);
    CAPTURE(caller.err());
    CHECK(exit == Exited(0));
  }
  meeting.CheckApart(alone);
  CHECK(meeting.Order().size() == sides.size() * 2 * kRounds);
}

namespace {

void CheckContention(LockPeer& peer, const std::string& name, const Pairing& pairing) {
  INFO(pairing.recipe << " against" << Joined(pairing.zklock));
  const std::string limit = std::to_string(std::max<std::size_t>(pairing.permits, 1));
  CheckContention(peer, name, {{pairing.recipe, {}, limit}, {"", pairing.zklock, limit}},
                  SharedLocks(pairing));
}

}  // namespace

void CheckPairings(LockPeer& peer, const std::vector<Pairing>& pairings) {
  int number = 0;
  for (const Pairing& pairing : pairings) {
    const std::string name = "lock" + std::to_string(++number);
    CheckHandOver(peer, name, pairing);
    if (pairing.contends) CheckContention(peer, name, pairing);
  }
}

void CheckQueue(const Words& zklock, const std::map<std::string, Recipe>& recipes,
                const Words& order) {
  const std::string lock = NewLock("queue");
  const Meeting meeting;
  Tree tree;
  Child holder = StartHolder(zklock, lock);
  std::vector<Child> callers;
  std::vector<std::pair<LockPeer*, std::string>> told;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i];
    const std::string kind = name.substr(0, name.rfind('-'));
    if (kind == "zklock") {
      callers.push_back(StartRounds(1, zklock + Words{lock}, meeting.Visit(name, "1")));
    } else {
      const Recipe& recipe = recipes.at(kind);
      REQUIRE(recipe.peer->Ask(name, "make " + recipe.name + " " + lock) == "made");
      recipe.peer->Tell(name, Rounds(meeting, 1, "1"));
      told.emplace_back(recipe.peer, name);
    }
    tree.WaitForChildren(lock, i + 2, kPeerPatience);
  }
  holder.CloseInput();
  for (const auto& [peer, name] : told) CHECK(peer->Answer(name) == "done");
  for (Child& caller : callers) CHECK(caller.Wait(kPeerPatience) == Exited(0));
  CHECK(meeting.Order() == order);
  meeting.CheckApart(static_cast<int>(order.size()));
  CHECK(tree.Children(lock).empty());
}

void CheckRefusals(LockPeer& peer, const std::vector<Refusal>& refusals) {
  int number = 0;
  for (const Refusal& refusal : refusals) {
    INFO(refusal.recipe << " and" << Joined(refusal.zklock));
    const std::string lock = NewLock("apart");
    const std::string name = "lock" + std::to_string(++number);
    REQUIRE(peer.Ask(name, "make " + refusal.recipe + " " + lock) == "made");
    REQUIRE(peer.Ask(name, "acquire") == "acquired");
    Tree tree;
    const Words before = tree.Children(lock);
    for (const Words& more : {Words{}, Words{"--nonblock"}}) {
      const Finished finished =
          RunZklock(refusal.zklock + more + Words{lock, "--", "echo", "ran"}, Exited(78));
      CHECK(finished.out.empty());
      CHECK_THAT(finished.err, Catch::Contains("; " + refusal.remedy));
    }
    // The servers may delete the peer's container at any time once it is empty.
    for (const std::string& child : tree.Children(lock)) {
      CHECK_THAT(before, Catch::VectorContains(child));
    }
    CHECK(peer.Ask(name, "release") == "released");
  }
}

}  // namespace zklock::test
