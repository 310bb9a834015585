// Messages about a queue: contenders that cannot join it or must leave it, and progress.

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>

#include "cli/messages/provocation.h"
#include "cli/servers/regranted.h"
#include "lock/data/run_history.h"
#include "support/contender_names.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

std::string ContenderAt(const std::string& lock, std::size_t position) {
  return InQueueOrder(Tree().Children(lock)).at(position);
}

std::string Taken(const std::string& lock) {
  const Child holder = StartHolder(lock);
  return SaidBy({"try", lock, "--", "true"}, 75);
}

std::string WaitOver() {
  auto [lock, holder] = HoldNewLock("said");
  return SaidBy({"exclusive", "--wait", "1ms", lock, "--", "true"}, 75);
}

std::string TakenBy(const std::string& data) {
  const std::string lock = NewLock("said");
  Tree tree;
  tree.Create(lock + "/x-lock-", ZnodeKind::kEphemeralSequential, data);
  return SaidBy({"try", lock, "--", "true"}, 75);
}

/// A waiter whose predecessor is another waiter names the holder instead.
std::string WaitOverBehindWaiter() {
  const std::string lock = NewLock("said");
  Tree tree;
  tree.Create(lock + "/x-lock-", ZnodeKind::kEphemeralSequential, R"({"host":"h7","pid":4711})");
  const Child waiter = StartWaiter(lock);
  return SaidBy({"exclusive", "--wait", "1ms", lock, "--", "true"}, 75);
}

/// A reader waits for a writer that waits for another reader.
std::string WriterAhead() {
  auto [lock, holder] = HoldNewLock("said", {"read"});
  Tree tree;
  tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential,
              R"({"host":"h7","pid":4711})");
  return SaidBy({"try", "--read", lock, "--", "true"}, 75);
}

std::string PermitsTaken(const Words& words) {
  auto [lock, first] = HoldNewLock("said", {"exclusive", "--permits", "2", "--label", "nightly"});
  const Child second = StartHolder({"exclusive", "--permits", "2", "--label", "nightly"}, lock);
  Words all = words + Words{"--permits", "2", lock, "--", "true"};
  const std::string said = SaidBy(all, 75);
  CHECK_THAT(said,
             Catch::Contains("held by sh (pid ") && Catch::Contains(", 'nightly'), and 1 more"));
  return said;
}

std::string OneOfSetTaken() {
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "--label", "nightly"});
  const std::string said = SaidBy({"try", NewLock("said"), lock, "--", "true"}, 75);
  CHECK_THAT(said,
             Catch::Contains(lock + " is held by sh (pid ") && Catch::Contains("'nightly');"));
  return said;
}

std::string QueueFull(const std::string& most) {
  auto [lock, holder] = HoldNewLock("said");
  const Child waiter = StartWaiter(lock);
  return SaidBy({"exclusive", "--max-queue", most, lock, "--", "true"}, 75);
}

std::string Superseded() {
  auto [lock, holder] = HoldNewLock("said");
  Child older = StartWaiter({"exclusive", "--supersede"}, lock);
  const Child newer = StartWaiter({"exclusive", "--supersede"}, lock);
  CHECK(older.Wait() == Exited(75));
  return older.err();
}

std::string Removed() {
  auto [lock, holder] = HoldNewLock("said");
  Child waiter = StartWaiter(lock);
  Tree().Delete(lock + "/" + ContenderAt(lock, 1));
  CHECK(waiter.Wait() == Exited(75));
  return waiter.err();
}

/// Runs `zklock WORDS --any` on two LOCKs that are both held.
std::string NoneOfTwo(const Words& words) {
  auto [lock, holder] = HoldNewLock("said");
  auto [other, holder_of_other] = HoldNewLock("said");
  return SaidBy(words + Words{"--any", lock, other, "--", "true"}, 75);
}

std::string RemovedFromTwo() {
  auto [lock, holder] = HoldNewLock("said");
  auto [other, holder_of_other] = HoldNewLock("said");
  Child waiter = StartWaiter({"exclusive", "--any", other}, lock);
  Tree tree;
  tree.WaitForChildren(other, 2);
  tree.Delete(lock + "/" + ContenderAt(lock, 1));
  tree.Delete(other + "/" + ContenderAt(other, 1));
  CHECK(waiter.Wait() == Exited(75));
  return waiter.err();
}

