// Messages about a run: its command, its events, and system errors.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>

#include "cli/messages/provocation.h"
#include "support/contender_names.h"
#include "support/peer.h"
#include "support/stalled_pipe.h"
#include "support/temporary.h"

namespace zklock::test {
namespace {

std::string WrongVariable() {
  ChildOptions options = Zklock({"inspect", "lock"});
  options.also_environment = {"ZKLOCK_ROOT=relative"};
  return Said(Run(options), Exited(64));
}

std::string ForeignConfig() {
  const TemporaryDirectory directory;
  const std::string file = directory.Path("zklock.conf");
  ChildOptions options = Zklock({"inspect", "-v", "/t"});
  if (geteuid() == 0) {
    REQUIRE(!directory.Write("zklock.conf", "").empty());
    REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
  } else {
    // In that namespace, root's files belong to an unknown user.
    REQUIRE(symlink("/etc/passwd", file.c_str()) == 0);
    options.argv.insert(options.argv.begin(), {"/usr/bin/unshare", "--user", "--map-root-user"});
  }
  options.also_environment = {"ZKLOCK_CONFIG=", "XDG_CONFIG_HOME=" + directory.path()};
  return Said(Run(options), Exited(0));
}

/// Returns the message about a user's file that `spoil` has changed.
std::string SpoiltConfig(const std::function<void(const std::string& file)>& spoil) {
  const TemporaryDirectory directory;
  REQUIRE(!directory.Write("zklock.conf", "").empty());
  spoil(directory.Path("zklock.conf"));
  ChildOptions options = Zklock({"inspect", "/t"});
  options.also_environment = {"ZKLOCK_CONFIG=", "XDG_CONFIG_HOME=" + directory.path()};
  return Said(Run(options), Exited(78));
}

std::string OpenConfig() {
  return SpoiltConfig([](const std::string& file) { CHECK(chmod(file.c_str(), 0666) == 0); });
}

std::string LinkedConfig() {
  return SpoiltConfig([](const std::string& file) {
    CHECK(unlink(file.c_str()) == 0);
    CHECK(symlink("/dev/zero", file.c_str()) == 0);
  });
}

std::string LargeConfig() {
  return SpoiltConfig(
      [](const std::string& file) { CHECK(truncate(file.c_str(), off_t{65} * 1024) == 0); });
}

std::string CommandNotFound() {
  return SaidBy({"exclusive", NewLock("said"), "--", "no-such-program"}, 127);
}

std::string NoSuchFile() {
  return SaidBy({"exclusive", NewLock("said"), "--", "/no/such/program"}, 127);
}

std::string NotExecutable() {
  const TemporaryDirectory directory;
  return SaidBy({"exclusive", NewLock("said"), "--", directory.Write("script", "true\n")}, 126);
}

std::string NotExecuted() {
  const TemporaryDirectory directory;
  const std::string loop = directory.Path("loop");
  REQUIRE(symlink(loop.c_str(), loop.c_str()) == 0);
  return SaidBy({"exclusive", NewLock("said"), "--", loop}, 126);
}

std::string Steps() { return SaidBy({"exclusive", "-v", NewLock("said"), "--", "true"}, 0); }

std::string Waits() {
  auto [lock, holder] = HoldNewLock("said");
  return StartWaiter(lock).err();
}

std::string NothingOfOurs() {
  auto [lock, holder] = HoldNewLock("said");
  return SaidBy({"try", "-v", lock, "--", "true"}, 75);
}

std::string AncestorHolds() {
  const std::string lock = NewLock("said");
  return SaidBy({"exclusive", lock, "--", Binary(), "exclusive", "-v", lock, "--", "true"}, 0);
}

std::string SuspectAndConfirmed() {
  Proxy proxy(TestServers());
  auto [lock, holder] = HoldNewLock("said", {"exclusive", "-v", "-z", proxy.address()});
  proxy.Cut();
  holder.ReadErrUntil("confirmed");
  holder.Write("0\n");
  CHECK(holder.Wait() == Exited(0));
  return holder.err();
}

std::string NotConfirmed() {
  Proxy proxy(TestServers());
  const std::string lock = NewLock("said");
  Child holder = StartHolder({"exclusive", "-z", proxy.address()}, lock);
  proxy.Freeze();
  holder.Write("0\n");
  CHECK(holder.Wait() == Exited(0));
  // This is the only line, and it does not require -v.
  CHECK(holder.err() == "zklock: no server confirmed the release of " + lock +
                            ": it may stay held until the session ends, for about 30s\n");
  return holder.err();
}

std::string ShortSession() {
  return SaidBy({"exclusive", "--session-timeout", "6s", NewLock("said"), "--", "true"}, 0);
}

/// Asks for more than the servers' maxSessionTimeout.
std::string GrantedLess() {
  std::string said =
      SaidBy({"exclusive", "--session-timeout", "3m", NewLock("said"), "--", "true"}, 0);
  CHECK_THAT(said, Catch::Contains(", not of 3m as requested"));
  CHECK(Lines(said).size() == 1);
  return said;
}

std::string Stops(const Words& options, const std::string& end) {
  Child holder = StartHolder(options, NewLock("said"));
  holder.Signal(SIGTSTP);
  holder.ReadErrUntil(end);
  holder.WaitUntilStopped();
  holder.Signal(SIGCONT);
  holder.Write("0\n");
  CHECK(holder.Wait() == Exited(0));
  return holder.err();
}

std::string LeftBehind() {
  // The child has printed its pid before the command ends.
  Child child =
      Child::Start(Zklock({"exclusive", NewLock("said"), "--", "perl", "-e",
                           "$| = 1; pipe(my $read, my $write);"
                           "if (!fork) { print \"$$\\n\"; syswrite($write, 'x'); sleep 1000 }"
                           "sysread($read, my $text, 1); exit 0"}));
  const std::string pid = child.ReadLine();
  CHECK(child.Wait() == Exited(0));
  CHECK(kill(std::stoi(pid), SIGKILL) == 0);
  return child.err();
}

std::string Awaited() {
  Child child = Child::Start(Zklock({"exclusive", "--descendants", "wait", NewLock("said"), "--",
                                     "sh", "-c", "sleep 1000 & sleep 1000 & exit 0"}));
  child.ReadErrUntil("which it left behind");
  child.Signal(SIGTERM);  // passed on to both
  CHECK(child.Wait() == Exited(0));
  return child.err();
}

std::string GuardFailed() {
  Child child = Child::Start(
      Zklock({"exclusive", NewLock("said"), "--", "sh", "-c", "echo $PPID; exec sleep 1000"}));
  CHECK(kill(std::stoi(child.ReadLine()), SIGKILL) == 0);
  child.Wait();
  return child.err();
}

#ifndef ZKLOCK_SANITIZED  // the sanitizers need descriptors, too: see message_alone.cc
std::string TooFewDescriptors() {
  ChildOptions options = Zklock({"exclusive", NewLock("said"), "--", "true"});
  options.prepare = [] {
    ResetSignals();
    // Enough for zklock to be loaded and to read its arguments, but not to do its work.
    const rlimit few{9, 9};
    setrlimit(RLIMIT_NOFILE, &few);
  };
  return Said(Run(options), Exited(71));
}
#endif

std::string TooManyProcesses() {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("said");
  ChildOptions options = Zklock({"exclusive", lock, "--", "true"});
  // The leak checker would need one more process.
  options.also_environment.push_back("ASAN_OPTIONS=detect_leaks=0");
  Words through = {"/usr/bin/prlimit", "--nproc=0:0"};
  if (geteuid() == 0) {
    // The limit does not apply to processes of root.
    REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
    options.argv.front() = directory.Path("zklock");
    std::filesystem::copy_file(Binary(), options.argv.front());
    through.insert(through.begin(),
                   {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  }
  options.argv.insert(options.argv.begin(), through.begin(), through.end());
  const std::string said = Said(Run(options), Exited(71));
  CHECK(Tree().Children(lock).empty());  // zklock left the queue, though it could run no command
  return said;
}

std::string LinesDropped() {
  StalledPipe pipe;
  // Each line shows a label of 3000 bytes; the sink keeps 64 KB.
  const std::string lock = NewLock("said");
  Words words = {"release", "--all", "--yes", lock};
  Tree tree;
  const std::string data =
      R"({"v":1,"host":"h","pid":1,"label":")" + std::string(3000, 'x') + "\"}";
  for (int i = 0; i < 40; ++i) {
    tree.Create(lock + "/" + kZklockLock, ZnodeKind::kEphemeralSequential, data);
  }
  Proxy proxy(TestServers());
  ChildOptions options = ZklockAt(proxy.address(), words);
  options.prepare = [fd = pipe.write.get()] {
    ResetSignals();
    dup2(fd, STDERR_FILENO);
  };
  Child child = Child::Start(options);
  pipe.write.Reset();
  proxy.WaitForConnections(2);  // by now, the list of contenders has overfilled the sink
  // Do not wait for its end yet: it writes the rest while the test reads.
  std::string said;
  fcntl(pipe.read.get(), F_SETFL, 0);
  std::string buffer(4096, '\0');
  for (ssize_t size; (size = read(pipe.read.get(), buffer.data(), buffer.size())) > 0;) {
    said.append(buffer, 0, static_cast<std::size_t>(size));
  }
  CHECK(child.Wait() == Exited(0));
  return said;
}

/// The names of the LOCKs together are longer than a variable can be.
std::string ManyLongNames() {
  const std::string lock = NewLock("said") + "/" + std::string(1'200, 'x');
  Words words = {"exclusive"};
  for (int i = 0; i < 110; ++i) words.push_back(lock + std::to_string(i));
  return SaidBy(words + Words{"--", "true"}, 126);
}

std::string EventsWithoutReader() {
  const TemporaryDirectory directory;
  const std::string fifo = directory.Path("events");
  CHECK(mkfifo(fifo.c_str(), 0600) == 0);
  return SaidBy({"exclusive", "--events", fifo, NewLock("said"), "--", "true"}, 71);
}

std::string EventsUnread() {
  const StalledPipe pipe;
  ChildOptions options = Zklock(
      {"exclusive", "--events", std::to_string(pipe.write.get()), NewLock("said"), "--", "true"});
  options.inherit = {pipe.write.get()};
  return Said(Run(std::move(options)), Exited(0));
}

}  // namespace

Provocations RunProvocations() {
  return {
      {{Part("kTry", "try 'zklock inspect --help'")},
       [] {
         return SaidBy({"inspect", "/a/"}, 64);
       }},
      {{"kFromVariable"}, WrongVariable},
      {{"kFileUnused", Part("kOtherUsersFile")}, ForeignConfig},
      {{"kFileOpenToOthers"}, OpenConfig},
      {{"kFileNotRegular"}, LinkedConfig},
      {{"kFileTooLarge"}, LargeConfig},
      {{"kNotFound"}, CommandNotFound},
      {{"kNoSuchFile"}, NoSuchFile},
      {{"kQuotedLine"},
       [] {
         return SaidBy({"exclusive", NewLock("said"), "--", "ls -l /tmp"}, 127);
       }},
      {{"kNotExecutable"}, NotExecutable},
      {{"kNotExecuted"}, NotExecuted},
      {{Saying("kConnected").With({"", "30s"}), "kQueued", "kAcquired", "kRunning",
        Saying("kExited").With({"0"}), "kReleased"},
       Steps},
      {{"kVariableTooLong"}, ManyLongNames},
      {{"kWaiting"}, Waits},
      {{"kNoContenderLeft"}, NothingOfOurs},
      {{"kNested"}, AncestorHolds},
      {{"kSuspect", "kConfirmed"}, SuspectAndConfirmed},
      {{Saying("kNotConfirmed").With({"", "30s"})}, NotConfirmed},
      {{Saying("kShortSession").With({"6s"})}, ShortSession},
      {{Saying("kGrantedLess").With({"40s", "3m"})}, GrantedLess},
      {{Part("kNoEventsReader")}, EventsWithoutReader},
      {{"kEventsUnwritten"},
       [] {
         return SaidBy({"exclusive", "--events", "/dev/full", NewLock("said"), "--", "true"}, 0);
       }},
      {{"kEventsUnwritten", Part("kEventsUnread", "their reader does not read them in time")},
       EventsUnread},
      {{"kSuspending"}, [] { return Stops({"exclusive"}, "will be terminated before then"); }},
      {{Saying("kSuspendingUnguarded").With({"", "2\\d(\\.\\d)?s"})},
       [] {
         return Stops({"exclusive", "--on-lost", "warn"}, "(--on-lost warn)");
       }},
      {{"kSuspendingReserved"},
       [] {
         return Stops({"exclusive", "--reserve", "said", "--max-run", "20s"}, "(--max-run)");
       }},
      {{"kSuspendingLimited"},
       [] {
         return Stops({"exclusive", "--max-run", "20s"}, "(--max-run)");
       }},
      {{"kLeftBehind"}, LeftBehind},
      {{"kAwaited", Part("kMoreAwaited").With({"1"})}, Awaited},
      {{Part("kLeftBy", "what sh left behind")},
       [] {
         return SaidBy({"exclusive", "--max-run", "100ms", "--descendants", "wait", NewLock("said"),
                        "--", "sh", "-c", "sleep 1000 & exit 0"},
                       124);
       }},
      {{"kGuardFailed"}, GuardFailed},
#ifndef ZKLOCK_SANITIZED
      {{"kNoDescriptors"}, TooFewDescriptors},
#endif
      {{"kNoProcesses"}, TooManyProcesses},
      {{"kDropped"}, LinesDropped},
  };
}

}  // namespace zklock::test
