// Messages about a LOCK that cannot be used as requested, and about programs that ignore zklock's
// contenders.

#include <catch2/catch.hpp>

#include "cli/messages/provocation.h"
#include "support/contender_names.h"
#include "support/own_server.h"

namespace zklock::test {
namespace {

/// Returns the message of `zklock WORDS` about a LOCK that has this child.
std::string Meets(const std::string& child, ZnodeKind kind, Words words) {
  const std::string lock = NewLock("said");
  Tree tree;
  tree.Create(lock + child, kind);
  words.insert(words.end(), {lock, "--", "true"});
  return SaidBy(words, 78);
}

/// Returns the message of `zklock WORDS LOCK` while `zklock HOLDERS LOCK` holds that LOCK.
std::string MeetsHolder(const Words& holders, Words words) {
  auto [lock, holder] = HoldNewLock("said", holders);
  words.insert(words.end(), {lock, "--", "true"});
  return SaidBy(words, 78);
}

/// The holder's number of permits is overwritten.
std::string MeetsUnknownPermits() {
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "--permits", "2"});
  Tree().SetData(lock + "/leases", "");
  return SaidBy({"exclusive", "--permits", "2", lock, "--", "true"}, 78);
}

std::string OnEphemeral(const std::string& below) {
  const std::string znode = NewLock("said");
  Tree tree;
  tree.Create(znode, ZnodeKind::kEphemeral);
  return SaidBy({"exclusive", znode + below, "--", "true"}, 78);
}

/// The waiter lists the queue again when its predecessor, another waiter, is gone.
std::string IncompatibleArrives() {
  auto [lock, holder] = HoldNewLock("said");
  const Child between = StartWaiter(lock);
  Child waiter = StartWaiter(lock);
  Tree tree;
  const std::string predecessor = InQueueOrder(tree.Children(lock)).at(1);
  tree.Create(lock + "/" + kKazooLock, ZnodeKind::kEphemeralSequential);
  tree.Delete(lock + "/" + predecessor);
  waiter.ReadErrUntil("may both hold the lock");
  waiter.ReadErrUntil("\n");
  return waiter.err();
}

std::string RecordUnknown(const std::string& child, const std::string& option) {
  const std::string lock = NewLock("said");
  Tree().Create(lock + child, ZnodeKind::kPersistent, "yesterday");
  return SaidBy({"exclusive", option, "1h", lock, "--", "true"}, 78);
}

/// The quota leaves room for `contenders`. --once-per records the start in another znode.
std::string QuotaExceeded(int contenders) {
  const OwnServer server({"enforceQuota=true"});
  Tree tree("", server.address());
  SetHardQuota(tree, "/t", 2 + contenders);
  tree.Create("/t/said");
  return Said(
      Run(ZklockAt(server.address(), {"exclusive", "--once-per", "1h", "/t/said", "--", "true"})),
      Exited(78));
}

}  // namespace

Provocations LockProvocations() {
  const auto in_queue = ZnodeKind::kEphemeralSequential;
  const auto alone = ZnodeKind::kEphemeral;
  const auto meets = [](const char* message, const std::string& child, ZnodeKind kind,
                        const Words& run) {
    return Provocation{{Part(message), "kIncompatibleThere"},
                       [=] { return Meets(child, kind, run); }};
  };
  return {
      {{"kNotContender"},
       [] { return Meets("/build-0000000000", ZnodeKind::kPersistent, {"exclusive"}); }},
      {{"kEphemeralLock"}, [] { return OnEphemeral(""); }},
      {{"kEphemeralAbove"}, [] { return OnEphemeral("/lock"); }},
      {{"kHasPermits"},
       [] {
         return MeetsHolder({"exclusive", "--permits", "2"}, {"exclusive"});
       }},
      {{"kHasNoPermits"},
       [] {
         return MeetsHolder({"exclusive"}, {"exclusive", "--permits", "2"});
       }},
      {{Saying("kOtherPermits").With({"", "2"})},
       [] {
         return MeetsHolder({"exclusive", "--permits", "2"}, {"exclusive", "--permits", "3"});
       }},
      {{"kUnknownPermits"}, MeetsUnknownPermits},
      {{"kReservedWithOtherTake"},
       [] {
         const std::string lock = NewLock("said");
         RunZklock({"exclusive", "--permits", "4", "--take", "3", "--reserve", "ci", lock},
                   Exited(0));
         return SaidBy({"exclusive", "--permits", "4", "--reserve", "ci", lock}, 78);
       }},
      {{"kReservedInOtherMode"},
       [] {
         const std::string lock = NewLock("said");
         RunZklock({"exclusive", "--reserve", "ci", lock}, Exited(0));
         return SaidBy({"read", "--reserve", "ci", lock}, 78);
       }},
      meets("kKazooProgram", "/" + kKazooLock, in_queue, {"exclusive"}),
      meets("kKazooPermit", "/" + kHexUuid, alone, {"exclusive"}),
      meets("kOneZnode", "/lock", alone, {"exclusive"}),
      meets("kCuratorMutex", "/" + kCuratorLock, in_queue, {"read"}),
      meets("kCuratorReadWrite", "/" + kCuratorWriter, in_queue, {"exclusive"}),
      meets("kCRecipe", "/x-0100000000abcdef-", in_queue, {"write"}),
      meets("kCuratorNames", "/" + kCuratorLock, in_queue, {"exclusive", "--dialect", "kazoo"}),
      meets("kQueues", "/" + kCuratorLock, in_queue, {"exclusive", "--dialect", "simple"}),
      {{Part("kZklockKazoo")},
       [] {
         return MeetsHolder({"exclusive", "--dialect", "kazoo"}, {"exclusive"});
       }},
      {{Part("kZklockCurator")},
       [] {
         return MeetsHolder({"exclusive"}, {"exclusive", "--dialect", "kazoo"});
       }},
      {{"kRecordUnknown"}, [] { return RecordUnknown("/last-run", "--min-interval"); }},
      {{"kRecordUnknown"}, [] { return RecordUnknown("/last-start", "--once-per"); }},
      {{"kQuotaExceeded"}, [] { return QuotaExceeded(0); }},
      {{"kQuotaAbove"}, [] { return QuotaExceeded(1); }},
      {{"kIncompatibleArrived"}, IncompatibleArrives},
      {{Part("kMayOverlap", "commands may run at the same time: the child '" + kKazooLock +
                                "0000000001' is a kazoo contender, which ignores zklock's; "
                                "use --dialect kazoo, or another LOCK")},
       [] {
         auto [lock, holder] = HoldNewLock("said");
         Tree tree;
         tree.Create(lock + "/" + kKazooLock, ZnodeKind::kEphemeralSequential);
         CHECK_THAT(RunZklock({"inspect", lock}, Exited(0)).out,
                    Catch::Contains("commands may run at the same time"));
         return RunZklock({"inspect", "--check", lock}, Exited(2)).out;
       }},
  };
}

}  // namespace zklock::test