/// Returns the messages of a waiter for two LOCKs that leaves the queue of the first when `leave`
/// is called with the LOCK and the waiter's contender there.
std::string LeftOneOfTwo(
    const std::function<void(const std::string& lock, const std::string& contender)>& leave) {
  auto [lock, holder] = HoldNewLock("said");
  auto [other, holder_of_other] = HoldNewLock("said");
  Child waiter = StartWaiter({"exclusive", "--any", other}, lock);
  Tree().WaitForChildren(other, 2);
  leave(lock, ContenderAt(lock, 1));
  waiter.ReadErrUntil("; still waiting for " + other);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  return waiter.err();
}

/// Returns the same for `zklock release WORDS LOCK --contender CONTENDER`.
std::string ReleasedOneOfTwo(const Words& words) {
  return LeftOneOfTwo([&](const std::string& lock, const std::string& contender) {
    RunZklock(Words{"release"} + words + Words{lock, "--yes", "--contender", contender}, Exited(0));
  });
}

std::string DeletedOneOfTwo() {
  return LeftOneOfTwo([](const std::string& lock, const std::string& contender) {
    Tree().Delete(lock + "/" + contender);
  });
}

std::string OneOfTwoFull() {
  auto [lock, holder] = HoldNewLock("said");
  const std::string other = NewLock("said");
  return SaidBy({"exclusive", "-v", "--max-queue", "0", "--any", lock, other, "--", "true"}, 0);
}

/// A run that is granted the LOCK whose queue an earlier run with its ID has left.
std::string LeftToRival() {
  auto [lock, holder] = HoldNewLock("said");
  auto [other, holder_of_other] = HoldNewLock("said");
  const Words words = {"exclusive", "-v", "--reserve", "ci", "--any", lock, other};
  Child earlier = Child::Start(Zklock(words));
  earlier.ReadErrUntil("waiting for " + lock);
  Tree().WaitForChildren(other, 2);
  RunZklock({"release", lock, "--yes", "--contender", ContenderAt(lock, 1)}, Exited(0));
  Tree().WaitForChildren(lock, 1);
  CHECK(Finish(holder) == Exited(0));
  Child later = Child::Start(Zklock(words));
  later.ReadErrUntil("; still waiting for " + other);
  for (Child* const child : {&later, &earlier}) {
    child->Signal(SIGTERM);
    CHECK(child->Wait() == Exited(128 + SIGTERM));
  }
  return later.err();
}

std::string AskedToLeave() {
  auto [lock, holder] = HoldNewLock("said");
  Child waiter = StartWaiter(lock);
  RunZklock(
      {"release", lock, "--contender", ContenderAt(lock, 1), "--yes", "--reason", "a restart"},
      Exited(0));
  CHECK(waiter.Wait() == Exited(75));
  return waiter.err();
}

