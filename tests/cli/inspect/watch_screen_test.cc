// `zklock inspect` on a real terminal.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cctype>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/zklock.h"
#include "support/peer.h"
#include "support/temporary.h"
#include "support/wait.h"

namespace zklock::test {
namespace {

void SetTerminalSize(int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
}

constexpr const char* kFrameEnd = "\x1b[J\x1b[?2026l";

/// Starts `zklock inspect ARGUMENTS` on a terminal of this size.
Child InspectOnTerminal(Words arguments, int rows, int columns, const Words& environment = {}) {
  arguments.insert(arguments.begin(), "inspect");
  ChildOptions options = Zklock(arguments);
  options.also_environment = {"TERM=xterm-256color", "NO_COLOR="};
  for (const std::string& one : environment) options.also_environment.push_back(one);
  // Sets the terminal's size before zklock reads it.
  options.prepare = [rows, columns] {
    ResetSignals();
    SetTerminalSize(rows, columns);
  };
  return Child::StartOnTerminal(options);
}

/// Returns the lines of the latest frame, without escape sequences.
Words NextFrame(Child& child) {
  const std::string drawn = child.ReadUntil(kFrameEnd);
  const std::size_t begin = drawn.rfind("\x1b[?2026h\x1b[H");
  REQUIRE(begin != std::string::npos);
  Words lines{""};
  for (std::size_t i = begin; i < drawn.size(); ++i) {
    if (drawn[i] == '\x1b') {
      while (!std::isalpha(static_cast<unsigned char>(drawn[++i]))) {
      }
    } else if (drawn[i] == '\n') {
      lines.emplace_back();
    } else if (drawn[i] != '\r') {
      lines.back() += drawn[i];
    }
  }
  return lines;
}

/// Reads frames until one begins with `first_line`.
Words FrameWith(Child& child, const std::string& first_line) {
  Words frame = NextFrame(child);
  while (frame.front() != first_line) frame = NextFrame(child);
  return frame;
}

TEST_CASE("--watch cuts the lines about an outage and about znodes that cannot be listed") {
  Proxy proxy(TestServers());
  Tree tree;
  const std::string root = NewLock("narrow");
  tree.SetAcl(tree.Create(root + "/closed"), kAdmin);
  const Words words = {"--watch", "-z", proxy.address(), root};
  Child watcher = InspectOnTerminal(words, 24, 40);
  Words frame = NextFrame(watcher);
  const auto check = [&frame](const std::string& beginning) {
    const auto found = std::find_if(frame.begin(), frame.end(), [&](const std::string& line) {
      return line.starts_with(beginning);
    });
    REQUIRE(found != frame.end());
    CHECK_THAT(*found, Catch::EndsWith("…"));
    // The trailing ellipsis takes three bytes but only one column.
    CHECK(found->size() <= 40 + 2);
  };
  check("not authorised to list ");
  proxy.Freeze();
  proxy.Cut();
  while (!frame.front().starts_with("no server answers")) frame = NextFrame(watcher);
  check("no server answers: ");
  check("not authorised to list ");
}

TEST_CASE("--watch warns even on a full screen that some locks may not be listed") {
  Tree tree;
  const std::string root = NewLock("full");
  for (int i = 10; i < 30; ++i) {
    tree.Create(root + "/l" + std::to_string(i) + "/build-", ZnodeKind::kEphemeralSequential);
  }
  tree.SetAcl(tree.Create(root + "/closed"), kAdmin);
  Proxy proxy(TestServers());
  const auto is_silent = std::make_shared<std::atomic<bool>>(false);
  const auto is_asked = std::make_shared<std::atomic<bool>>(false);
  proxy.EditReplies([=](const std::string& request, std::string real) {
    const bool is_answer = !request.empty() && request != "ping";  // empty: a watch event
    if (!*is_silent || !is_answer) return std::optional(std::move(real));
    *is_asked = true;
    return std::optional<std::string>();
  });
  Child watcher = InspectOnTerminal({"--watch", "-z", proxy.address(), root}, 14, 80);
  Words frame = NextFrame(watcher);
  if (!frame.back().starts_with("not authorised")) frame = NextFrame(watcher);
  CHECK(frame.size() == 14);
  const std::string denied = "not authorised to list " + root + "/closed";
  CHECK_THAT(frame.back(), Catch::StartsWith(denied));
  // The outage begins during the next survey, before its picture is drawn.
  *is_silent = true;
  tree.Create(root + "/l10/build-", ZnodeKind::kEphemeralSequential);
  WaitUntil([&] { return is_asked->load(); }, "the next survey");
  proxy.Freeze();
  proxy.Cut();
  while (!frame.front().starts_with("no server answers")) frame = NextFrame(watcher);
  CHECK(frame.size() == 14);
  CHECK_THAT(frame.back(), Catch::StartsWith(denied));
}

TEST_CASE("--watch says that the chroot does not exist, until the lock does") {
  const std::string chroot = "/" + NewLock("chroot").substr(3);
  const std::string servers = TestServers() + chroot;
  const std::string missing = "the chroot " + chroot + " does not exist";
  Child lines = Child::Start(Zklock({"inspect", "--watch", "-z", servers, "/l"}));
  lines.ReadLine();
  lines.ReadErrUntil("zklock: " + missing);
  Child watcher = InspectOnTerminal({"--watch", "-z", servers, "/l"}, 24, 80);
  const Words frame = NextFrame(watcher);
  REQUIRE(frame.size() == 2);
  CHECK(frame[0] == "/l: free (it does not exist)");
  CHECK_THAT(frame[1], Catch::StartsWith(missing));
  CHECK(RunZklock({"exclusive", "-z", servers, "/l", "--", "true"}).exit == Exited(0));
  Words next = NextFrame(watcher);
  while (next.front() != "/l: free") next = NextFrame(watcher);
  Tree().Delete(chroot + "/l");
  while (next.front() == "/l: free") next = NextFrame(watcher);
  CHECK(next == Words{"/l: free (it does not exist)"});
}

TEST_CASE("on a terminal --watch redraws the queue in place") {
  const std::string lock = NewLock("screen");
  Child watcher = InspectOnTerminal({"--watch", lock}, 24, 80);
  CHECK_THAT(watcher.ReadUntil("\x1b[?25l"), Catch::StartsWith("\x1b[?1049h"));
  CHECK(NextFrame(watcher) == Words{lock + ": free (it does not exist)"});

  Child holder = StartHolder(lock);
  const Words frame = FrameWith(watcher, lock + ": held by 1, 0 waiting");
  REQUIRE(frame.size() == 4);
  CHECK_THAT(frame[2], Catch::StartsWith("POS  STATE  MODE"));
  CHECK_THAT(frame[3], Catch::Contains(std::to_string(holder.pid())));
  {
    Child waiter = StartWaiter(lock);
    CHECK(FrameWith(watcher, lock + ": held by 1, 1 waiting").back() == "2 waits for 1");
    waiter.Signal(SIGTERM);
    waiter.Wait();
  }
  FrameWith(watcher, lock + ": held by 1, 0 waiting");
  holder.CloseInput();
  holder.Wait();
  FrameWith(watcher, lock + ": free");

  watcher.Write("\x03");
  watcher.ReadToEnd();
  // The wait status tells the shell that zklock was interrupted.
  CHECK(watcher.Wait() == Killed(SIGINT));
  // The terminal has been restored by the time the kernel echoes the key, which can be late.
  CHECK_THAT(watcher.out(),
             Catch::EndsWith("\x1b[?25h\x1b[?1049l") || Catch::EndsWith("\x1b[?25h\x1b[?1049l^C"));
}

TEST_CASE("--watch ends as if by HUP when its terminal is closed, even if HUP is ignored") {
  const TemporaryDirectory directory;
  const std::string lock = NewLock("screen");
  ChildOptions options = Zklock({"inspect", "--watch", lock});
  options.also_environment = {"TERM=xterm-256color"};
  const std::string log = directory.Path("log");
  options.prepare = [&log] {
    ResetSignals();
    signal(SIGHUP, SIG_IGN);
    dup2(open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
  };
  Child watcher = Child::StartOnTerminal(options);
  watcher.ReadUntil(kFrameEnd);
  watcher.HangUp();
  const Child holder = StartHolder(lock);
  CHECK(watcher.Wait() == Exited(128 + SIGHUP));
  CHECK(directory.Read("log").empty());
}

TEST_CASE("on a terminal that cannot move the cursor --watch prints lines") {
  const Words term = GENERATE(Words{"TERM=dumb"}, Words{"TERM="}, Words{"-u", "TERM"});
  CAPTURE(term);
  const std::string lock = NewLock("screen");
  ChildOptions options = Zklock({"inspect", "--watch", lock});
  options.argv.insert(options.argv.begin(), term.begin(), term.end());
  options.argv.insert(options.argv.begin(), "/usr/bin/env");
  Child watcher = Child::StartOnTerminal(options);
  REQUIRE_THAT(watcher.ReadUntil("\n"), Catch::StartsWith("{\"lock\":"));
  const Child holder = StartHolder(lock);
  REQUIRE_THAT(watcher.ReadUntil("\n"), Catch::Contains(std::to_string(holder.pid())));
  watcher.Write("\x03");
  watcher.ReadToEnd();
  CHECK(watcher.Wait() == Killed(SIGINT));
  CHECK(watcher.out().find('\x1b') == std::string::npos);
}

TEST_CASE("a resize redraws the screen for the new size") {
  const std::string lock = NewLock("screen");
  Child holder = StartHolder({"exclusive", "--label", "https://ci.example/job/4711"}, lock);
  Child watcher = InspectOnTerminal({"--watch", lock}, 24, 200);
  const std::string title = lock + ": held by 1, 0 waiting";
  const std::string label = "  https://ci.example/job/4711  ";
  CHECK_THAT(FrameWith(watcher, title)[3], Catch::Contains(label));
  // Frames of the old size may precede the new one.
  const auto wait_for = [&](bool is_whole) {
    while ((FrameWith(watcher, title)[3].find(label) != std::string::npos) != is_whole) {
    }
  };
  watcher.Resize(24, 60);
  wait_for(false);
  watcher.Resize(24, 200);
  wait_for(true);
}

TEST_CASE("the times on the screen advance without requests to the servers") {
  const std::string lock = NewLock("screen");
  Proxy proxy(TestServers());
  const Child holder = StartHolder(lock);
  Child watcher = InspectOnTerminal({"--watch", lock}, 24, 100,
                                    {"ZKLOCK_SERVERS=" + proxy.address(), "NO_COLOR=1"});
  const auto requests = [&] {
    const std::string ping("\xff\xff\xff\xfe\0\0\0\x0b", 8);
    const auto all = proxy.Requests();
    return std::count_if(all.begin(), all.end(), [&](const std::string& one) {
      return one.find(ping) == std::string::npos;
    });
  };
  const Words first = FrameWith(watcher, lock + ": held by 1, 0 waiting");
  const auto sent = requests();
  Words later = NextFrame(watcher);
  while (later == first) later = NextFrame(watcher);
  CHECK(requests() == sent);
}

TEST_CASE("a long queue is cut to the screen, and the rest is counted") {
  const std::string lock = NewLock("screen");
  Tree tree;
  tree.Create(lock);
  for (int i = 0; i < 50; ++i) {
    tree.Create(lock + "/_c_x-lock-", ZnodeKind::kEphemeralSequential, "10.0.0.1");
  }
  Child watcher = InspectOnTerminal({"--watch", lock}, 20, 80);
  const Words frame = FrameWith(watcher, lock + ": held by 1, 49 waiting");
  CHECK(frame.size() == 20);
  CHECK(std::find(frame.begin(), frame.end(), "... and 36 more") != frame.end());
  CHECK(frame.back() == "2 to 14 wait, each for the one before it");
}

TEST_CASE("Ctrl-Z restores the screen, and fg redraws it") {
  const std::string lock = NewLock("screen");
  ChildOptions options = Zklock({});
  options.argv = {"bash", "--norc", "--noprofile", "-i"};
  options.also_environment = {"TERM=xterm", "PS1=", "HISTFILE=", "Z=" + Binary(), "L=" + lock};
  Child shell = Child::StartOnTerminal(options);
  shell.Resize(24, 80);
  shell.Write("PS1='rea''dy> '\n");
  shell.ReadUntil("ready> ");
  shell.Write("$Z inspect --watch $L\n");
  shell.ReadUntil(kFrameEnd);
  shell.Write("\x1a");
  shell.ReadUntil("\x1b[?1049l");
  shell.ReadUntil("ready> ");
  shell.Write("stty -a | grep -o ' [-]*echo '\n");
  shell.ReadUntil(" echo ");
  shell.ReadUntil("ready> ");
  shell.Write("fg\n");
  shell.ReadUntil("\x1b[?1049h");
  shell.ReadUntil(kFrameEnd);
  shell.Write("\x03");
  shell.ReadUntil("\x1b[?1049l");
  shell.ReadUntil("ready> ");
  shell.Write("echo status $?.\n");
  shell.ReadUntil("status 130.");
}

TEST_CASE("a watcher that loses its servers says so above the last picture, and continues") {
  const std::string lock = NewLock("screen");
  Proxy proxy(TestServers());
  Child watcher = InspectOnTerminal({"--watch", "--connect-timeout", "2s", lock}, 24, 100,
                                    {"ZKLOCK_SERVERS=" + proxy.address(), "NO_COLOR=1"});
  watcher.ReadUntil(kFrameEnd);
  proxy.Freeze();
  proxy.Cut();
  watcher.ReadUntil("no server answers: this is the state as of 20");
  CHECK_THAT(watcher.ReadUntil(kFrameEnd), Catch::Contains(lock));
  // This is longer than --connect-timeout.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  CHECK_FALSE(watcher.HasEnded());
  proxy.Thaw();
  const Child holder = StartHolder(lock);
  const std::string after = watcher.ReadUntil("sh");
  CHECK_THAT(after, !Catch::Contains("no server answers"));
  watcher.Write("\x03");
  CHECK(watcher.Wait() == Killed(SIGINT));
}

TEST_CASE("a watcher never dates its picture later than a server's last answer") {
  Proxy proxy(TestServers());
  Child watcher = InspectOnTerminal({"--watch", "--session-timeout", "8s", NewLock("screen")}, 24,
                                    100, {"ZKLOCK_SERVERS=" + proxy.address(), "NO_COLOR=1"});
  watcher.ReadUntil(kFrameEnd);
  proxy.Freeze();
  const std::time_t frozen_at = std::time(nullptr);
  watcher.ReadUntil("this is the state as of ");
  const std::string shown = watcher.ReadUntil("\n");
  std::tm local{};
  REQUIRE(strptime(shown.c_str(), "%Y-%m-%d %H:%M:%S", &local) != nullptr);
  local.tm_isdst = -1;
  CHECK(std::mktime(&local) <= frozen_at);
  watcher.Write("\x03");
  CHECK(watcher.Wait() == Killed(SIGINT));
}

TEST_CASE("a watcher that finds no server restores the screen before it reports the error") {
  Child watcher = InspectOnTerminal({"--watch", "--connect-timeout", "1s", "/t/screen"}, 24, 80,
                                    {"ZKLOCK_SERVERS=127.0.0.1:1"});
  watcher.ReadUntil("\x1b[?1049l");
  watcher.ReadUntil("zklock: ");
  CHECK(watcher.Wait() == Exited(69));
}

TEST_CASE("on a terminal a queue has colours unless they are disabled") {
  const std::string lock = NewLock("screen");
  const Child holder = StartHolder(lock);
  const auto shown = [&](const Words& environment) {
    Child child = InspectOnTerminal({lock}, 24, 80, environment);
    child.ReadToEnd();
    return child.out();
  };
  CHECK_THAT(shown({}), Catch::Contains("\x1b[32mheld\x1b[0m"));
  for (const char* const refusal : {"NO_COLOR=1", "TERM=dumb", "TERM="}) {
    CAPTURE(refusal);
    CHECK(shown({refusal}).find('\x1b') == std::string::npos);
  }
}

TEST_CASE("lines fit the terminal, or $COLUMNS without one") {
  const std::string lock = NewLock("screen");
  const Child holder = StartHolder({"exclusive", "--label", std::string(300, 'x')}, lock);
  Child child = InspectOnTerminal({lock}, 24, 70, {"NO_COLOR=1", "COLUMNS=33"});
  child.ReadToEnd();
  CHECK_THAT(child.out(), Catch::Contains("xxx…"));
  for (const std::string& line : Lines(child.out())) CHECK(line.size() <= 70 + 3);
  ChildOptions piped = Zklock({"inspect", lock});
  CHECK_THAT(Run(piped).out, Catch::Contains(std::string(300, 'x')));
  piped.also_environment = {"COLUMNS=60"};
  CHECK_THAT(Run(piped).out, Catch::Contains("x…"));
}

}  // namespace
}  // namespace zklock::test
