// Messages of release.

#include <catch2/catch.hpp>

#include "cli/messages/provocation.h"
#include "support/contender_names.h"

namespace zklock::test {
namespace {

/// `zklock release WORDS --yes LOCK`, while there are a holder and a waiter.
std::string Release(Words words) {
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "--label", "nightly"});
  const Child waiter = StartWaiter(lock);
  words.insert(words.begin(), "release");
  words.insert(words.end(), {"--yes", lock});
  return SaidBy(words, 0);
}

/// `zklock release --holders --yes`, where the holder is a znode of the test's own session.
std::string ReleaseUnknown(const std::string& name, const std::string& data, bool readable,
                           int status) {
  const std::string lock = NewLock("said");
  Tree tree;
  const std::string contender = tree.Create(lock + name, ZnodeKind::kEphemeralSequential, data);
  if (!readable) tree.SetAcl(contender, kAdmin);
  return SaidBy({"release", "--holders", "--yes", lock}, status);
}

/// A reserved LOCK.
std::string Reserved() {
  const std::string lock = NewLock("said");
  RunZklock({"exclusive", "--reserve", "freeze", lock}, Exited(0));
  return lock;
}

/// `zklock release -v` by the shell that holds the lock.
std::string ReleaseOwn() {
  ChildOptions options = Zklock({});
  options.argv = {"sh", "-c", "\"$0\" exclusive --hold \"$1\" && exec \"$0\" release -v \"$1\"",
                  Binary(), NewLock("said")};
  return Said(Run(options), Exited(0));
}

std::string ReleasePermit() {
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "--permits", "2"});
  return SaidBy({"release", "--holders", "--yes", lock}, 0);
}

std::string ReleaseNobody(Words words, int status) {
  const std::string lock = NewLock("said");
  Tree().Create(lock + "/build-0000000007");
  words.insert(words.begin(), "release");
  words.push_back(lock);
  return SaidBy(words, status);
}

/// `zklock release WORDS` on a terminal; the answer is no.
std::string Denied(Words words) {
  words.insert(words.begin(), "release");
  Child asked = Child::StartOnTerminal(Zklock(words));
  asked.ReadUntil("[y/N] ");
  asked.Write("n\n");
  asked.ReadUntil("nothing was released");
  asked.ReadToEnd();
  CHECK(asked.Wait() == Exited(75));
  std::string screen = asked.out();
  std::erase(screen, '\r');
  return screen;
}

/// `words` select the holder or the waiter; if empty, the waiter is selected.
std::string AskedAndDenied(const std::string& lock, Words words) {
  const Child holder = StartHolder(lock);
  const Child waiter = StartWaiter(lock);
  if (words.empty()) words = {"--contender", InQueueOrder(Tree().Children(lock)).at(1)};
  words.push_back(lock);
  return Denied(words);
}

/// `zklock release` on a terminal: before the answer, the waiter gets the lock.
std::string AskedTooLate() {
  auto [lock, holder] = HoldNewLock("said");
  Child waiter = StartWaiter(lock);
  Child asked = Child::StartOnTerminal(Zklock({"release", "--position", "2", lock}));
  asked.ReadUntil("[y/N] ");
  CHECK(Finish(holder) == Exited(0));
  CHECK(waiter.ReadLine() == "held");
  asked.Write("y\n");
  asked.ReadToEnd();
  CHECK(asked.Wait() == Exited(75));
  std::string screen = asked.out();
  std::erase(screen, '\r');
  return screen;
}

/// The holder belongs to another program.
std::string DeniedForeign() {
  const std::string lock = NewLock("said");
  Tree tree;
  tree.Create(lock + "/incompatible-", ZnodeKind::kEphemeralSequential, "");
  return Denied({"--holders", lock});
}

std::string DeniedReservation() {
  const std::string lock = Reserved();
  return Denied({"--force", "--contender", Tree().Children(lock).at(0), lock});
}

std::string ForcedReservation() {
  const std::string lock = NewLock("said");
  RunZklock({"exclusive", "--reserve", "ci", lock}, Exited(0));
  const std::string name = Tree().Children(lock).at(0);
  const std::string said = SaidBy({"release", "--force", "--contender", name, "--yes", lock}, 0);
  CHECK_THAT(said, !Catch::Contains("until its command has ended"));
  return said;
}

}  // namespace