/// A holder whose contender's data becomes `data`.
std::string HolderWrittenTo(const std::string& data) {
  auto [lock, holder] = HoldNewLock("said");
  Tree().SetData(lock + "/" + ContenderAt(lock, 0), data);
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

std::string StoppedWaiting() {
  auto [lock, holder] = HoldNewLock("said");
  Child waiter = StartWaiter(lock);
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  return waiter.err();
}

std::string StoppedWaitingForAny() {
  auto [lock, holder] = HoldNewLock("said");
  auto [other, holder_of_other] = HoldNewLock("said");
  Child waiter = Child::Start(Zklock({"exclusive", "--any", lock, other, "--", "true"}));
  waiter.ReadErrUntil("(any of 2)");
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  return waiter.err();
}

std::string StoppedWaitingUnanswered() {
  auto [lock, holder] = HoldNewLock("said");
  Proxy proxy(TestServers());
  Child waiter = StartWaiter({"exclusive", "-z", proxy.address()}, lock);
  proxy.Freeze();
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  CHECK_THAT(waiter.err(), !Catch::Contains("left the queue; the command"));
  return waiter.err();
}

std::string Reserve(const std::string& lock, const Words& more = {}) {
  Words words = Words{"exclusive", "--verbose", "--reserve", "freeze", lock} + more;
  return SaidBy(words, 0);
}

std::string ReservedTwice() {
  const std::string lock = NewLock("said");
  const std::string first = Reserve(lock, {"--for", "1h"});
  return first + Reserve(lock);
}

std::string ReservationEnds() {
  const std::string lock = NewLock("said");
  Reserve(lock, {"--for", "1s"});
  return SaidBy({"exclusive", "--verbose", lock, "--", "true"}, 0);
}

std::string ReservationLosesPermit() {
  const std::string lock = NewLock("said");
  Reserve(lock, {"--permits", "2", "--take", "2"});
  Tree().Delete(lock + "/leases/" + Tree().Children(lock + "/leases").front());
  return SaidBy({"exclusive", "-v", "--permits", "2", "--take", "2", lock, "--", "true"}, 0);
}

std::string ReservationOverdue() {
  auto [tree, lock] = MadeLock("said", "zklock/1");
  Reserve(lock, {"--for", "1s"});
  tree.SetAcl(lock, kRead | kCreate);
  Child waiter = Child::Start(Zklock({"exclusive", "--progress", "none", lock, "--", "true"}));
  waiter.ReadErrUntil("\n");
  std::string said = waiter.err();
  CHECK_THAT(said, Catch::Contains(": not authorised: DELETE on " + lock + " is missing"));
  waiter.Signal(SIGTERM);
  CHECK(waiter.Wait() == Exited(128 + SIGTERM));
  return said;
}

std::string KeptOutByReservation(const std::string& wait) {
  const std::string lock = NewLock("said");
  Reserve(lock);
  return SaidBy({"exclusive", "--wait", wait, lock, "--", "true"}, 75);
}

std::string OpenLock() {
  ChildOptions options = Zklock({"exclusive", Tree().Create(NewLock("said")), "--", "true"});
  options.also_environment.emplace_back("ZKLOCK_AUTH=digest:alice:tulip");
  return Said(Run(options), Exited(0));
}

std::string PreemptedBy(const std::string& whom) {
  auto [lock, holder] = HoldNewLock("said");
  return SaidBy({"exclusive", "--preempt", whom, lock, "--", "true"}, 0);
}

/// Starts a run that cannot ask the contenders ahead of it to leave, and `remove`s them.
std::string PreemptsUntilGone(const ChildOptions& options, const std::function<void()>& remove,
                              int status = 0) {
  Child run = Child::Start(options);
  run.ReadErrUntil("asked nobody ahead of this run");
  remove();
  CHECK(run.Wait() == Exited(status));
  return run.err();
}

std::string PreemptsUntilGone(const std::string& lock, const std::function<void()>& remove) {
  return PreemptsUntilGone(Zklock({"exclusive", "--preempt", "all", lock, "--", "true"}), remove);
}

/// Four contenders of another program, or of zklock but without permission to write to them.
std::string PreemptsOthers(const std::string& data, bool are_protected) {
  auto [tree, lock] = MadeLock("said", "zklock/1");
  Words paths;
  for (int i = 0; i < 4; ++i) {
    const std::string name = are_protected ? kZklockLock : kCuratorLock;
    paths.push_back(tree.Create(lock + "/" + name, ZnodeKind::kEphemeralSequential, data));
    if (are_protected) tree.SetAcl(paths.back(), kRead | kAdmin);
  }
  return PreemptsUntilGone(lock, [&] {
    for (const std::string& path : paths) tree.Delete(path);
  });
}

std::string PreemptsReservation() {
  const std::string lock = NewLock("said");
  Reserve(lock);
  return PreemptsUntilGone(lock, [&] {
    RunZklock({"release", "--reserve", "freeze", lock}, Exited(0));
  });
}

/// The quota leaves room for both contenders, but not for a long reason.
std::string PreemptsWithinQuota() {
  const OwnServer server({"enforceQuota=true"});
  Tree tree("", server.address());
  const auto hold = [&](const std::string& lock) {
    tree.Create(lock);
    Child holder =
        Child::Start(ZklockAt(server.address(), {"exclusive", lock, "--", "sleep", "60"}));
    return std::pair(std::move(holder), lock + "/" + tree.WaitForChildren(lock, 1).front());
  };
  const auto [other, contender] = hold("/unlimited/said");
  SetHardQuota(tree, "/t", -1, 2 * static_cast<int>(tree.Get(contender)->data.size()) + 100);
  auto [holder, ahead] = hold("/t/said");
  return PreemptsUntilGone(
      ZklockAt(server.address(), {"exclusive", "--preempt", "all", "--reason",
                                  std::string(250, 'x'), "/t/said", "--", "true"}),
      [&one = holder] { one.Signal(SIGTERM); });
}

/// A run that is kept from beginning by last-start, which has this ACL, until the holder ends.
std::string PreemptsTooSoon(int permissions, int status) {
  auto [lock, holder] = HoldNewLock("said");
  Tree tree;
  const std::string last_start =
      tree.Create(lock + "/last-start", ZnodeKind::kPersistent, "zklock/1 7 host");
  tree.SetAcl(last_start, permissions);
  return PreemptsUntilGone(
      Zklock({"exclusive", "--preempt", "all", "--once-per", "1h", lock, "--", "true"}),
      [&one = holder] { one.CloseInput(); }, status);
}

std::string PreemptsWithoutDelete() {
  auto [lock, holder] = HoldNewLock("said");
  Tree tree;
  tree.SetAcl(lock, kRead | kWrite | kCreate | kAdmin);
  return PreemptsUntilGone(Zklock({"exclusive", "--preempt", "all", "--reserve", "said", lock}),
                           [&] {
                             tree.SetAcl(lock, kRead | kWrite | kCreate | kDelete | kAdmin);
                             holder.CloseInput();
                           });
}

std::string WaitsForReservation() {
  const std::string lock = NewLock("said");
  Reserve(lock);
  Child waiter = Child::Start(Zklock({"exclusive", lock, "--", "true"}));
  // If the look-up of the reservation takes too long, only the next line shows it.
  waiter.ReadErrUntil("; reserved for freeze", 2 * kPatience);
  return waiter.err();
}

std::string RanLately(const std::string& option) {
  const Words words = {"exclusive", option, "1h", NewLock("said"), "--", "true"};
  RunZklock(words, Exited(0));
  return SaidBy(words, 75);
}

std::string NotRecorded() {
  const std::string lock = NewLock("said");
  Tree tree;
  const std::string last_run = tree.Create(lock + "/last-run");
  tree.SetAcl(last_run, kRead | kAdmin);
  return SaidBy({"exclusive", "--min-interval", "1h", lock, "--", "true"}, 0);
}

/// A run with --history on a LOCK whose last-run has this data.
std::string RunWithHistory(const std::string& data, int permissions) {
  const std::string lock = NewLock("said");
  Tree tree;
  const std::string last_run = tree.Create(lock + "/last-run", ZnodeKind::kPersistent, data);
  tree.SetAcl(last_run, permissions);
  return SaidBy({"exclusive", "--verbose", "--history", "8", lock, "--", "true"}, 0);
}

std::string HistoryWrittenTo() {
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "--verbose", "--history", "8"});
  Tree tree;
  tree.WaitForChildren(lock, 2);
  tree.SetData(lock + "/last-run", "");
  CHECK(Finish(holder) == Exited(0));
  return holder.err();
}

