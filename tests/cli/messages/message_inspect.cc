// Messages of inspect.

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "cli/messages/provocation.h"
#include "support/own_server.h"
#include "support/peer.h"

namespace zklock::test {
namespace {

/// `zklock WORDS` with its standard output on a full disk.
std::string IntoNowhere(const Words& words) {
  ChildOptions options = Zklock(words);
  options.prepare = [] {
    ResetSignals();
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
  };
  return Said(Run(options), Exited(71));
}

std::string Unlistable() {
  // On the tests' shared servers, other tests that inspect them would also report these LOCKs.
  const OwnServer server({});
  Tree tree("", server.address());
  for (const char* place : {"/a", "/b", "/c"}) tree.SetAcl(tree.Create(place), kAdmin);
  return Said(Run(ZklockAt(server.address(), {"inspect", "--root", "/"})), Exited(0));
}

/// `inspect --history` of a LOCK whose last-run has this data.
std::string History(const std::string& data, int permissions, int status) {
  const std::string lock = NewLock("said");
  Tree tree;
  tree.SetAcl(tree.Create(lock + "/last-run", ZnodeKind::kPersistent, data), permissions);
  return SaidBy({"inspect", "--history", lock}, status);
}

std::string NoLongerMine() {
  const std::string lock = NewLock("said");
  ChildOptions options = Zklock({"exclusive", "--on-lost", "warn", lock, "--", "sh", "-c",
                                 "echo held; read go; \"$0\" inspect --mine", Binary()});
  options.keep_stdin = true;
  Child holder = Child::Start(options);
  REQUIRE(holder.ReadLine() == "held");
  Tree tree;
  tree.Delete(lock + "/" + tree.Children(lock).at(0));
  holder.Write("go\n");
  CHECK(holder.Wait() == Exited(76));
  return holder.err();
}

std::string Outage() {
  Proxy proxy(TestServers());
  ChildOptions options = ZklockAt(proxy.address(), {"inspect", "--watch", "/t"});
  options.also_environment.emplace_back("TERM=xterm");
  Child watcher = Child::StartOnTerminal(options);
  watcher.ReadUntil("\x1b[J");
  proxy.Freeze();
  proxy.Cut();
  watcher.ReadUntil("this is the state as of 20");
  return watcher.out();
}

}  // namespace

Provocations InspectProvocations() {
  return {
      {{Part("kOutage", "no server answers: this is the state as of 20")}, Outage},
      {{"kUnlistable", Part("kMorePaths", " and 2 more")}, Unlistable},
      {{"kNothingBelow"},
       [] {
         return SaidBy({"inspect", "--dot", NewLock("said")}, 0);
       }},
      {{"kNoChroot"},
       [] {
         return SaidBy({"inspect", "-z", TestServers() + "/nowhere"}, 0);
       }},
      {{"kCannotPrint"},
       [] {
         return IntoNowhere({"--help"}) + IntoNowhere({"inspect", "/t"});
       }},
      {{"kCannotReplace"},
       [] {
         return SaidBy({"inspect", "--prometheus", "--output", "/nowhere/x", "/t"}, 71);
       }},
      {{"kCannotReplace", Part("kNoPlainFile", "it is not a regular file")},
       [] {
         return SaidBy({"inspect", "--prometheus", "--output", "/dev/null", "/t"}, 71);
       }},
      {{"kHistoryForeign"}, [] { return History("yesterday", kRead, 78); }},
      {{"kHistoryUnread"}, [] { return History("", kWrite, 77); }},
      {{"kNothingMine"},
       [] {
         return SaidBy({"inspect", "--mine"}, 76);
       }},
      {{"kNotMine"},
       [] {
         return SaidBy({"inspect", "--mine", NewLock("said")}, 76);
       }},
      {{"kNoLongerMine"}, NoLongerMine},
      {{"kNoServerReached"},
       [] {
         return Said(Run(ZklockAt("127.0.0.1:1", {"inspect", "--servers-report"})), Exited(69));
       }},
  };
}

}  // namespace zklock::test