Provocations ReleaseProvocations() {
  const std::string asked = NewLock("said");
  return {
      {{"kHolder", "kWaiter", "kAsked", "kAskedWaiter", Part("kUserOn"), Part("kPid"),
        Part("kLabel", "label 'nightly'")},
       [] { return Release({"--all"}); }},
      {{"kHasReleased", "kHasLeft"},
       [] {
         return Release({"--all", "-v", "--wait-released"});
       }},
      {{"kOwnReleased"}, ReleaseOwn},
      {{"kForcedOut"},
       [] {
         return Release({"--holders", "--force"});
       }},
      {{"kForcedOut", "kForcedWaiter"},
       [] {
         return Release({"--all", "--force"});
       }},
      {{"kForcedReservation"}, ForcedReservation},
      {{Part("kOn", "on 10.0.0.7")},
       [] { return ReleaseUnknown("/" + kCuratorLock, "10.0.0.7", true, 0); }},
      {{Part("kDataUnread")}, [] { return ReleaseUnknown("/x-lock-", "", false, 75); }},
      {{Part("kUnknownProgram"), "kCannotBeAsked"},
       [] { return ReleaseUnknown("/incompatible-", "", true, 75); }},
      {{Part("kUnknownOwner", "created by Curator, which does not record the owner"),
        "kAskedCurator"},
       [] { return ReleaseUnknown("/" + kCuratorLock, "", true, 0); }},
      {{Part("kPermit")}, ReleasePermit},
      {{Part("kEndQuestion"), Part("kFor"), "kNothingReleased"},
       [asked] { return AskedAndDenied(asked, {"--holders"}); }},
      {{Part("kThese", "these 2"), "kListed", Part("kWaitingFor")},
       [asked] { return AskedAndDenied(asked, {"--all"}); }},
      {{Part("kLeaveQuestion")}, [asked] { return AskedAndDenied(asked, {}); }},
      {{"kHasAcquired"}, AskedTooLate},
      {{Part("kRemoveQuestion")},
       [asked] {
         return AskedAndDenied(asked, {"--force", "--position", "2"});
       }},
      {{Part("kNamed", "contender incompatible-0000000000")}, DeniedForeign},
      {{Part("kNamedReservation", "the reservation freeze")}, DeniedReservation},
      {{Part("kForceQuestion")},
       [asked] {
         return AskedAndDenied(asked, {"--holders", "--force"});
       }},
      {{"kNoTerminal"}, [] { return ReleaseNobody({"--all"}, 64); }},
      {{"kNoTerminal", Part("kInPlaceOfPosition")},
       [] {
         return ReleaseNobody({"--position", "1"}, 64);
       }},
      {{"kNotThere"},
       [] {
         return ReleaseNobody({"--yes", "--contender", "x"}, 75);
       }},
      {{"kChildNotContender"},
       [] {
         return ReleaseNobody({"--yes", "--contender", "build-0000000007"}, 64);
       }},
      {{"kChildUnnumbered"},
       [] {
         const std::string lock = NewLock("said");
         Tree().Create(lock + "/notes");
         return SaidBy({"release", "--yes", "--contender", "notes", lock}, 64);
       }},
      {{"kNoSuchContender"},
       [] {
         return ReleaseNobody({"--yes", "--holders"}, 75);
       }},
      {{"kStaysReserved"},
       [] {
         return SaidBy({"release", "--holders", "--yes", Reserved()}, 75);
       }},
      {{"kReserver"},
       [] {
         const std::string lock = Reserved();
         const std::string name = Tree().Children(lock).at(0);
         return SaidBy({"release", "--force", "--contender", name, "--yes", lock}, 0);
       }},
      {{"kNotReserved"},
       [] {
         const std::string lock = NewLock("said");
         Tree().Create(lock);
         return SaidBy({"release", "--reserve", "thaw", lock}, 75);
       }},
      {{"kNoneReservedFor"},
       [] {
         return SaidBy({"release", "--any", "--reserve", "thaw", NewLock("said"), Reserved()}, 75);
       }},
      {{"kNoSuchLock"},
       [] {
         return SaidBy({"release", "--reserve", "thaw", NewLock("said")}, 75);
       }},
      {{"kNoSuchLock"},
       [] {
         return SaidBy({"release", "--holders", "--yes", NewLock("said")}, 75);
       }},
      {{"kNoSuchLock"},
       [] {
         return SaidBy({"release", NewLock("said")}, 75);
       }},
      {{"kReservedForOthers"},
       [] {
         return SaidBy({"release", "--reserve", "thaw", Reserved()}, 75);
       }},
      {{"kReservationReleased"},
       [] {
         return SaidBy({"release", "--verbose", "--reserve", "freeze", Reserved()}, 0);
       }},
      {{"kNothingHeld"}, [] { return ReleaseNobody({}, 75); }},
  };
}

}  // namespace zklock::test