std::string PlaceLost() {
  auto [lock, holder] = HoldNewLock("said");
  Proxy proxy(TestServers());
  Child waiter = StartWaiter({"exclusive", "-z", proxy.address(), "--session-timeout", "4s"}, lock);
  proxy.Freeze();
  Tree().WaitForChildren(lock, 1);
  proxy.Thaw();
  waiter.ReadErrUntil("queued again");
  waiter.ReadErrUntil("\n");
  return waiter.err();
}

/// A waiter that requests the session timeout `asked`, but is granted 4 s at first and 12 s when it
/// reconnects.
std::string WaiterOfRareServers(const std::string& asked, const Exit& end) {
  auto [lock, holder] = HoldNewLock("said");
  Regranted regranted(TestServers(), {4'000, 12'000});
  Child waiter = StartWaiter(
      {"exclusive", "--session-timeout", asked, "-z", regranted.proxy().address()}, lock);
  waiter.CloseInput();
  regranted.CutUntilLeaseIsShort();
  holder.CloseInput();
  CHECK(waiter.Wait() == end);
  return waiter.err();
}

std::string PlainProgress() {
  auto [lock, holder] = HoldNewLock("said");
  Child waiter = Child::Start(Zklock({"exclusive", lock, "--", "true"}));
  waiter.ReadErrUntil("\n");
  holder.CloseInput();
  CHECK(waiter.Wait() == Exited(0));
  return waiter.err();
}

/// Returns the progress of the second waiter, on a LOCK with a history of `runs` runs.
std::string ProgressOfSecond(int runs) {
  const std::string path = NewLock("said");
  lock::RunHistory history;
  for (int i = 1; i <= runs; ++i) {
    history.Enter({.end = lock::RunRecord::End::kEnded,
                   .duration = std::chrono::hours(i),
                   .status = 0,
                   .token = i});
  }
  Tree().Create(path + "/last-run", ZnodeKind::kPersistent, history.Format(runs));
  const Child holder = StartHolder(path);
  const Child first = StartWaiter(path);
  Child waiter = Child::Start(Zklock({"exclusive", path, "--", "true"}));
  // If the look-up takes too long, only the next line shows the history.
  waiter.ReadErrUntil("; runs take ", 2 * kPatience);
  waiter.ReadErrUntil("\n");
  return waiter.err();
}

ChildOptions OnTerminal(ChildOptions options) {
  options.also_environment.push_back("TERM=xterm");
  options.also_environment.push_back("COLUMNS=400");
  return options;
}

/// Splits the redraws of a line on a screen into lines.
std::string AsLines(std::string screen) {
  for (char& c : screen) {
    if (c == '\r' || c == '\x1b') c = '\n';
  }
  return screen;
}

std::string Renewed() {
  const std::string lock = NewLock("said");
  RunZklock({"exclusive", "--reserve", "ci", "--for", "1h", lock}, Exited(0));
  Child second = Child::StartOnTerminal(
      OnTerminal(Zklock({"exclusive", "--reserve", "ci", "--for", "2h", lock})));
  CHECK(second.Wait() == Exited(0));
  return AsLines(second.out());
}

std::string LiveProgress(const std::string& lock) {
  const Child holder = StartHolder(lock);
  Proxy proxy(TestServers());
  Child waiter = Child::StartOnTerminal(
      OnTerminal(ZklockAt(proxy.address(), {"exclusive", lock, "--", "true"})));
  waiter.Resize(24, 400);
  waiter.ReadUntil(") for ");
  waiter.ReadUntil("\x1b");
  proxy.Freeze();
  waiter.ReadUntil("; no server answers");
  return AsLines(waiter.out());
}

std::string Looking() {
  const Peer peer(Peer::Manner::kSaysNothing);
  Child run = Child::StartOnTerminal(
      OnTerminal(ZklockAt(peer.address(), {"exclusive", NewLock("said"), "--", "true"})));
  run.ReadUntil("looking for a server, 1s");
  run.Signal(SIGTERM);
  CHECK(run.Wait() == Exited(128 + SIGTERM));
  return AsLines(run.out());
}

std::string ProgressOfFirst(const std::string& lock) {
  Child holder = StartHolder(lock);
  Proxy proxy(TestServers());
  proxy.Delay(std::chrono::milliseconds(600));  // too slow for this session
  Child waiter = Child::StartOnTerminal(OnTerminal(
      ZklockAt(proxy.address(), {"exclusive", "--session-timeout", "4s", lock, "--", "true"})));
  waiter.Resize(24, 400);
  waiter.ReadUntil(") for ");
  holder.CloseInput();
  waiter.ReadUntil("; confirming the session");
  return waiter.out();
}

std::string StoppedLooking() {
  Child waiter = Child::StartOnTerminal(OnTerminal(Zklock(
      {"exclusive", "-z", "127.0.0.1:1", "--connect-timeout", "50s", "/said", "--", "true"})));
  waiter.Resize(24, 400);
  waiter.ReadUntil("looking for a server");
  waiter.Signal(SIGINT);
  CHECK_FALSE(waiter.Wait() == Exited(0));
  CHECK_THAT(waiter.out(), !Catch::Contains("left the queue"));
  return waiter.out();
}

std::string ProgressOfPermits(const std::string& lock) {
  const Child first = StartHolder({"exclusive", "--permits", "2"}, lock);
  const Child second = StartHolder({"exclusive", "--permits", "2"}, lock);
  Child waiter = Child::StartOnTerminal(
      OnTerminal(Zklock({"exclusive", "--permits", "2", lock, "--", "true"})));
  waiter.Resize(24, 400);
  waiter.ReadUntil(", and 1 more");
  return waiter.out();
}

}  // namespace

Provocations QueueProvocations() {
  const std::string taken = NewLock("said");
  return {
      {{"kTaken"}, [taken] { return Taken(taken); }},
      {{Saying("kWaitOver").With({"", "1ms", ""})}, WaitOver},
      {{"kTaken"}, OneOfSetTaken},
      {{"kTaken", Part("kMoreHold", ", and 1 more")}, [] { return PermitsTaken({"try"}); }},
      {{Saying("kWaitOver").With({"", "1ms", ""}), Part("kMoreHold", ", and 1 more")},
       [] {
         return PermitsTaken({"exclusive", "--wait", "1ms"});
       }},
      {{Saying("kWaitOver").With({"", "1ms", ""}),
        Part("kBlockerHolds", ": it is held by a command (pid 4711 on h7)")},
       WaitOverBehindWaiter},
      {{Part("kIsHeld", "held: a command (pid 4711 on h7) is ahead"),
        Part("kBlocker", ": a command (pid 4711 on h7) is ahead")},
       WriterAhead},
      {{Part("kIsHeldBy", "held by a command (pid 4711 on h7)"),
        Part("kProcess", "a command (pid 4711 on h7)"), Part("kSomeCommand")},
       [] { return TakenBy(R"({"host":"h7","pid":4711})"); }},
      {{Part("kLabelledProcess", "a command (pid 4711 on h7, 'nightly')")},
       [] { return TakenBy(R"({"host":"h7","pid":4711,"label":"nightly"})"); }},
      {{"kQueueFull", Part("kManyWait", "already has 1 or more waiters")},
       [] { return QueueFull("1"); }},
      {{"kQueueFull", Part("kNoneMayWait")}, [] { return QueueFull("0"); }},
      {{"kSuperseded"}, Superseded},
      {{"kRemoved"}, Removed},
      {{"kNoneFree"}, [] { return NoneOfTwo({"try"}); }},
      {{Saying("kNoneBecameFree").With({"", "1ms"})},
       [] {
         return NoneOfTwo({"exclusive", "--wait", "1ms"});
       }},
      {{"kAllQueuesFull"},
       [] {
         return NoneOfTwo({"exclusive", "--max-queue", "0"});
       }},
      {{"kRemovedFromAll", "kLeftDeleted"}, RemovedFromTwo},
      {{"kLeftAsked"}, [] { return ReleasedOneOfTwo({}); }},
      {{"kLeftTaken"}, [] { return ReleasedOneOfTwo({"--force"}); }},
      {{"kLeftDeleted"}, DeletedOneOfTwo},
      {{"kLeftFull"}, OneOfTwoFull},
      {{"kLeftRival"}, LeftToRival},
      {{"kAskedToLeave"}, AskedToLeave},
      {{"kReleaseRequested", Part("kAsker", "me ('for fun')")},
       [] { return HolderWrittenTo(R"({"revoke":{"by":"me","reason":"for fun"}})"); }},
      {{Part("kSomeone")}, [] { return HolderWrittenTo(R"({"revoke":{}})"); }},
      {{Part("kCuratorProgram")}, [] { return HolderWrittenTo("__REVOKE__"); }},
      {{"kInterrupted"}, StoppedWaiting},
      {{"kInterrupted", Part("kAnyOf"), Part("kOneOfSeveral")}, StoppedWaitingForAny},
      {{Part("kStillLooking",
             "SIGINT while looking for a server: 127.0.0.1:1 (Connection refused); /said was not "
             "queued for; the command was not run")},
       StoppedLooking},
      {{Saying("kMayRemain").With({"SIGTERM", "", "30s"}), "kMayBeLeft"}, StoppedWaitingUnanswered},
      {{Saying("kTooRecent").With({"", "succeeded", "", "[\\d.]+m?s", "--min-interval", "1h"})},
       [] { return RanLately("--min-interval"); }},
      {{Saying("kTooRecent").With({"", "started", "", "[\\d.]+m?s", "--once-per", "1h"})},
       [] { return RanLately("--once-per"); }},
      {{"kNoneReserved"},
       [] {
         const std::string lock = NewLock("said");
         return SaidBy({"exclusive", "--any", "--resume", "ci", lock, lock + "2", "--", "true"},
                       75);
       }},
      {{"kNotResumed"},
       [] {
         return SaidBy({"exclusive", "--resume", "ci", NewLock("said"), "--", "true"}, 75);
       }},
      {{"kNotResumed", Part("kButReserved", ", but for freeze")},
       [] {
         const std::string lock = NewLock("said");
         Reserve(lock);
         const Words words = {"exclusive", "--resume", "ci", lock, "--", "true"};
         CHECK_THAT(RunZklock({"exclusive", "--dry-run", "--resume", "ci", lock, "--", "true"}).out,
                    Catch::Contains("is not (or no longer) reserved for ci, but for freeze\n"));
         return SaidBy(words, 75);
       }},
      {{"kRenewed"}, Renewed},
      {{"kStaysEndless"},
       [] {
         const std::string lock = NewLock("said");
         Reserve(lock);
         return SaidBy({"exclusive", "--reserve", "freeze", "--for", "1h", lock}, 0);
       }},
      {{"kReasonKept"},
       [] {
         const std::string lock = NewLock("said");
         Reserve(lock);
         return SaidBy({"exclusive", "--reserve", "freeze", "--reason", "other", lock}, 0);
       }},
      {{Saying("kPreempted").With({"1", "", ""})}, [] { return PreemptedBy("all"); }},
      {{"kNobodyAsked", Part("kLeft"), Part("kMoreLeft", " and 1 more"),
        Part("kLeftProgram", "of another program")},
       [] { return PreemptsOthers("{}", false); }},
      {{"kNobodyAsked", Part("kLeftRight", "we lack permission to write to it")},
       [] { return PreemptsOthers("{}", true); }},
      {{"kNobodyAsked", Part("kLeftQuota", "a hard quota leaves no room for the request")},
       PreemptsWithinQuota},
      {{"kNobodyAsked", Part("kLeftReservation", "a reservation")}, PreemptsReservation},
      {{"kAskedNobody",
        Part("kTooSoonNow",
             "--once-per or --min-interval would keep the command from running now")},
       [] { return PreemptsTooSoon(kRead | kWrite, 75); }},
      {{"kAskedNobody",
        Part("kRecordUnusable", "a record that --once-per or --min-interval needs cannot be used")},
       [] { return PreemptsTooSoon(kWrite, 77); }},
      {{"kAskedNobody", Part("kMayNotReserve", "we lack permission to reserve the lock")},
       PreemptsWithoutDelete},
      {{"kNotRecorded"}, NotRecorded},
      {{"kForeignLastRun"}, [] { return RunWithHistory("yesterday", kRead | kWrite | kAdmin); }},
      {{"kLastRunRefused"}, [] { return RunWithHistory("", kRead | kAdmin); }},
      {{"kLastRunFailed"}, HistoryWrittenTo},
      {{"kReserved", "kAlreadyReserved", Part("kUntil")}, ReservedTwice},
      {{"kReservationEnded", Part("kEndedAt")}, ReservationEnds},
      {{Part("kHadLostPermit")}, ReservationLosesPermit},
      {{"kReservationOverdue"}, ReservationOverdue},
      {{"kTaken", Part("kIsReserved", "reserved for freeze")},
       [] { return KeptOutByReservation("0"); }},
      {{Saying("kWaitOver").With({"", "1ms", ""}),
        Part("kBlockerReserved", ": it is reserved for freeze")},
       [] { return KeptOutByReservation("1ms"); }},
      {{Part("kReservedFor", "; reserved for freeze")}, WaitsForReservation},
      {{"kOpenLock"}, OpenLock},
      {{"kPlaceLost"}, PlaceLost},
      {{Saying("kSessionTooShort").With({"", "4s", "3s", "12s"})},
       [] { return WaiterOfRareServers("4s", Exited(0)); }},
      {{Saying("kPingsTooRare").With({"", "4s", "3s"})},
       [] { return WaiterOfRareServers("12s", Exited(69)); }},
      {{"kProgress", Part("kNextInLine", "next in line, "),
        Saying("kAcquiredAfter").With({"", "\\d+s"})},
       PlainProgress},
      {{Part("kWaitingAhead", "1 waiting ahead, "), Part("kRunsTakeBetween", "runs take 1h to 2h")},
       [] { return ProgressOfSecond(2); }},
      {{Part("kRunsTake", "runs take 1h")}, [] { return ProgressOfSecond(1); }},
      {{Part("kLooking")}, Looking},
      {{"kProgress", Part("kHeldBy", "; held by sh (pid "), Part("kHeldFor", " for "),
        Part("kNoAnswer")},
       [] { return LiveProgress(NewLock("said")); }},
      {{Part("kConfirming", "; confirming the session")},
       [] { return ProgressOfFirst(NewLock("said")); }},
      {{Part("kMoreHold", ", and 1 more")}, [] { return ProgressOfPermits(NewLock("said")); }},
  };
}

}  // namespace zklock::test
